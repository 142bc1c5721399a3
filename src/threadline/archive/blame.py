"""Find the sessions and the git history of a file, read them, and say who wrote each line.

Only sessions that edited the file, or whose commands wrote, moved or copied it, are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Ambiguous, BadQuery, Error, NotFound, Unreadable
from threadline.files import is_valid_path, read_file
from threadline.index import CallFilter, read_call_input
from threadline.insight import (
    CommittedVersion,
    FileHistory,
    GitVersions,
    Repository,
    blamed_lines,
    may_write_files,
    moved_paths,
    names_path,
    read_owned_facts,
    read_versions,
    split_lines,
    worktrees,
    written_runs,
)
from threadline.model.insight.blame import Blame, TextSource
from threadline.model.text import count, is_path_or_end, join_some
from threadline.shell_syntax import input_command
from threadline.thread import base_name

if TYPE_CHECKING:
    from threadline.index import EditKey, Index
    from threadline.model.calls import ListedCall
    from threadline.model.homes import Homes
    from threadline.model.places import CallId, SessionId

_MAX_FILE = 64 << 20
_MAX_NAMES = 20
_MAX_COMMANDS = 5_000
# How long before or after a commit the command that made it is recorded.
_COMMIT_SECONDS = 120
_WRITING_TOOL = re.compile(r"write|edit|create|move|rename|patch|replace|insert|save|apply|exec|run|shell|command|file")


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
    is_absolute = path.startswith("/") or os.name == "nt"
    return os.path.realpath(path) if is_absolute and is_valid_path(path) else path


class _Search:
    """Collects the names and the sessions of a file."""

    def __init__(self, index: Index, homes: Homes) -> None:
        self._index = index
        self._homes = homes
        self._paths: dict[str, None] = {}
        self._keys: dict[CallId, EditKey] = {}
        self._transcripts: dict[str, None] = {}
        self._elsewhere: set[str] = set()
        self._other_edits: list[float] = []
        self._statements: list[str] = []

    def blame(self, file: str, text: str, *, use_git: bool) -> Blame:
        """Blame a file that exists."""
        repository, git = self._read_git(file) if use_git else (None, None)
        names = [_canonical(file)]
        if repository is not None and git is not None:
            names += [_canonical(str(root / name)) for root in worktrees(repository) for name in git.paths]
            self._elsewhere.update(path for name in git.paths for path in self._in_other_trees(repository, name))
        self._add_paths([*names, *self._elsewhere])
        if repository is not None and git is not None:
            self._add_other_clones(repository, git.paths)
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
            others = [name for name in self._index.paths_named(base_name(path)) if name != path]
            hint = (
                f"Sessions touched other files of that name: {join_some(map(repr, others))}."
                if others
                else "`threadline files` lists the files that sessions touched."
            )
            raise NotFound(f"There is no file {path!r}, and no session wrote one. {hint}")
        if len(paths) > 1 and len(exact) != 1:
            raise Ambiguous("\n".join([f"Sessions wrote several files {path!r}. Choose one:", *sorted(paths)]))
        name = exact[0] if exact else paths[0]
        self._add_paths([_canonical(name)])
        history = self._replay(None, None)
        version = history.last_version(_canonical(name))
        self._statements.insert(0, f"'{name}' no longer exists. These are its last lines in the transcripts.")
        if version is None:
            raise NotFound(
                f"There is no file '{name}', and its complete text is not recorded. `threadline files {path} --log`"
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

    def _in_other_trees(self, repository: Repository, name: str) -> Iterator[str]:
        """Yield the paths of a file in working trees of the repository that no longer exist.

        These are folders for working trees in the repository, and folders beside it with its name in theirs.
        """
        root = Path(_canonical(str(repository.root)))
        for path in self._paths_named(base_name(name)):
            if is_path_or_end(path, name) and len(path) > len(name) + 1:
                tree = Path(path[: -len(name) - 1])
                is_inside = root in tree.parents and tree.parent.name.lstrip(".") == "worktrees"
                is_beside = root.parent in tree.parents and root.name.lower() in tree.name.lower()
                if (is_inside or is_beside) and not tree.exists():
                    yield path

    def _add_other_clones(self, repository: Repository, names: list[str]) -> None:
        """Note when sessions edited files that may be this one in another clone of the repository.

        A name without a folder is common, so only clones with a similar name count.
        """
        folder = repository.root.name.lower()
        for name in names:
            for path in self._paths_named(base_name(name)):
                if _canonical(path) in self._paths or not is_path_or_end(path, name):
                    continue
                tree = base_name(path[: -len(name) - 1]).lower()
                if "/" in name or folder in tree or (tree and tree in folder):
                    edits = self._index.edits(CallFilter(), path)
                    self._other_edits += [key.timestamp.timestamp() for key in edits if key.timestamp is not None]

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
                todo += self._sources(name, [*self._paths, *todo])
        for recorded in dict.fromkeys(name for known in self._paths for name in self._paths_named(base_name(known))):
            if _canonical(recorded) in self._paths:
                self._keys |= {key.call: key for key in self._index.edits(CallFilter(), recorded)}
        for key in sorted(self._keys.values(), key=lambda key: str(key.timestamp)):
            if _canonical(key.path) in self._paths:
                self._transcripts[key.transcript] = None

    @cache  # noqa: B019 - lives as long as the search
    def _paths_named(self, name: str) -> list[str]:
        return self._index.paths_named(name)

    def _sources(self, name: str, paths: list[str]) -> Iterator[str]:
        """Yield the paths that commands moved or copied to these paths, and add the sessions of such commands."""
        for call in self._index.commands_naming(name):
            command = _read_command(call)
            targets: set[str] = set()
            for source, target in moved_paths(command, call.project):
                targets.add(base_name(target))
                if _canonical(target) in paths and _canonical(source) != _canonical(target):
                    yield _canonical(source)
            # The folder of a command is known only when its session is read.
            is_near = any(path.startswith(f"{_canonical(call.project).rstrip('/')}/") for path in paths)
            is_named = is_near or any(names_path(command, path, call.project) for path in paths)
            if name in targets or (is_named and any(written_runs(command, name))):
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

        def is_recorded(commit: CommittedVersion) -> bool:
            since, until = commit.time - _COMMIT_SECONDS, commit.time + _COMMIT_SECONDS
            commands = self._index.commands_between(lambda project: _is_near(project, root), since, until)
            return any("commit" in _read_command(call) for call in commands)

        history = FileHistory(self._paths, git, may_command_write, _canonical, is_recorded)
        history.use_only_equal_texts(self._elsewhere)
        history.replay(facts)
        return history

    def _may_command_write(self, root: str, after: float, until: float) -> bool:
        """Whether a session ran a command in, below or above the repository that may have changed files.

        Or it edited the file in what may be another clone.
        """
        if any(after < time <= until for time in self._other_edits):
            return True
        commands = self._index.commands_between(lambda project: _is_near(project, root), after, until)
        return any(number >= _MAX_COMMANDS or _may_call_write(call) for number, call in enumerate(commands))


def _is_near(project: str, root: str) -> bool:
    """Whether a project is a folder, or below or above it."""
    path = _canonical(project).rstrip("/")
    return f"{path}/".startswith(f"{root}/") or f"{root}/".startswith(f"{path}/")


def _may_call_write(call: ListedCall) -> bool:
    """Whether a shell command, or a tool of an MCP server, may have changed files."""
    if call.tool.startswith("mcp__"):
        return _WRITING_TOOL.search(call.tool) is not None
    return may_write_files(_read_command(call))


def _read_command(call: ListedCall) -> str:
    place = call.place
    arguments = read_call_input(place.transcript, place.offset, place.line, call.id, place.length)
    return input_command(arguments) or ""
