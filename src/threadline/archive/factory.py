"""Open the archive of some or all homes, including sessions that exist only in the keep."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.archive.archive import AUTO_REFRESH_BYTES, Archive
from threadline.errors import NotFound
from threadline.find import PROJECTS
from threadline.find import homes as find_homes
from threadline.model.homes import Home

if TYPE_CHECKING:
    from threadline.archive.archive import ProgressDisplay


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | Path = True,
    jobs: int | None = None,
    progress: ProgressDisplay | None = None,
    max_refresh_bytes: int = AUTO_REFRESH_BYTES,
    keep: bool | Path = True,
) -> Archive:
    """Open the archive of these homes, or of all homes on this machine.

    `index` says whether to use the index, or where it is. `jobs` limits the number of processes that read at once,
    `progress` shows the progress of long work, and `max_refresh_bytes` limits how much is read to update the index
    without being asked to. `keep` says whether to read sessions that exist only in the keep, or where the keep is. If
    homes are given, only their sessions are read from it. A given home that no longer exists is read from the keep, if
    that has it; `missing_homes` lists those.

    >>> import threadline
    >>> with threadline.open() as archive:  # doctest: +SKIP
    ...     for hit in archive.search("flaky login test").hits:
    ...         print(hit.session, hit.snippet)

    Raises:
        NotFound: a given home does not exist, and is not in the keep either.
    """
    given = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    ready = [home for home in given if isinstance(home, Home)]
    paths = [path for path in given if not isinstance(path, Home)]
    folder, without_keep = _select_keep(keep)
    missing: dict[str, NotFound] = {}
    try:
        existing = find_homes(*paths) if paths or not ready else []
    except NotFound:
        if folder is None:
            raise
        existing, missing = _split_missing_homes(paths)
    archive = Archive(
        (*ready, *existing),
        index=index,
        jobs=jobs,
        progress=progress,
        max_refresh_bytes=max_refresh_bytes,
        without_keep=without_keep,
    )
    if folder is not None:
        archive.read_keep(folder, only=bool(given), lost=tuple(missing))
    elif keep is True and not without_keep:
        archive.enable_keep_later(only=bool(given))
    for path, error in missing.items():
        if not archive.has_kept(path):
            raise error
    return archive


def _split_missing_homes(paths: Sequence[str | Path]) -> tuple[list[Home], dict[str, NotFound]]:
    """The homes that exist, and the errors of those that do not, by the path they were kept by."""
    existing: dict[Path, Home] = {}
    missing: dict[str, NotFound] = {}
    for path in paths:
        try:
            (home,) = find_homes(path)
        except NotFound as error:
            missing[_kept_home_path(path)] = error
        else:
            existing.setdefault(home.path, home)
    return list(existing.values()), missing


def _kept_home_path(path: str | Path) -> str:
    """The path that a home was kept by, as far as that can be known once it is gone."""
    resolved = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for unknown users
    parent, name = os.path.split(resolved)
    return parent if name == PROJECTS else resolved


def clear_kept_homes(folder: Path) -> None:
    """Delete the sessions that were unpacked from a keep, after some were forgotten. They are unpacked again."""
    from threadline.index import cache_folder
    from threadline.keep import clear_kept_homes

    clear_kept_homes(folder, cache_folder())


def is_keep_ignored(option: bool) -> bool:
    """Whether there is a keep, but it is not read."""
    return _select_keep(option)[1]


def _select_keep(option: bool | Path) -> tuple[Path | None, bool]:
    """The folder of the keep to read, if there is one; and whether there is one that is ignored."""
    if isinstance(option, Path):
        return option, False
    from threadline.keep import existing_keep_folder, is_keep_enabled

    folder = existing_keep_folder()
    if folder is None:
        return None, False
    return (Path(folder), False) if option and is_keep_enabled() else (None, True)
