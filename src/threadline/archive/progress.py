"""Progress: how far long work has come, for whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from threadline.model.found import Found

Showing = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows how far long work has come: given what is done and how many bytes it is, it is told each part."""


class Bar:
    """Shows how far work has come, once it is known how much there is."""

    def __init__(self, showing: Showing, label: str) -> None:
        self._showing = showing
        self._label = label
        self._advance: Callable[[int], None] | None = None
        self._shown = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def begin(self, total: int) -> None:
        """So many bytes are to be read."""
        self._advance = self._shown.enter_context(self._showing(self._label, total))

    def advance(self, done: int) -> None:
        """So many more have been."""
        if self._advance is not None:
            self._advance(done)


def size_of(found: Iterable[Found]) -> int:
    """How many bytes the transcripts have that were found."""
    return sum(one.size for home in found for one in home.transcripts)
