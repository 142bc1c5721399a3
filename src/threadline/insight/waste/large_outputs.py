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

from threadline.insight.waste.facts import Detector, Finding, SessionFacts, call_label
from threadline.model.blocks import ThinkingBlock, ToolUseBlock
from threadline.model.calls import Outcome
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.session import Agent
from threadline.model.text import extract_text
from threadline.model.waste import WasteLimits

_WORD = re.compile(r"[a-z0-9_]{5,64}|(?<![\w.])[0-9]{2,4}(?!\w|\.\d)")
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
            at = written.position(call.answer) if written is not None and call.answer is not None else None
            if written is None or at is None or written.last_position <= at:
                continue
            words = written.new_words(_words(call.output), at)
            if len(words) >= _MIN_WORDS and not written.has_any_after(words, at):
                evidence = f"none of its {len(words):,} distinctive words occurs in what was written later"
                yield facts.calls_finding([call], label=call_label(call), evidence=evidence, results_only=True)


LARGE_OUTPUTS = Detector(
    "large-output",
    "Limit the output: ask for fewer lines, search instead of reading, or let an agent read it and report.",
    detect,
)


class _WrittenWords:
    """The words that an agent and the person wrote: the positions of the first and last entry with each."""

    def __init__(self, agent: Agent) -> None:
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._positions = {id(entry): at for at, entry in enumerate(agent.entries)}
        self.last_position = -1
        for at, entry in enumerate(agent.entries):
            words = _words(_written_text(entry))
            if words:
                self.last_position = at
                self._last.update(dict.fromkeys(words, at))
                self._first.update(dict.fromkeys(words.difference(self._first), at))

    def position(self, entry: Entry) -> int | None:
        """The position of an entry; None if it is another agent's."""
        return self._positions.get(id(entry))

    def new_words(self, words: set[str], at: int) -> set[str]:
        """The words that were not written before a position."""
        first = self._first.get
        return {word for word in words if first(word, at) >= at}

    def has_any_after(self, words: set[str], at: int) -> bool:
        """Whether one of the words was written after a position."""
        last = self._last.get
        return any(last(word, at) > at for word in words)


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
