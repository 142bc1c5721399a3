"""Labelling: keep.json, which says what a folder is, written anew where it is damaged or not there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from uuid import uuid4

from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import durable, locking, sealing
from threadline.keep.about import FORMAT, VERSION, About, write
from threadline.keep.lately import lately
from threadline.keep.machine import Machine
from threadline.keep.store import Store


def mend(store: Store, machine: Machine, others: Sequence[Store] = ()) -> int:
    """Write keep.json anew, from a copy of the keep, or from what is in it; whether that was done, as a number.

    Raises:
        Unreadable: neither says what was in it, or it cannot be written.
    """
    if store.problem is None:
        return 0
    with locking.adding(store.folder, machine.id):
        found = next((one.about for one in others if _is_copy(store, one)), None) or _worked_out(store, machine)
        try:
            write(store.folder, found.id, found.recipients, found.identity)
        except OSError as error:
            raise durable.unwritable(store.folder, error) from None
    store.look_again()
    return 1


def _is_copy(store: Store, other: Store) -> bool:
    """Whether another keep is one of this: some file is in both, for names are hashes."""
    if other.problem is not None or other.is_sealed != store.is_sealed:
        return False
    names = {path.name for path in (*store.pack_files(), *store.run_files())}
    return any(path.name in names for path in (*other.pack_files(), *other.run_files()))


def _worked_out(store: Store, machine: Machine) -> About:
    """What keep.json said, as far as it can be told without doubt: its id is for nobody but this machine's memory."""
    known = lately(machine.memory, store.folder)
    made = About(FORMAT, VERSION, known.id if known is not None else str(uuid4()))
    runs = store.run_files()
    if not store.is_sealed and runs:
        return made
    if store.identity is None or not runs:
        raise Unreadable(store.problem or "")
    with durable.opened(runs[0]) as file:
        many = sealing.many_recipients(file.read())
    store.read(runs[0])  # that the key is the one
    places = (store.folder / name for name in (sealing.IDENTITY, sealing.COPY))
    locked = {durable.small(path) for path in places if path.is_file()}
    if many != 1 or len(locked) > 1:
        raise Unreadable(store.problem or "")
    identity = sha256(locked.pop()).hexdigest() if locked else ""
    return replace(made, recipients=(sealing.recipient_of(store.identity),), identity=identity)
