"""Scales the number of examples with the hypothesis profile. The profiles are in `tests/conftest.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

CI_EXAMPLES = 150


def scale_examples(count: int) -> int:
    """Return `count` in the `ci` profile, fewer in `quick` and more in `long`.

    For seeds and loops without hypothesis, and for properties whose examples are too expensive for the number that the
    profile sets: `@settings(max_examples=scale_examples(40))`.
    """
    return max(1, round(count * settings().max_examples / CI_EXAMPLES))


def share(values: Iterable[T], count: int, start: int = 0) -> list[T]:
    """Return all values, but in the `quick` profile only `count` of them.

    For sweeps of many cases over many contexts: number the cases, and pass the number as `start`. Then each case has
    a few contexts, and every context has a few cases.
    """
    items = list(values)
    if not is_quick_run() or count >= len(items):
        return items
    return [items[(start * count + number) % len(items)] for number in range(count)]


def every(step: int, values: Iterable[T]) -> list[T]:
    """Return all values, but in the `quick` profile only every `step`-th."""
    return list(values)[:: step if is_quick_run() else 1]


def is_quick_run() -> bool:
    """Whether this run uses the `quick` profile, as `make test` does."""
    return settings().max_examples < CI_EXAMPLES


def is_long_run() -> bool:
    """Whether this run uses the `long` profile (`--hypothesis-profile=long`), which has time for everything."""
    return settings().max_examples > CI_EXAMPLES
