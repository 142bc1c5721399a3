"""Open files inside a home, and nothing outside it.

Everything that reads a file of a home goes through here; tests/project/test_home_files.py checks that. A home may come
from anywhere (an archive that somebody sent, a shared disk), so its links are not trusted:

- The home itself may be a link, and so may `projects`, which people move to another disk.
- A transcript may be a link to another file of the same home, unless that is a secret or directly in the home, as
  settings are. `find` lists it by its real path.
- A link to a file may lead to the directories that `THREADLINE_LINKS` lists, for settings kept elsewhere.
- Every other link below a home is refused, and so are `..`, FIFOs, sockets and devices.
- Files that contain secrets are refused by their names, however they are reached.

A path that is not in a home was named by the user, and is followed.

The check comes after the file is open, and concerns the open file: nothing can be swapped in between. On Linux and
macOS the system names the open file. Elsewhere its path is resolved and must lead to the same file. A hard link cannot
be told from a file, and a mounted disk belongs to the directory that it is mounted on.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from threadline.errors import NotFound, Unreadable
from threadline.files import NO_FOLLOW, READ_FLAGS, NotRegularFileError, check_regular, open_descriptor

LINKS_VARIABLE: Final = "THREADLINE_LINKS"
"""The environment variable that lists the directories outside a home that links to files may lead to."""
PROJECTS_DIR: Final = "projects"
"""The directory of a home that has the transcripts."""

StrPath: TypeAlias = str | os.PathLike[str]

_HAS_PROC: Final = sys.platform == "linux"
_F_GETPATH: Final = 50
"""The command of `fcntl` that returns the path of an open file on macOS."""
_MAX_PATH: Final = 1024
_DELETED: Final = " (deleted)"
# Claude Code names the folders of projects after paths: `-home-you-app`, `C--Users-you-app`.
_PROJECT_FOLDER: Final = re.compile(r"-|[A-Za-z]--")
_HOME_NAMES: Final = frozenset(
    {
        "history.jsonl",
        "stats-cache.json",
        "settings.json",
        *("todos", "tasks", "teams", "file-history", "plans", "shell-snapshots", "session-env", "sessions", "jobs"),
        *("daemon", "ide", "paste-cache", "image-cache", "debug", "usage-data", "backups", "statsig", "plugins"),
    }
)
"""What a home contains besides `projects`."""
_SECRET_LAST_LETTERS: Final = frozenset("yY")


class OutsideHomeError(OSError):
    """The path leads out of the home, or through a link that is not followed. `target` is where it leads, if known."""

    def __init__(self, path: StrPath, target: str | None = None) -> None:
        super().__init__(errno.ELOOP, "a link that leads out of the home is not followed", os.fspath(path))
        self.target = target


class SecretFileError(PermissionError):
    """The name of the file is that of a file with secrets."""


def is_secret_name(name: str) -> bool:
    """Whether a file of this name contains credentials, in any folder."""
    if name[:1] != "." and name[-1:] not in _SECRET_LAST_LETTERS:  # as nearly all are
        return False
    lower = name.lower()
    return lower in {".credentials.json", ".env"} or lower.endswith(".key") or lower.startswith(".env.")


def is_secret_path(parts: Sequence[str]) -> bool:
    """Whether a file must never be opened; its name alone decides. `parts` are those below the home."""
    # Below a project the user chooses names: a memory may be called security_notes.md.
    is_security_state = parts[-1].lower().startswith("security_") and parts[0] != PROJECTS_DIR
    return is_security_state or is_secret_name(parts[-1])


def open_in_home(path: StrPath, *, home: StrPath | None = None) -> int:
    """Open a regular file of a home for reading and return its descriptor.

    `home` is the home that the file must be in. By default it is the home that the path names: the directory above
    `projects`, `todos` or the like. With `home`, no link at all is followed below it, except `projects`.

    Raises:
        OutsideHomeError: a link or `..` leads out of the home.
        NotRegularFileError: it is not a regular file, and was not opened.
        PermissionError: its name is that of a file with secrets, or the system refuses.
        OSError: it cannot be opened.
    """
    text = os.fspath(path)
    _refuse_secret(text, text)
    if home is not None:
        if not _is_below(text, os.fspath(home)):
            raise OutsideHomeError(text)
        below = parts_below(os.path.abspath(text), os.path.abspath(home))  # noqa: PTH100 - paths are text
        if below and is_secret_path(below):
            raise SecretFileError(errno.EACCES, "a file with secrets is never opened", text)
    status = os.lstat(text)
    if stat.S_ISLNK(status.st_mode):
        return _open_link(text, home)
    descriptor, real = _open_and_locate(text, status)
    if real != text:  # a link in the path, or a relative path
        try:
            _check_real_path(text, real, home)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def open_transcript(path: StrPath, *, home: StrPath | None = None) -> int:
    """Open a transcript, or another file of a home, as `open_in_home` does; errors have a message for users.

    Raises:
        NotFound: it does not exist.
        Unreadable: it cannot be opened, is not a regular file, contains secrets, or is outside the home.
    """
    name = os.fspath(path)
    try:
        return open_in_home(path, home=home)
    except FileNotFoundError:
        raise NotFound(f"There is no file {name!r}. Check the path.") from None
    except SecretFileError:
        raise Unreadable(f"{name!r} is the name of a file with secrets. threadline never opens those.") from None
    except OutsideHomeError as error:
        raise Unreadable(f"{name!r} is not opened: {describe_refusal(error)}.") from None
    except NotRegularFileError:
        raise Unreadable(f"{name!r} is not a regular file. Name a .jsonl transcript.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreadable(f"{name!r} cannot be opened: {reason}.") from None


@contextmanager
def opened_in_home(path: StrPath) -> Iterator[int]:
    """Open a file of a home for the duration of a `with` block; raises what `open_in_home` raises."""
    descriptor = open_in_home(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_unbuffered(path: StrPath, *, home: StrPath) -> BinaryIO:
    """Open a file of a home as an unbuffered file object; raises what `open_in_home` raises."""
    return os.fdopen(open_in_home(path, home=home), "rb", buffering=0)


def read_in_home(path: StrPath, *, limit: int, home: StrPath | None = None) -> bytes:
    """Return the content of a file of a home, or its first `limit` bytes; raises what `open_in_home` raises."""
    return read_and_close(open_in_home(path, home=home), limit)


def read_and_close(descriptor: int, limit: int) -> bytes:
    """Return the content of an open file, or its first `limit` bytes, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        # `read` allocates as many bytes as it may return, and most files are much smaller than the limit.
        return file.read(min(limit, os.fstat(descriptor).st_size + 1))


