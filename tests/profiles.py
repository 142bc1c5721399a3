"""Scales the number of examples with the hypothesis profile. The profiles are in `tests/conftest.py`."""

from __future__ import annotations

from hypothesis import settings

CI_EXAMPLES = 150


def scale_examples(count: int) -> int:
    """Return `count` in the `ci` profile, fewer in `quick` and more in `long`.

    For seeds and loops without hypothesis, and for properties whose examples are too expensive for the number that the
    profile sets: `@settings(max_examples=scale_examples(40))`.
    """
    return max(1, round(count * settings().max_examples / CI_EXAMPLES))


def is_long_run() -> bool:
    """Whether this run uses the `long` profile (`--hypothesis-profile=long`), which has time for everything."""
    return settings().max_examples > CI_EXAMPLES
