"""Remove a session from a keep, and rewrite packs so that they contain only what is needed.

The manifests still record that the session was kept, its paths and the reason. Its bytes go, except those that other
files share. Dictionaries consist of users' lines, so forgetting drops them too.

Old packs are deleted only after the new ones are on disk: if a process is killed at any point, nothing is missing, and
the next run finishes the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from threadline import files
from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.keep import pack
from threadline.keep.catalogue import Catalogue, ForgottenFiles, Version
from threadline.keep.machine import Machine
from threadline.keep.manifest import EndRow, ForgetRow, format_timestamp, path_to_json
from threadline.keep.pack import Frame, PackReader, PackWriter, Piece, max_pack_size
from threadline.keep.store import RETIRED_SUFFIX, Store

PackTables = dict[Path, tuple[Frame, ...]]


class ForgetResult(Struct, frozen=True):
    """What was forgotten: how many files, versions and bytes; `problems` says what could not be removed."""

    session: str
    reason: str
    files: int
    versions: int
    bytes: int
    problems: tuple[str, ...] = ()


def forget_session(
    catalogue: Catalogue, machine: Machine, session: str, files: Iterable[Version], reason: str
) -> ForgetResult:
    """Remove a session: these files in every version, and every file with its id in the path.

    The fact that it was kept, its paths and the reason stay in the manifests. The catalogue must not trust the cache.

    Raises:
        NotFound: there is nothing to forget.
        IndexBusy: another process is writing.
        Unreadable: the keep cannot be written, or is encrypted and its key is not available.
    """
    store = catalogue.store
    store.require_key()
    machine.require_known_recipients(store.folder, store.info.id, store.info.recipients)
    with store.removing(machine.id):
        catalogue.refresh()
        row = ForgetRow(session, reason, tuple(sorted({path_to_json(version.path)[0] for version in files})))
        forgotten = ForgottenFiles((*catalogue.forgotten.rows, row))
        versions = [version for version in catalogue.all_versions() if forgotten.has(version.path)]
        if not versions:
            raise NotFound(f"The keep has no files of {session!r}. `threadline keep list` shows what it has.")
        result = _forget_rows(catalogue, machine, [row])
    freed = result.bytes_before - result.bytes_after
    file_count = len({version.key for version in versions})
    return ForgetResult(session, reason, file_count, len(versions), freed, result.problems)


def accept_forgotten(catalogue: Catalogue, machine: Machine, rows: Sequence[ForgetRow]) -> RepackResult:
    """Forget here what other keeps have forgotten: some of `Catalogue.pending`. The catalogue must not trust the cache.

    Raises:
        IndexBusy: another process is writing.
        Unreadable: the keep cannot be written, or is encrypted and its key is not available.
    """
    store = catalogue.store
    store.require_key()
    machine.require_known_recipients(store.folder, store.info.id, store.info.recipients)
    with store.removing(machine.id):
        catalogue.refresh()
        return _forget_rows(catalogue, machine, rows)


def _forget_rows(catalogue: Catalogue, machine: Machine, rows: Sequence[ForgetRow]) -> RepackResult:
    """Write what is forgotten to a manifest, then remove the bytes.

    The manifest comes first: if the process is killed while packs are rewritten, the next run continues.
    """
    moment = format_timestamp(datetime.now(UTC))
    run = catalogue.next_run(machine.id, machine.label, moment)
    catalogue.add_run(*catalogue.store.put_run([run, *rows, EndRow(moment, 0, 0)]))
    result = purge_forgotten(catalogue, machine)
    catalogue.save_complete_cache()
    return result


def finish_forgetting(catalogue: Catalogue, machine: Machine) -> None:
    """Finish a `forget` that was killed, or that a merge accepted. If another process writes, do it later."""
    store = catalogue.store
    if not catalogue.forgotten.rows or store.is_key_missing or not has_unpurged_pieces(catalogue):
        return
    try:
        with store.removing(machine.id):
            purge_forgotten(Catalogue(store, trust_cache=False), machine)
            catalogue.reload_locations()
            catalogue.save_complete_cache()
    except (IndexBusy, Unreadable):
        return


def has_unpurged_pieces(catalogue: Catalogue) -> bool:
    """Whether the packs still contain pieces that only forgotten versions need."""
    forgotten = catalogue.forgotten_pieces(catalogue.live_pieces())
    return bool(_retired_dictionaries(catalogue.store)) or any(hash_ in catalogue.located for hash_ in forgotten)


def purge_forgotten(catalogue: Catalogue, machine: Machine) -> RepackResult:
    """Rewrite every pack with pieces that only forgotten versions need, and every frame that needs a dictionary.

    A dictionary consists of lines, which may be forgotten ones. Pieces that no version needs were left by an
    interrupted run and may be forgotten ones, too; they are dropped if all manifests can be read.
    """
    store = catalogue.store
    live = catalogue.live_pieces()
    forgotten = catalogue.forgotten_pieces(live)
    keeps_unknown = bool(catalogue.manifest_problems)
    retire_dictionaries(store)
    tables = PackReader(store).all_frames()

    def is_needed(hash_: str) -> bool:
        return hash_ in live or (keeps_unknown and hash_ not in forgotten)

    selected = {
        path: frames
        for path, frames in tables.items()
        if any(frame.dictionary or not all(map(is_needed, frame.hashes)) for frame in frames)
    }
    result = rewrite_packs(catalogue, machine, selected, is_needed)
    left = [frames for path, frames in tables.items() if path not in selected or path.exists()]
    remove_retired_dictionaries(store, left)
    return result


class RepackResult(Struct, frozen=True):
    """How many packs became how many, and their sizes; `problems` says what could not be rewritten."""

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    problems: tuple[str, ...] = ()


def repack(
    catalogue: Catalogue,
    machine: Machine,
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> RepackResult:
    """Combine small packs into large ones, and store pieces once that are in several packs.

    Forgotten files that came back are removed again: a run without the key or a cache could not know of them. The
    catalogue must not trust the cache.

    Raises:
        IndexBusy: another process is writing.
        Unreadable: the keep cannot be written, or is encrypted and its key is not available.
    """
    store = catalogue.store
    store.require_key()
    machine.require_known_recipients(store.folder, store.info.id, store.info.recipients)
    with store.removing(machine.id):
        catalogue.refresh()
        if catalogue.forgotten.rows and has_unpurged_pieces(catalogue):
            purge_forgotten(catalogue, machine)
        selected = _select_packs(store, PackReader(store).all_frames())
        result = rewrite_packs(
            catalogue,
            machine,
            selected,
            lambda _hash: True,
            jobs=jobs,
            planned=planned,
            progress=progress,
            only_if_smaller=True,
        )
        catalogue.save_complete_cache()
    return result


class _DamagedFrame(Struct, frozen=True):
    path: Path
    message: str
    needed: list[str]


def rewrite_packs(
    catalogue: Catalogue,
    machine: Machine,
    packs: PackTables,
    is_needed: Callable[[str], bool],
    *,
    jobs: int = 2,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    only_if_smaller: bool = False,
) -> RepackResult:
    """Write the needed pieces of packs into new packs, then delete the old ones. Damaged packs stay.

    With `only_if_smaller`, the new packs are deleted instead, unless they are smaller or replace damaged ones.
    """
    if not packs:
        return RepackResult()
    store = catalogue.store
    reader = PackReader(store)
    ordered = _order_frames(catalogue, packs)
    progress = progress or (lambda _done: None)
    if planned is not None:
        planned(sum(frame.size for _path, frame in ordered))
    damaged: list[_DamagedFrame] = []
    written: set[str] = set()
    size_before = sum(path.stat().st_size for path in packs)
    with PackWriter(store, machine.id, jobs=jobs) as writer:
        for path, frame in ordered:
            needed = [hash_ for hash_ in frame.hashes if hash_ not in written and is_needed(hash_)]
            if needed:
                try:
                    pieces = dict(reader.pieces(path, frame))
                except Unreadable as error:
                    damaged.append(_DamagedFrame(path, str(error), needed))
                    continue
                for hash_ in dict.fromkeys(needed):
                    data = pieces[hash_]
                    if data is not None:
                        writer.add(Piece(hash_, data))
                        written.add(hash_)
                if not written.issuperset(needed):
                    message = f"A piece in {path.name!r} is damaged. The pack stays as it is."
                    damaged.append(_DamagedFrame(path, message, needed))
            progress(frame.size)
    # A piece that is damaged in one pack may be intact in another, since a run stores it again.
    lost = [frame for frame in damaged if not written.issuperset(frame.needed)]
    problems = tuple(frame.message for frame in lost)
    damaged_paths = {frame.path for frame in lost}
    size_after = writer.finished_size
    size_left = sum(path.stat().st_size for path in damaged_paths)
    has_repaired = any(frame.path not in damaged_paths for frame in damaged)
    if only_if_smaller and size_after + size_left >= size_before and not has_repaired:
        _remove_packs(store, (path for path in writer.finished if path not in packs))
        return RepackResult(problems=problems)
    # A new pack may be identical to an old one; then it has the same name, and stays.
    _remove_packs(store, (path for path in packs if path not in damaged_paths and path not in writer.finished))
    catalogue.reload_locations()
    return RepackResult(len(packs), len(writer.finished) + len(damaged_paths), size_before, size_after, problems)


def _remove_packs(store: Store, paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    files.sync_folder(store.packs)


def _select_packs(store: Store, tables: PackTables) -> PackTables:
    """The packs that are worth rewriting: small ones, ones with several small frames, ones that share pieces."""
    small_size = max_pack_size(store) // 4
    counts = Counter(hash_ for frames in tables.values() for frame in frames for hash_ in frame.hashes)
    duplicates = {hash_ for hash_, count in counts.items() if count > 1}
    small = {path for path in tables if path.stat().st_size < small_size}
    selected = {}
    for path, frames in tables.items():
        has_duplicates = any(hash_ in duplicates for frame in frames for hash_ in frame.hashes)
        has_small_frames = sum(map(_is_small, frames)) > 1
        if has_duplicates or has_small_frames or (path in small and len(small) > 1):
            selected[path] = frames
    return selected


def _is_small(frame: Frame) -> bool:
    return frame.size < pack.FRAME_SIZE // 2


def _order_frames(catalogue: Catalogue, packs: PackTables) -> list[tuple[Path, Frame]]:
    """The frames of packs in the order in which they were first needed, so that a file's parts follow each other.

    Small frames come last, sorted by the file they belong to; between large ones, they would separate what is alike.
    """
    first_seen: dict[str, tuple[str, int]] = {}
    files: dict[str, tuple[str, ...]] = {}
    for key in sorted(catalogue.versions, key=lambda key: (key[2], key)):
        for version in catalogue.versions[key]:
            moment = (version.seen, version.run)
            for hash_ in version.pieces:
                files.setdefault(hash_, key)
                first_seen[hash_] = min(first_seen.get(hash_, moment), moment)
    never = ("9999", 0)

    def position(item: tuple[Path, Frame]) -> tuple[bool, tuple[str, ...], tuple[str, int], str, int]:
        path, frame = item
        moment = min((first_seen.get(hash_, never) for hash_ in frame.hashes), default=never)
        file: tuple[str, ...] = ()
        if _is_small(frame):
            file = min((files[hash_] for hash_ in frame.hashes if hash_ in files), default=("",))
        return _is_small(frame), file, moment, path.name, frame.offset

    return sorted(((path, frame) for path, frames in packs.items() for frame in frames), key=position)


def _retired_dictionaries(store: Store) -> list[Path]:
    return [path for path in store.dictionary_files() if path.name.endswith(RETIRED_SUFFIX)]


def retire_dictionaries(store: Store) -> None:
    """Mark all dictionaries as retired: nothing is compressed with them any more."""
    for path in store.dictionary_files():
        if not path.name.endswith(RETIRED_SUFFIX):
            path.replace(path.with_name(path.name + RETIRED_SUFFIX))
    files.sync_folder(store.dictionaries)


def remove_retired_dictionaries(store: Store, tables: Iterable[tuple[Frame, ...]]) -> None:
    """Remove the retired dictionaries, unless a frame in these tables still needs one."""
    if any(frame.dictionary is not None for frames in tables for frame in frames):
        return
    for path in _retired_dictionaries(store):
        path.unlink(missing_ok=True)
    files.sync_folder(store.dictionaries)
