"""Read one session into memory: its main transcript and its agents' transcripts. The index is not used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.account import (
    AgentResults,
    Ledger,
    Rates,
    cost_by_turn,
    ledger_from_sightings,
    shipped_rates,
    with_origin,
)
from threadline.errors import Error
from threadline.files import find_escaped, is_valid_path
from threadline.find import (
    DirectoryWalk,
    home_folder,
    home_of_path,
    home_of_transcript,
    is_regular_file,
    list_project_folders,
    look,
    note_session_links,
    other_folders,
    parse_agent_id,
    parse_session_id,
    path_change_time_ns,
    session_of_path,
    session_task_files,
    session_todo_files,
    session_transcripts,
    sibling_transcripts,
    transcript_at,
)
from threadline.home_files import read_in_home
from threadline.json_values import DECODE_ERRORS
from threadline.model import session as model
from threadline.model.context import Context, Request
from threadline.model.entries import ChainEntry, Entry, PrLinkEntry
from threadline.model.homes import NO_HOMES, Home, Homes, Transcript, TranscriptKind
from threadline.model.ledger import SessionCosts
from threadline.model.places import AgentId, Place, Problem, ProblemKind, SessionId
from threadline.model.session import AgentKind
from threadline.model.state import FileEdit, ListSource, State, TaskState, TodoState
from threadline.model.times import moment_from_mtime
from threadline.model.titles import NO_LINKS, SummaryLinks, SummaryRef
from threadline.model.usage import Sighting
from threadline.parse import (
    FIRST_HEADS,
    LineNumbers,
    TranscriptLinks,
    entries,
    find_lines,
    heads,
    load_entries,
    named_session,
    read_agent_meta,
    read_sightings,
    read_task,
    read_todos,
)
from threadline.thread import (
    AgentFile,
    OtherSession,
    analyze_context,
    assemble_agents,
    detect_continuations,
    file_log,
    merge_side_lists,
    rebuild_request,
    session_tag,
    session_title,
    state_at,
)

_Content = TypeVar("_Content")

# The names of backups. A transcript may contain any name; no other file is opened.
_BACKUP_NAME = re.compile(r"[0-9A-Za-z]{1,128}@v[0-9]{1,9}")
_MAX_BACKUP_BYTES = 64 * 1024 * 1024
_START_BYTES = 64 * 1024
_ENTRY_IDS = re.compile(rb'"(?:id|uuid|requestId)"\s*:\s*"([^"\\]{1,200})"')


class Session(model.Session, frozen=True):
    """A session read from its transcripts. Its fields are those of `threadline.model.session.Session`."""

    def at(self, place: Place | str | int | None = None) -> State:
        """Return the state at a place: proven file contents, todo and task lists, model, mode and context size.

        A number is a line of the main transcript, counted from 1. The default is the end. The state includes the
        effects of the entry at the place.

        At the end, the lists are also read from the files under `todos/` and `tasks/`, which have only the last state;
        the newest state wins, and `source` says where it is from.
        """
        if isinstance(place, int):
            place = Place(str(self.path), place)
        state = state_at(self, Place.parse(place) if isinstance(place, str) else place, backup_reader(self))
        return merge_side_lists(state, *_read_side_lists(self)) if place is None else state

    def file_log(self, path: str) -> tuple[FileEdit, ...]:
        """Return every edit of the files whose path is `path` or ends with it, as diffs, oldest first.

        `Archive.file_log` lists the edits of all sessions.
        """
        return file_log(self, path, backup_reader(self))

    @property
    def ledger(self) -> Ledger:
        """The charges of the session and its agents, counted from its transcripts each time.

        Messages copied from a session that it continues belong to that session, as long as its transcript exists.
        `threadline.ledger` counts whole homes.
        """
        return session_ledger(self)

    @property
    def costs(self) -> SessionCosts:
        """What each turn and each agent spent, from the session's ledger."""
        charges = read_session_charges(self)
        shared = {row.keys["session"]: row for row in charges.shared.by("session")}
        return replace(cost_by_turn(self, charges.own), shared=shared)

    def context(
        self, *, agent: AgentId | str | None = None, at: Place | str | int | None = None, turn: int | None = None
    ) -> Context:
        """Return what was in the context window: its size after each turn, the cached part, and what filled it.

        `agent` is the main agent by default. The content is that at the end, or at a place or turn.
        """
        place = Place(str(self.path), at) if isinstance(at, int) else Place.parse(at) if isinstance(at, str) else at
        return analyze_context(self, agent, place, turn)

    def request(self, number: int) -> Request:
        """Rebuild one request of the main agent as the model saw it. Transcripts contain that from 2.1.325 on."""
        return rebuild_request(self.main.entries, number)


