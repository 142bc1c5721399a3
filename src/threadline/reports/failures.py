"""Find failed calls and failed API requests in sessions, with the evidence for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, SystemEntry
from threadline.model.homes import Transcript, side_agent_kind_by_id
from threadline.model.names import names_tool
from threadline.model.places import AgentId, EntryId, Place, SessionId, match_ids
from threadline.model.session import Session
from threadline.model.tables import Listing
from threadline.model.times import FIRST_MOMENT, is_within
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.thread import find_acts, find_calls, split_into_turns

FAILED_OUTCOMES = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)
_API_ERROR = "api-error"
FAILURES = (*map(str, FAILED_OUTCOMES), _API_ERROR)
"""The values of `Failure.what`."""
_MAX_TEXT = 2000
_MAX_REPR = 60
_ERROR_TAGS = re.compile(r"</?tool_use_error>")

InputSummary = Callable[[str, Any], str]
"""Summarizes the input of a call, given the tool and the input, in one line."""


class Failure(Struct, frozen=True):
    """A failed call or API request.

    `what` is the outcome of the call, or `api-error`. `text` is the beginning of the result or error. `evidence` says
    how the failure is known. `copy_of` is the entry's id in the session that a branch copied it from. `project` is the
    project's path, if it is known.
    """

    timestamp: datetime | None
    what: str
    tool: str | None
    input: str
    text: str
    evidence: str
    session: SessionId | None
    agent: AgentId | None
    turn: int | None
    place: str
    uuid: EntryId | None
    copy_of: EntryId | None = None
    project: str | None = None

    def __repr__(self) -> str:
        return f"Failure({self.what!r}, {self.tool!r}, {self.text[:_MAX_REPR]!r}, {self.place!r})"


class FailureFilter(Struct, frozen=True):
    """Which failures to return: those that match all fields that are set.

    `session` is the start of an id, `project` a part of the project's path, ignoring case. `tools` are names of tools,
    old or new, ignoring case, unless `exact_tools`. `outcomes` are values of `Failure.what`. A failure without a time
    is in no period.
    """

    session: str | None = None
    project: str | None = None
    tools: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    exact_tools: bool = False

    def apply(self, failures: Iterable[Failure], projects: Mapping[str, str]) -> FailureList:
        """Return the matching failures; with a limit, the newest. `projects` has the project of each transcript."""
        in_projects = (
            replace(failure, project=projects.get(Place.parse(failure.place).transcript)) for failure in failures
        )
        return self.select(in_projects)

    def select(self, failures: Iterable[Failure]) -> FailureList:
        """Return the matching failures, whose projects are known; with a limit, the newest."""
        candidates = list(failures)
        if self.session is not None:
            sessions = frozenset(match_ids(self.session, (failure.session for failure in candidates)))
            candidates = [failure for failure in candidates if failure.session in sessions]
        matches = [failure for failure in candidates if self._matches(failure)]
        shown = matches if self.limit is None else matches[max(0, len(matches) - self.limit) :]
        return FailureList(shown, len(matches) - len(shown))

    def _matches(self, failure: Failure) -> bool:
        return (
            (self.project is None or self.project.casefold() in (failure.project or "").casefold())
            and (not self.tools or names_tool(self.tools, failure.tool or "", exact=self.exact_tools))
            and (not self.outcomes or failure.what in self.outcomes)
            and ((self.since is None and self.until is None) or is_within(failure.timestamp, self.since, self.until))
        )


class FailureList(Listing[Failure]):
    """Failed calls and requests, oldest first."""

    row_type = Failure
    noun = "failure"
    html_columns = ("timestamp", "session", "agent", "what", "tool", "input", "text")


class TranscriptFailures(Struct, frozen=True):
    """The failures in one transcript, and its last time."""

    failures: list[Failure] = []
    last: datetime | None = None


def session_failures(session: Session, summarize: InputSummary) -> list[Failure]:
    """Return the failures in a session, oldest first."""
    turns = {id(entry): turn.number for turn in session.turns for entry in turn.entries}
    failures = list(_failed_calls(session.calls, session.id, summarize))
    for agent in (session.main, *session.agents):
        failures += (
            _api_failure(entry, session.id, agent.id, turns.get(id(entry)))
            for entry in agent.entries
            if _is_api_error(entry)
        )
    project = session.cwds[0] if session.cwds else None
    return sort_and_dedupe(replace(failure, project=project) for failure in failures)


def transcript_failures(transcript: Transcript, *, summarize: InputSummary) -> TranscriptFailures:
    """Return the failures in one transcript, without facts that need the whole session (the turns of agents)."""
    try:
        transcript_entries = list(entries(transcript.path))
    except Error:
        return TranscriptFailures()
    turns = split_into_turns(transcript_entries, find_acts(transcript_entries)) if transcript.agent is None else []
    numbers = {id(entry): turn.number for turn in turns for entry in turn.entries}
    calls = find_calls(transcript_entries, agent=transcript.agent, turns=turns)
    failures = list(_failed_calls(calls, transcript.session, summarize))
    failures += (
        _api_failure(entry, transcript.session, transcript.agent, numbers.get(id(entry)))
        for entry in transcript_entries
        if _is_api_error(entry)
    )
    times = (when for entry in transcript_entries if (when := entry.timestamp) is not None)
    return TranscriptFailures(failures, max(times, default=None))


def find_failures(
    transcripts: Iterable[Transcript],
    summarize: InputSummary,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Failure]:
    """Return the failures in these transcripts, oldest first, each once. Uses all cores if that pays."""
    read = map_transcripts(partial(transcript_failures, summarize=summarize), transcripts, jobs=jobs, progress=progress)
    ordered = sorted(read, key=lambda pair: _original_first_key(*pair))
    return sort_and_dedupe(failure for _, failures in ordered for failure in failures.failures)


def _original_first_key(transcript: Transcript, failures: TranscriptFailures) -> tuple[object, ...]:
    """Sort key: of a failure that several transcripts contain, the first one counts.

    Agents may repeat rows of the thread that started them, and side agents repeat those of any agent. A copy of a
    session ends later than the original.
    """
    agent = transcript.agent
    is_side = agent is not None and side_agent_kind_by_id(agent) is not None
    return agent is not None, is_side, failures.last or FIRST_MOMENT, str(transcript.path)


def sort_and_dedupe(failures: Iterable[Failure]) -> list[Failure]:
    """Sort failures by time and keep each once: copies of a session repeat its entries."""
    ordered = sorted(
        failures,
        key=lambda failure: (failure.timestamp is not None, failure.timestamp or 0, failure.copy_of is not None),
    )
    unique: dict[tuple[object, ...], Failure] = {}
    for failure in ordered:
        key = (failure.copy_of or failure.uuid or failure.place, failure.what, failure.tool, failure.input)
        unique.setdefault(key, failure)
    return list(unique.values())


def _failed_calls(calls: Iterable[Call], session: SessionId | None, summarize: InputSummary) -> Iterator[Failure]:
    for call in calls:
        if call.outcome in FAILED_OUTCOMES:
            yield Failure(
                timestamp=call.timestamp,
                what=str(call.outcome),
                tool=call.tool,
                input=summarize(call.tool, call.input),
                text=_ERROR_TAGS.sub("", call.output[:_MAX_TEXT]),
                evidence=call.evidence,
                session=session or call.entry.session_id,
                agent=call.agent,
                turn=call.turn,
                place=str(call.place),
                uuid=call.entry.uuid,
                copy_of=_original_id(call.entry),
            )


def _original_id(entry: Entry) -> EntryId | None:
    fork = entry.forked_from if isinstance(entry, ChainEntry) else None
    return fork.message_uuid if fork is not None else None


def _is_api_error(entry: Entry) -> bool:
    if isinstance(entry, AssistantEntry):
        return bool(entry.is_api_error_message)
    return isinstance(entry, SystemEntry) and entry.subtype == "api_error"


def _api_failure(entry: Entry, session: SessionId | None, agent: AgentId | None, turn: int | None) -> Failure:
    is_system = isinstance(entry, SystemEntry)
    text = entry.api_error_text if isinstance(entry, SystemEntry) else str(getattr(entry, "text", ""))
    return Failure(
        timestamp=entry.timestamp,
        what=_API_ERROR,
        tool=None,
        input="",
        text=text[:_MAX_TEXT],
        evidence="system/api_error" if is_system else "isApiErrorMessage",
        session=session or entry.session_id,
        agent=agent,
        turn=turn,
        place=str(entry.place),
        uuid=entry.uuid,
        copy_of=_original_id(entry),
    )
