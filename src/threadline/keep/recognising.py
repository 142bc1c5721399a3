"""Recognising: whether this machine has kept before, under an id that was lost with the folder it lay in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.lately import has_kept
from threadline.keep.machine import Machine, take_up
from threadline.model.found import Home

_MOST = 500
"""How many files are compared: the clock of one file's last change says enough, and some have grown since."""


def recognised(catalogue: Catalogue, machine: Machine, homes: Sequence[Home]) -> tuple[Machine, str | None]:
    """The machine under the id that it kept these homes with, which it takes up again; or what to say of one like it.

    It is the same where the files lie there as they were kept, down to when the system says that each was changed: that
    cannot be copied to another machine. Only an id that has not kept anything yet is given up.

    Raises:
        Unreadable: the id cannot be put down.
    """
    if machine.memory is None or catalogue.last_run(machine.id) is not None or has_kept(machine.memory):
        return machine, None
    named = {os.fspath(home.path) for home in homes}
    found: dict[str, list[Version]] = {}
    for one in catalogue.newest():
        if one.label == machine.label and one.home in named:
            found.setdefault(one.machine, []).append(one)
    same = [id_ for id_, versions in found.items() if _are_there(versions)]
    if same:
        last = max(same, key=lambda id_: _began(catalogue, id_))
        take_up(machine.memory, last)
        return replace(machine, id=last), f"This machine's id was lost; it goes on as {last}, whose files lie here."
    for id_ in sorted(found, key=lambda id_: _began(catalogue, id_), reverse=True):
        return machine, (
            f"Another machine called {machine.label!r} ({id_}) kept {found[id_][0].home!r}, and its files are not those"
            f" that lie here; this one keeps as {machine.id}. If it is the same, write {id_} into"
            f" {str(machine.memory / 'machine')!r}."
        )
    return machine, None


def _are_there(versions: list[Version]) -> bool:
    """Whether most of the files that are still there are as they were kept."""
    looked = list(islice(_looked(versions), _MOST))
    return bool(looked) and 2 * sum(looked) >= len(looked)


def _looked(versions: list[Version]) -> Iterator[bool]:
    for one in versions:
        try:
            status = os.lstat(os.path.join(one.home, one.path))  # noqa: PTH118 - there may be 100,000
        except (OSError, ValueError):
            continue
        told = (one.size, one.mtime_ns, one.ctime_ns)
        yield one.ctime_ns != 0 and told == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _began(catalogue: Catalogue, machine: str) -> str:
    return max((one.run.began for one in catalogue.manifests if one.run.machine == machine), default="")
