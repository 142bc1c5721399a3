"""The documentation of redaction describes every kind."""

from __future__ import annotations

import re
from pathlib import Path

from threadline.redact import KINDS

PAGE = Path(__file__).parents[2] / "docs/redaction.md"


def test_every_kind_is_documented_once() -> None:
    """The tables in `docs/redaction.md` list every kind once, with the program's description, and no other kind."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", PAGE.read_text().split("## The kinds")[1], re.MULTILINE)
    assert dict(rows) == KINDS
    assert len(rows) == len(KINDS)
