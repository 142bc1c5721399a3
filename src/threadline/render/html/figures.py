"""Figures: what is known of the request behind a reply, to be shown beside it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from threadline.model.ids import MessageId


class Figure(Struct, frozen=True):
    """One message in numbers: how full the window was, what came out, what it cost (None: no rate is known)."""

    model: str | None = None
    context: int | None = None
    output: int | None = None
    amount: Decimal | None = None


Figures = Mapping[MessageId, Figure]
"""Messages in numbers, by their id."""
