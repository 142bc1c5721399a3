"""Find the transcripts of one session, and those that were written recently.

Reads no file: which session an `agent-*.jsonl` beside the sessions belongs to is named inside it, and `parse` and its
callers find that out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from threadline.find.layout import (
    PROJECTS,
    TRANSCRIPT_SUFFIX,
    home_of_transcript,
    is_agent_path,
    is_transcript_name,
    make_transcript,
    meta_path,
    parse_agent_id,
    parse_transcript_name,
    parts_below_project,
)
from threadline.find.listing import (
    Directory,
    DirectoryWalk,
    HomeRoots,
    find_meta,
    is_directory,
    is_regular_file,
    list_project_folders,
)
from threadline.home_files import real_projects_dir
from threadline.model.homes import NO_HOMES, Found, Home, Homes, ProjectNames, Transcript, TranscriptKind
from threadline.model.places import AgentId, SessionId, is_uuid

_PROJECT_DEPTH = 1


class SessionOwners:
    """Decides which main transcript each transcript of some homes belongs to.

    A session is its main transcript: several folders or homes may have one of the same name, and each is a session of
    its own. An agent's transcript belongs to the session that its path names, or else its entries, in the same folder.
    A UUID has no second meaning, so if the folder has no such session, one elsewhere in the home is meant: the first by
    path. `named` returns the session that the entries of an agent's transcript beside the sessions name.
    """

    def __init__(
        self, transcripts: Iterable[Transcript], named: Callable[[Transcript], SessionId | None] = lambda _agent: None
    ) -> None:
        self._named = named
        self._in_folder: dict[tuple[str, str, str], Transcript] = {}
        self._in_home: dict[tuple[str, str], Transcript] = {}
        mains = [transcript for transcript in transcripts if transcript.is_main]
        for main in sorted(mains, key=_live_first):
            home, session = main.home.name, str(main.session)
            self._in_folder.setdefault((home, main.folder, session), main)
            self._in_home.setdefault((home, session), main)

    def main_of(self, transcript: Transcript) -> Transcript | None:
        """Return the main transcript of the session that a transcript belongs to; None if there is none."""
        if transcript.is_main:
            return transcript
        if transcript.kind is TranscriptKind.OTHER:
            return None
        session = transcript.session or self._named(transcript)
        if session is None:
            return None
        home = transcript.home.name
        main = self._in_folder.get((home, transcript.folder, str(session)))
        return main or (self._in_home.get((home, str(session))) if is_uuid(session) else None)


class TranscriptProjects:
    """Names the project of each transcript: the one that its session was started in.

    An agent's transcript may be in another project's folder, if the session continued there. It belongs to the project
    of its session's main transcript, which `SessionOwners` finds. Without one, the folder decides.
    """

    def __init__(self, found: Iterable[Found], named: Callable[[Transcript], SessionId | None]) -> None:
        homes = list(found)
        self._names = ProjectNames(homes)
        self._owners = SessionOwners((transcript for home in homes for transcript in home.transcripts), named)

    def name_of(self, transcript: Transcript) -> str:
        """Return the name of a transcript's project."""
        return self._names.of(self._owners.main_of(transcript) or transcript)


def _live_first(transcript: Transcript) -> tuple[bool, str]:
    """Sort key: what only the keep has comes last."""
    return transcript.home.is_kept, str(transcript.path)


def session_transcripts(
    main: Path, home: Home | None = None, homes: Homes = NO_HOMES, *, walk: DirectoryWalk | None = None
) -> tuple[list[Transcript], list[Transcript]]:
    """Return the agents' transcripts and journals below the session's directories, and the agents' beside `main`.

    Those beside it may belong to other sessions; their content names the session. An agent's own transcript has no
    others: they belong to its session. Some of the files, or all except `main`, may exist only in kept homes among
    `homes`. Links are not followed, nor special files opened; `walk` records them as problems.
    """
    walk = walk or DirectoryWalk()
    agents = sorted(_agents_below(main, home, homes, walk), key=lambda transcript: transcript.path)
    beside = [] if is_agent_path(main) else list(sibling_transcripts(main, home, homes, agents_only=True))
    return agents, beside


