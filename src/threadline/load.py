"""Read one session, its main transcript and its agents' transcripts, into memory; no index."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path

from threadline.account import Ledger, compute_charges, shipped_rates, with_origin
from threadline.errors import Error
from threadline.files import open_transcript
from threadline.find import parse_session_id, session_transcripts, sibling_transcripts, transcript_at
from threadline.model import session as model
from threadline.model.context import Context, Request
from threadline.model.entries import ChainEntry, Entry, PrLinkEntry
from threadline.model.homes import Transcript, TranscriptKind, counterpart_paths
from threadline.model.places import AgentId, Place, Problem, ProblemKind, SessionId
from threadline.model.session import AgentKind
from threadline.model.state import State
from threadline.model.usage import Sighting
from threadline.parse import (
    LineNumbers,
    entries,
    heads,
    read_agent_meta,
    read_sightings,
)
from threadline.thread import (
    AgentFile,
    OtherSession,
    analyze_context,
    assemble_agents,
    detect_continuations,
    rebuild_request,
    session_tag,
    session_title,
    state_at,
)

# Copies begin as their originals begin, so the first heads of a transcript tell whether it can be one.
_FIRST_HEADS = 40


# The names that backups have. A transcript may name anything; nothing else is opened.
_BACKUP_NAME = re.compile(r"[0-9A-Za-z]{1,128}@v[0-9]{1,9}")
_MAX_BACKUP_BYTES = 64 * 1024 * 1024


class Session(model.Session, frozen=True):
    """A session that was read from its transcripts; what it has is in `threadline.model.session.Session`."""

    def at(self, place: Place | str | int | None = None) -> State:
        """The state as it stood at a place: files as far as proven, todo and task lists, model, mode, context size.

        A number is a line of the main transcript, counted from 1. Without a place, the state at the end. The place's
        own entry has happened.
        """
        if isinstance(place, int):
            place = Place(str(self.path), place)
        return state_at(self, Place.parse(place) if isinstance(place, str) else place, backup_reader(self))

    @property
    def ledger(self) -> Ledger:
        """What the session spent, its agents' included, counted anew from its transcripts.

        What it copied from a session that it continues is that one's, as long as that one's transcript is there. Whole
        homes are counted by `threadline.ledger`.
        """
        return session_ledger(self)

    def context(
        self, *, agent: AgentId | str | None = None, at: Place | str | int | None = None, turn: int | None = None
    ) -> Context:
        """What was in the window: for each turn how much, what of it came from the cache, and what filled it.

        Of the main agent, or of `agent`; filled as at the end, or at a place or a turn.
        """
        place = Place(str(self.path), at) if isinstance(at, int) else Place.parse(at) if isinstance(at, str) else at
        return analyze_context(self, agent, place, turn)

    def request(self, number: int) -> Request:
        """What the model saw of the main agent's request of that number, where the transcript tells (2.1.280 on)."""
        return rebuild_request(self.main.entries, number)


def read(path: str | Path, *, continued: bool = True) -> Session:
    """Read a session: its main transcript and the transcripts of its agents.

    Args:
        path: the main transcript. An agent's transcript is read as a session of its own.
        continued: look at the other sessions of the same folder for what this one continues and what continues it.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    place = Path(path)
    found = tuple(entries(place))
    id_ = _session_id(place, found)
    files, journal, problems = _read_agent_files(place, id_)
    main, agents = assemble_agents(found, files, journal)
    others = _related_sessions(place, found) if continued else []
    return Session(
        id=id_,
        path=place,
        main=main,
        agents=agents,
        title=session_title(found, main.acts),
        tag=session_tag(found),
        continuations=tuple(detect_continuations(id_, found, others)),
        pr_links=tuple({e.pr_url: e for e in found if isinstance(e, PrLinkEntry)}.values()),
        file_problems=tuple(problems),
    )


def read_beginning(path: str | Path, *, most: int, many: int) -> Session:
    """What the first so many bytes, or lines, of a main transcript tell, without its agents: enough to begin to read.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    place = Path(path)
    few = takewhile(lambda entry: entry.line.offset + len(entry.line.raw) <= most, entries(place))
    found = tuple(islice(few, many))
    main, agents = assemble_agents(found, [], [])
    return Session(
        id=_session_id(place, found), path=place, main=main, agents=agents, title=session_title(found, main.acts)
    )


def find_continuations(session: model.Session) -> tuple[model.Continuation, ...]:
    """What a session that was read without looking at others continues, and what continues it."""
    if session.path is None:
        return session.continuations
    # Agents that lie inside the main transcript have taken their rows with them.
    own = [entry for entry in session if entry.line.transcript == str(session.path)]
    found = tuple(sorted(own, key=lambda entry: entry.line.offset))
    return tuple(detect_continuations(session.id, found, _related_sessions(session.path, found)))


def session_ledger(session: model.Session) -> Ledger:
    """The charges that a session owns, counted over its transcripts and those of the sessions it shares some with."""
    table = shipped_rates()
    if session.path is None:
        return Ledger((), table)
    related = [
        path
        for continuation in session.continuations
        if continuation.session
        for path in _transcripts_beside(session.path, continuation.session)
    ]
    seen: list[Sighting] = []
    problems: list[Problem] = []
    own = [session.path, *_same_session_elsewhere(session.path)]
    for path in (*own, *related):
        below, beside = session_transcripts(path)
        id_ = session.id if path in own else SessionId(path.stem.lower())
        for transcript in (transcript_at(path), *below, *(one for one in beside if _names_session(one, id_))):
            told = read_sightings(transcript)
            if told.problem is not None:
                place = Place(str(transcript.path))
                problems.append(Problem(ProblemKind.UNREADABLE, place, told.problem, recovered=False))
            project = session.cwds[0] if session.cwds else transcript.folder
            seen.extend(with_origin(told, transcript, project, LineNumbers(str(transcript.path))))
    charges = (charge for charge in compute_charges(seen, table) if charge.session == session.id)
    return Ledger(charges, table, problems)


