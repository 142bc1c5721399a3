"""Indexed: some homes and their index, which is brought up to date where that takes little."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from threadline.archive.progress import Bar, Showing
from threadline.errors import NotFound
from threadline.model.found import TranscriptKind
from threadline.model.kept import KEEP

if TYPE_CHECKING:
    import sqlite3

    from threadline.index.fresh import Fresh
    from threadline.index.refresh import Refreshed
    from threadline.index.status import Status
    from threadline.model.found import Found, Home

LITTLE = 64 * 1024 * 1024
"""How many bytes are read for an index without having been asked for it: what takes about a second."""

_APART = "without the keep"


class Indexed:
    """Homes, what lies in them, and the index of them; what is asked of both is in the classes above."""

    def __init__(
        self,
        homes: Sequence[Home],
        *,
        index: bool | Path = True,
        jobs: int | None = None,
        showing: Showing | None = None,
        most: int = LITTLE,
        apart: bool = False,
    ) -> None:
        self.homes = tuple(homes)
        self.keep_problems: tuple[str, ...] = ()
        self.gone: tuple[str, ...] = ()
        """The homes that are not there any more, and are read from the keep."""
        self.keep: Path | None = None
        self.is_apart = apart
        self._only = False
        self._awaits_keep = False
        self._lost: tuple[str, ...] = ()
        self._most = most
        self._index = index
        self._jobs = jobs
        self._showing = showing or (lambda _label, _total: nullcontext(lambda _done: None))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index."""
        known = self.__dict__.pop("_fresh", None)
        if known is not None:
            known.connection.close()

    @property
    def index(self) -> Path:
        """Where the index of these homes lies, or would."""
        from threadline.index.store import place

        if isinstance(self._index, Path):
            return self._index
        # Not by the kept homes: a session that was deleted is one that moved, and its entries stay.
        living = [home.path for home in self.homes if home.source != KEEP]
        return place([*living, *self._lost, *([_APART] if self.is_apart else [])])

    def read_keep(self, folder: Path, *, only: bool = False, lost: Sequence[str] = ()) -> None:
        """Read what only the keep in a folder still has, too; with `only`, of these homes alone, and of `lost` ones."""
        from threadline.index.store import cache_folder
        from threadline.keep.kept_home import kept_homes

        living = [home for home in self.homes if home.source != KEEP]
        with Bar(self._showing, "Unpacking") as bar:
            kept = kept_homes(
                folder, living, cache_folder(), lost=lost, only=only, planned=bar.begin, progress=bar.advance
            )
        self.keep, self._only, self._lost = folder, only, tuple(lost)
        self.homes = (*living, *kept.homes)
        self.keep_problems, self.gone = kept.problems, kept.gone

    def await_keep(self, *, only: bool) -> None:
        """Read the keep once there is one; where one was that is not there, `keep_problems` says it."""
        from threadline.keep.folder import lost_folder

        self._awaits_keep, self._only = True, only
        lost = lost_folder()
        if lost is not None:
            told = f"The keep that was in {lost!r} is not there, so what only it had is left out."
            self.keep_problems = (f"{told} Is its disk mounted, or was it moved (THREADLINE_KEEP)?",)

    def has_kept(self, home: str) -> bool:
        """Whether anything is read from the keep that a home had which is gone."""
        return any(one == home or one.endswith(f":{home}") for one in self.gone)

    @property
    def kept(self) -> frozenset[str]:
        """The sessions that only the keep still has."""
        if all(home.source != KEEP for home in self.homes):
            return frozenset()
        kept = (one for found in self.found if found.home.source == KEEP for one in found.transcripts)
        return frozenset(one.session for one in kept if one.kind is TranscriptKind.MAIN and one.session is not None)

    def look_into_keep(self) -> tuple[Home, ...]:
        """The homes by now: what a living one has lost since is in a kept one."""
        folder = self.keep
        if folder is None and self._awaits_keep:
            from threadline.keep.folder import keep_folder

            begun = keep_folder()
            folder = Path(begun) if begun is not None else None
        if folder is not None:
            self.read_keep(folder, only=self._only, lost=self._lost)
        return self.homes

    def refresh(self) -> Refreshed:
        """Bring the index up to date, or make it.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        from threadline.index.refresh import refresh

        self.close()
        with Bar(self._showing, "Indexing") as bar:
            return refresh(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def rebuild(self) -> Refreshed:
        """Make another index from nothing, and then put it in the place of the one that is there, however that stands.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it may not be written.
        """
        from threadline.index.refresh import rebuild

        self.close()
        with Bar(self._showing, "Indexing") as bar:
            return rebuild(self.index, self.homes, jobs=self._jobs, planned=bar.begin, progress=bar.advance)

    def status(self) -> Status:
        """How the index stands; it is left as it is.

        Raises:
            Unreadable: it is damaged.
        """
        from threadline.index.status import status

        return status(self.index, self.homes)

    def take_as_it_is(self) -> None:
        """Ask the index as it is from now on, and do not read what changed since.

        Raises:
            Unreadable: it is damaged, or there is none.
        """
        from threadline.index.fresh import Fresh
        from threadline.index.store import open_to_read

        self.close()
        self.__dict__["_fresh"] = Fresh(open_to_read(self.index))
        self.__dict__.pop("found", None)

    @cached_property
    def found(self) -> list[Found]:
        """What lies in the homes; of side files, only those that tell of projects."""
        from threadline.find.looking import look

        known = self._fresh
        if known is not None:
            from threadline.index.found import found, parted

            return found(known.connection, self.homes, parted(known.problems, self.homes))
        return [look(home, side_files=False) for home in self.homes]

    def prepare(self) -> None:
        """Have an index that is up to date, whatever it takes to make it.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        _ = self.connection

    @property
    def connection(self) -> sqlite3.Connection:
        """The index, up to date and to be read only; it is made where it is not there.

        Raises:
            IndexBusy: another process is at it.
            Unreadable: it is damaged, or may not be written.
        """
        known = self.__dict__.get("_fresh")  # what it would take does not matter here, so it is not asked for
        if known is None:
            from threadline.index.fresh import fresh

            with Bar(self._showing, "Indexing") as bar:
                known = fresh(
                    self.index, self.homes, most=None, jobs=self._jobs, planned=bar.begin, progress=bar.advance
                )
            if known is None:  # without a bound, there is one or an error
                raise NotFound(f"There is no index at {str(self.index)!r}; run `threadline index refresh`.")
            self.__dict__["_fresh"] = known
            self.__dict__.pop("found", None)
        connection: sqlite3.Connection = known.connection
        return connection

    @cached_property
    def _fresh(self) -> Fresh | None:
        """The index, where it is up to date or can be made so at little cost."""
        if self._index is False or not self.homes:
            return None
        from threadline.index.fresh import fresh

        with Bar(self._showing, "Indexing") as bar:
            return fresh(
                self.index, self.homes, most=self._most, jobs=self._jobs, planned=bar.begin, progress=bar.advance
            )