def _agents_below(main: Path, home: Home | None, homes: Homes, walk: DirectoryWalk) -> Iterator[Transcript]:
    for own in session_directories(main, homes):
        for directory in _walk_session(walk, own):
            folder, *parts = directory.parts
            for entry in _transcript_entries(directory):
                with suppress(FileNotFoundError):  # vanished after it was listed
                    transcript = _make_transcript(Path(entry.path), home, homes, folder, (*parts, entry.name))
                    if transcript.kind is not TranscriptKind.OTHER:
                        yield transcript


def _walk_session(walk: DirectoryWalk, own: Path) -> Iterator[Directory]:
    for directory in walk.walk(str(own), (own.parent.name, own.name)):
        for entry in directory.links:
            walk.skip_link(entry.path)
        yield directory


def home_folder(main: Path, homes: Homes = NO_HOMES) -> Path | None:
    """Return the home that a main transcript is in; None if it is not in one. `projects` of `homes` may be links."""
    projects = str(main.absolute().parent.parent)
    moved = (home.path for home in homes if real_projects_dir(os.path.realpath(home.path)) == projects)
    return next(moved, None) or home_of_transcript(main)


def note_session_links(main: Path, session: str, homes: Homes, walk: DirectoryWalk) -> None:
    """Record links and special files of a session that are not read: in its folders, and in place of them."""
    home = home_folder(main, homes)
    if main.with_suffix("").is_symlink():
        walk.skip_link(str(main.with_suffix("")))
    if home is None or session in {"", ".", ".."} or os.path.basename(session) != session:  # noqa: PTH119 - text
        return
    for folders in (("file-history", session), ("todos",), ("tasks", session)):
        path = os.fspath(home)
        for name in folders:
            path = os.path.join(path, name)  # noqa: PTH118 - paths are text
            if os.path.islink(path):  # noqa: PTH114 - the same
                walk.skip_link(path)
                break
        else:
            is_shared = len(folders) == 1  # with other sessions
            for entry in (DirectoryWalk() if is_shared else walk).scan(path).links:
                if not is_shared or entry.name.startswith((f"{session}.", f"{session}-agent-")):
                    walk.skip_link(entry.path)


def session_directories(main: Path, homes: Homes = NO_HOMES) -> Iterator[Path]:
    """Yield the session's own directories: beside its transcript, and in other projects that it continued in.

    In a folder that has a transcript of the same session, the directory belongs to that transcript.
    """
    for beside in (main.with_suffix(""), *homes.counterparts(main.with_suffix(""))):
        if is_directory(beside):
            yield beside
    for folder in other_folders(main):
        elsewhere = folder / main.stem
        if is_directory(elsewhere):
            yield elsewhere


def other_folders(main: Path) -> list[Path]:
    """Return the other project folders in which files of a session may be, without those that have its transcript.

    If several folders have a transcript of that name, files elsewhere belong to the first of them by path: see
    `SessionOwners`.
    """
    folder = main.absolute().parent
    if folder.parent.name != PROJECTS or not is_uuid(main.stem):  # other names are not unique
        return []
    others: list[Path] = []
    for name in list_project_folders(folder.parent):
        if name == folder.name:
            continue
        other = folder.parent / name
        if not os.path.exists(other / main.name):  # noqa: PTH110 - Path.exists may raise
            others.append(other)
        elif str(other / main.name) < str(folder / main.name):
            return []
    return others


def session_todo_files(main: Path, homes: Homes = NO_HOMES) -> Iterator[tuple[AgentId | None, Path]]:
    """Yield the files under `todos/` of a session, with the agent that each belongs to; None is the main one.

    They are called `<session>-agent-<agent>.json`, where the main agent has the session's id, or `<session>.json`.
    """
    for path in _home_files(main, homes, "todos"):
        owner, _, agent = path.stem.partition("-agent-")
        if owner == main.stem:
            yield (AgentId(agent) if agent and agent != main.stem else None), path


def session_task_files(main: Path, lists: Iterable[str] = (), homes: Homes = NO_HOMES) -> Iterator[Path]:
    """Yield the files under `tasks/` of a session: those of the list with its id, and of other `lists`, as of teams."""
    for name in dict.fromkeys((main.stem, *lists)):
        if name not in {"", ".", ".."} and os.path.basename(name) == name:  # noqa: PTH119 - text
            yield from _home_files(main, homes, "tasks", name)


