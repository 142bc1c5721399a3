"""A finding: what was taken away, and where; never the thing itself."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """Something of a kind that was found at a place, and what stands there instead. `count` is how often."""

    kind: str
    place: str
    placeholder: str
    count: int = 1