def backup_reader(session: model.Session) -> Callable[[str], bytes | None]:
    """Gives the backups in the session's `file-history/` folder of its home, by name."""
    path = session.path.absolute() if session.path is not None else None
    above = path.parents if path is not None else ()
    folder = above[2] / "file-history" / str(session.id) if len(above) > 2 else None  # noqa: PLR2004 - home/projects/folder

    def backup(name: str) -> bytes | None:
        if folder is None or not _BACKUP_NAME.fullmatch(name):
            return None
        for path in (folder / name, *map(Path, counterpart_paths(folder / name))):
            with suppress(Error, OSError), os.fdopen(open_transcript(path), "rb") as file:
                return file.read(_MAX_BACKUP_BYTES)
        return None

    return backup


def _same_session_elsewhere(main: Path) -> list[Path]:
    """Return the other main transcripts of the same session: a session that moves to another project is split."""
    projects = main.absolute().parent.parent
    if projects.name != "projects" or parse_session_id(main.stem) is None:
        return []
    with suppress(OSError):
        return sorted(path for folder in projects.iterdir() if (path := folder / main.name) != main and path.is_file())
    return []


def _transcripts_beside(main: Path, session: SessionId) -> list[Path]:
    """Return the transcripts of another session of the same folder, in its home and in the keep.

    The id is what a row says: it may contain slashes or be too long for a file name. Then there are none.
    """
    name = f"{session}.jsonl"
    if os.path.basename(name) != name:  # noqa: PTH119 - text
        return []
    path = main.with_name(name)
    candidates = [path, *map(Path, counterpart_paths(path))]
    return [path for path in candidates if os.path.isfile(path)]  # noqa: PTH113 - Path's raises


def _session_id(path: Path, found: tuple[Entry, ...]) -> SessionId | None:
    """Return the id in the file's name. If the name is no session id, return the id that most entries name."""
    if (own := parse_session_id(path.stem)) is not None:
        return own
    named = Counter(entry.session_id for entry in found if entry.session_id is not None)
    by_name = SessionId(path.stem.lower())
    if by_name in named or (not named and path.suffix == ".jsonl"):
        return by_name
    return max(named, key=named.__getitem__, default=None)


def _read_agent_files(main: Path, id_: SessionId | None) -> tuple[list[AgentFile], list[Entry], list[Problem]]:
    """The agents' transcripts, the rows of all others (workflows' journals), and what could not be read."""
    below, beside = session_transcripts(main)
    own = [one for one in beside if one.path != main and _names_session(one, id_)]
    files: list[AgentFile] = []
    journal: list[Entry] = []
    problems: list[Problem] = []
    for transcript in (*below, *own):
        try:
            if transcript.agent is not None:
                files.append(_read_agent_file(transcript))
            else:
                journal.extend(entries(transcript.path))
        except Error as error:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
    return files, journal, problems


def _names_session(transcript: Transcript, id_: SessionId | None) -> bool:
    """Whether an agent's transcript that lies beside the sessions belongs to this one: it says so inside."""
    try:
        named = (head.session_id for head in islice(heads(transcript.path), _FIRST_HEADS))
        return id_ is not None and next((one for one in named if one is not None), None) == id_
    except Error:
        return False


def _read_agent_file(transcript: Transcript) -> AgentFile:
    kinds = {TranscriptKind.WORKFLOW_AGENT: AgentKind.WORKFLOW}
    kind = kinds.get(transcript.kind, AgentKind.BELOW if transcript.session else AgentKind.BESIDE)
    return AgentFile(
        path=transcript.path,
        id=transcript.agent or AgentId(transcript.path.stem),
        kind=kind,
        run=transcript.run,
        meta=read_agent_meta(transcript.meta) if transcript.meta is not None else None,
        entries=tuple(entries(transcript.path)),
    )


def _related_sessions(main: Path, found: tuple[Entry, ...]) -> list[OtherSession]:
    """The sessions of the same folder that share a beginning with this one."""
    mine = {mark for entry in found for mark in _entry_ids(entry)}
    return [
        OtherSession(SessionId(other.path.stem.lower()), tuple(entries(other.path)))
        for other in sibling_transcripts(main)
        if other.kind is TranscriptKind.MAIN and _shares_beginning(other.path, mine)
    ]


def _entry_ids(entry: Entry) -> set[str]:
    message = getattr(entry, "message", None)
    ids = {entry.uuid if isinstance(entry, ChainEntry) else None, getattr(message, "id", None)}
    leaf = getattr(entry, "leaf_uuid", None)
    return {str(id_) for id_ in (*ids, leaf) if id_}


def _shares_beginning(path: Path, mine: set[str]) -> bool:
    seen = 0
    try:
        for head in heads(path):
            ids = (head.uuid, head.leaf_uuid, head.message.id if head.message is not None else None)
            if any(id_ in mine for id_ in ids):
                return True
            seen += head.uuid is not None  # any number of titles may stand before the conversation
            if seen == _FIRST_HEADS:
                return False
    except Error:
        return False
    return False
