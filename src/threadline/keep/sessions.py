"""The sessions in a keep: which files belong to which session, by their paths or their contents, and their titles.

Credentials and settings are never kept. While a truncated transcript still exists, the part it lost is shown as a
session of its own. Its id is derived from the session's id, since two transcripts with one id would be ambiguous.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct

from threadline.annotations import FILE_NAME as ANNOTATIONS
from threadline.errors import Ambiguous, NotFound, Unreadable
from threadline.files import data_folder
from threadline.find import (
    PROJECTS,
    is_transcript_name,
    is_transcript_path,
    look_with_names,
    parse_agent_id,
    parse_session_id,
    parse_transcript_name,
    session_id_from_name,
    session_in_path,
    side_file_kind,
    transcript_stem,
)
from threadline.keep.catalogue import Catalogue, FileKey, ForgottenFiles, Version
from threadline.model.homes import Home, SideFileKind, TranscriptKind
from threadline.model.places import Problem, ProblemKind, SessionId, is_uuid, match_ids, starts_id
from threadline.model.times import FIRST_MOMENT, parse_timestamp
from threadline.model.titles import shorten_title

if TYPE_CHECKING:
    from threadline.model.entries import Entry
    from threadline.model.titles import SummaryRef

KEPT_KINDS = frozenset(
    {
        SideFileKind.HISTORY,
        SideFileKind.TODOS,
        SideFileKind.TASK,
        SideFileKind.TASK_MARK,
        SideFileKind.TEAM,
        SideFileKind.INBOX,
        SideFileKind.FILE_HISTORY,
        SideFileKind.TOOL_RESULT,
        SideFileKind.AGENT_META,
        SideFileKind.TITLE,
        SideFileKind.SESSIONS_INDEX,
        SideFileKind.SESSION_ALIASES,
        SideFileKind.STATS_CACHE,
        SideFileKind.PLAN,
        SideFileKind.JOB,
        SideFileKind.WORKFLOW_RUN,
        SideFileKind.WORKFLOW_SCRIPT,
        SideFileKind.MEMORY,
        SideFileKind.PASTE,
        SideFileKind.IMAGE,
        SideFileKind.USAGE_DATA,
    }
)
"""Side files of sessions, or about sessions. Not: credentials, settings, environments, logs, locks."""


_LOST_PART_NAME = "what was cut off"
"""The name from which ids of lost parts are derived."""
_PROJECT_DEPTH = 2
"""Paths of transcripts start with projects/<folder>."""
_SESSION_DEPTH = 3
"""projects/<folder>/<name>: the third part names a session or an agent."""
_META_SUFFIX = ".meta.json"


class SourceFile(Struct, frozen=True):
    """A file to keep: where it really is, and its path inside the home, which may lead there through symlinks."""

    home: Home
    file: Path
    path: str


LeftOutReason = Literal["forgotten", "skipped", "unreadable"]
_LEFT_OUT_KINDS: dict[ProblemKind, LeftOutReason] = {
    ProblemKind.SKIPPED: "skipped",
    ProblemKind.UNREADABLE: "unreadable",
}


class OmittedFile(Struct, frozen=True):
    """A file in a home that is not stored, and why.

    It belongs to a forgotten session, was skipped (a link, or not a regular file), or cannot be read.
    """

    path: str
    reason: LeftOutReason
    message: str
    session: str | None = None


def list_left_out(
    forgotten: ForgottenFiles, sources: Iterable[SourceFile], problems: Iterable[Problem]
) -> tuple[OmittedFile, ...]:
    """What is not stored of these files, and of what could not be listed; each path once, sorted."""
    left_out = {
        str(problem.place.transcript): OmittedFile(str(problem.place.transcript), reason, problem.message)
        for problem in problems
        if (reason := _LEFT_OUT_KINDS.get(problem.kind)) is not None
    }
    for source in sources:
        row = forgotten.find(source.path)
        if row is not None:
            session = session_in_path(source.path.split("/")) or row.session
            path = str(source.file)
            left_out[path] = OmittedFile(path, "forgotten", f"forgotten: {row.reason}", session)
    return tuple(left_out[path] for path in sorted(left_out))


def find_source_files(home: Home, problems: list[Problem]) -> Iterator[SourceFile]:
    """The files of a home that are kept, sorted by path. What could not be read is added to `problems`."""
    listing = look_with_names(home)
    found = listing.found
    problems.extend(found.problems)
    files = {transcript.path for transcript in found.transcripts}
    files |= {side_file.path for side_file in found.side_files if side_file.kind in KEPT_KINDS}
    for path, file in sorted((listing.paths[file], file) for file in files):
        yield SourceFile(home, file, path)


def own_files() -> list[SourceFile]:
    """The file with the user's stars, tags, notes and searches, in threadline's data folder."""
    file = Path(data_folder(), ANNOTATIONS)
    # Path.is_file raises if a parent folder cannot be entered.
    return [SourceFile(Home(file.parent, "threadline"), file, file.name)] if os.path.isfile(file) else []  # noqa: PTH113


def is_kept_path(path: str) -> bool:
    """Whether a run keeps the file at this path. Only a crafted manifest contains other paths."""
    parts = path.split("/")
    return is_transcript_path(parts) or side_file_kind(parts) in KEPT_KINDS


def is_session_transcript(path: str) -> bool:
    """Whether a path is that of a session's or an agent's transcript."""
    return path.startswith(f"{PROJECTS}/") and is_transcript_name(Path(path).name) and "/tool-results/" not in path


def session_of_main_transcript(path: str) -> str | None:
    """The session whose own transcript has this path; None for any other path."""
    parts = path.split("/")
    if len(parts) != _SESSION_DEPTH or parts[0] != PROJECTS or not is_transcript_name(parts[-1]):
        return None
    name = parse_transcript_name(parts[2:])
    return name.session if name.kind is TranscriptKind.MAIN else None


def has_unique_name(path: str) -> bool:
    """Whether a path contains the id of a session or an agent, which no other file has."""
    parts = path.split("/")
    if parts[0] != PROJECTS:
        return any(parse_session_id(part) is not None for part in parts[1:])
    return len(parts) >= _SESSION_DEPTH and (
        parse_session_id(parts[2]) is not None or parse_agent_id(parts[2]) is not None
    )


def referring_file(parts: Sequence[str]) -> str | None:
    """The path of the file that says which session this file belongs to, if its own path does not."""
    if parts[0] == PROJECTS and len(parts) == _SESSION_DEPTH:
        name = parts[2].removesuffix(_META_SUFFIX) + ".jsonl" if parts[2].endswith(_META_SUFFIX) else parts[2]
        return "/".join([*parts[:2], name]) if parse_agent_id(name) is not None else None
    if len(parts) < _SESSION_DEPTH:
        return None
    if parts[0] in ("teams", "tasks"):
        return f"teams/{parts[1]}/config.json"
    return f"jobs/{parts[1]}/state.json" if parts[0] == "jobs" else None


def lost_part_path(path: str) -> str | None:
    """The path for the lost part of a truncated transcript; None if it is not a session's or an agent's."""
    folder, _slash, name = path.rpartition("/")
    parts = path.split("/")[_PROJECT_DEPTH:]
    transcript = parse_transcript_name(parts) if parts else None
    if transcript is None:
        return None
    if transcript.kind is TranscriptKind.MAIN:
        lost_part = lost_part_id(str(transcript.session))
        return f"{folder}/{lost_part or f'{transcript_stem(name)}-before'}.jsonl"
    if transcript.agent is not None:
        return f"{folder}/agent-{transcript.agent}-before.jsonl"
    return None


def lost_part_id(session: str) -> str | None:
    """The id under which the lost part of a session is listed; None if the session's id is not a UUID."""
    try:
        return str(uuid5(UUID(session), _LOST_PART_NAME))
    except ValueError:
        return None


