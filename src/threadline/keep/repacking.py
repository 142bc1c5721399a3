"""Repacking: packs written anew, small ones into large ones; the old go when the new are safe on the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep import durable, pack
from threadline.keep.catalogue import Catalogue, take_in
from threadline.keep.machine import Machine
from threadline.keep.pack import Frame, pieces_in
from threadline.keep.pieces import Piece
from threadline.keep.store import GOING, Store
from threadline.keep.writing import FRAME, PACK, SEALED, Packing


class Packed(Struct, frozen=True):
    """What was written anew: how many packs became how many, what they took and take, and what could not be."""

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    problems: tuple[str, ...] = ()


Table = list[tuple[Path, Frame]]


def repack(
    store: Store,
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Packed:
    """Write small packs into large ones, and what is there twice once. Killed anywhere, nothing is missing.

    What was forgotten and came back goes again: a run that had neither the key nor a memory could not know of it.

    Raises:
        IndexBusy: somebody else writes.
        Unreadable: the keep cannot be written, or is encrypted and its key not at hand.
    """
    from threadline.keep.forgetting import is_unfinished, purge  # noqa: PLC0415 - each of the two needs the other

    store.require_key()
    with store.removing(machine.id):
        catalogue = Catalogue(store)
        if catalogue.forgotten.rows and is_unfinished(catalogue):
            purge(catalogue, machine)
        told = {path: frames for path in store.pack_files() if (frames := frames_of(store, path)) is not None}
        chosen = _worthwhile(store, told)
        packed = rewrite(
            catalogue, machine, chosen, lambda _hash: True, jobs=jobs, planned=planned, progress=progress, smaller=True
        )
        take_in(store, machine.memory)
    return packed


def frames_of(store: Store, path: Path) -> tuple[Frame, ...] | None:
    """The frames of a pack; None where it does not tell."""
    try:
        with store.opened(path) as file:
            return pack.contents(pack.table_of(file, path.name), path.name).frames
    except (Unreadable, OSError):
        return None


def rewrite(
    catalogue: Catalogue,
    machine: Machine,
    packs: dict[Path, tuple[Frame, ...]],
    wanted: Callable[[str], bool],
    *,
    jobs: int = 2,
    dictionary: bytes | None = None,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    smaller: bool = False,
) -> Packed:
    """Write the wanted pieces of packs into new ones, then take the old away. What is damaged stays where it is.

    With `smaller`, the old ones stay, and the new go, unless these take less room or the place of damaged ones.
    """
    if not packs:
        return Packed()
    store = catalogue.store
    ordered = _in_order(catalogue, packs)
    progress = progress or (lambda _done: None)
    if planned is not None:
        planned(sum(frame.size for _path, frame in ordered))
    damaged: list[tuple[Path, str, list[str]]] = []
    done: set[str] = set()
    known: dict[str, bytes] = {}
    before = sum(path.stat().st_size for path in packs)
    with Packing(store, machine.id, jobs=jobs, dictionary=dictionary) as packing:
        for path, frame in ordered:
            missing = [hash_ for hash_, _length in frame.pieces if hash_ not in done and wanted(hash_)]
            if missing:
                try:
                    found = _read(store, path, frame, known)
                except Unreadable as error:
                    damaged.append((path, str(error), missing))
                    continue
                right = [Piece(one, found[one]) for one in dict.fromkeys(missing) if _is_right(one, found[one])]
                for piece in right:
                    packing.add(piece)
                    done.add(piece.hash)
                if not done.issuperset(missing):
                    said = f"A piece in {path.name!r} is not what was kept; it stays where it is."
                    damaged.append((path, said, missing))
            progress(frame.size)
    # What one pack has damaged, another may have whole: it was kept again.
    lost = [(path, said) for path, said, missing in damaged if not done.issuperset(missing)]
    problems = [said for _path, said in lost]
    spoilt = {path for path, _said in lost}
    after = sum(path.stat().st_size for path in packing.done)
    left = sum(path.stat().st_size for path in spoilt)
    is_mended = any(path not in spoilt for path, _said, _missing in damaged)
    if smaller and after + left >= before and not is_mended:
        _take_away(store, (path for path in packing.done if path not in packs))
        return Packed(problems=tuple(problems))
    # A pack may come out as it was: its name is its hash, and it stays.
    _take_away(store, (path for path in packs if path not in spoilt and path not in packing.done))
    catalogue.locate_again()
    return Packed(len(packs), len(packing.done) + len(spoilt), before, after, tuple(problems))


def _take_away(store: Store, paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    durable.sync(store.packs)


def _read(store: Store, path: Path, frame: Frame, known: dict[str, bytes]) -> dict[str, bytes]:
    name = frame.dictionary
    if name is not None and name not in known:
        known[name] = store.dictionary(name)
    with store.opened(path) as file:
        data = pack.frame_bytes(file, path.name, frame, known[name] if name is not None else None)
    return dict(pieces_in(frame, data))


def _is_right(hash_: str, data: bytes) -> bool:
    return sha256(data).hexdigest() == hash_


def _worthwhile(store: Store, packs: dict[Path, tuple[Frame, ...]]) -> dict[Path, tuple[Frame, ...]]:
    """The packs that are better written anew: several small ones, and those that hold what others hold, too."""
    least = (SEALED if store.is_sealed else PACK) // 4
    counted = Counter(hash_ for frames in packs.values() for frame in frames for hash_, _length in frame.pieces)
    twice = {hash_ for hash_, times in counted.items() if times > 1}
    chosen = {}
    small = {path for path in packs if path.stat().st_size < least}
    for path, frames in packs.items():
        doubled = any(hash_ in twice for frame in frames for hash_, _length in frame.pieces)
        cut_small = sum(frame.size < FRAME // 2 for frame in frames) > 1
        if doubled or cut_small or (path in small and len(small) > 1):
            chosen[path] = frames
    return chosen


def _in_order(catalogue: Catalogue, packs: dict[Path, tuple[Frame, ...]]) -> Table:
    """The frames of packs in the order in which they were first needed: what a file grew by comes after the rest of it.

    Small ones come together, by the file they belong to; between the large ones, they would part what is alike.
    """
    first: dict[str, tuple[str, int]] = {}
    files: dict[str, tuple[str, str, str]] = {}
    for key in sorted(catalogue.versions, key=lambda key: (key[2], key)):
        for version in catalogue.versions[key]:
            for hash_ in version.pieces:
                files.setdefault(hash_, key)
                moment = (version.seen, version.run)
                first[hash_] = min(first.get(hash_, moment), moment)
    never = ("9999", 0)

    def place(one: tuple[Path, Frame]) -> tuple[bool, tuple[str, ...], tuple[str, int], str, int]:
        hashes = [hash_ for hash_, _length in one[1].pieces]
        is_small = one[1].size < FRAME // 2
        moment = min((first.get(hash_, never) for hash_ in hashes), default=never)
        file = min((files[hash_] for hash_ in hashes if hash_ in files), default=("",)) if is_small else ()
        return is_small, file, moment, one[0].name, one[1].offset

    frames = [(path, frame) for path, inside in packs.items() for frame in inside]
    return sorted(frames, key=place)


def dictionaries_going(store: Store) -> list[Path]:
    """The dictionaries that are on their way out."""
    return [path for path in store.dictionary_files() if path.name.endswith(GOING)]


def let_dictionaries_go(store: Store) -> None:
    """Mark all dictionaries: nothing is written with them any more."""
    for path in store.dictionary_files():
        if not path.name.endswith(GOING):
            path.replace(path.with_name(path.name + GOING))
    durable.sync(store.dictionaries)


def drop_dictionaries(store: Store, tables: Iterable[tuple[Frame, ...]]) -> None:
    """Take away the dictionaries that were let go, unless a frame still needs one."""
    if any(frame.dictionary is not None for frames in tables for frame in frames):
        return
    for path in dictionaries_going(store):
        path.unlink(missing_ok=True)
    durable.sync(store.dictionaries)
