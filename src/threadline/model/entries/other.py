"""What could not be understood, kept whole."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.entry import Entry
from threadline.shape import OTHER, OWN


class OtherEntry(Entry, frozen=True, tag=OTHER):
    """A line kept whole because no kind fits it.

    `tag` is the line's own `type` when it is an object of an unknown kind, else one of these words:
    `blank` (an empty line), `damaged` (no entry could be made of it), `pending` (a last line still being
    written), `untyped` (an object without a `type`).
    """

    tag: str = field(default="", name=f"{OWN}tag")

    @property
    def kind(self) -> str:
        """The line's own word for itself, or `blank`, `damaged`, `pending`, `untyped`."""
        return self.tag

    def _said(self) -> tuple[tuple[str, Any], ...]:
        return (("kind", self.tag), *super()._said())
