"""Open the archive of some or all homes, including sessions that exist only in the keep."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from threadline.archive.archive import AUTO_REFRESH_BYTES, Archive, ProgressBar, ProgressDisplay, no_progress
from threadline.errors import Error, NotFound
from threadline.files import cache_folder
from threadline.find import PROJECTS
from threadline.find import homes as find_homes
from threadline.model.homes import Home
from threadline.model.times import Zone, resolve_zone


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | str | Path = True,
    jobs: int | None = None,
    progress: ProgressDisplay | None = None,
    max_refresh_bytes: int = AUTO_REFRESH_BYTES,
    keep: bool | str | Path = True,
    tz: Zone | None = None,
) -> Archive:
    """Open the archive of these homes, or of all homes on this machine.

    A home may be in a zip or tar archive, or in an S3 bucket (`s3://bucket/prefix`). `index` says whether to use the
    index, or where it is. `jobs` limits the number of processes that read at once, `progress` shows the progress of
    long work, and `max_refresh_bytes` limits how much is read to update the index without being asked to. `keep` says
    whether to read sessions that exist only in the keep, or where the keep is. If homes are given, only their sessions
    are read from it. A given home that no longer exists is read from the keep, if that has it; `missing_homes` lists
    those. `tz` is the time zone of days, and of times without an offset; by default it is the user's own.

    >>> import threadline
    >>> with threadline.open() as archive:  # doctest: +SKIP
    ...     for hit in archive.search("flaky login test", since="30d"):
    ...         print(hit.session, hit.snippet)

    Raises:
        NotFound: one of `homes` neither exists nor is in the keep.
        Unreadable: one of `homes` is a damaged archive, or in a bucket that cannot be read.
    """
    requested = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    ready = [home for home in requested if isinstance(home, Home)]
    paths = [path for path in requested if not isinstance(path, Home)]
    folder, without_keep = _select_keep(keep)
    missing: dict[str, NotFound] = {}
    label = "Fetching" if any(str(path).startswith("s3:") for path in paths) else "Unpacking"
    with ProgressBar(progress or no_progress, label) as bar:
        try:
            existing = find_homes(*paths, planned=bar.begin, progress=bar.advance) if paths or not ready else []
        except NotFound:
            if folder is None:
                raise
            existing, missing = _split_missing_homes(paths)
    archive = Archive(
        (*ready, *existing),
        index=Path(index) if isinstance(index, str) else index,
        jobs=jobs,
        progress=progress,
        max_refresh_bytes=max_refresh_bytes,
        without_keep=without_keep,
    )
    archive.zone = resolve_zone(tz)
    if folder is not None:
        archive.read_keep(folder, only=bool(requested), lost=tuple(missing))
    elif keep is True and not without_keep:
        archive.enable_keep_later(only=bool(requested))
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
            homes = find_homes(path)
        except NotFound as error:
            missing[_kept_home_path(path)] = error
        else:
            existing.update((home.path, home) for home in homes)
    return list(existing.values()), missing


def _kept_home_path(path: str | Path) -> str:
    """The path that a home was kept by, as far as that can be known once it is gone."""
    resolved = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for unknown users
    parent, name = os.path.split(resolved)
    return parent if name == PROJECTS else resolved


def purge_caches(keep: Path) -> list[str]:
    """Remove what a keep has forgotten from the caches of this machine, at once. Return what could not be done.

    Unpacked sessions are deleted and unpacked again. The index of this machine's homes is refreshed; other indexes that
    contain sessions which are gone are deleted, and built again when they are needed.
    """
    from threadline.index import list_indexes, remove_stale_indexes
    from threadline.keep import clear_kept_homes

    clear_kept_homes(keep, cache_folder())
    if not list_indexes(cache_folder()):
        return []
    problems: list[str] = []
    refreshed: Path | None = None
    try:
        with open(keep=keep) as archive:
            if archive.index.exists():
                archive.refresh()
                refreshed = archive.index
    except NotFound:
        pass  # there is no home, so all that an index can contain is gone
    except Error as error:
        problems.append(f"{error} Its words of forgotten sessions are removed by the next `threadline index refresh`.")
    remove_stale_indexes(cache_folder(), refreshed)
    return problems


def is_keep_ignored(option: bool) -> bool:
    """Whether there is a keep, but it is not read."""
    return _select_keep(option)[1]


def _select_keep(option: bool | str | Path) -> tuple[Path | None, bool]:
    """The folder of the keep to read, if there is one; and whether there is one that is ignored."""
    if isinstance(option, str | Path):
        return Path(option), False
    from threadline.keep import existing_keep_folder, is_keep_enabled

    folder = existing_keep_folder()
    if folder is None:
        return None, False
    return (Path(folder), False) if option and is_keep_enabled() else (None, True)


class HomePresence:
    """Remembers which homes exist, to tell later which are missing."""

    def __init__(self, homes: Sequence[Home]) -> None:
        live = [home.path for home in homes if not home.is_kept]
        # The mount point of a missing disk may still exist, empty: so `projects` has to exist if it did before.
        self._folders = {path: projects if (projects := path / PROJECTS).is_dir() else path for path in live}

    def missing(self) -> tuple[Path, ...]:
        """The homes that do not exist now."""
        return tuple(home for home, folder in self._folders.items() if not folder.is_dir())

    def are_all(self, homes: Sequence[Path]) -> bool:
        """Whether these are all of the homes."""
        return len(homes) == len(self._folders)
