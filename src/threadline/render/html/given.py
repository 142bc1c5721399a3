"""What a call was given or gave: fields of plain objects and of typed results, whatever they turn out to hold."""

from __future__ import annotations

from typing import Any


def value_of(holder: Any, name: str) -> Any:
    """A field of a JSON object or of a typed result; None where it is not there."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def text_of(holder: Any, *names: str) -> str:
    """The first of these fields that is text and not empty, else an empty text."""
    values = (value_of(holder, name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def list_of(holder: Any, name: str) -> list[Any]:
    """A field that is a list, else an empty list."""
    value = value_of(holder, name)
    return value if isinstance(value, list) else []


def number_of(holder: Any, name: str) -> int | None:
    """A field that is a whole number; a truth value is none."""
    value = value_of(holder, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