def read_lines(path: StrPath, limit: int) -> Iterator[bytes]:
    """Yield the lines in the first `limit` bytes, without a last line that the limit cuts.

    Raises:
        OSError: it cannot be read, as with `open_in_home`.
    """
    with os.fdopen(open_in_home(path), "rb") as file:
        while limit > 0 and (line := file.readline(limit)):
            limit -= len(line)
            if limit > 0 or line.endswith(b"\n"):
                yield line


def resolve_in_home(path: StrPath) -> str:
    """Return the real path of a file; links in it are followed as far as `open_in_home` does.

    Raises:
        OutsideHomeError: a link leads out of the home that the path names.
    """
    text = os.path.abspath(path)  # noqa: PTH100 - paths are text
    real = os.path.realpath(text)
    if real != text:
        _check_real_path(text, real, None)
    return real


def describe_refusal(error: OutsideHomeError) -> str:
    """Say why a path was refused, and what to do."""
    if error.target is None:
        return "the path leads out of the home"
    return f"a link leads out of the home. To read the file it leads to, name that: {error.target!r}"


def parts_below(path: str, home: str) -> tuple[str, ...] | None:
    """Return the parts of a path below a directory; None if it is not below it, or has parts such as `..`."""
    start = home if home.endswith(os.sep) else home + os.sep
    if not path.startswith(start):
        return None
    rest = path[len(start) :]
    # `Path` knows what `//` and `.` mean. Few paths contain them, and splitting takes a tenth of its time.
    is_plain = os.altsep is None and "//" not in rest and "/." not in rest and rest[:1] != "." and rest[-1:] != "/"
    parts = tuple(rest.split("/")) if is_plain and rest else Path(rest).parts
    return parts if parts and ".." not in parts else None


def _is_below(path: str, home: str) -> bool:
    """Whether a path is below a home, below its real path, or below the directory that its `projects` leads to."""
    if parts_below(path, home) is not None:
        return True
    real = os.path.realpath(home)
    moved = real_projects_dir(real)
    return parts_below(path, real) is not None or (moved is not None and parts_below(path, moved) is not None)


def _open_link(link: str, home: StrPath | None) -> int:
    """Open the file that a link leads to, if the user named the link or it leads to a file of the same home."""
    real = os.path.realpath(link)
    _refuse_secret(real, link)
    if home is not None and not is_allowed_target(real):
        raise OutsideHomeError(link, real)
    if home is None and _find_home(os.path.abspath(link)) is None:  # noqa: PTH100 - paths are text
        return open_descriptor(link, follow_symlinks=True)
    _check_real_path(link, real, home)
    descriptor, opened = _open_and_locate(real, os.lstat(real))
    if not _same_path(opened, real):  # it was replaced meanwhile
        os.close(descriptor)
        raise OutsideHomeError(link, opened)
    return descriptor


