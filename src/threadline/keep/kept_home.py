"""The kept home: what only the keep still has, laid out as a Claude home under the cache, to be read like any other.

It can be deleted at any time, and is then made again. Whether it is as it should be is told by a few names and times;
only where one of them changed is the rest looked at. Nothing here is fsynced: it is a copy.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error, IndexBusy, Unreadable
from threadline.find.links import real_projects
from threadline.keep.durable import small
from threadline.keep.folder import ABOUT, data_folder
from threadline.keep.missing import Asked, Origin, is_there, missing
from threadline.keep.notes import VERSION, Note, make, name_of, note, noted, settled, time_of
from threadline.model.found import Home
from threadline.model.kept import KEEP, KeptHome, remember

if TYPE_CHECKING:
    from threadline.keep.missing import Missing as NotThere

_WHOLE = "whole"
_STATE, _LISTING = ".state", ".listing"


class KeptHomes(Struct, frozen=True):
    """The homes that what is only in a keep is read from, and what is wrong with the keep.

    `gone` are the homes they stand for that are not there any more.
    """

    homes: tuple[Home, ...] = ()
    problems: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class _State(Note, frozen=True):
    """How things were when the kept homes were last brought up to date."""

    runs: str
    homes: tuple[KeptHome, ...]
    watched: dict[str, int]
    apart: dict[str, bool]
    gone: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _About(Struct):
    id: str


def kept_homes(
    keep: Path,
    homes: Sequence[Home],
    cache: Path,
    *,
    lost: Sequence[str] = (),
    only: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> KeptHomes:
    """The homes with what these homes do not have any more, brought up to date, and put in where it was.

    With `only`, no other home's, nor another machine's; but those that are `lost`, whosever they were. What cannot be
    had from the keep is told, and hides nothing.
    """
    living = tuple(os.fspath(home.path) for home in homes)
    try:
        kept = _Kept(keep, Asked(_machine(), living, tuple(lost), only), cache / "kept" / _id(keep))
    except Error as error:
        return KeptHomes(problems=(str(error),))
    try:
        return kept.brought_up_to_date(planned, progress)
    except IndexBusy:
        return kept.as_it_was(f"Another threadline is putting back what only the keep {str(keep)!r} has; wait for it.")
    except Error as error:
        return kept.as_it_was(str(error))
    except OSError as error:
        return kept.as_it_was(_unusable(keep, error))


def clear(keep: Path, cache: Path) -> None:
    """Throw away the kept homes of a keep, after something was forgotten."""
    from shutil import rmtree  # noqa: PLC0415 - takes longer to load than all else here

    with suppress(Error, OSError):
        rmtree(cache / "kept" / _id(keep))


class _Kept:
    """The kept homes of one keep for one set of living homes."""

    def __init__(self, keep: Path, asked: Asked, folder: Path) -> None:
        self._keep = keep
        self._asked = asked
        self._folder = folder
        self._names: dict[str, str] = {}
        self._set = (*sorted(asked.living), *sorted(asked.lost), str(asked.only))
        set_ = name_of(*self._set, asked.own or "")
        self._state = folder / f"{set_}{_STATE}"

    def brought_up_to_date(
        self, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
    ) -> KeptHomes:
        runs = _runs(self._keep)
        known = noted(self._state, _State)
        if known is None or known.runs != runs or not self._is_current(known):
            is_new = known is None or known.runs != runs
            known = self._renewed(runs, planned, progress, is_new=is_new)
        return self._given(known)

    def as_it_was(self, problem: str) -> KeptHomes:
        """What was put back before, where no more can be: what was listed yesterday does not vanish today."""
        known = noted(self._state, _State)
        if known is None:
            return KeptHomes(problems=(problem,))
        there = tuple(one for one in known.homes if os.path.isdir(one.path))  # noqa: PTH112 - as below
        return self._given(replace(known, homes=there, problems=(problem,)))

    def _given(self, state: _State) -> KeptHomes:
        for one in state.homes:
            remember(one)
        return KeptHomes(tuple(Home(Path(one.path), KEEP) for one in state.homes), state.problems, state.gone)

    def _is_gone(self, one: NotThere) -> bool:
        """Whether its home is gone: one that was named is told in any case, others where something is read of them."""
        home = one.origin.home
        is_own = one.origin.machine == self._asked.own and home not in self._asked.living
        return home in self._asked.lost or (is_own and bool(one.rows))

    def _is_current(self, known: _State) -> bool:
        return (
            all(time_of(path) == told for path, told in known.watched.items())
            and all(is_there(home) == told for home, told in known.apart.items())
            and all(os.path.isdir(one.path) for one in known.homes)  # noqa: PTH112 - Path.is_dir may raise
        )

    def _renewed(
        self,
        runs: str,
        planned: Callable[[int], None] | None,
        progress: Callable[[int], None] | None,
        *,
        is_new: bool,
    ) -> _State:
        from threadline.keep import copies, locking  # noqa: PLC0415 - only where something changed
        from threadline.keep.listing import Listing  # noqa: PLC0415 - the same

        make(self._folder)
        with locking.adding(self._folder, "kept"):
            began = time.time_ns()
            keep = Listing(self._keep, self._folder / f"{name_of(self._asked.own or '')}{_LISTING}", runs)
            problems = list(keep.problems)
            self._names = _names([one.origin for one in keep.listed], self._asked.own)
            apart = {home: is_there(home) for home in self._asked.apart(keep.listed)}
            wanted = missing(keep.listed, self._asked)
            todo = [(one, self._place(one)) for one in wanted]
            put = [(place, row) for one, place in todo for row in copies.absent(place, one.rows, whole=is_new)]
            problems += copies.put(keep, put, {place: one for one, place in todo}, planned, progress)
            for one, place in todo:
                copies.take_away(place, one.rows)
            watched = {path: settled(path, began) for one, _place in todo for path in one.watched}
            told = tuple(self._told(one, place) for one, place in todo if one.rows and place.is_dir())
            gone = tuple(self._told(one, place).name for one, place in todo if self._is_gone(one))
            state = _State(VERSION, runs, told, watched, apart, gone, tuple(problems))
            note(self._state, state)
            return state

    def _place(self, one: NotThere) -> Path:
        """Where a kept home lies. What it has depends on which homes are read, unless it is whole or a living one's."""
        origin = one.origin
        is_living = origin.machine == self._asked.own and origin.home in self._asked.living
        which = () if is_living else (_WHOLE,) if one.is_whole else self._set
        return self._folder / name_of(origin.machine, origin.home, *which)

    def _told(self, one: NotThere, place: Path) -> KeptHome:
        origin = one.origin
        if origin.machine != self._asked.own:
            return KeptHome(os.path.realpath(place), origin.home, self._names[origin.machine])
        return KeptHome(os.path.realpath(place), origin.home, projects=real_projects(origin.home))


