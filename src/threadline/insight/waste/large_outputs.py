"""Large outputs that nothing refers to later.

An output counts if it has at least `large_output` tokens and none of its distinctive words occurs in anything that the
same agent wrote afterwards: replies, thinking, calls. A word is distinctive if it has at least five letters or digits
and occurs in nothing that the agent or the person wrote before. An output without such words is not judged, and
neither is one of the last calls, after which the agent wrote nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.model.blocks import ThinkingBlock, ToolUseBlock
from threadline.model.calls import Outcome
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.session import Agent
from threadline.model.text import extract_text
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line, summarize_call

_WORD = re.compile(r"[A-Za-z0-9_]{5,64}")
_MIN_WORDS = 10
_MAX_LABEL = 60
_ADVICE = "Limit the output: ask for fewer lines, search instead of reading, or let an agent read it and report."


def detect(facts: SessionFacts, limits: WasteLimits) -> Iterator[Waste]:
    """Yield each large output without a later reference."""
    for agent in facts.agents:
        large = [
            call
            for call in agent.calls
            if call.outcome is Outcome.OK
            and call.answer is not None
            and sum(cause.tokens for cause in facts.causes_of(call, results_only=True)) >= limits.large_output
        ]
        if not large:
            continue
        words = _WordsByLine(agent)
        for call in large:
            line = call.answer.line.number if call.answer is not None else 0
            distinctive = {word.lower() for word in _WORD.findall(call.output)} - words.before(line)
            later = words.after(line)
            if len(distinctive) < _MIN_WORDS or not later or distinctive & later:
                continue
            waste = waste_of_calls(
                "large-output",
                facts,
                [call],
                label=one_line(f"{call.tool} {summarize_call(call.tool, call.input)}", _MAX_LABEL),
                evidence=f"none of its {len(distinctive):,} distinctive words occurs in what was written later",
                advice=_ADVICE,
                results_only=True,
            )
            if waste is not None:
                yield waste


class _WordsByLine:
    """The words that an agent and the person wrote, by line."""

    def __init__(self, agent: Agent) -> None:
        self._written = [(entry.line.number, words) for entry in agent.entries if (words := _words_of(entry))]

    def before(self, line: int) -> set[str]:
        """The words of everything written before a line."""
        return set().union(*(words for number, words in self._written if number < line))

    def after(self, line: int) -> set[str]:
        """The words of everything written after a line."""
        return set().union(*(words for number, words in self._written if number > line))


def _words_of(entry: Entry) -> set[str]:
    if isinstance(entry, AssistantEntry):
        blocks = list(entry.message.blocks) if entry.message is not None else []
        texts = [
            block.thinking or "" if isinstance(block, ThinkingBlock) else repr(block.input)
            for block in blocks
            if isinstance(block, ThinkingBlock | ToolUseBlock)
        ]
        return {word.lower() for text in (entry.text, *texts) for word in _WORD.findall(text)}
    if isinstance(entry, UserEntry) and entry.tool_use_result is None:
        return {word.lower() for word in _WORD.findall(extract_text(entry))}
    return set()
