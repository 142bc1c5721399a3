"""Paging: which part of a long list is shown, and links to what is before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.element import EMPTY, el

if TYPE_CHECKING:
    from threadline.web.asked import Asked

MOST = 500
_FAR = 1_000_000


class Part(Struct, frozen=True):
    """So many, after so many others."""

    after: int
    limit: int

    @property
    def stop(self) -> int:
        """How many have to be known to show it and to tell whether there are more."""
        return self.after + self.limit + 1


def part(asked: Asked, usual: int) -> Part:
    """The part that is asked for."""
    return Part(asked.number("after", 0, most=_FAR), asked.number("limit", usual, least=1, most=MOST))


def pager(asked: Asked, shown: Part, count: int, total: int | None, *, more: bool) -> Markup:
    """Where one is in the list, and the ways on; `total` is None where nobody has counted."""
    if not shown.after and not more:
        return EMPTY
    before = max(0, shown.after - shown.limit)
    earlier = el("a", "← Earlier in the list", href=asked.here(after=before or None), rel="prev")
    later = el("a", "Further down the list →", href=asked.here(after=shown.after + shown.limit), rel="next")
    of = f" of {total:,}" if total is not None else ""
    told = f"{shown.after + 1:,} to {shown.after + count:,}{of}" if count else "nothing more"
    return el(
        "nav",
        earlier if shown.after else EMPTY,
        el("span", told),
        later if more else EMPTY,
        class_="pager",
        aria_label="Parts of the list",
    )
