"""How much a run tries, relative to its hypothesis profile. The profiles are in `tests/conftest.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

CI_EXAMPLES = 150


def tries(full: int) -> int:
    """Scale a number of tries: `full` in the `ci` profile, fewer in `quick`, more in `long`.

    For seeds and loops without hypothesis, and for properties whose examples are so expensive that they cannot have
    as many as the profile gives: `@settings(max_examples=tries(40))`.
    """
    return max(1, round(full * settings().max_examples / CI_EXAMPLES))


def sampled(values: Iterable[Any], *, every: int, quick: Iterable[Any] = ()) -> list[Any]:
    """Parameters for a claim with many cases: every `every`-th case and `quick` in the quick tier, the others slow."""
    always = set(quick)
    return [
        pytest.param(value, marks=[pytest.mark.slow] * (number % every > 0 and value not in always))
        for number, value in enumerate(values)
    ]


def is_long() -> bool:
    """Whether this run has the time for everything (`--hypothesis-profile=long`)."""
    return settings().max_examples > CI_EXAMPLES
