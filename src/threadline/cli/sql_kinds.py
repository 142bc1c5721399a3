"""Kinds of columns: SQLite lets every cell be of a kind of its own, and files want one for a whole column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

from threadline.model.rate import plain_number

DIGITS, PLACES = 38, 18
"""Of an amount: as in the frames of a ledger."""

# Beyond this a floating-point number does not tell one whole number from the next.
_EXACT = 2**53
_ROOM = Decimal(10) ** (DIGITS - PLACES)


class Kind(Enum):
    """What a column holds; NULL is in each of them."""

    NOTHING = "nothing"
    INTEGER = "integer"
    REAL = "real"
    AMOUNT = "amount"
    TEXT = "text"
    BLOB = "blob"


_OF_TYPES = {int: Kind.INTEGER, float: Kind.REAL, str: Kind.TEXT, bytes: Kind.BLOB}
_DECLARED = {"INTEGER": Kind.INTEGER, "REAL": Kind.REAL, "TEXT": Kind.TEXT, "BLOB": Kind.BLOB}


def declared(column: str, typed: str | None) -> Kind:
    """The kind of a column of the schema, as far as that says it; amounts are kept as text, and known by their name."""
    return Kind.AMOUNT if column == "amount" else _DECLARED.get(typed or "", Kind.NOTHING)


def widened(kind: Kind, values: Sequence[Any]) -> Kind:
    """The narrowest kind that holds what the column held before, and these values."""
    found = {_OF_TYPES[one] for one in set(map(type, values)) if one in _OF_TYPES}
    if kind is Kind.AMOUNT:
        return kind if all(map(_is_amount, values)) else Kind.TEXT
    if kind is not Kind.NOTHING:
        found.add(kind)
    if found == {Kind.INTEGER, Kind.REAL}:
        return Kind.REAL if all(abs(one) <= _EXACT for one in values if type(one) is int) else Kind.TEXT
    if not found:
        return Kind.NOTHING
    return found.pop() if len(found) == 1 else Kind.TEXT


def fitted(kind: Kind, values: Sequence[Any]) -> Sequence[Any]:
    """The values as this kind; what else is there as text is as it is shown: a blob in hexadecimal."""
    if kind is Kind.AMOUNT:
        return [None if one is None else Decimal(one) for one in values]
    if kind is Kind.REAL:
        return [None if one is None else float(one) for one in values]
    if kind is Kind.TEXT:
        return [one if one is None or type(one) is str else _text(one) for one in values]
    return values


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return plain_number(value) if isinstance(value, Decimal) else str(value)


def _is_amount(value: Any) -> bool:
    if value is None:
        return True
    try:
        amount = Decimal(value) if isinstance(value, str | int | Decimal) else Decimal("NaN")
    except InvalidOperation:
        return False
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -PLACES and abs(amount) < _ROOM