def read(
    path: str | Path, *, continued: bool = True, homes: Sequence[Home] = (), links: SummaryLinks | None = None
) -> Session:
    """Read a session: its main transcript and the transcripts of its agents.

    Args:
        path: the main transcript. An agent's transcript is read as a session of its own.
        continued: also search other sessions: for those that this one continues, for those that continue it, and for a
            summary that titles this one.
        homes: the homes of an archive (`Archive.homes`). Some files of the session may exist only in kept homes.
        links: the summaries of these homes (`Archive.links`). By default they are searched in the transcripts of the
            homes or, without `homes`, of the home that contains the path.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file cannot be read.
    """
    main_path = find_escaped(path)
    main_entries = load_entries(main_path)
    id_ = _session_id(main_path, main_entries)
    all_homes = Homes(homes)
    files, journal, problems = _read_agent_files(main_path, id_, main_entries, all_homes)
    main, agents = assemble_agents(main_entries, files, journal)
    summary_links = links if links is not None else HomeLinks(main_path, all_homes) if continued else NO_LINKS
    others = _related_sessions(main_path, main_entries, all_homes) if continued else []
    agent_entries = (entry for file in files for entry in file.entries)
    continuations = detect_continuations(id_, main_entries, others, summary_links, agent_entries) if continued else ()
    return Session(
        id=id_,
        path=main_path,
        main=main,
        agents=agents,
        title=session_title(main_entries, main.acts, summary_links),
        tag=session_tag(main_entries),
        continuations=tuple(continuations),
        pr_links=tuple({entry.pr_url: entry for entry in main_entries if isinstance(entry, PrLinkEntry)}.values()),
        file_problems=tuple(problems),
        homes=all_homes,
    )


def read_beginning(path: str | Path, *, max_bytes: int, max_entries: int, homes: Homes = NO_HOMES) -> Session:
    """Read the beginning of a session, without its agents: enough to show a first page.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file cannot be read.
    """
    main_path = Path(path)
    fitting = takewhile(lambda entry: entry.line.offset + len(entry.line.raw) <= max_bytes, entries(main_path))
    first = tuple(islice(fitting, max_entries))
    main, agents = assemble_agents(first, [], [])
    return Session(
        id=_session_id(main_path, first),
        path=main_path,
        main=main,
        agents=agents,
        title=session_title(first, main.acts),
        homes=homes,
    )


def find_continuations(session: model.Session, links: SummaryLinks | None = None) -> tuple[model.Continuation, ...]:
    """Return the continuations of a session that was read with `continued=False`. `links` are those of `read`."""
    if session.path is None:
        return session.continuations
    # The entries of agents inside the main transcript belong to those agents, so they are not in `session.main`.
    unordered = [entry for entry in session if entry.line.transcript == str(session.path)]
    main_entries = tuple(sorted(unordered, key=lambda entry: entry.line.offset))
    others = _related_sessions(session.path, main_entries, session.homes)
    summary_links = links if links is not None else HomeLinks(session.path, session.homes)
    return tuple(detect_continuations(session.id, main_entries, others, summary_links, session))