_MIN_PATH_PARTS = 3
_NOT_GONE = "9999"
_SHOWN_IDS = 4


class KeptSession(Struct, frozen=True):
    """A session in a keep: its machine and home, and the newest version of each of its files.

    `versions` counts the versions of its own transcript.
    """

    id: str
    machine: str
    label: str
    home: str
    files: tuple[Version, ...]
    versions: int = 1

    @property
    def mains(self) -> tuple[Version, ...]:
        """Its own transcripts, latest first. A session that was moved to another project has several."""
        mains = [file for file in self.files if session_of_main_transcript(file.path) is not None]
        return tuple(sorted(mains, key=lambda main: (main.gone or _NOT_GONE, main.mtime_ns, main.size), reverse=True))

    @property
    def main(self) -> Version | None:
        """Its own transcript; None if only its agents' are left."""
        return next(iter(self.mains), None)

    @property
    def transcripts(self) -> tuple[Version, ...]:
        """Its transcripts, including its agents'."""
        return tuple(file for file in self.files if is_session_transcript(file.path))

    @property
    def folder(self) -> str:
        """The name of its project's folder; empty if it has no transcript."""
        first = self.main or next(iter(self.transcripts), None)
        parts = first.path.split("/") if first is not None else []
        return parts[1] if len(parts) >= _MIN_PATH_PARTS else ""

    @property
    def size(self) -> int:
        """The total size of its files."""
        return sum(file.size for file in self.files)

    @property
    def modified(self) -> datetime:
        """When it was last written to."""
        main = self.main
        return mtime_to_datetime(main.mtime_ns if main is not None else max(file.mtime_ns for file in self.files))

    def files_to_restore(self) -> tuple[Version, ...]:
        """The files that restore it as it last was: of a transcript that was moved, only the latest place."""
        mains = self.mains
        last = mains[0].gone or _NOT_GONE if mains else _NOT_GONE
        moved = {main.path for main in mains if (main.gone or _NOT_GONE) < last}
        return tuple(file for file in self.files if file.path not in moved)


