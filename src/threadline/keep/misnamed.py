"""Find files that an early version kept under their resolved paths.

To be deleted: no release ever did this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from threadline.keep.catalogue import Catalogue, PieceList, Version
from threadline.keep.paths import is_kept_path


def misnamed(catalogue: Catalogue, is_right: Callable[[str], bool] = is_kept_path) -> list[list[Version]]:
    """By home, the files that are kept by paths which no run would give them, and not by their names as well."""
    wrong = [one for one in catalogue.newest() if not is_right(one.path)]
    if not wrong:
        return []
    right = {
        (version.machine, version.home, id_)
        for version in catalogue.all_versions()
        if is_right(version.path)
        for id_ in _ids(version.pieces)
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


def _ids(pieces: PieceList | None) -> Iterator[str]:
    """A version's pieces, and those that it goes on from: whoever has it has these."""
    while pieces is not None:
        yield pieces.id
        pieces = pieces.before
