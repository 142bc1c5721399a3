"""A span: where something stands in a text that is to be taken away."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """From `start` to `end`: something of a kind.

    `weak` ones are only taken away where they stand. `value` is what the span stands for, where that is not its text.
    """

    start: int
    end: int
    kind: str
    weak: bool = False
    value: str = ""