_SessionKey = tuple[str, str, str, str]


def list_sessions(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[KeptSession]:
    """The kept sessions, newest first; with `at`, as they were after that run of their machine.

    Files that belong to no session (history, memory, statistics) are in `list_other_files`.
    """
    key = (list_sessions, machine, at)
    if key not in catalogue.memo:
        catalogue.memo[key] = _list_sessions(catalogue, machine, at)
    sessions: list[KeptSession] = catalogue.memo[key]
    return sessions


def _list_sessions(catalogue: Catalogue, machine: str | None, at: int | None) -> list[KeptSession]:
    owners = file_owners(catalogue)
    files: dict[_SessionKey, list[Version]] = defaultdict(list)
    version_counts: dict[_SessionKey, int] = defaultdict(int)
    for versions in _select_versions(catalogue, machine, at):
        newest = versions[-1]
        session = owners.session(newest)
        if session is None:
            continue
        # Only a UUID names the same session in every project.
        parts = newest.path.split("/")
        folder = parts[1] if parts[0] == PROJECTS and not is_uuid(session) else ""
        key = (newest.machine, newest.home, session, folder)
        files[key].append(newest)
        if session_of_main_transcript(newest.path) is not None:
            version_counts[key] += len(versions)
    sessions = [
        KeptSession(id_, machine_id, of_session[0].label, home, tuple(of_session), max(1, version_counts[key]))
        for key, of_session in files.items()
        for machine_id, home, id_, _folder in [key]
        if any(is_session_transcript(file.path) for file in of_session)
    ]
    return sorted(sessions, key=lambda session: (session.modified, session.id), reverse=True)


def list_other_files(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[Version]:
    """The newest versions of files that belong to no session with a transcript."""
    sessions = list_sessions(catalogue, machine=machine, at=at)
    listed = {(session.machine, session.home, session.id) for session in sessions}
    owners = file_owners(catalogue)
    newest = (versions[-1] for versions in _select_versions(catalogue, machine, at))
    return [file for file in newest if (file.machine, file.home, owners.session(file)) not in listed]


def _select_versions(catalogue: Catalogue, machine: str | None, at: int | None) -> Iterator[list[Version]]:
    """The versions of every file of a machine up to a run, oldest first."""
    for versions in catalogue.versions.values():
        if machine is not None and machine not in (versions[0].machine, versions[0].label):
            continue
        selected = versions if at is None else [version for version in versions if version.run <= at]
        if selected:
            yield selected


def find_sessions(sessions: Iterable[KeptSession], prefix: str) -> list[KeptSession]:
    """The session whose id starts with a prefix; once for each machine and home, in their order. `last` is the first.

    Raises:
        NotFound: there is none.
        Ambiguous: several ids start with it.
    """
    candidates = list(sessions)
    if prefix == "last" and candidates:
        prefix = candidates[0].id
    start = prefix.strip().removesuffix(".jsonl")
    all_ids = {session.id for session in candidates} if start else set()
    # The lost part of a truncated transcript is listed under an id of its own.
    ids = sorted(match_ids(start, all_ids) or (id_ for id_ in all_ids if starts_id(start, lost_part_id(id_))))
    if not ids:
        raise NotFound(f"No session in the keep starts with {prefix!r}. `threadline keep list` shows all.")
    if len(ids) > 1:
        names = ", ".join(id_[:13] for id_ in ids[:_SHOWN_IDS])
        more = " …" if len(ids) > _SHOWN_IDS else ""
        raise Ambiguous(f"{len(ids)} sessions in the keep start with {prefix!r}: {names}{more}. Add more characters.")
    return [session for session in candidates if session.id == ids[0]]


def is_kept_only(session: KeptSession, machine: str) -> bool:
    """Whether Claude Code has deleted its transcript, so that only the keep has it."""
    return not any(_is_at_source(main, machine) for main in session.mains or session.transcripts)


def _is_at_source(version: Version, machine: str) -> bool:
    """Whether Claude Code still has a file; for another machine, according to its last run."""
    if version.machine == machine:
        return os.path.lexists(os.path.join(version.home, version.path))  # noqa: PTH118 - there may be 100,000
    return version.gone is None


def mtime_to_datetime(mtime_ns: int) -> datetime:
    """An mtime as a datetime; the earliest possible one if it is out of range."""
    try:
        return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return FIRST_MOMENT


_MAX_HEAD_SIZE = 4 << 20
"""How much of a file is read to find its session: the id is near the start, or the file is small."""
_PLAN_NAME = re.compile(rb'"(?:slug|planFilePath)"\s*:\s*"(?:[^"]*[/\\])?([^"/\\]+?)(?:\.md)?"')


class _SessionReference(Struct, rename="camel"):
    session_id: Any = None
    lead_session_id: Any = None


class _HistoryLine(Struct, rename="camel"):
    session_id: Any = None
    pasted_contents: Any = None


def file_owners(catalogue: Catalogue) -> FileOwners:
    """The owners of a keep's files; the same object until the catalogue changes."""
    if FileOwners not in catalogue.memo:
        catalogue.memo[FileOwners] = FileOwners(catalogue)
    owners: FileOwners = catalogue.memo[FileOwners]
    return owners


class FileOwners:
    """Finds the session that a kept file belongs to. Files that have to be read for that are read once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._sessions: dict[FileKey, str | None] = {}

    def session(self, version: Version) -> str | None:
        """The session that a file belongs to, if any."""
        parts = version.path.split("/")
        session = session_in_path(parts)
        if session is not None:
            return session
        path = referring_file(parts)
        if path is None:
            return None
        key = (version.machine, version.home, path)
        if key not in self._sessions:
            versions = self._catalogue.versions.get(key)
            self._sessions[key] = self._read_session(versions[-1]) if versions else None
        return self._sessions[key]

    def referenced_files(self, session: str, files: Iterable[Version], others: Iterable[Version]) -> Iterator[Version]:
        """Those of the `others` that the session's transcripts or prompts refer to: plans and pasted texts."""
        of_session = list(files)
        if not of_session:
            return
        machine, home = of_session[0].machine, of_session[0].home
        in_home = [version for version in others if (version.machine, version.home) == (machine, home)]
        plans = _by_stem(in_home, "plans/")
        pastes = _by_stem(in_home, "paste-cache/")
        if plans:
            names = {name for file in of_session if file.path.endswith(".jsonl") for name in self._plan_names(file)}
            yield from (plan for stem, plan in plans.items() if stem.split("-agent-")[0] in names or stem in names)
        history = next((version for version in in_home if version.path == "history.jsonl"), None)
        if pastes and history is not None:
            hashes = set(self._pasted_hashes(history, session))
            yield from (paste for stem, paste in pastes.items() if stem in hashes)

    def _read_session(self, version: Version) -> str | None:
        data = self._read_head(version)
        # In a transcript, a line contains the id; other files are one JSON value.
        for text in data.splitlines() if version.path.endswith(".jsonl") else [data]:
            reference = _decode_json(text, _SessionReference)
            for name in (reference.session_id, reference.lead_session_id) if reference is not None else ():
                if isinstance(name, str) and name:
                    return parse_session_id(name) or session_id_from_name(name)
        return None

    def _read_head(self, version: Version) -> bytes:
        """The first bytes of a file; fewer if it is damaged, which `verify` reports."""
        head = b""
        with suppress(Unreadable):
            for data in self._catalogue.data(version):
                head += data
                if len(head) >= _MAX_HEAD_SIZE or version.path.endswith(".jsonl"):
                    break
        return head

    def _plan_names(self, version: Version) -> Iterator[str]:
        with suppress(Unreadable):
            for data in self._catalogue.data(version):
                yield from (name.decode(errors="replace") for name in _PLAN_NAME.findall(data))

    def _pasted_hashes(self, history: Version, session: str) -> Iterator[str]:
        try:
            data = b"".join(self._catalogue.data(history))
        except Unreadable:
            return
        for text in data.splitlines():
            if b"contentHash" not in text or session.encode() not in text:
                continue
            line = _decode_json(text, _HistoryLine)
            if line is not None and line.session_id == session and isinstance(line.pasted_contents, dict):
                for content in line.pasted_contents.values():
                    if isinstance(content, dict) and isinstance(content.get("contentHash"), str):
                        yield content["contentHash"]


def _by_stem(versions: Iterable[Version], folder: str) -> dict[str, Version]:
    return {PurePosixPath(version.path).stem: version for version in versions if version.path.startswith(folder)}


def _decode_json(data: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


_FIRST_ENTRIES = 200
_UUIDS = re.compile(rb'"uuid"\s*:\s*"([0-9A-Za-z_-]+)"')
_SUMMARY_MARKER = b'"leafUuid"'
_TITLE_MARKERS = (b'-title"', b'"last-prompt"', b'"summary"', _SUMMARY_MARKER)


class SessionTitle(Struct, frozen=True):
    """The title of a session and the directory it started in; empty if its transcript does not say."""

    title: str = ""
    project: str = ""


def read_titles(catalogue: Catalogue, sessions: Iterable[KeptSession]) -> dict[tuple[str, str, str], SessionTitle]:
    """The titles of sessions by machine, home and id, as `threadline list` has them.

    Reads their transcripts; most lines are not decoded. If a summary in another transcript may title one of them, all
    transcripts in the keep are searched for summaries.
    """
    mains = _mains_by_position(catalogue, sessions)
    return {(session.machine, session.home, session.id): _read_title(catalogue, main) for session, main in mains}


def _mains_by_position(catalogue: Catalogue, sessions: Iterable[KeptSession]) -> list[tuple[KeptSession, Version]]:
    """The sessions and their transcripts, in the order in which to read them."""
    mains = [
        (session, main)
        for session in sessions
        if (main := session.main or next(iter(session.transcripts), None)) is not None
    ]
    mains.sort(key=lambda item: catalogue.position(item[1]))
    return mains


def _read_title(catalogue: Catalogue, version: Version) -> SessionTitle:
    # Loading the entry model and `thread` takes about 50 ms, and a run of `keep` never needs them.
    from threadline.model.entries import ChainEntry  # noqa: PLC0415 - as above
    from threadline.model.titles import choose_summary  # noqa: PLC0415 - as above
    from threadline.thread import can_summary_replace, title_from_parts  # noqa: PLC0415 - as above

    marked = _decode_lines(_read_marked_lines(catalogue, version), version.path)
    titles = (entry for entry in marked if not isinstance(entry, ChainEntry))
    title = title_from_parts(_decode_lines(_read_lines(catalogue, version), version.path), titles)
    first = islice(_decode_lines(_read_lines(catalogue, version), version.path), _FIRST_ENTRIES)
    project = next((entry.cwd for entry in first if isinstance(entry, ChainEntry) and entry.cwd), "")
    if can_summary_replace(title.source) and (summaries := _find_summaries(catalogue)):
        positions = _find_entries(catalogue, version, {ref.leaf for ref in summaries})
        text = choose_summary(summaries, positions, version.path)
        return SessionTitle(shorten_title(text) if text else title.text, project)
    return SessionTitle(title.text, project)


def _find_summaries(catalogue: Catalogue) -> list[SummaryRef]:
    """The summaries in all sessions of the keep. Each titles the session that has the entry it names."""
    if _find_summaries not in catalogue.memo:
        from threadline.model.entries import SummaryEntry  # noqa: PLC0415 - as in _read_title
        from threadline.model.titles import SummaryRef  # noqa: PLC0415 - as in _read_title

        refs: list[SummaryRef] = []
        for session, main in _mains_by_position(catalogue, list_sessions(catalogue)):
            lines = (line for line in _read_marked_lines(catalogue, main) if _SUMMARY_MARKER in line)
            entries = enumerate(_decode_lines(lines, main.path))
            refs += (
                SummaryRef(entry.leaf_uuid, entry.summary, main.path, at, SessionId(session.id))
                for at, entry in entries
                if isinstance(entry, SummaryEntry) and entry.leaf_uuid and entry.summary and entry.summary.strip()
            )
        catalogue.memo[_find_summaries] = refs
    summaries: list[SummaryRef] = catalogue.memo[_find_summaries]
    return summaries


def _find_entries(catalogue: Catalogue, version: Version, ids: set[str]) -> dict[str, int]:
    """The positions of the entries with these ids in the conversation of a transcript."""
    from threadline.model.entries import ChainEntry  # noqa: PLC0415 - as in _read_title

    encoded = {id_.encode() for id_ in ids}
    lines = _select_lines(catalogue, version, lambda data: not encoded.isdisjoint(_UUIDS.findall(data)))
    positions: dict[str, int] = {}
    for at, entry in enumerate(_decode_lines(lines, version.path)):
        if isinstance(entry, ChainEntry) and entry.uuid in ids and not entry.is_agent:
            positions[str(entry.uuid)] = at
    return positions


def _read_lines(catalogue: Catalogue, version: Version) -> Iterator[bytes]:
    """The lines of a transcript, up to the first damaged piece; `verify` reports it."""
    rest = b""
    with suppress(Unreadable):
        for data in catalogue.data(version):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
    if rest:
        yield rest


def _read_marked_lines(catalogue: Catalogue, version: Version) -> list[bytes]:
    """The lines that may have a title or a summary, up to the first damaged piece. Each transcript is read once."""
    memo: dict[FileKey, list[bytes]] = catalogue.memo.setdefault(_read_marked_lines, {})
    if version.key not in memo:
        memo[version.key] = list(
            _select_lines(catalogue, version, lambda data: any(marker in data for marker in _TITLE_MARKERS))
        )
    return memo[version.key]


def _select_lines(catalogue: Catalogue, version: Version, matches: Callable[[bytes], bool]) -> Iterator[bytes]:
    """The lines that match, up to the first damaged piece. A piece in which nothing matches is not split."""
    rest = b""
    with suppress(Unreadable):
        for data in catalogue.data(version):
            whole, _, rest = (rest + data).rpartition(b"\n")
            if matches(whole):
                yield from filter(matches, whole.split(b"\n"))
    if matches(rest):
        yield rest


def _decode_lines(lines: Iterable[bytes], path: str) -> Iterator[Entry]:
    from threadline.model.places import Place  # noqa: PLC0415 - as in _read_title
    from threadline.parse import decode_object  # noqa: PLC0415 - as in _read_title

    for line in lines:
        with suppress(ValueError, RecursionError):
            yield decode_object(line, Place(path))[0]


_LAST_TIMES = 20
"""How many of the last entries are read to find the last time: they are nearly in order."""


class _TimedRow(Struct):
    """The parts of an entry that say when something was last said."""

    timestamp: str | None = None
    uuid: str | None = None


def sort_by_last_entry(catalogue: Catalogue, sessions: Iterable[KeptSession]) -> list[KeptSession]:
    """Sort sessions as `threadline list` does: by the time of the last entry, newest first; without one, by mtime.

    The mtime alone is not enough: the files of a copied home may all have the same.
    """
    mains = _mains_by_position(catalogue, sessions)
    dated = [(_last_time(catalogue, main) or session.modified, main.path, session) for session, main in mains]
    return [session for *_, session in sorted(dated, key=lambda item: item[:2], reverse=True)]


def _last_time(catalogue: Catalogue, version: Version) -> datetime | None:
    """The time of the last entry of a transcript; None if it has none, or is damaged."""
    pieces = [hash_ for part in ([span.version for span in version.spans] or [version]) for hash_ in part.pieces]
    times: list[datetime] = []
    rest = b""
    with suppress(Unreadable):
        for hash_ in reversed(pieces):
            rest, *lines = (catalogue.piece(hash_) + rest).split(b"\n")
            times += _times_from_end(lines)
            if times:
                return max(times)
        times += _times_from_end([rest])
    return max(times, default=None)


def _times_from_end(lines: list[bytes]) -> Iterator[datetime]:
    """The times of the last entries among some lines."""
    rows = (_decode_json(line, _TimedRow) for line in reversed(lines))
    stamps = (parse_timestamp(row.timestamp) for row in rows if row is not None and row.uuid is not None)
    return islice((time for time in stamps if time is not None), _LAST_TIMES)
