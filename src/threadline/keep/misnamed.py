"""Misnamed files: what was kept by where it really lay, before links in a home were kept by their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.sources import is_source
from threadline.keep.versions import Pieces


def misnamed(catalogue: Catalogue, is_right: Callable[[str], bool] = is_source) -> list[list[Version]]:
    """By home, the files that are kept by paths which no run would give them, and not by their names as well."""
    wrong = [one for one in catalogue.newest() if not is_right(one.path)]
    if not wrong:
        return []
    right = {
        (one.machine, one.home, id_)
        for one in catalogue.all_versions()
        if is_right(one.path)
        for id_ in _ids(one.pieces)
    }
    by_home: dict[tuple[str, str], list[Version]] = defaultdict(list)
    for one in wrong:
        if (one.machine, one.home, one.pieces.id) not in right:
            by_home[one.machine, one.home].append(one)
    return list(by_home.values())


def sentence(versions: list[Version]) -> str:
    """What to say of those of one home."""
    first = versions[0]
    return (
        f"{len(versions):,} files of {first.home} on {first.label} are kept by where they really lay ({first.path} …), "
        "not by their names in the home, and are not put back: run `threadline keep` there while they are there."
    )


def _ids(pieces: Pieces | None) -> Iterator[str]:
    """A version's pieces, and those that it goes on from: whoever has it has these."""
    while pieces is not None:
        yield pieces.id
        pieces = pieces.before
