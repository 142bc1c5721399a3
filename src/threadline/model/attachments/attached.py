"""What every attachment has."""

from __future__ import annotations

from typing import Any

from threadline.shape import OTHER, Shape


class Attached(Shape, frozen=True):
    """What every attachment has. `type` is the wire's own word for it."""

    timestamp: str | None = None

    @property
    def type(self) -> str:
        """The wire's word for this attachment."""
        return str(type(self).__struct_config__.tag)


class OtherAttachment(Attached, frozen=True, tag=OTHER):
    """An attachment of a type that threadline does not know: its tag, and the whole of it in `data`."""

    tag: str = ""
    data: Any = None

    @property
    def type(self) -> str:
        """The wire's word for this attachment."""
        return self.tag
