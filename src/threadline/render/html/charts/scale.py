"""Scales: round numbers at the side of a chart, and five shades for a map."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import floor, log10

_STEPS = (1, 2, 2.5, 5, 10)
_LEAST = 1e-9
_NEARLY = 1 - 1e-9
SHADES = 4
"""How many shades there are besides none."""


def ticks(most: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to at least `most`, about so many apart.

    >>> ticks(37), ticks(0)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.0, 1.0])
    """
    if most < _LEAST:
        return [0.0, 1.0]
    rough = most / about
    power = 10.0 ** floor(log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * _NEARLY)
    number = 1
    while step * number < most:
        number += 1
    return [float(f"{step * at:.10g}") for at in range(number)] + [max(most, float(f"{step * number:.10g}"))]


class Shades:
    """Tells the shade of a value: each shade has about as many of the values that are above nothing."""

    def __init__(self, values: Iterable[float]) -> None:
        self._bounds = _bounds(sorted(value for value in values if value > 0))

    def of(self, value: float) -> int:
        """From 0, for nothing, to 4.

        >>> shades = Shades([1, 2, 3, 4])
        >>> [shades.of(value) for value in (0, 1, 2, 3, 4)]
        [0, 1, 2, 3, 4]
        """
        return 0 if value <= 0 else min(SHADES, bisect_left(self._bounds, value) + 1)


def _bounds(values: Sequence[float]) -> list[float]:
    return [values[(len(values) * part - 1) // SHADES] for part in range(1, SHADES)] if values else []
