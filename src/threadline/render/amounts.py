"""Amounts of money and tokens as people read them."""

from __future__ import annotations

from decimal import Decimal

from threadline.model.rate import plain_number
from threadline.model.sum import Sum
from threadline.render.figures import count

_KILO = 1000
_UNITS = ("", "k", "M", "G", "T", "P")
_CENT = Decimal("0.01")


def amount(value: Decimal | None, *, exact: bool = False) -> str:
    """`$12.34`, `<$0.01`; nothing where no price is known.

    >>> amount(Decimal("1234.567")), amount(Decimal("0.0004")), amount(Decimal(0)), amount(None)
    ('$1,234.57', '<$0.01', '$0.00', '')
    """
    if value is None:
        return ""
    if exact:
        return f"${plain_number(value)}"
    return "<$0.01" if 0 < value < _CENT else f"${value:,.2f}"


def dollars(value: Decimal) -> str:
    """`$1.20`; what is less than a cent has four places."""
    return f"${value:,.2f}" if value >= _CENT or not value else f"${value:.4f}"


def spent(total: Sum) -> str:
    """What was spent, with how much of it has no known price."""
    if total.amount is None:
        return "cost not known" if total.charges else "nothing spent"
    unpriced = f", without {count(total.unpriced, 'message')} of unknown price" if total.unpriced else ""
    return f"{dollars(total.amount)}{unpriced}"


def tokens(total: Sum) -> str:
    """`12.3 k tokens`."""
    return f"{short(total.tokens).strip()} {'token' if total.tokens == 1 else 'tokens'}"


def short(number: int) -> str:
    """A number of tokens for a person; what has no unit stands above the digits of what has.

    >>> short(812), short(12_345), short(1_960_000), short(999_960)
    ('812  ', '12.3 k', '2.0 M', '1.0 M')
    """
    value, unit = float(number), 0
    while value >= _KILO - 0.05 * (unit > 0) and unit < len(_UNITS) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{value:,.1f} {_UNITS[unit]}" if unit else f"{number}  "
