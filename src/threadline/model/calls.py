"""Tool calls with their results and outcomes, and the short forms of calls and files that lists show."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.model.blocks import McpToolResultBlock, ServerResultBlock, ToolResultBlock
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.results import ResultValue, typed_result
from threadline.model.text import extract_text

AGENT_TOOLS = frozenset({"Task", "Agent"})
"""The tools whose only purpose is to start an agent."""


class Outcome(StrEnum):
    """How a call ended, by evidence and never by searching for the word "error"."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    PENDING = "pending"
    LOST = "lost"


ResultBlock = ToolResultBlock | ServerResultBlock | McpToolResultBlock
"""What a call's result can stand in: most are `tool_result`, those of tools the API runs have types of their own."""


class Call(Struct, frozen=True):
    """A tool use paired with its result.

    `answer` is the entry that holds the result: a user's, save for tools that the API runs itself. `evidence` says what
    the outcome rests on; `agent` is the agent that made the call (None: the main one), `turn` the number of the
    session's turn it was made in (of an agent's call: in which the agent was started; None where that is not known),
    `agent_turn` that of the agent's own, `started` the agent it started, `persisted` the file its output was put into.
    `feedback` is what the person said when refusing it, in their own words.
    """

    id: CallId
    tool: str
    input: Any
    entry: AssistantEntry
    outcome: Outcome
    evidence: str
    answer: UserEntry | AssistantEntry | None = None
    block: ResultBlock | None = None
    agent: AgentId | None = None
    turn: int | None = None
    agent_turn: int | None = None
    started: AgentId | None = None
    persisted: Path | None = None
    feedback: str | None = None

    @property
    def place(self) -> Place:
        """Where the call stands."""
        return self.entry.place

    @property
    def timestamp(self) -> datetime | None:
        """When it was made."""
        return self.entry.timestamp

    @property
    def duration(self) -> timedelta | None:
        """The time from the call to its result, as the two rows tell it."""
        start, end = self.entry.timestamp, self.answer.timestamp if self.answer else None
        return end - start if start and end and end >= start else None

    @property
    def result(self) -> ResultValue:
        """The tool's own result, typed by tool; None when there is none."""
        return typed_result(self.answer.tool_use_result, self.tool) if isinstance(self.answer, UserEntry) else None

    @property
    def output(self) -> str:
        """What the model saw of the result, as text."""
        return extract_text(self.block.content) if self.block is not None else ""

    def __repr__(self) -> str:
        return f"Call({self.tool!r}, {_summarize_input(self.input)!r}, {str(self.outcome)!r}, line {self.place.line})"


# The inputs that tell best what a call is about, best first; where there is none of them, the first that is text.
_SUMMARY_KEYS = (
    "command",
    "description",
    "file_path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "skill",
    "prompt",
    "path",
)
_SUMMARY_LENGTH = 40


def _summarize_input(given: Any) -> str:
    """The input that tells what the call is about: its first line, short."""
    inputs = given if isinstance(given, dict) else {}
    texts = (value for value in (*map(inputs.get, _SUMMARY_KEYS), *inputs.values()) if isinstance(value, str))
    line = next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _SUMMARY_LENGTH else line[: _SUMMARY_LENGTH - 1] + "…"


class ListedCall(Struct, frozen=True):
    """A call: what tool, how it ended, by whom, and where it and its result stand.

    `agent` made it (None: the main one), and `started_agent` is the one that it started.
    """

    id: CallId
    tool: str
    outcome: Outcome
    timestamp: datetime | None
    ended: datetime | None
    exit_code: int | None
    session: SessionId | None
    agent: AgentId | None
    started_agent: AgentId | None
    project: str
    place: Place
    result_place: Place | None = None

    @property
    def duration(self) -> timedelta | None:
        """The time from the call to its result, as the two entries tell it."""
        start, end = self.timestamp, self.ended
        return end - start if start is not None and end is not None and end >= start else None


class ListedFile(Struct, frozen=True):
    """A file that a session touched: how often it was read and written, and when first and last."""

    path: str
    session: SessionId | None
    project: str
    reads: int
    writes: int
    first: datetime | None
    last: datetime | None
