"""How much a run tries, relative to its hypothesis profile. The profiles are in `tests/conftest.py`."""

from __future__ import annotations

from hypothesis import settings

CI_EXAMPLES = 150


def tries(full: int) -> int:
    """Scale a number of tries: `full` in the `ci` profile, fewer in `quick`, more in `long`.

    For seeds and loops without hypothesis, and for properties whose examples are so expensive that they cannot have
    as many as the profile gives: `@settings(max_examples=tries(40))`.
    """
    return max(1, round(full * settings().max_examples / CI_EXAMPLES))


def is_long() -> bool:
    """Whether this run has the time for everything (`--hypothesis-profile=long`)."""
    return settings().max_examples > CI_EXAMPLES
