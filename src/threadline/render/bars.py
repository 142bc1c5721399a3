"""Amounts as bars: along a line, or as one line of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

_EIGHTHS = "▏▎▍▌▋▊▉█"
_COLUMNS = "▁▂▃▄▅▆▇█"
_PLAIN_COLUMNS = "_.-=*#"
_HALVES = ":#"
_BARE = frozenset({"C", "POSIX"})
# What Python itself sets where the locale is C, so that it can print at all: the terminal still may not.
_COERCED = frozenset({"", "C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8"})

Number = Decimal | int | float


def bar(value: Number | None, most: Number, width: int, *, ascii_only: bool = False) -> str:
    """A bar of up to `width` columns; whatever is above nothing shows, and only `most` itself fills it.

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
    """Values as columns side by side, the greatest the highest; a space where there is nothing.

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


def blocks_fit(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether a terminal shows blocks: its encoding has them, it is not a dumb one, and the locale is not plain C."""
    try:
        (_EIGHTHS + _COLUMNS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return environment.get("TERM") != "dumb" and not _is_c(environment)


def _is_c(environment: Mapping[str, str]) -> bool:
    whole = environment.get("LC_ALL", "")
    if whole:
        return whole in _BARE
    letters = environment.get("LC_CTYPE", "")
    return letters in _BARE or (letters in _COERCED and environment.get("LANG", "") in _BARE)
