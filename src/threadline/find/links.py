"""Which links to files may be listed: those that lead to a file of the same home, and to no secret."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from threadline.find.side_files import PROJECTS, is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOWHERE: Final = {
    errno.ELOOP: "a link that leads in a circle",
    errno.ENOENT: "a link to something that is not there",
    errno.ENOTDIR: "a link to something that is not there",
}


class Target(NamedTuple):
    """What a link leads to: the real path and its status, or why it is passed over."""

    path: str = ""
    status: os.stat_result | None = None
    refusal: str = ""


def target(link: str, tops: Mapping[str, tuple[str, ...]]) -> Target:
    """Follow a link to a regular file below one of `tops` (real directories and their parts in the home).

    Raises:
        OSError: the machine refuses to say what the link leads to.
    """
    try:
        status = Path(link).stat()
    except OSError as error:
        if error.errno not in _NOWHERE:
            raise
        return Target(refusal=_NOWHERE[error.errno])
    real = os.path.realpath(link)
    parts = next((found for top in tops if (found := _parts(real, top, tops[top]))), None)
    if stat.S_ISDIR(status.st_mode):
        return Target(refusal="a link to a directory; directories are not followed")
    if not stat.S_ISREG(status.st_mode):
        return Target(refusal="a link to something that is not a regular file")
    if parts is None:
        return Target(refusal="a link to a file outside the home")
    return Target(refusal="a link to a secret") if is_secret(parts) else Target(real, status)


def real_projects(top: str) -> str | None:
    """Give the real `projects` directory of a home.

    It alone may be a link, for people move it to another disk and Claude Code follows it. But not to a
    directory that holds the home itself, which would make all of a disk a project.
    """
    path = Path(top, PROJECTS)
    real = os.path.realpath(path)
    try:
        moved = path.is_symlink() and path.is_dir()
    except OSError:
        return None  # the walk will say what the machine refuses
    return real if moved and top != real and _parts(top, real, ()) is None else None


def _parts(path: str, top: str, above: tuple[str, ...]) -> tuple[str, ...] | None:
    start = top if top.endswith(os.sep) else top + os.sep
    return (*above, *Path(path[len(start) :]).parts) if path.startswith(start) else None
