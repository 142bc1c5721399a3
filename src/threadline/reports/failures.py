"""Find failed calls and failed API requests in sessions, with the evidence for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from msgspec import Struct

from threadline.errors import Error
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, SystemEntry
from threadline.model.homes import Transcript
from threadline.model.places import AgentId, EntryId, SessionId
from threadline.model.session import Session
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.render import api_error_text, summarize_input
from threadline.thread import find_acts, find_calls, split_into_turns

FAILED_OUTCOMES = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)
_API_ERROR = "api-error"
_MAX_TEXT = 2000
_ERROR_TAGS = re.compile(r"</?tool_use_error>")


class Failure(Struct, frozen=True):
    """One thing that went wrong.

    `what` is the outcome of a call or `api-error`; `text` is how the result or the error begins; `evidence` says what
    it is known by; `copy_of` is the entry's id in the session that a branch copied it from.
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


class TranscriptFailures(Struct, frozen=True):
    """What went wrong in one transcript, and when that ends: of two that hold the same, the original ends first."""

    found: list[Failure] = []
    last: datetime | None = None


def session_failures(session: Session) -> list[Failure]:
    """All that went wrong in a session, in order of time."""
    told = {id(entry): turn.number for turn in session.turns for entry in turn.entries}
    found = list(_failed_calls(session.calls))
    for agent in (session.main, *session.agents):
        found += (_api_failure(entry, agent.id, told.get(id(entry))) for entry in agent.entries if _is_api_error(entry))
    return sort_and_dedupe(found)


def transcript_failures(transcript: Transcript) -> TranscriptFailures:
    """All that went wrong in one transcript, without what only the whole session tells (the turns of agents)."""
    try:
        listed = list(entries(transcript.path))
    except Error:
        return TranscriptFailures()
    made = split_into_turns(listed, find_acts(listed)) if transcript.agent is None else []
    told = {id(entry): turn.number for turn in made for entry in turn.entries}
    found = list(_failed_calls(find_calls(listed, agent=transcript.agent, turns=made)))
    found += (_api_failure(entry, transcript.agent, told.get(id(entry))) for entry in listed if _is_api_error(entry))
    return TranscriptFailures(
        found, max((when for entry in listed if (when := entry.timestamp) is not None), default=None)
    )


def find_failures(
    transcripts: Iterable[Transcript], *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> list[Failure]:
    """All that went wrong in these transcripts, in order of time, each once; on all cores where that pays."""
    found: list[tuple[Transcript, TranscriptFailures]] = []
    for transcript, some in map_transcripts(transcript_failures, transcripts, jobs=jobs):
        found.append((transcript, some))
        if progress is not None:
            progress(transcript.size)
    return merge_failures(found)


def merge_failures(seen: Iterable[tuple[Transcript, TranscriptFailures]]) -> list[Failure]:
    """What went wrong in many transcripts, in order of time; what was copied is the original's."""
    first = datetime.min.replace(tzinfo=UTC)
    ordered = sorted(seen, key=lambda pair: (pair[1].last or first, str(pair[0].path)))
    return sort_and_dedupe(one for _, some in ordered for one in some.found)


def sort_and_dedupe(found: Iterable[Failure]) -> list[Failure]:
    """In order of time, each once: copies of a session repeat its entries."""
    ordered = sorted(
        found, key=lambda failure: (failure.timestamp is not None, failure.timestamp or 0, failure.copy_of is not None)
    )
    seen: set[tuple[object, ...]] = set()
    kept = []
    for failure in ordered:
        mark = (failure.copy_of or failure.uuid or failure.place, failure.what, failure.tool, failure.input)
        if mark not in seen:
            seen.add(mark)
            kept.append(failure)
    return kept


def _failed_calls(made: Iterable[Call]) -> Iterator[Failure]:
    for call in made:
        if call.outcome in FAILED_OUTCOMES:
            yield Failure(
                timestamp=call.timestamp,
                what=str(call.outcome),
                tool=call.tool,
                input=summarize_input(call.tool, call.input),
                text=_ERROR_TAGS.sub("", call.output[:_MAX_TEXT]),
                evidence=call.evidence,
                session=call.entry.session_id,
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


def _api_failure(entry: Entry, agent: AgentId | None, turn: int | None) -> Failure:
    is_system = isinstance(entry, SystemEntry)
    return Failure(
        timestamp=entry.timestamp,
        what=_API_ERROR,
        tool=None,
        input="",
        text=(api_error_text(entry) if isinstance(entry, SystemEntry) else str(getattr(entry, "text", "")))[:_MAX_TEXT],
        evidence="system/api_error" if is_system else "isApiErrorMessage",
        session=entry.session_id,
        agent=agent,
        turn=turn,
        place=str(entry.place),
        uuid=entry.uuid,
        copy_of=_original_id(entry),
    )