def _open_and_locate(path: str, status: os.stat_result) -> tuple[int, str]:
    """Open a regular file, and return its descriptor and the real path of what was opened."""
    check_regular(status, path)
    descriptor = os.open(path, READ_FLAGS | NO_FOLLOW)
    try:
        status = os.fstat(descriptor)
        check_regular(status, path)
        return descriptor, _path_of_open_file(descriptor, status, path)
    except BaseException:
        os.close(descriptor)
        raise


def _check_real_path(path: str, real: str, home: StrPath | None) -> None:
    """Raise unless the file at `real`, which a path with links leads to, is in the home that the path names.

    With `home`, it must be at that path below the home, too.
    """
    _refuse_secret(real, path)
    absolute = os.path.abspath(path)  # noqa: PTH100 - paths are text
    if _same_path(real, absolute):
        return
    top = os.fspath(home) if home is not None else _find_home(absolute)
    if top is None:
        return  # the user named it
    below = parts_below(absolute, os.path.abspath(top))  # noqa: PTH100 - the same
    roots = [(os.path.realpath(top), below)]
    if below is not None and below[0] == PROJECTS_DIR and (moved := real_projects_dir(roots[0][0])) is not None:
        roots.append((moved, below[1:]))
    for root, parts in roots:
        target = parts_below(_fold(real), _fold(root))
        if target is None or parts is None:
            continue
        if tuple(map(_fold, parts)) == target:  # only the home, or `projects`, is a link
            return
        # A transcript may be a link within the home, but not to its settings, nor to other files directly in it.
        is_transcript = home is None and below is not None and below[0] == PROJECTS_DIR
        if is_transcript and (root is not roots[0][0] or len(target) > 1) and not is_secret_path(target):
            return
    if not is_allowed_target(real):
        raise OutsideHomeError(path, real)


def is_allowed_target(real: str) -> bool:
    """Whether a link to a file may lead to this real path, because `THREADLINE_LINKS` lists a directory above it."""
    listed = os.environ.get(LINKS_VARIABLE)
    if not listed:
        return False
    folders = (os.path.realpath(os.path.expanduser(name)) for name in listed.split(os.pathsep) if name.strip())  # noqa: PTH111 - Path.expanduser may raise
    return any(parts_below(_fold(real), _fold(folder)) is not None for folder in folders)


def real_projects_dir(top: str) -> str | None:
    """Return the real path of a home's `projects` directory if that is a link which may be followed, else None.

    A link to a directory that contains the home is not followed: it would make a whole disk a project.
    """
    path = os.path.join(top, PROJECTS_DIR)  # noqa: PTH118 - paths are text
    if not os.path.islink(path):  # noqa: PTH114 - the same
        return None
    real = os.path.realpath(path)
    is_outside = top != real and parts_below(top, real) is None
    return real if is_outside and os.path.isdir(real) else None  # noqa: PTH112 - Path.is_dir may raise


def _find_home(path: str) -> str | None:
    """Return the home that an absolute path names; None if it is not in one.

    Other directories are called `projects`, too: in a home, folders in it are named after paths, or other files of
    Claude Code are beside it.
    """
    parts = Path(path).parts
    for at in range(len(parts) - 1, 0, -1):
        home = Path(*parts[:at])
        if parts[at] in _HOME_NAMES and os.path.lexists(home / PROJECTS_DIR):
            return os.fspath(home)
        if parts[at] == PROJECTS_DIR and at + 1 < len(parts):
            is_home = _PROJECT_FOLDER.match(parts[at + 1]) or home.name.startswith(".claude")
            if is_home or any(os.path.lexists(home / name) for name in _HOME_NAMES):
                return os.fspath(home)
    return None


def _path_of_open_file(descriptor: int, status: os.stat_result, path: str) -> str:
    """Return the real path of an open file.

    Raises:
        OutsideHomeError: it cannot be determined, because something changed meanwhile.
    """
    if _HAS_PROC:
        try:
            real = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - paths are text
        except OSError:
            pass  # there is no /proc in some containers
        else:
            return path if real == path + _DELETED else real
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on every system

        return os.fsdecode(fcntl.fcntl(descriptor, _F_GETPATH, bytes(_MAX_PATH)).rstrip(b"\0"))
    real = os.path.realpath(path)
    if not os.path.samestat(os.lstat(real), status):
        raise OutsideHomeError(path)
    return real


def _same_path(first: str, second: str) -> bool:
    return _fold(first) == _fold(second)


def _fold(path: str) -> str:
    """Return a path in the form in which the system compares names."""
    if sys.platform == "darwin":
        import unicodedata  # noqa: PLC0415 - only this system needs it

        return unicodedata.normalize("NFC", path).casefold()
    return os.path.normcase(path)


def _refuse_secret(path: str, name: str) -> None:
    if is_secret_name(os.path.basename(path)):  # noqa: PTH119 - paths are text
        raise SecretFileError(errno.EACCES, "a file with secrets is never opened", name)
