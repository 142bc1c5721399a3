"""Homes to measure on, made once and kept."""

from __future__ import annotations

import sys
from pathlib import Path

OUT = Path(__file__).parent / "out"


def generated(megabytes: float) -> Path:
    """A home of that size, with the sizes of real ones."""
    from threadline.demo import write

    home = OUT / f"home-{megabytes:g}"
    if not home.exists():
        print(f"generating {home} …", file=sys.stderr)
        write(home, megabytes=megabytes)
    return home
