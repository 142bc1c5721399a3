"""Find the sessions and the git history of a file, read them, and say who wrote each line.

Only sessions that edited the file, or whose commands wrote, moved or copied it, are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Ambiguous, BadQuery, Error, NotFound, Unreadable
from threadline.files import read_file
from threadline.index import CallFilter, read_call_input
from threadline.insight import (
    FileHistory,
    GitVersions,
    Repository,
    blamed_lines,
    may_write_files,
    moved_paths,
    read_owned_facts,
    read_versions,
    split_lines,
    worktrees,
    written_runs,
)
from threadline.model.blame import Blame, TextSource
from threadline.model.text import count, join_some
from threadline.thread import base_name

if TYPE_CHECKING:
    from threadline.index import EditKey, Index
    from threadline.model.calls import ListedCall
    from threadline.model.homes import Homes
    from threadline.model.places import CallId, SessionId

_MAX_FILE = 64 << 20
_MAX_NAMES = 20
_MAX_COMMANDS = 5_000


def blame_file(index: Index, homes: Homes, path: str | Path, *, use_git: bool) -> Blame:
    """Say who wrote each line of a file.

    Raises:
        NotFound: there is no such file, and no session wrote one.
        Ambiguous: there is no such file, and sessions wrote several of that name.
        BadQuery: it is a folder, or not a text.
        Unreadable: it cannot be read.
    """
    file = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - Windows paths in transcripts stay as they are
    if os.path.isdir(file):  # noqa: PTH112
        raise BadQuery(f"{str(path)!r} is a folder. Name a file.")
    text = _read_text(file)
    search = _Search(index, homes)
    if text is None:
        return search.blame_recorded(str(path), file)
    return search.blame(file, text, use_git=use_git)


def select_lines(blame: Blame, first: int | None, last: int | None) -> Blame:
    """The blame of some lines, counted from 1.

    Raises:
        NotFound: the file has no such line.
        BadQuery: the numbers make no sense.
    """
    if first is None and last is None:
        return blame
    start = first if first is not None else 1
    end = last if last is not None else max(start, len(blame.lines))
    if start < 1 or end < start:
        raise BadQuery(f"There are no lines {start} to {end}. Lines are counted from 1.")
    if start > len(blame.lines):
        raise NotFound(f"{blame.file!r} has {count(len(blame.lines), 'line')}; there is no line {start}.")
    return replace(blame, lines=blame.lines[start - 1 : end])


def _read_text(file: str) -> str | None:
    """The text of a file; None if there is none."""
    try:
        data = read_file(file, follow_symlinks=True, limit=_MAX_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"{file!r} cannot be read: {error.strerror or error}.") from error
    if b"\0" in data:
        raise BadQuery(f"{file!r} is not a text.")
    return data.decode(errors="surrogateescape")


@cache
def _canonical(path: str) -> str:
    """A path without symbolic links, as far as it exists."""
    return os.path.realpath(path) if path.startswith("/") or os.name == "nt" else path


class _Search:
    """Collects the names and the sessions of a file."""

    def __init__(self, index: Index, homes: Homes) -> None:
        self._index = index
        self._homes = homes
        self._paths: dict[str, None] = {}
        self._keys: dict[CallId, EditKey] = {}
        self._transcripts: dict[str, None] = {}
        self._statements: list[str] = []

    def blame(self, file: str, text: str, *, use_git: bool) -> Blame:
        """Blame a file that exists."""
        repository, git = self._read_git(file) if use_git else (None, None)
        names = [_canonical(file)]
        if repository is not None and git is not None:
            names += [_canonical(str(root / name)) for root in worktrees(repository) for name in git.paths]
        self._add_paths(names)
        history = self._replay(repository, git)
        origins = history.explain(_canonical(file), text)
        return Blame(
            file=file,
            lines=blamed_lines(split_lines(text), origins),
            repository=str(repository.root) if repository is not None else None,
            revision=git.revision if git is not None and history.is_committed(text) else None,
            statements=tuple(self._statements),
        )

    def blame_recorded(self, path: str, file: str) -> Blame:
        """Blame the last text that sessions recorded of a file that does not exist."""
        keys = list(self._index.edits(CallFilter(), path))
        paths = list(dict.fromkeys(key.path for key in keys))
        exact = [name for name in paths if name in (path, file)]
        if not paths:
            raise NotFound(
                f"There is no file {path!r}, and no session wrote one."
                f" `threadline files --path {base_name(path)}` lists what sessions touched."
            )
        if len(paths) > 1 and len(exact) != 1:
            raise Ambiguous("\n".join([f"Sessions wrote several files {path!r}. Choose one:", *sorted(paths)]))
        name = exact[0] if exact else paths[0]
        self._add_paths([_canonical(name)])
        history = self._replay(None, None)
        version = history.last_version(_canonical(name))
        self._statements.insert(0, "The file is not there. These are the last lines that sessions recorded.")
        if version is None:
            raise NotFound(
                f"There is no file {name!r}, and its complete text is not recorded. `threadline files {path} --log`"
                " lists its edits."
            )
        lines = blamed_lines(version.lines, version.origins)
        return Blame(file=name, lines=lines, source=TextSource.SESSIONS, statements=tuple(self._statements))

    def _read_git(self, file: str) -> tuple[Repository | None, GitVersions | None]:
        try:
            repository = Repository.open(_canonical(file))
        except NotFound:
            return None, None
        except Error as error:
            self._statements.append(f"Without git: {error}")
            return None, None
        try:
            name = os.path.relpath(_canonical(file), _canonical(str(repository.root)))
            return repository, read_versions(repository, name.replace(os.sep, "/"))
        except Error as error:
            self._statements.append(f"Without the history in git: {error}")
            return None, None

    def _add_paths(self, paths: Iterable[str]) -> None:
        """Add names of the file, with the names from which commands moved or copied it there."""
        todo = list(dict.fromkeys(paths))
        searched: set[str] = set()
        while todo and len(self._paths) < _MAX_NAMES:
            path = todo.pop(0)
            if path in self._paths:
                continue
            self._paths[path] = None
            name = base_name(path)
            if name not in searched:
                searched.add(name)
                self._add_edits(name)
                todo += self._sources(name, [*self._paths, *todo])
        self._add_edits_of_paths()

    def _add_edits(self, name: str) -> None:
        for key in self._index.edits(CallFilter(), name):
            self._keys[key.call] = key

    def _add_edits_of_paths(self) -> None:
        for key in sorted(self._keys.values(), key=lambda key: str(key.timestamp)):
            if _canonical(key.path) in self._paths:
                self._transcripts[key.transcript] = None

    def _sources(self, name: str, paths: list[str]) -> Iterator[str]:
        """Yield the paths that commands moved or copied to these paths, and add the sessions of such commands."""
        for call in self._index.commands_naming(name):
            command = _read_command(call)
            targets: set[str] = set()
            for source, target in moved_paths(command, call.project):
                targets.add(base_name(target))
                if _canonical(target) in paths and _canonical(source) != _canonical(target):
                    yield _canonical(source)
            if name in targets or any(True for _ in written_runs(command, name)):
                self._add_session(call)

    def _add_session(self, call: ListedCall) -> None:
        transcript = call.place.transcript
        self._transcripts[self._index.main_transcript(transcript) or transcript] = None

    def _replay(self, repository: Repository | None, git: GitVersions | None) -> FileHistory:
        owners: dict[CallId, tuple[str, SessionId | None]] = {
            key.call: (key.transcript, key.session) for key in self._keys.values()
        }
        facts, unreadable = read_owned_facts(
            self._transcripts, self._homes, lambda path: _canonical(path) in self._paths, owners
        )
        if unreadable:
            names = join_some(unreadable)
            self._statements.append(f"{count(len(unreadable), 'transcript')} could not be read: {names}.")
        root = _canonical(str(repository.root)) if repository is not None else ""

        @cache
        def may_command_write(after: float, until: float) -> bool:
            return self._may_command_write(root, after, until)

        history = FileHistory(self._paths, git, may_command_write, _canonical)
        history.replay(facts)
        return history

    def _may_command_write(self, root: str, after: float, until: float) -> bool:
        """Whether a session ran a command in or above the repository that may have changed files."""
        since = datetime.fromtimestamp(after, UTC) if after > 0 else None
        selection = CallFilter(since=since, until=datetime.fromtimestamp(until, UTC))
        for number, call in enumerate(self._index.calls(selection, tools=("Bash", "PowerShell"))):
            if number >= _MAX_COMMANDS:
                return True
            project = _canonical(call.project)
            is_near = project == root or project.startswith(f"{root}/") or root.startswith(f"{project.rstrip('/')}/")
            if is_near and may_write_files(_read_command(call)):
                return True
        return False


def _read_command(call: ListedCall) -> str:
    place = call.place
    arguments = read_call_input(place.transcript, place.offset, place.line, call.id, place.length)
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) else ""
