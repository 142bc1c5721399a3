"""Tool calls with their results and outcomes, and the short forms of calls and files that lists show."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.model.blocks import McpToolResultBlock, ServerResultBlock, ToolResultBlock
from threadline.model.call_summary import strip_program_tags, summarize_call
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.program_texts import REFUSED_BY_PERSON
from threadline.model.results import ResultValue, typed_result
from threadline.model.tables import Listing
from threadline.model.text import count, extract_text, fold_line


class Outcome(StrEnum):
    """How a call ended, by evidence and never by searching for the word "error"."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    PENDING = "pending"
    LOST = "lost"


_SUMMARY_LENGTH = 40

ResultBlock = ToolResultBlock | ServerResultBlock | McpToolResultBlock
"""The blocks that contain a call's result. Most are `tool_result`; tools that the API runs have their own types."""


class Call(Struct, frozen=True):
    """A tool use paired with its result.

    - `answer` is the entry with the result: a user entry, except for tools that the API runs itself.
    - `evidence` says how the outcome was determined.
    - `agent` is the agent that made the call (None for the main one).
    - `turn` is the number of the session's turn; for an agent's call, the turn in which the agent was started (None if
      unknown). `agent_turn` is the number of the agent's own turn.
    - `started` is the agent that it started, `persisted` the file with its output.
    - `feedback` is what the person wrote when refusing it.
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
        """The place of the call."""
        return self.entry.place

    @property
    def timestamp(self) -> datetime | None:
        """When it was made."""
        return self.entry.timestamp

    @property
    def duration(self) -> timedelta | None:
        """The time between the rows of the call and its result."""
        start, end = self.entry.timestamp, self.answer.timestamp if self.answer else None
        return end - start if start and end and end >= start else None

    @property
    def result(self) -> ResultValue:
        """The tool's own result, typed by tool; None if there is none."""
        return typed_result(self.answer.tool_use_result, self.tool) if isinstance(self.answer, UserEntry) else None

    @property
    def output(self) -> str:
        """What the model saw of the result, as text."""
        return extract_text(self.block.content) if self.block is not None else ""

    def __repr__(self) -> str:
        summary = fold_line(summarize_call(self.tool, self.input), _SUMMARY_LENGTH)
        return f"Call({self.tool!r}, {summary!r}, {str(self.outcome)!r}, line {self.place.line})"


def is_refusal_note(call: Call) -> bool:
    """Whether the output of a call only tells the model that a person refused it."""
    if call.outcome is not Outcome.DENIED:
        return False
    return bool(call.feedback) or strip_program_tags(call.output).startswith(REFUSED_BY_PERSON)


class ListedCall(Struct, frozen=True):
    """A call in a list: tool, outcome, agent, and the places of the call and its result.

    `agent` is the agent that made it (None for the main one). `started_agent` is the agent that it started.
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
        """The time between the entries of the call and its result."""
        start, end = self.timestamp, self.ended
        return end - start if start is not None and end is not None and end >= start else None

    def __repr__(self) -> str:
        return f"ListedCall({self.tool!r}, {str(self.outcome)!r}, {str(self.place)!r})"

    def record(self, input_: str) -> dict[str, Any]:
        """A row for programs. The turn and the evidence are not known without reading the session."""
        return call_record(
            session=self.session,
            project=self.project,
            timestamp=self.timestamp,
            turn=None,
            agent=self.agent,
            tool=self.tool,
            input_=input_,
            outcome=self.outcome,
            evidence=None,
            exit_code=self.exit_code,
            duration=self.duration,
            started_agent=self.started_agent,
            call=self.id,
            place=self.place,
            result_place=self.result_place,
        )


def call_record(
    *,
    session: SessionId | None,
    project: str | None,
    timestamp: datetime | None,
    turn: int | None,
    agent: AgentId | None,
    tool: str,
    input_: str,
    outcome: Outcome,
    evidence: str | None,
    exit_code: int | None,
    duration: timedelta | None,
    started_agent: AgentId | None,
    call: CallId,
    place: Place,
    result_place: Place | None,
) -> dict[str, Any]:
    """A call as a row for programs: the same keys in every command and on every page. `input_` is one line."""
    return {
        "session": session,
        "project": project,
        "timestamp": timestamp,
        "turn": turn,
        "agent": agent,
        "tool": tool,
        "input": input_,
        "outcome": str(outcome),
        "evidence": evidence,
        "exit_code": exit_code,
        "seconds": duration.total_seconds() if duration is not None else None,
        "started_agent": started_agent,
        "call": call,
        "place": str(place),
        "result_place": str(result_place) if result_place is not None else None,
    }


class ListedFile(Struct, frozen=True):
    """A file that a session touched: how often it was read and written, and when first and last."""

    path: str
    session: SessionId | None
    project: str
    reads: int
    writes: int
    first: datetime | None
    last: datetime | None

    def __repr__(self) -> str:
        touches = f"{count(self.reads, 'read')}, {count(self.writes, 'write')}"
        return f"ListedFile({self.path!r}, session {self.session!r}, {touches})"


class FileList(Listing[ListedFile]):
    """Files that sessions touched, those touched last first."""

    row_type = ListedFile
    noun = "file"


class ToolGroup(Struct, frozen=True):
    """The calls of a tool, server, program, model, version, day, week or project.

    - `errors` are failed calls; `exit_codes` are those of them that are commands with an exit code other than 0.
    - `denied` were refused, `interrupted` stopped, `lost` never got a result, and `pending` have none yet.
    - `median` and `p95` are durations in seconds, of calls that ended by themselves (ok or error).
    - `output_tokens` is the size of the results, and `carried` what it cost in USD to send them and to carry them with
      later requests. Both depend on estimates if `estimated`; None if costs were not asked for.
    """

    key: str
    calls: int
    ok: int
    errors: int
    exit_codes: int
    denied: int
    interrupted: int
    lost: int
    pending: int
    median: float | None
    p95: float | None
    output_tokens: int | None = None
    carried: Decimal | None = None
    estimated: bool = False

    @property
    def failure_rate(self) -> float:
        """The share of calls that did not succeed, of those that ended."""
        ended = self.calls - self.pending
        return (ended - self.ok) / ended if ended else 0.0

    def __repr__(self) -> str:
        return f"ToolGroup({self.key!r}, {self.calls} calls, {self.errors} errors)"


class ToolGroups(Listing[ToolGroup]):
    """Calls added up, the most frequent first, or in order of time."""

    row_type = ToolGroup
    noun = "group"
    added = {"failure_rate": float}  # noqa: RUF012 - annotated in the base class
