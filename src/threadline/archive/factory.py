"""Open the archive of some or all homes, including sessions that exist only in the keep."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.archive.archive import AUTO_REFRESH_BYTES, Archive
from threadline.errors import NotFound
from threadline.find import PROJECTS
from threadline.find import homes as all_homes
from threadline.model.homes import Home

if TYPE_CHECKING:
    from threadline.archive.archive import ProgressDisplay


def open(  # noqa: A001 - as `threadline.open`
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    index: bool | Path = True,
    jobs: int | None = None,
    showing: ProgressDisplay | None = None,
    most: int = AUTO_REFRESH_BYTES,
    keep: bool | Path = True,
) -> Archive:
    """The archive of all homes that are found, or of those given.

    `index` says whether the index may be used, or where it lies. `jobs` is how many processes may read at once,
    `showing` shows how far long work has come, and `most` is how many bytes may be read to bring the index up to date.
    `keep` says whether sessions are read that only the keep still has, or where that lies; of homes that are given,
    only theirs. One that was given and is gone is read from the keep alone, where that knows it; `gone` tells those.

    >>> import threadline
    >>> with threadline.open() as archive:  # doctest: +SKIP
    ...     for hit in archive.search("flaky login test").hits:
    ...         print(hit.session, hit.snippet)

    Raises:
        NotFound: a home that was given is not there, and not in the keep either.
    """
    given = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    named = [one for one in given if isinstance(one, Home)]
    others = [one for one in given if not isinstance(one, Home)]
    folder, is_apart = _select_keep(keep)
    lost: dict[str, NotFound] = {}
    try:
        there = all_homes(*others) if others or not named else []
    except NotFound:
        if folder is None:
            raise
        there, lost = _split_missing_homes(others)
    made = Archive((*named, *there), index=index, jobs=jobs, showing=showing, most=most, apart=is_apart)
    if folder is not None:
        made.read_keep(folder, only=bool(given), lost=tuple(lost))
    elif keep is True and not is_apart:
        made.enable_keep_later(only=bool(given))
    for path, error in lost.items():
        if not made.has_kept(path):
            raise error
    return made


def _split_missing_homes(named: Sequence[str | Path]) -> tuple[list[Home], dict[str, NotFound]]:
    """Of homes that were named, those that are there, and why the others are not, by the path they had."""
    there: dict[Path, Home] = {}
    lost: dict[str, NotFound] = {}
    for text in named:
        try:
            (home,) = all_homes(text)
        except NotFound as error:
            lost[_kept_home_path(text)] = error
        else:
            there.setdefault(home.path, home)
    return list(there.values()), lost


def _kept_home_path(named: str | Path) -> str:
    """The path that a home was kept by, as far as that can be told once it is gone."""
    path = os.path.realpath(os.path.expanduser(named))  # noqa: PTH111 - Path.expanduser raises when at a loss
    above, name = os.path.split(path)
    return above if name == PROJECTS else path


def clear_kept_homes(folder: Path) -> None:
    """Throw away what was put back from the keep in a folder, after something was forgotten: it is made again."""
    from threadline.index import cache_folder
    from threadline.keep import clear_kept_homes

    clear_kept_homes(folder, cache_folder())


def ignores_keep(asked: bool) -> bool:
    """Whether there is a keep that is left out."""
    return _select_keep(asked)[1]


def _select_keep(asked: bool | Path) -> tuple[Path | None, bool]:
    """The folder of the keep to be read, if there is one; and whether there is one that is left out."""
    if isinstance(asked, Path):
        return asked, False
    from threadline.keep import existing_keep_folder, is_keep_enabled

    folder = existing_keep_folder()
    if folder is None:
        return None, False
    is_wanted = asked and is_keep_enabled()
    return (Path(folder), False) if is_wanted else (None, True)
