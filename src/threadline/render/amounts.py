"""Format amounts of money and tokens, as text and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from threadline.model.charges import format_decimal
from threadline.model.text import count
from threadline.model.totals import Sum

_KILO = 1000
_UNITS = ("", "k", "M", "G", "T", "P")
_CENT = Decimal("0.01")


def format_amount(value: Decimal | None, *, exact: bool = False) -> str:
    """`$12.34`, `<$0.01`; empty if no price is known.

    >>> [format_amount(value) for value in (Decimal("1234.567"), Decimal("0.0004"), Decimal(0), None)]
    ['$1,234.57', '<$0.01', '$0.00', '']
    """
    if value is None:
        return ""
    if exact:
        return f"${format_decimal(value)}"
    return "<$0.01" if 0 < value < _CENT else f"${value:,.2f}"


def format_dollars(value: Decimal) -> str:
    """`$1.20`; an amount below one cent has four decimals."""
    return f"${value:,.2f}" if value >= _CENT or not value else f"${value:.4f}"


def describe_cost(total: Sum) -> str:
    """The cost, with the number of charges that have no known price."""
    if total.amount is None:
        return "cost not known" if total.charges else "nothing spent"
    unpriced = f", without {count(total.unpriced, 'message')} of unknown price" if total.unpriced else ""
    return f"{format_dollars(total.amount)}{unpriced}"


def describe_tokens(total: Sum) -> str:
    """`12.3 k tokens`."""
    return f"{short_number(total.tokens).strip()} {'token' if total.tokens == 1 else 'tokens'}"


def short_number(number: int) -> str:
    """A number of tokens for a person; what has no unit stands above the digits of what has.

    >>> short_number(812), short_number(12_345), short_number(1_960_000), short_number(999_960)
    ('812  ', '12.3 k', '2.0 M', '1.0 M')
    """
    value, unit = float(number), 0
    while value >= _KILO - 0.05 * (unit > 0) and unit < len(_UNITS) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{value:,.1f} {_UNITS[unit]}" if unit else f"{number}  "


_EIGHTHS = "▏▎▍▌▋▊▉█"
_COLUMNS = "▁▂▃▄▅▆▇█"
_PLAIN_COLUMNS = "_.-=*#"
_HALVES = ":#"
_C_LOCALES = frozenset({"C", "POSIX"})
# Python sets this itself if the locale is C. The terminal may still not support UTF-8.
_COERCED_LOCALES = frozenset({"", "C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8"})

Number = Decimal | int | float


def bar(value: Number | None, most: Number, width: int, *, ascii_only: bool = False) -> str:
    """A bar of up to `width` columns. Any value above zero is visible, and only `most` itself fills the bar.

    >>> bar(5, 10, 4), bar(1, 1000, 4), bar(0, 10, 4), bar(5, 10, 4, ascii_only=True)
    ('██', '▏', '', '##')
    """
    steps = _HALVES if ascii_only else _EIGHTHS
    if not value or value < 0 or most <= 0 or width <= 0:
        return ""
    whole = width * len(steps)
    share = min(1.0, float(value) / float(most))
    filled = whole if value >= most else min(whole - 1, max(1, round(share * whole)))
    full, rest = divmod(filled, len(steps))
    return steps[-1] * full + (steps[rest - 1] if rest else "")


def sparkline(values: Sequence[Number | None], *, ascii_only: bool = False) -> str:
    """Values as adjacent columns, scaled to the largest value; a space for a missing value.

    >>> sparkline([1, 4, None, 8]), sparkline([1, 4, None, 8], ascii_only=True)
    ('▁▄ █', '_- #')
    """
    steps = _PLAIN_COLUMNS if ascii_only else _COLUMNS
    most = max((float(value) for value in values if value), default=0.0)
    return "".join(_column(value, most, steps) for value in values)


def _column(value: Number | None, most: float, steps: str) -> str:
    if not value or value < 0 or most <= 0:
        return " "
    return steps[min(len(steps) - 1, max(0, round(float(value) / most * len(steps)) - 1))]


def can_show_blocks(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether a terminal can show block characters: its encoding has them, it is not dumb, and the locale is not C."""
    try:
        (_EIGHTHS + _COLUMNS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return environment.get("TERM") != "dumb" and not _is_c_locale(environment)


def _is_c_locale(environment: Mapping[str, str]) -> bool:
    whole = environment.get("LC_ALL", "")
    if whole:
        return whole in _C_LOCALES
    letters = environment.get("LC_CTYPE", "")
    return letters in _C_LOCALES or (letters in _COERCED_LOCALES and environment.get("LANG", "") in _C_LOCALES)
