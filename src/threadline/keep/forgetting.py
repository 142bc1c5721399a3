"""Forgetting: a session taken out of the keep, with the reason; what no other version needs leaves the packs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from msgspec import Struct

from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.keep import repacking
from threadline.keep.catalogue import Catalogue, Version, take_in
from threadline.keep.machine import Machine
from threadline.keep.manifest import VERSION, End, Forgot, Run, as_text
from threadline.keep.store import Store


class Forgets(Struct, frozen=True):
    """What was forgotten: how many files and versions, how many bytes left the packs, what could not be taken out."""

    session: str
    reason: str
    files: int
    versions: int
    bytes: int
    problems: tuple[str, ...] = ()


def forget(
    store: Store,
    machine: Machine,
    session: str,
    files: Iterable[Version],
    reason: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Forgets:
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
        row = Forgot(session, reason, tuple(sorted({as_text(one.path)[0] for one in files})))
        before.forgotten.add(row)
        going = [one for one in before.all_versions() if before.forgotten.has(one.path)]
        if not going:
            raise NotFound(f"The keep has nothing of {session!r}; `threadline keep list` shows what it has.")
        last = before.last_run(machine.id)
        moment = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = Run(
            VERSION,
            machine.id,
            as_text(machine.label)[0],
            last.run.number + 1 if last is not None else 1,
            last.hash if last is not None else None,
            moment,
            (),
        )
        store.put_run([run, row, End(moment, 0, 0)])
        packed = purge(Catalogue(store), machine)
        take_in(store, machine.memory)
    paths = {(one.machine, one.home, one.path) for one in going}
    return Forgets(
        session, reason, len(paths), len(going), packed.bytes_before - packed.bytes_after, tuple(packed.problems)
    )


def purge(catalogue: Catalogue, machine: Machine) -> repacking.Packed:
    """Write anew every pack that holds what only forgotten versions need, and all that needs a dictionary.

    A dictionary is made of lines, which may be those that are to go. What no version needs at all was left by a run
    that was stopped: it may be theirs, and goes, too, where all manifests can be read.
    """
    store = catalogue.store
    live = {hash_ for one in catalogue.all_versions() for hash_ in one.pieces}
    dead = _dead(catalogue, live)
    keep_unknown = bool(catalogue.problems)
    repacking.let_dictionaries_go(store)
    told = {path: frames for path in store.pack_files() if (frames := repacking.frames_of(store, path)) is not None}

    def wanted(hash_: str) -> bool:
        return hash_ in live or (keep_unknown and hash_ not in dead)

    chosen = {
        path: frames
        for path, frames in told.items()
        if any(frame.dictionary or any(not wanted(hash_) for hash_, _length in frame.pieces) for frame in frames)
    }
    packed = repacking.rewrite(catalogue, machine, chosen, wanted)
    left = [frames for path, frames in told.items() if path not in chosen or path.exists()]
    repacking.drop_dictionaries(store, left)
    return packed


def finish(catalogue: Catalogue, machine: Machine) -> None:
    """Go on with what a killed `forget` began, or a merged manifest asks for; where somebody else writes, later."""
    store = catalogue.store
    if not catalogue.forgotten.rows or store.is_locked:
        return
    if not is_unfinished(catalogue):
        return
    try:
        with store.removing(machine.id):
            purge(Catalogue(store), machine)
            take_in(store, machine.memory)
    except (IndexBusy, Unreadable):
        return


def is_unfinished(catalogue: Catalogue) -> bool:
    """Whether something is still in the packs that only forgotten versions need."""
    live = {hash_ for one in catalogue.all_versions() for hash_ in one.pieces}
    return bool(repacking.dictionaries_going(catalogue.store)) or any(
        hash_ in catalogue.located for hash_ in _dead(catalogue, live)
    )


def _dead(catalogue: Catalogue, live: set[str]) -> set[str]:
    return {hash_ for one in catalogue.forgotten_versions for hash_ in one.pieces} - live
