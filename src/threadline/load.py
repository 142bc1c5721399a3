"""One transcript and its agents to one session; no database."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path

from threadline.account.charges import charges
from threadline.account.ledger import Ledger
from threadline.account.placed import placed
from threadline.account.rates import shipped
from threadline.errors import Error
from threadline.find import main_transcripts_beside, session_transcripts, transcript_at
from threadline.model import session as model
from threadline.model.agent import AgentKind
from threadline.model.context import Context
from threadline.model.entries import ChainEntry, Entry, PrLinkEntry
from threadline.model.found import Home, SideFile, SideFileKind, Transcript, TranscriptKind
from threadline.model.ids import AgentId, SessionId
from threadline.model.kept import twins
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.request import Request
from threadline.model.side import AgentMeta
from threadline.model.sighting import Sighting
from threadline.model.state import State
from threadline.parse import entries, heads, read_side_file
from threadline.parse.chunks import open_transcript
from threadline.parse.line_numbers import LineNumbers
from threadline.parse.sightings import sightings
from threadline.thread.agents import AgentFile, assemble
from threadline.thread.context import context
from threadline.thread.continuations import OtherSession, continuations
from threadline.thread.requests import rebuild
from threadline.thread.state import state_at
from threadline.thread.titles import tag, title

# Copies begin as their originals begin, so the first heads of a transcript tell whether it can be one.
_FIRST_HEADS = 40


# The names that backups have. A transcript may name anything; nothing else is opened.
_BACKUP = re.compile(r"[0-9A-Za-z]{1,128}@v[0-9]{1,9}")
_MOST = 64 * 1024 * 1024


class Session(model.Session, frozen=True):
    """A session that was read from its transcripts; what it has is in `threadline.model.session.Session`."""

    def at(self, place: Place | str | int | None = None) -> State:
        """The state as it stood at a place: files as far as proven, todo and task lists, model, mode, context size.

        A number is a line of the main transcript, counted from 1. Without a place, the state at the end. The place's
        own entry has happened.
        """
        if isinstance(place, int):
            place = Place(str(self.path), place)
        return state_at(self, Place.parse(place) if isinstance(place, str) else place, backups_of(self))

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
        return context(self, agent, place, turn)

    def request(self, number: int) -> Request:
        """What the model saw of the main agent's request of that number, where the transcript tells (2.1.280 on)."""
        return rebuild(self.main.entries, number)


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
    files, journal, problems = _agent_files(place, id_)
    main, agents = assemble(found, files, journal)
    others = _others(place, found) if continued else []
    return Session(
        id=id_,
        path=place,
        main=main,
        agents=agents,
        title=title(found, main.acts),
        tag=tag(found),
        continuations=tuple(continuations(id_, found, others)),
        pr_links=tuple({e.pr_url: e for e in found if isinstance(e, PrLinkEntry)}.values()),
        file_problems=tuple(problems),
    )


def beginning(path: str | Path, *, most: int, many: int) -> Session:
    """What the first so many bytes, or lines, of a main transcript tell, without its agents: enough to begin to read.

    Raises:
        NotFound: there is no such file.
        Unreadable: the machine refuses to let it be read.
    """
    place = Path(path)
    few = takewhile(lambda entry: entry.line.offset + len(entry.line.raw) <= most, entries(place))
    found = tuple(islice(few, many))
    main, agents = assemble(found, [], [])
    return Session(id=_session_id(place, found), path=place, main=main, agents=agents, title=title(found, main.acts))


def continuations_of(session: model.Session) -> tuple[model.Continuation, ...]:
    """What a session that was read without looking at others continues, and what continues it."""
    if session.path is None:
        return session.continuations
    # Agents that lie inside the main transcript have taken their rows with them.
    own = [entry for entry in session if entry.line.transcript == str(session.path)]
    found = tuple(sorted(own, key=lambda entry: entry.line.offset))
    return tuple(continuations(session.id, found, _others(session.path, found)))


def session_ledger(session: model.Session) -> Ledger:
    """The charges that a session owns, counted over its transcripts and those of the sessions it shares some with."""
    table = shipped()
    if session.path is None:
        return Ledger((), table)
    related = [path for one in session.continuations if one.session for path in _beside(session.path, one.session)]
    seen: list[Sighting] = []
    problems: list[Problem] = []
    for path in (session.path, *(path for path in related if path.is_file())):
        below, beside = session_transcripts(path)
        id_ = session.id if path == session.path else SessionId(path.stem.lower())
        for transcript in (transcript_at(path), *below, *(one for one in beside if _names(one, id_))):
            told = sightings(transcript)
            if told.problem is not None:
                place = Place(str(transcript.path))
                problems.append(Problem(ProblemKind.UNREADABLE, place, told.problem, recovered=False))
            project = session.cwds[0] if session.cwds else transcript.folder
            seen.extend(placed(told, transcript, project, LineNumbers(str(transcript.path))))
    own = (charge for charge in charges(seen, table) if charge.session == session.id)
    return Ledger(own, table, problems)


