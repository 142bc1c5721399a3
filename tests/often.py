"""How often a law is tried: a share of what is worth trying, unless somebody has the time for all of it."""

from __future__ import annotations

import os

_SHARE = 3


def often(examples: int) -> int:
    """So many examples where THREADLINE_LONG is set, and a third of them elsewhere."""
    return examples if os.environ.get("THREADLINE_LONG") else max(1, examples // _SHARE)
