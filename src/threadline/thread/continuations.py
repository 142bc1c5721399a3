"""Find which session a session continues, and which sessions continue it.

Old versions copied the history into a new file on every resume; forks, branches and background hand-overs still do. A
copy keeps the ids of its entries, or gets new ones and keeps the messages' ids. Its rows may even keep the old
session's id. Only the rows themselves show which session is the original: the one that began first.

Versions up to 2.1.112 put a summary of the previous conversation at the top of a new file. It names the last entry of
that conversation, which may be in any transcript of any home (`SummaryLinks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.model.entries import (
    AssistantEntry,
    ChainEntry,
    ContinuedInEntry,
    Entry,
    RelocatedEntry,
    SummaryEntry,
    TeleportedFromEntry,
    UserEntry,
)
from threadline.model.names import parse_version
from threadline.model.places import EntryId, SessionId, is_uuid
from threadline.model.session import Continuation, ContinuationKind
from threadline.model.times import sortable_time
from threadline.model.titles import NO_LINKS, SummaryLinks
from threadline.thread.acts import act_of

_Fingerprint = tuple[str, ...]
# Before this version a resume copied the history; from it on, only forks do.
_RESUME_APPENDS_SINCE = (2, 0)


class OtherSession(Struct, frozen=True):
    """Another session of the same project, read completely: it may contain the originals of copies, or copies."""

    id: SessionId
    entries: tuple[Entry, ...]


def detect_continuations(
    id_: SessionId | None,
    entries: Sequence[Entry],
    others: Iterable[OtherSession] = (),
    links: SummaryLinks = NO_LINKS,
    agent_entries: Iterable[Entry] = (),
) -> list[Continuation]:
    """Return all evidence of what this session continues, and what continues it.

    `links` are the summaries of all transcripts. `agent_entries` are those of the session's agents: a summary may name
    one of them.
    """
    mine = EntryFingerprints(entries)
    continuations = list(_recorded_continuations(id_, entries))
    for other in others:
        theirs = EntryFingerprints(other.entries)
        shared = _shared_continuation(id_, entries, mine, other, theirs)
        if shared is not None:
            continuations = [
                continuation
                for continuation in continuations
                if continuation.session != other.id or continuation.kind is ContinuationKind.SUMMARY
            ]
            continuations.append(shared)
    continuations += _previous_sessions(id_, entries, mine, links)
    if links.summaries:
        continuations += _next_sessions(id_, {*mine.uuids, *(entry.uuid for entry in agent_entries)}, links)
    return continuations


def _previous_sessions(
    id_: SessionId | None, entries: Sequence[Entry], mine: EntryFingerprints, links: SummaryLinks
) -> Iterator[Continuation]:
    """Yield the sessions that summaries in this one name, each once."""
    previous: dict[SessionId, EntryId] = {}
    missing: list[EntryId] = []
    for leaf in _foreign_leaves(entries, mine):
        owners = links.owners.get(leaf, ())
        previous |= {session: leaf for session in owners if session not in previous and session != id_}
        missing += [leaf] if not owners else []
    for session, leaf in previous.items():
        yield Continuation(ContinuationKind.SUMMARY, session, f"its summary names {leaf}")
    for leaf in missing:
        yield Continuation(ContinuationKind.SUMMARY, None, f"its summary names {leaf}, which is missing")


def _next_sessions(id_: SessionId | None, uuids: Collection[str | None], links: SummaryLinks) -> Iterator[Continuation]:
    """Yield the sessions whose summaries name one of these entries, each once."""
    following: dict[SessionId, str] = {}
    for ref in links.summaries:
        if ref.session is not None and ref.session != id_ and ref.leaf in uuids:
            following.setdefault(ref.session, ref.leaf)
    for session, leaf in following.items():
        yield Continuation(ContinuationKind.SUMMARY, session, f"a summary in it names {leaf}", forward=True)


class EntryFingerprints:
    """Identifies entries in another transcript: by their ids, their message, or their text."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.uuids: dict[EntryId, ChainEntry] = {}
        self.marks: dict[_Fingerprint, EntryId] = {}
        self._order: list[EntryId | None] = []
        counts: Counter[_Fingerprint] = Counter()
        for entry in entries:
            self._order.append(entry.uuid)
            if not isinstance(entry, ChainEntry) or entry.uuid is None:
                continue
            if entry.uuid not in self.uuids:
                mark = _fingerprint(entry)
                if mark is not None:
                    self.marks[(*mark, str(counts[mark]))] = entry.uuid
                    counts[mark] += 1
            self.uuids[entry.uuid] = entry

    def rows_between(self, shared: set[EntryId]) -> int:
        """Return how many other rows are between the first and the last of these."""
        at = [number for number, uuid in enumerate(self._order) if uuid in shared]
        return at[-1] - at[0] + 1 - len(at) if at else 0


def _fingerprint(entry: ChainEntry) -> _Fingerprint | None:
    """Return what a copy with a new id keeps: the message's id, or a prompt's text."""
    if isinstance(entry, AssistantEntry) and entry.message is not None and entry.message.id and not entry.is_synthetic:
        return ("message", entry.message.id)
    if isinstance(entry, UserEntry):
        call = entry.call_id
        if call is not None:
            return ("result", call)
        return ("text", entry.text) if entry.text else None
    return None


