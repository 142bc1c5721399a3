"""How often a law is tried: a share of what is worth trying, unless somebody has the time for all of it."""

from __future__ import annotations

import os

import pytest

_SHARE = 10


def often(examples: int) -> int:
    """So many examples where THREADLINE_LONG is set, and a tenth of them elsewhere."""
    return examples if os.environ.get("THREADLINE_LONG") else max(1, examples // _SHARE)


def long_only(reason: str) -> pytest.MarkDecorator:
    """For what takes long and is told by others in part: tried where THREADLINE_LONG is set."""
    return pytest.mark.skipif(not os.environ.get("THREADLINE_LONG"), reason=f"{reason}; set THREADLINE_LONG to try it")
