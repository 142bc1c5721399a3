"""The page on redaction tells of every kind."""

from __future__ import annotations

import re
from pathlib import Path

from threadline.redact import KINDS

PAGE = Path(__file__).parents[2] / "docs/redaction.md"


def test_every_kind_has_its_row() -> None:
    """The tables of kinds name every kind once, with the words of the program, and no other."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", PAGE.read_text().split("## The kinds")[1], re.MULTILINE)
    assert dict(rows) == KINDS
    assert len(rows) == len(KINDS)
