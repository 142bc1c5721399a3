"""Large outputs that nothing refers to later.

An output counts if it has at least `large_output` tokens and none of its distinctive words occurs in anything that the
same agent wrote afterwards: replies, thinking, calls. A word is distinctive if it has at least five letters or digits
and occurs in nothing that the agent or the person wrote before. Numbers count as well, because a summary often repeats
only those: "all 15 tests pass". An output without such words is not judged, and neither is one of the last calls, after
which the agent wrote nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from threadline.insight.waste.detector import Detector, Finding, WasteContext, call_label
from threadline.model.blocks import ThinkingBlock, ToolUseBlock
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.insight.waste import WasteLimits
from threadline.model.session import Agent
from threadline.model.text import extract_text

_WORD = re.compile(r"[a-z0-9_]{5,64}")
_NUMBER = re.compile(r"(?<![\w.])[0-9]{2,4}(?!\w|\.\d)")
_MIN_WORDS = 10


def _detect(context: WasteContext, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each large output without a later reference."""
    for agent in context.agents:
        large = [
            call
            for call in agent.calls
            if call.outcome is Outcome.OK
            and call.answer is not None
            and context.result_tokens(call) >= limits.large_output
        ]
        if not large:
            continue
        words = _WrittenTerms(agent, _WORD)
        numbers = cache(lambda agent=agent: _WrittenTerms(agent, _NUMBER))  # few outputs get that far
        for call in large:
            new = words.new_terms(call)
            if len(new) >= _MIN_WORDS and not words.has_any_after(new, call):
                if numbers().has_any_after(numbers().new_terms(call), call):
                    continue
                evidence = f"none of its {len(new):,} distinctive words occurs in what was written later"
                yield context.calls_finding([call], label=call_label(call), evidence=evidence, results_only=True)


LARGE_OUTPUTS = Detector(
    "large-output",
    "Limit the output: ask for fewer lines, search instead of reading, or let an agent read it and report.",
    _detect,
)


class _WrittenTerms:
    """The terms that an agent and the person wrote: the positions of the first and last entry with each."""

    def __init__(self, agent: Agent, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._positions = {id(entry): at for at, entry in enumerate(agent.entries)}
        self._end = -1
        for at, entry in enumerate(agent.entries):
            text = _written_text(entry)
            if text:
                self._end = at
                terms = set(pattern.findall(text.lower()))
                self._last.update(dict.fromkeys(terms, at))
                self._first.update(dict.fromkeys(terms.difference(self._first), at))

    def new_terms(self, call: Call) -> set[str]:
        """The terms in the output of a call that were not written before; none if nothing was written after it."""
        at = self._positions.get(id(call.answer))
        if at is None or at >= self._end:
            return set()
        first = self._first.get
        return {term for term in set(self._pattern.findall(call.output.lower())) if first(term, at) >= at}

    def has_any_after(self, terms: set[str], call: Call) -> bool:
        """Whether one of the terms was written after the output of a call."""
        at = self._positions[id(call.answer)]
        last = self._last.get
        return any(last(term, at) > at for term in terms)


def _written_text(entry: Entry) -> str:
    if isinstance(entry, AssistantEntry):
        blocks = entry.message.blocks if entry.message is not None else ()
        texts = [
            block.thinking or "" if isinstance(block, ThinkingBlock) else repr(block.input)
            for block in blocks
            if isinstance(block, ThinkingBlock | ToolUseBlock)
        ]
        return "\n".join((entry.text, *texts))
    return extract_text(entry) if isinstance(entry, UserEntry) and entry.tool_use_result is None else ""
