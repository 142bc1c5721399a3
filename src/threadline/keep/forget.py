"""Remove a session from a keep, and rewrite packs so that they hold only what is needed.

The manifests still record that the session was kept, its paths and the reason. Its bytes go, except those that other
files share. Dictionaries consist of users' lines, so forgetting drops them too.

Old packs are deleted only after the new ones are on disk: killed at any point, nothing is missing, and the next run
finishes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from threadline import atomic
from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.keep import pack
from threadline.keep.catalogue import Catalogue, Version, update_cache
from threadline.keep.chunking import Piece
from threadline.keep.machine import Machine
from threadline.keep.manifest import MANIFEST_VERSION, EndRow, ForgetRow, RunRow, path_to_json
from threadline.keep.pack import ENCRYPTED_PACK_SIZE, FRAME_SIZE, PACK_SIZE, Frame, PackWriter, split_frame
from threadline.keep.store import RETIRED_SUFFIX, Store


class ForgetResult(Struct, frozen=True):
    """What was forgotten: how many files and versions, how many bytes left the packs, what could not be taken out."""

    session: str
    reason: str
    files: int
    versions: int
    bytes: int
    problems: tuple[str, ...] = ()


def forget_session(
    store: Store,
    machine: Machine,
    session: str,
    files: Iterable[Version],
    reason: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ForgetResult:
    """Take a session out of the keep: these files, every version of them, and whatever has its id in its path.

    That it was kept, its paths and the reason stay in the manifests; its bytes do not, but for those others have, too.

    Raises:
        NotFound: there is nothing to forget.
        IndexBusy: somebody else writes.
        Unreadable: the keep cannot be written, or is encrypted and its key not at hand.
    """
    store.require_key()
    with store.removing(machine.id):
        before = Catalogue(store)
        row = ForgetRow(session, reason, tuple(sorted({path_to_json(version.path)[0] for version in files})))
        before.forgotten.add(row)
        going = [version for version in before.all_versions() if before.forgotten.has(version.path)]
        if not going:
            raise NotFound(f"The keep has nothing of {session!r}; `threadline keep list` shows what it has.")
        last = before.last_run(machine.id)
        moment = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = RunRow(
            MANIFEST_VERSION,
            machine.id,
            path_to_json(machine.label)[0],
            last.run.number + 1 if last is not None else 1,
            last.hash if last is not None else None,
            moment,
            (),
        )
        store.put_run([run, row, EndRow(moment, 0, 0)])
        packed = purge_forgotten(Catalogue(store), machine)
        update_cache(store, machine.memory)
    paths = {(one.machine, one.home, one.path) for one in going}
    return ForgetResult(
        session, reason, len(paths), len(going), packed.bytes_before - packed.bytes_after, tuple(packed.problems)
    )


def purge_forgotten(catalogue: Catalogue, machine: Machine) -> RepackResult:
    """Write anew every pack that holds what only forgotten versions need, and all that needs a dictionary.

    A dictionary is made of lines, which may be those that are to go. What no version needs at all was left by a run
    that was stopped: it may be theirs, and goes, too, where all manifests can be read.
    """
    store = catalogue.store
    live = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    dead = _unneeded_pieces(catalogue, live)
    keep_unknown = bool(catalogue.problems)
    retire_dictionaries(store)
    told = {path: frames for path in store.pack_files() if (frames := read_frames(store, path)) is not None}

    def wanted(hash_: str) -> bool:
        return hash_ in live or (keep_unknown and hash_ not in dead)

    chosen = {
        path: frames
        for path, frames in told.items()
        if any(frame.dictionary or any(not wanted(hash_) for hash_, _length in frame.pieces) for frame in frames)
    }
    packed = rewrite_packs(catalogue, machine, chosen, wanted)
    left = [frames for path, frames in told.items() if path not in chosen or path.exists()]
    remove_retired_dictionaries(store, left)
    return packed


def finish_forgetting(catalogue: Catalogue, machine: Machine) -> None:
    """Go on with what a killed `forget` began, or a merged manifest asks for; where somebody else writes, later."""
    store = catalogue.store
    if not catalogue.forgotten.rows or store.is_key_missing:
        return
    if not has_unpurged_pieces(catalogue):
        return
    try:
        with store.removing(machine.id):
            purge_forgotten(Catalogue(store), machine)
            update_cache(store, machine.memory)
    except (IndexBusy, Unreadable):
        return


def has_unpurged_pieces(catalogue: Catalogue) -> bool:
    """Whether something is still in the packs that only forgotten versions need."""
    live = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    return bool(list_retired_dictionaries(catalogue.store)) or any(
        hash_ in catalogue.located for hash_ in _unneeded_pieces(catalogue, live)
    )


def _unneeded_pieces(catalogue: Catalogue, live: set[str]) -> set[str]:
    return {hash_ for version in catalogue.forgotten_versions for hash_ in version.pieces} - live


class RepackResult(Struct, frozen=True):
    """What was written anew: how many packs became how many, what they took and take, and what could not be."""

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    problems: tuple[str, ...] = ()


FrameTable = list[tuple[Path, Frame]]


def repack(
    store: Store,
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> RepackResult:
    """Write small packs into large ones, and what is there twice once. Killed anywhere, nothing is missing.

    What was forgotten and came back goes again: a run that had neither the key nor a memory could not know of it.

    Raises:
        IndexBusy: somebody else writes.
        Unreadable: the keep cannot be written, or is encrypted and its key not at hand.
    """
    store.require_key()
    with store.removing(machine.id):
        catalogue = Catalogue(store)
        if catalogue.forgotten.rows and has_unpurged_pieces(catalogue):
            purge_forgotten(catalogue, machine)
        told = {path: frames for path in store.pack_files() if (frames := read_frames(store, path)) is not None}
        chosen = _select_packs(store, told)
        packed = rewrite_packs(
            catalogue, machine, chosen, lambda _hash: True, jobs=jobs, planned=planned, progress=progress, smaller=True
        )
        update_cache(store, machine.memory)
    return packed


def read_frames(store: Store, path: Path) -> tuple[Frame, ...] | None:
    """The frames of a pack; None where it does not tell."""
    try:
        with store.opened(path) as file:
            return pack.decode_table(pack.read_table(file, path.name), path.name).frames
    except (Unreadable, OSError):
        return None


def rewrite_packs(
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
) -> RepackResult:
    """Write the wanted pieces of packs into new ones, then take the old away. What is damaged stays where it is.

    With `smaller`, the old ones stay, and the new go, unless these take less room or the place of damaged ones.
    """
    if not packs:
        return RepackResult()
    store = catalogue.store
    ordered = _order_frames(catalogue, packs)
    progress = progress or (lambda _done: None)
    if planned is not None:
        planned(sum(frame.size for _path, frame in ordered))
    damaged: list[tuple[Path, str, list[str]]] = []
    done: set[str] = set()
    known: dict[str, bytes] = {}
    before = sum(path.stat().st_size for path in packs)
    with PackWriter(store, machine.id, jobs=jobs, dictionary=dictionary) as packing:
        for path, frame in ordered:
            missing = [hash_ for hash_, _length in frame.pieces if hash_ not in done and wanted(hash_)]
            if missing:
                try:
                    found = _read_pieces(store, path, frame, known)
                except Unreadable as error:
                    damaged.append((path, str(error), missing))
                    continue
                right = [
                    Piece(fromkey, found[fromkey])
                    for fromkey in dict.fromkeys(missing)
                    if _has_hash(fromkey, found[fromkey])
                ]
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
        _remove_packs(store, (path for path in packing.done if path not in packs))
        return RepackResult(problems=tuple(problems))
    # A pack may come out as it was: its name is its hash, and it stays.
    _remove_packs(store, (path for path in packs if path not in spoilt and path not in packing.done))
    catalogue.reload_locations()
    return RepackResult(len(packs), len(packing.done) + len(spoilt), before, after, tuple(problems))


def _remove_packs(store: Store, paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    atomic.sync_folder(store.packs)


def _read_pieces(store: Store, path: Path, frame: Frame, known: dict[str, bytes]) -> dict[str, bytes]:
    name = frame.dictionary
    if name is not None and name not in known:
        known[name] = store.dictionary(name)
    with store.opened(path) as file:
        data = pack.read_frame(file, path.name, frame, known[name] if name is not None else None)
    return dict(split_frame(frame, data))


def _has_hash(hash_: str, data: bytes) -> bool:
    return sha256(data).hexdigest() == hash_


def _select_packs(store: Store, packs: dict[Path, tuple[Frame, ...]]) -> dict[Path, tuple[Frame, ...]]:
    """The packs that are better written anew: several small ones, and those that hold what others hold, too."""
    least = (ENCRYPTED_PACK_SIZE if store.is_encrypted else PACK_SIZE) // 4
    counted = Counter(hash_ for frames in packs.values() for frame in frames for hash_, _length in frame.pieces)
    twice = {hash_ for hash_, times in counted.items() if times > 1}
    chosen = {}
    small = {path for path in packs if path.stat().st_size < least}
    for path, frames in packs.items():
        doubled = any(hash_ in twice for frame in frames for hash_, _length in frame.pieces)
        cut_small = sum(frame.size < FRAME_SIZE // 2 for frame in frames) > 1
        if doubled or cut_small or (path in small and len(small) > 1):
            chosen[path] = frames
    return chosen


def _order_frames(catalogue: Catalogue, packs: dict[Path, tuple[Frame, ...]]) -> FrameTable:
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
        is_small = one[1].size < FRAME_SIZE // 2
        moment = min((first.get(hash_, never) for hash_ in hashes), default=never)
        file = min((files[hash_] for hash_ in hashes if hash_ in files), default=("",)) if is_small else ()
        return is_small, file, moment, one[0].name, one[1].offset

    frames = [(path, frame) for path, inside in packs.items() for frame in inside]
    return sorted(frames, key=place)


def list_retired_dictionaries(store: Store) -> list[Path]:
    """The dictionaries that are on their way out."""
    return [path for path in store.dictionary_files() if path.name.endswith(RETIRED_SUFFIX)]


def retire_dictionaries(store: Store) -> None:
    """Mark all dictionaries: nothing is written with them any more."""
    for path in store.dictionary_files():
        if not path.name.endswith(RETIRED_SUFFIX):
            path.replace(path.with_name(path.name + RETIRED_SUFFIX))
    atomic.sync_folder(store.dictionaries)


def remove_retired_dictionaries(store: Store, tables: Iterable[tuple[Frame, ...]]) -> None:
    """Take away the dictionaries that were let go, unless a frame still needs one."""
    if any(frame.dictionary is not None for frames in tables for frame in frames):
        return
    for path in list_retired_dictionaries(store):
        path.unlink(missing_ok=True)
    atomic.sync_folder(store.dictionaries)