def session_ledger(session: model.Session, rates: Rates | None = None) -> Ledger:
    """Return the charges that a session owns: those of its main transcript and its agents', at the shipped rates.

    A message that other transcripts contain as well belongs to one of them. Those are the sessions that it continues or
    that continue it, and all transcripts of its homes that share messages with it.
    """
    return read_session_charges(session, rates).own


class SessionCharges(Struct, frozen=True):
    """The charges in a session's transcripts: its own, and those that other transcripts own."""

    own: Ledger
    shared: Ledger


def read_session_charges(session: model.Session, rates: Rates | None = None) -> SessionCharges:
    """Count the messages in a session's transcripts, and say which of them are its own."""
    table = rates or shipped_rates()
    if session.path is None:
        return SessionCharges(Ledger((), table), Ledger((), table))
    own = [transcript_at(session.path, homes=session.homes), *agent_transcripts(session.path, session.homes, session)]
    own += _agents_elsewhere(session.path, {str(transcript.path) for transcript in own})
    paths = {str(transcript.path) for transcript in own}
    ranks = session.homes.ranks()
    sightings: list[Sighting] = []
    problems: list[Problem] = []
    results = AgentResults()
    directory = next(iter(session.cwds), None)
    for transcript in (*own, *_other_transcripts(session, paths)):
        reading = read_sightings(transcript)
        if reading.problem is not None:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, reading.problem, recovered=False))
        project = directory or transcript.folder
        lines = LineNumbers(str(transcript.path))
        if str(transcript.path) in paths:
            results.add(reading, transcript, project, lines)
        rank = next((rank for home, rank in ranks.items() if str(transcript.path).startswith(home + os.sep)), 0)
        sightings.extend(with_origin(reading, transcript, project, lines, rank))
    ledger = ledger_from_sightings(sightings, table, problems)
    charges = ledger.holding(None, paths)
    return SessionCharges(
        Ledger([charge for charge in charges if charge.origin.transcript in paths], table, problems, missing=results),
        Ledger([charge for charge in charges if charge.origin.transcript not in paths], table),
    )


def _agents_elsewhere(main: Path, known: set[str]) -> list[Transcript]:
    """Return agents' transcripts beside the sessions of other projects that name this session: see `SessionOwners`."""
    id_ = session_of_path(main)
    return [
        replace(agent, session=id_)
        for folder in other_folders(main)
        for agent in sibling_transcripts(folder / main.name, agents_only=True)
        if str(agent.path) not in known and _may_contain(agent.path, str(id_).encode())
        if named_session(agent.path) == id_
    ]


def _may_contain(path: Path, text: bytes) -> bool:
    return text in _read_start(path)


def _other_transcripts(session: model.Session, own: set[str]) -> list[Transcript]:
    """Return the transcripts outside of a session that contain some of its messages, in an order by path.

    Who owns a message depends on all transcripts that share messages, directly or through others. A copy begins like
    its original, so only the beginnings of transcripts are searched if they are not known.
    """
    if session.path is None:
        return []
    if session.sharing is not None:
        paths = {path for path in session.sharing if os.path.isfile(path)}  # noqa: PTH113 - Path's raises
        return [transcript_at(Path(path), homes=session.homes) for path in sorted(paths - own)]
    related = [
        path
        for continuation in session.continuations
        if continuation.session and continuation.kind is not model.ContinuationKind.SUMMARY  # that copies nothing
        for path in _transcripts_beside(session.path, continuation.session, session.homes)
    ]
    others = [
        transcript
        for main in (*_same_session_elsewhere(session.path), *related)
        for transcript in (transcript_at(main, homes=session.homes), *agent_transcripts(main, session.homes, ()))
    ]
    ids = {id_.encode(errors="surrogatepass") for entry in session for id_ in _entry_ids(entry)}
    remaining = [
        (transcript, frozenset(_ENTRY_IDS.findall(_read_start(transcript.path))))
        for transcript in _neighbours(session.path, session.homes)
    ]
    while sharing := [pair for pair in remaining if not ids.isdisjoint(pair[1])]:
        remaining = [pair for pair in remaining if ids.isdisjoint(pair[1])]
        others += [transcript for transcript, _ in sharing]
        ids = ids.union(*(own_ids for _, own_ids in sharing))
    by_path = {str(transcript.path): transcript for transcript in others}
    return [by_path[path] for path in sorted(by_path.keys() - own)]