def _names(origins: Sequence[Origin], own: str | None) -> dict[str, str]:
    """What machines are called: by their labels, and by their ids, too, where two have the same one."""
    labels = {one.machine: one.label for one in origins}
    if own is not None:
        labels[own] = platform.node() or labels.get(own, "")
    told = list(labels.values())
    return {id_: label if told.count(label) == 1 else f"{label} ({id_})" for id_, label in labels.items()}


def _machine() -> str | None:
    """This machine's id, where it has one."""
    try:
        return (Path(data_folder()) / "machine").read_text(errors="replace").strip() or None
    except OSError:
        return None


def _id(keep: Path) -> str:
    try:
        return str(msgspec.json.decode(small(keep / ABOUT), type=_About).id.replace("/", "_")[:64])
    except (FileNotFoundError, msgspec.MsgspecError):
        return name_of(os.path.realpath(keep))  # damaged: what else there is can still be read
    except OSError as error:
        raise Unreadable(_unusable(keep, error)) from None


def _unusable(keep: Path, error: OSError) -> str:
    return f"What only the keep {str(keep)!r} has cannot be read: {error.strerror or error}; --no-keep leaves it out."


def _runs(keep: Path) -> str:
    """The names of all manifests, which say what they hold: that none was added or taken away."""
    return name_of(*sorted(os.listdir(keep / "runs")))  # noqa: PTH208 - names are enough