def backups_of(session: model.Session) -> Callable[[str], bytes | None]:
    """Gives the backups in the session's `file-history/` folder of its home, by name."""
    path = session.path.absolute() if session.path is not None else None
    above = path.parents if path is not None else ()
    folder = above[2] / "file-history" / str(session.id) if len(above) > 2 else None  # noqa: PLR2004 - home/projects/folder

    def backup(name: str) -> bytes | None:
        if folder is None or not _BACKUP.fullmatch(name):
            return None
        for path in (folder / name, *map(Path, twins(folder / name))):
            with suppress(Error, OSError), os.fdopen(open_transcript(path), "rb") as file:
                return file.read(_MOST)
        return None

    return backup


def _beside(main: Path, session: SessionId) -> list[Path]:
    """The transcript of another session of the same folder, in its home or in what was kept of it."""
    path = main.with_name(f"{session}.jsonl")
    return [path, *map(Path, twins(path))]


def _session_id(path: Path, found: tuple[Entry, ...]) -> SessionId | None:
    """The file's name where it is an id that any entry confirms or none contradicts; else the id most entries name."""
    named = Counter(entry.session_id for entry in found if entry.session_id is not None)
    by_name = SessionId(path.stem.lower())
    if by_name in named or (not named and path.suffix == ".jsonl"):
        return by_name
    return max(named, key=named.__getitem__, default=None)


def _agent_files(main: Path, id_: SessionId | None) -> tuple[list[AgentFile], list[Entry], list[Problem]]:
    """The agents' transcripts, the rows of all others (workflows' journals), and what could not be read."""
    below, beside = session_transcripts(main)
    own = [one for one in beside if one.path != main and _names(one, id_)]
    files: list[AgentFile] = []
    journal: list[Entry] = []
    problems: list[Problem] = []
    for transcript in (*below, *own):
        try:
            if transcript.agent is not None:
                files.append(_agent_file(transcript))
            else:
                journal.extend(entries(transcript.path))
        except Error as error:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
    return files, journal, problems


def _names(transcript: Transcript, id_: SessionId | None) -> bool:
    """Whether an agent's transcript that lies beside the sessions belongs to this one: it says so inside."""
    try:
        named = (head.session_id for head in islice(heads(transcript.path), _FIRST_HEADS))
        return id_ is not None and next((one for one in named if one is not None), None) == id_
    except Error:
        return False


def _agent_file(transcript: Transcript) -> AgentFile:
    kinds = {TranscriptKind.WORKFLOW_AGENT: AgentKind.WORKFLOW}
    kind = kinds.get(transcript.kind, AgentKind.BELOW if transcript.session else AgentKind.BESIDE)
    return AgentFile(
        path=transcript.path,
        id=transcript.agent or AgentId(transcript.path.stem),
        kind=kind,
        run=transcript.run,
        meta=_meta(transcript.meta) if transcript.meta is not None else None,
        entries=tuple(entries(transcript.path)),
    )


def _meta(path: Path) -> AgentMeta | None:
    side = SideFile(path, Home(path.parent, "path"), SideFileKind.AGENT_META, 0)
    try:
        content = read_side_file(side).content
    except Error:
        return None
    return content if isinstance(content, AgentMeta) else None


def _others(main: Path, found: tuple[Entry, ...]) -> list[OtherSession]:
    """The sessions of the same folder that share a beginning with this one."""
    mine = {mark for entry in found for mark in _marks(entry)}
    return [
        OtherSession(SessionId(path.stem.lower()), tuple(entries(path)))
        for path in main_transcripts_beside(main)
        if _begins_with(path, mine)
    ]


def _marks(entry: Entry) -> set[str]:
    message = getattr(entry, "message", None)
    ids = {entry.uuid if isinstance(entry, ChainEntry) else None, getattr(message, "id", None)}
    leaf = getattr(entry, "leaf_uuid", None)
    return {str(one) for one in (*ids, leaf) if one}


def _begins_with(path: Path, mine: set[str]) -> bool:
    seen = 0
    try:
        for head in heads(path):
            ids = (head.uuid, head.leaf_uuid, head.message.id if head.message is not None else None)
            if any(one in mine for one in ids):
                return True
            seen += head.uuid is not None  # any number of titles may stand before the conversation
            if seen == _FIRST_HEADS:
                return False
    except Error:
        return False
    return False