def _neighbours(main: Path, homes: Homes) -> Iterator[Transcript]:
    """Yield the transcripts of the homes, or of the home that a transcript is in, or of its folder."""
    places: Sequence[Home] = homes
    if not any(main.absolute().is_relative_to(home.path) for home in homes):
        home = home_of_path(main)
        if home is None:
            yield from sibling_transcripts(main)
            return
        places = (Home(home, "path"),)
    for place in places:
        yield from look(place, side_files=False).transcripts


def _read_start(path: Path) -> bytes:
    """Return the first bytes of a transcript; none if it cannot be read."""
    with suppress(Error, OSError):
        return read_in_home(path, limit=_START_BYTES)
    return b""


def agent_transcripts(
    main: Path,
    homes: Homes = NO_HOMES,
    session_entries: Iterable[Entry] | None = None,
    walk: DirectoryWalk | None = None,
) -> list[Transcript]:
    """Return the agents' transcripts and journals of the session whose main transcript this is.

    Those beside it belong to the session if their entries name it. Outside of a home, the main transcript may have been
    renamed: then they still have the id that its entries have. Those in other folders of the homes belong to it if one
    of `session_entries` names their path; by default, an entry of the main transcript, which is searched for them.
    `walk` records what is not read.
    """
    below, beside = session_transcripts(main, homes=homes, walk=walk)
    id_ = session_of_path(main)
    if id_ is None:
        return below
    names = {id_} if not beside or home_of_transcript(main) is not None else {id_, named_session(main)}
    own = [*below, *(replace(agent, session=id_) for agent in beside if named_session(agent.path) in names - {None})]
    known = {os.path.realpath(transcript.path) for transcript in own}
    paths = dict.fromkeys(_find_agent_paths(main) if session_entries is None else _agent_paths(session_entries))
    return [*own, *(agent for path in paths if (agent := _named_agent(path, main, homes, known)) is not None)]


def _agent_paths(session_entries: Iterable[Entry]) -> Iterator[str]:
    return (
        entry.agent_transcript_path
        for entry in session_entries
        if isinstance(entry, ChainEntry) and entry.agent_transcript_path
    )


class _AgentPathRow(Struct):
    agent_transcript_path: str | None = None


_decode_agent_path = msgspec.json.Decoder(_AgentPathRow).decode


def _find_agent_paths(main: Path) -> Iterator[str]:
    with suppress(Error):
        for match in find_lines(main, b'"agent_transcript_path"'):
            for line in match.lines:
                with suppress(*DECODE_ERRORS):  # a text that quotes the word, or a damaged line
                    if path := _decode_agent_path(line).agent_transcript_path:
                        yield path


def _named_agent(name: str, main: Path, homes: Homes, known: set[str]) -> Transcript | None:
    """Return the agent's transcript that an entry names, if it is in a home and not another session's.

    An entry may contain any path: nothing outside of the homes is opened, not even through a link.
    """
    home = home_of_transcript(main)
    roots = [
        os.path.realpath(root / "projects") for root in (*([home] if home else []), *(home.path for home in homes))
    ]
    if not is_valid_path(name):
        return None
    for path in (Path(name), *homes.counterparts(name)):
        real = os.path.realpath(path)
        is_inside = any(real.startswith(root + os.sep) for root in roots)
        if not is_inside or real in known or parse_agent_id(os.path.basename(real)) is None:  # noqa: PTH119 - text
            continue
        id_, session = session_of_path(main), session_of_path(Path(real))
        if session not in (None, id_) or named_session(Path(real)) not in (None, id_):
            continue
        with suppress(OSError):
            known.add(real)
            return replace(transcript_at(Path(real), homes=homes), session=id_)
    return None


