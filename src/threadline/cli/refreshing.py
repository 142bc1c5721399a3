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
