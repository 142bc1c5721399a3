"""Large outputs that nothing refers to later.

An output counts if it has at least `large_output` tokens and none of its distinctive words occurs in anything that the
same agent wrote afterwards: replies, thinking, calls. A word is distinctive if it has at least five letters or digits
and occurs in nothing that the agent or the person wrote before. An output without such words is not judged, and
neither is one of the last calls, after which the agent wrote nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, SessionFacts, call_label
from threadline.model.blocks import ThinkingBlock, ToolUseBlock
from threadline.model.calls import Outcome
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.session import Agent
from threadline.model.text import extract_text
from threadline.model.waste import WasteLimits

_WORD = re.compile(r"[A-Za-z0-9_]{5,64}")
_MIN_WORDS = 10


def detect(facts: SessionFacts, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each large output without a later reference."""
    for agent in facts.agents:
        large = [
            call
            for call in agent.calls
            if call.outcome is Outcome.OK
            and call.answer is not None
            and facts.result_tokens(call) >= limits.large_output
        ]
        written = _WrittenWords(agent) if large else None
        for call in large:
            line = call.answer.line.number if call.answer is not None else 0
            if written is None or written.last_line <= line:
                continue
            words = {word for word in _words(call.output) if not written.occurs_before(word, line)}
            if len(words) >= _MIN_WORDS and not any(written.occurs_after(word, line) for word in words):
                evidence = f"none of its {len(words):,} distinctive words occurs in what was written later"
                yield facts.calls_finding([call], label=call_label(call), evidence=evidence, results_only=True)


LARGE_OUTPUTS = Detector(
    "large-output",
    "Limit the output: ask for fewer lines, search instead of reading, or let an agent read it and report.",
    detect,
)


class _WrittenWords:
    """The first and the last line in which an agent or the person wrote each word."""

    def __init__(self, agent: Agent) -> None:
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self.last_line = 0
        for entry in agent.entries:
            words = _words(_written_text(entry))
            line = entry.line.number
            if words:
                self.last_line = max(self.last_line, line)
            for word in words:
                self._first[word] = min(self._first.get(word, line), line)
                self._last[word] = max(self._last.get(word, line), line)

    def occurs_before(self, word: str, line: int) -> bool:
        """Whether a word was written before a line."""
        return self._first.get(word, line) < line

    def occurs_after(self, word: str, line: int) -> bool:
        """Whether a word was written after a line."""
        return self._last.get(word, line) > line


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


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