def backup_reader(session: model.Session) -> Callable[[str], bytes | None]:
    """Return a function that reads a backup in the session's `file-history/` folder by name.

    Both names come from the transcript. A backup that is a link, or in a linked folder, is not read; `read` lists it
    among the session's problems.
    """
    home = home_folder(session.path, session.homes) if session.path is not None else None
    folder = home / "file-history" / str(session.id) if home is not None else None

    def read_backup(name: str) -> bytes | None:
        if folder is None or not _BACKUP_NAME.fullmatch(name):
            return None
        for path in (folder / name, *session.homes.counterparts(folder / name)):
            with suppress(OSError):
                return read_in_home(path, limit=_MAX_BACKUP_BYTES, home=path.parents[2])
        return None

    return read_backup


def _read_side_lists(session: model.Session) -> tuple[list[TodoState], list[TaskState]]:
    """Read the lists of a session in `todos/` and `tasks/`. Their time is that of the file."""
    if session.path is None:
        return [], []
    todos = [
        TodoState(agent, Place(str(path), 1), tuple(content), modified, ListSource.FILE)
        for agent, path in session_todo_files(session.path, session.homes)
        for content, modified in _read_list_file(path, lambda path: read_todos(path, path.parents[1]))
    ]
    entry_teams = {getattr(entry, "team_name", None) for entry in session.main.entries}
    teams = {agent.team for agent in session.agents} | entry_teams
    tasks = [
        TaskState(content, Place(str(path), 1), modified, ListSource.FILE)
        for path in session_task_files(session.path, sorted(filter(None, teams)), session.homes)
        for content, modified in _read_list_file(path, lambda path: read_task(path, path.parents[2]))
        if content.id is not None
    ]
    return todos, tasks


def _read_list_file(
    path: Path, read_content: Callable[[Path], _Content | None]
) -> list[tuple[_Content, datetime | None]]:
    """Return the content of a file and its modification time, if it can be read."""
    with suppress(OSError):
        modified = moment_from_mtime(path.stat().st_mtime_ns)
        content = read_content(path)
        return [(content, modified)] if content is not None else []
    return []


def _same_session_elsewhere(main: Path) -> list[Path]:
    """Return the other main transcripts of the session: one that moves to another project has several."""
    projects = main.absolute().parent.parent
    if projects.name != "projects" or parse_session_id(main.stem) is None:
        return []
    paths = (projects / folder / main.name for folder in list_project_folders(projects))
    return [path for path in paths if path != main and is_regular_file(path)]


def _transcripts_beside(main: Path, session: SessionId, homes: Homes) -> list[Path]:
    """Return the transcripts of another session of the same folder, in its home and in kept homes.

    The id is what a row says: it may contain slashes or be too long for a file name. Then there are none.
    """
    name = f"{session}.jsonl"
    if os.path.basename(name) != name:  # noqa: PTH119 - text
        return []
    path = main.with_name(name)
    candidates = [path, *homes.counterparts(path)]
    return [path for path in candidates if is_regular_file(path)]


def _session_id(path: Path, main_entries: tuple[Entry, ...]) -> SessionId | None:
    """Return the id in the path: the file's name, or the session's directory for an agent's transcript.

    Only an agent's transcript beside the sessions has none there: its entries name the session.
    """
    return session_of_path(path) or next((entry.session_id for entry in main_entries if entry.session_id), None)