def _recorded_continuations(id_: SessionId | None, entries: Sequence[Entry]) -> Iterator[Continuation]:
    """Yield what the rows themselves say."""
    branched: dict[SessionId | None, dict[EntryId, EntryId]] = {}
    for entry in entries:
        if isinstance(entry, ChainEntry) and entry.forked_from is not None and entry.uuid is not None:
            copies = branched.setdefault(entry.forked_from.session_id, {})
            copies[entry.uuid] = entry.forked_from.message_uuid or entry.uuid
    for session, copies in branched.items():
        yield Continuation(ContinuationKind.BRANCH, session, "forkedFrom on its rows", copies=copies)
    yield from _foreign_rows(id_, entries)
    last: dict[type[Entry], Entry] = {type(entry): entry for entry in entries}
    for row in last.values():
        match row:
            case ContinuedInEntry(continued_in_session_id=str(session)):
                yield Continuation(ContinuationKind.CLEARED, SessionId(session), "a continued-in row", forward=True)
            case RelocatedEntry(relocated_cwd=str(cwd)):
                yield Continuation(ContinuationKind.RELOCATED, id_, f"moved to {cwd}")
            case TeleportedFromEntry(remote_session_id=str(remote)):
                yield Continuation(ContinuationKind.TELEPORTED, SessionId(remote), "a teleported-from row")
    first = next((act for entry in entries if (act := act_of(entry)) is not None), None)
    if first is not None and first.text.split(" ")[0] == "/clear":
        yield Continuation(ContinuationKind.CLEARED, None, "it begins with /clear")


def _foreign_rows(id_: SessionId | None, entries: Sequence[Entry]) -> Iterator[Continuation]:
    """Yield rows that still name the session they were copied from."""
    named: dict[SessionId, dict[EntryId, EntryId]] = {}
    for entry in entries:
        other = entry.session_id
        is_chain = isinstance(entry, ChainEntry) and entry.forked_from is None
        if is_chain and other is not None and other != id_ and entry.uuid is not None:
            named.setdefault(other, {})[entry.uuid] = entry.uuid
    kind = _copy_kind(entries) if named else ContinuationKind.FORK
    is_renamed = len(named) == 1 and all(entry.session_id != id_ for entry in entries)
    for session, copies in named.items():
        if is_renamed and not (is_uuid(id_ or "") and is_uuid(session)):
            continue  # nothing was copied: the file has another name than Claude Code gave it
        yield Continuation(kind, session, f"{len(copies)} of its rows name that session", copies=copies)


def _foreign_leaves(entries: Sequence[Entry], mine: EntryFingerprints) -> list[EntryId]:
    """Return the entries that summaries in the file name but the file lacks: those summarize other sessions."""
    leaves = (entry.leaf_uuid for entry in entries if isinstance(entry, SummaryEntry))
    return list(dict.fromkeys(leaf for leaf in leaves if leaf is not None and leaf not in mine.uuids))


def _shared_continuation(
    id_: SessionId | None,
    entries: Sequence[Entry],
    mine: EntryFingerprints,
    other: OtherSession,
    theirs: EntryFingerprints,
) -> Continuation | None:
    copies = {uuid: uuid for uuid in mine.uuids if uuid in theirs.uuids}
    by = "ids"
    if not copies:
        # A message's id is proof. The same text alone is not.
        pairs = {mark: uuid for mark, uuid in mine.marks.items() if mark in theirs.marks}
        if not any(mark[0] == "message" for mark in pairs):
            return None
        copies = {uuid: theirs.marks[mark] for mark, uuid in pairs.items()}
        by = "messages' ids"
    forward = _is_original(mine, theirs, id_, other.id)
    source = other.entries if forward else entries
    if forward:
        copies = {original: copy for copy, original in copies.items()}
    kind = _copy_kind(source)
    return Continuation(kind, other.id, f"{len(copies)} entries with the same {by}", forward=forward, copies=copies)


def _is_original(mine: EntryFingerprints, theirs: EntryFingerprints, id_: SessionId | None, other: SessionId) -> bool:
    """Whether this session has the originals.

    More of the rows name it; or it has rows of its own (titles, queue, bookkeeping) among those that both have, while a
    copy has those in one run; or the rows that only it has begin first.
    """
    shared = {uuid for uuid in mine.uuids if uuid in theirs.uuids}
    rows_by_session = Counter(mine.uuids[uuid].session_id for uuid in shared)
    rows_by_session.update(theirs.uuids[uuid].session_id for uuid in shared)
    if rows_by_session[id_] != rows_by_session[other]:
        return rows_by_session[id_] > rows_by_session[other]
    rows_among = mine.rows_between(shared), theirs.rows_between(shared)
    if rows_among[0] != rows_among[1]:
        return rows_among[0] > rows_among[1]
    return (_own_start(mine, theirs), str(id_)) < (_own_start(theirs, mine), str(other))


def _own_start(fingerprints: EntryFingerprints, other: EntryFingerprints) -> str:
    """Return when the rows that are only here began: a copy continues later than its original was when copied."""
    entries = (entry for uuid, entry in fingerprints.uuids.items() if uuid not in other.uuids)
    return min(filter(None, (sortable_time(entry.timestamp_text) for entry in entries)), default="")


def _copy_kind(entries: Sequence[Entry]) -> ContinuationKind:
    chained = [entry for entry in entries if isinstance(entry, ChainEntry)]
    if any(entry.forked_from is not None for entry in chained):
        return ContinuationKind.BRANCH
    if any(entry.session_kind == "bg" for entry in chained):
        return ContinuationKind.BACKGROUND
    newest = max((parse_version(entry.version) for entry in chained if entry.version), default=())
    return ContinuationKind.FORK if newest >= _RESUME_APPENDS_SINCE else ContinuationKind.RESUMED_COPY