def _home_files(main: Path, homes: Homes, *folder: str) -> Iterator[Path]:
    """Yield the JSON files in a folder of the transcript's home, and in its counterparts in `homes`."""
    home = home_folder(main, homes)
    if home is None:
        return
    own = home.joinpath(*folder)
    seen: set[str] = set()
    for place in (own, *homes.counterparts(own)):
        if not all(map(is_directory, (place, *place.parents[: len(folder) - 1]))):  # a link is not followed
            continue
        for entry in sorted(DirectoryWalk().scan(str(place)).files, key=lambda entry: entry.name):
            if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.name not in seen:
                seen.add(entry.name)
                yield place / entry.name


def sibling_transcripts(
    main: Path, home: Home | None = None, homes: Homes = NO_HOMES, *, agents_only: bool = False
) -> Iterator[Transcript]:
    """Yield the other transcripts in the same folder, sorted by name, and those in its counterparts in `homes`.

    With `agents_only`, other files are not looked at: a folder may have thousands of sessions.
    """
    for folder in (main.parent, *homes.counterparts(main.parent)):
        entries = _transcript_entries(DirectoryWalk().scan(str(folder)))
        if agents_only:
            entries = [entry for entry in entries if parse_agent_id(entry.name) is not None]
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = folder / entry.name
            if path != main:
                with suppress(FileNotFoundError):  # vanished after it was listed
                    yield _make_transcript(path, home, homes, folder.name, (entry.name,))


def transcript_at(path: Path, home: Home | None = None, homes: Homes = NO_HOMES) -> Transcript:
    """Return the transcript at a path, with what the file's name says.

    Raises:
        OSError: there is no such file, or it may not be looked at.
    """
    return _make_transcript(path, home, homes, path.parent.name, parts_below_project(path))


def find_main_transcript(session: str, home: Home) -> Path | None:
    """Return the main transcript of a session, by its name in any project of the home."""
    roots = HomeRoots(home)
    for folder in roots.project_folders():
        path = os.path.join(roots.projects, folder, session + TRANSCRIPT_SUFFIX)  # noqa: PTH118 - paths are text
        if is_regular_file(path):
            return Path(path)
    return None


def recent_transcripts(home: Home, since_ns: int, *, too_late: Callable[[], bool]) -> Iterator[Transcript]:
    """Yield the transcripts of a home that were written since `since_ns`; folders that changed last come first.

    A session's directory is entered only if its main transcript changed or is missing, or the directory itself
    changed: a working agent makes its session's main transcript grow.

    Raises:
        OutOfTime: `too_late` returned True.
    """
    roots = HomeRoots(home)
    if roots.is_projects_refused:
        return
    walk = DirectoryWalk(is_too_late=too_late)
    for directory in walk.walk(roots.projects):
        is_recent: dict[str, bool] = {}
        for entry in _transcript_entries(directory):
            status = walk.stat(entry)
            is_recent[entry.name] = status is not None and status.st_mtime_ns >= since_ns
            if status is not None and is_recent[entry.name]:
                parts = (*directory.parts, entry.name)
                folder = directory.parts[0] if directory.parts else ""
                yield make_transcript(Path(entry.path), home, folder, status, parts[1:] or parts)
        if not directory.parts:
            directory.subdirectories.sort(key=lambda entry: (-_mtime_ns(entry), entry.name))
            continue
        directory.skip_non_transcript_directories()
        if len(directory.parts) == _PROJECT_DEPTH:
            directory.subdirectories = [
                entry
                for entry in directory.subdirectories
                if is_recent.get(entry.name + TRANSCRIPT_SUFFIX, True) or _mtime_ns(entry) >= since_ns
            ]


def _mtime_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _transcript_entries(directory: Directory) -> list[os.DirEntry[str]]:
    return [entry for entry in directory.files if is_transcript_name(entry.name)]


def _make_transcript(path: Path, home: Home | None, homes: Homes, folder: str, below: tuple[str, ...]) -> Transcript:
    meta = find_meta(str(path), below)
    if meta is None and parse_transcript_name(below).agent is not None:
        meta = next(filter(is_regular_file, homes.counterparts(meta_path(str(path)))), None)
    return make_transcript(path, home or Home(path.parent, "path"), folder, path.stat(), below, meta=meta)
