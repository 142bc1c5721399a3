"""Bringing the index up to date, with a progress bar while that takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from threadline.model.found import Home

Made_co = TypeVar("Made_co", covariant=True)


class Making(Protocol[Made_co]):
    """`refresh`, `rebuild` or `fresh`."""

    def __call__(  # noqa: D102 - the class says it
        self,
        index: Path,
        homes: Sequence[Home],
        *,
        jobs: int | None = None,
        progress: Callable[[int], None] | None = None,
        planned: Callable[[int], None] | None = None,
    ) -> Made_co: ...


def index_of(homes: Sequence[Home]) -> Path:
    """Where the index of these homes lies."""
    from threadline.index.store import place

    return place(home.path for home in homes)


def shown(make: Making[Made_co], homes: Sequence[Home], *, jobs: int | None = None, label: str = "Indexing") -> Made_co:
    """Refresh or rebuild the index of these homes; how far it has come is shown on standard error."""
    from threadline.cli.reading import progress

    bars: list[Callable[[int], None]] = []
    with ExitStack() as shown_until:

        def begin(total: int) -> None:
            bars.append(shown_until.enter_context(progress(label, total, rate=True)))

        def advance(done: int) -> None:
            for bar in bars:
                bar(done)

        return make(index_of(homes), homes, jobs=jobs, planned=begin, progress=advance)


def is_there(homes: Sequence[Home], *, fresh: bool) -> bool:
    """Whether there is an index to ask; it is refreshed if that is wanted and nobody else is at it."""
    import click

    from threadline.cli import output as out
    from threadline.cli.screen import nothing
    from threadline.errors import IndexBusy
    from threadline.index.fresh import fresh as made_fresh

    path = index_of(homes)
    if not fresh:
        if not path.exists():
            made_by = "`threadline index refresh` makes it, or leave out --no-refresh"
            nothing(f"There is no index at {str(path)!r} yet; {made_by}.")
        return path.exists()
    try:
        made = shown(made_fresh, homes)
        if made is not None:
            made.connection.close()
    except IndexBusy as error:
        if not path.exists():
            raise
        click.echo(f"threadline: {out.plain(str(error))} This answer is of the index as it is.", err=True)
    return True