def _read_agent_files(
    main: Path, session: SessionId | None, main_entries: Iterable[Entry], homes: Homes
) -> tuple[list[AgentFile], list[Entry], list[Problem]]:
    """Read the agents' transcripts, and the entries of all others (workflow journals), with problems.

    Two transcripts of the same id, as in a copy, are one agent.
    """
    files: dict[AgentId, AgentFile] = {}
    journal: list[Entry] = []
    walk = DirectoryWalk()
    transcripts = agent_transcripts(main, homes, main_entries, walk)
    note_session_links(main, str(session or ""), homes, walk)
    problems = walk.problems
    for transcript in transcripts:
        try:
            if transcript.agent is not None:
                file = _read_agent_file(transcript)
                known = files.get(file.id)
                files[file.id] = (
                    file
                    if known is None
                    else replace(known, entries=known.entries + file.entries, meta=known.meta or file.meta)
                )
            else:
                journal.extend(entries(transcript.path))
        except Error as error:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
    return list(files.values()), journal, problems


def _read_agent_file(transcript: Transcript) -> AgentFile:
    if transcript.kind is TranscriptKind.WORKFLOW_AGENT:
        kind = AgentKind.WORKFLOW
    else:
        kind = AgentKind.BELOW if session_of_path(transcript.path) is not None else AgentKind.BESIDE
    return AgentFile(
        path=transcript.path,
        id=transcript.agent or AgentId(transcript.path.stem),
        kind=kind,
        run=transcript.run,
        meta=read_agent_meta(transcript.meta) if transcript.meta is not None else None,
        entries=load_entries(transcript.path),
    )


class HomeLinks:
    """The summaries of some homes, or of the home that a transcript is in, or of its folder. Read when needed."""

    def __init__(self, main: Path, homes: Homes) -> None:
        self._main = main
        self._homes = homes

    @property
    def summaries(self) -> tuple[SummaryRef, ...]:
        """Every summary that names an entry."""
        return self._links.summaries

    @property
    def owners(self) -> dict[str, tuple[SessionId, ...]]:
        """The sessions that contain each named entry."""
        return self._links.owners

    @cached_property
    def _links(self) -> TranscriptLinks:
        homes: Sequence[Home] = self._homes
        if not homes and (path := home_of_transcript(self._main)) is not None:
            homes = [Home(path, "path")]
        transcripts = [transcript for home in homes for transcript in look(home, side_files=False).transcripts]
        if not transcripts:
            transcripts = [transcript_at(self._main), *sibling_transcripts(self._main)]
        return _links_of(tuple(transcripts), tuple(path_change_time_ns(transcript.path) for transcript in transcripts))


@lru_cache(maxsize=1)
def _links_of(transcripts: tuple[Transcript, ...], _change_times: tuple[int, ...]) -> TranscriptLinks:
    """Return the links of transcripts. The last ones are remembered: a program may read one session after another."""
    return TranscriptLinks(transcripts)


def _related_sessions(main: Path, main_entries: tuple[Entry, ...], homes: Homes) -> list[OtherSession]:
    """Return the sessions of the same folder whose first entries are also in this one."""
    ids = {id_ for entry in main_entries for id_ in _entry_ids(entry)}
    return [
        OtherSession(other.session, tuple(entries(other.path)))
        for other in sibling_transcripts(main, homes=homes)
        if other.session is not None and other.kind is TranscriptKind.MAIN and _shares_beginning(other.path, ids)
    ]


def _entry_ids(entry: Entry) -> set[str]:
    message = getattr(entry, "message", None)
    ids = (
        entry.uuid if isinstance(entry, ChainEntry) else None,
        getattr(message, "id", None),
        getattr(entry, "request_id", None),
    )
    return {str(id_) for id_ in ids if id_}


def _shares_beginning(path: Path, ids: set[str]) -> bool:
    count = 0
    try:
        for head in heads(path):
            if head.uuid in ids or (head.message is not None and head.message.id in ids):
                return True
            count += head.uuid is not None  # any number of titles may precede the conversation
            if count == FIRST_HEADS:
                return False
    except Error:
        return False
    return False
