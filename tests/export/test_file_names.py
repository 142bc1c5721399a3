"""File names are safe for any session title, and unique."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.export import safe_name
from threadline.export.output import make_unique


@pytest.mark.parametrize(
    "name",
    ["a\nb", "..", "../..", "-rf", "a%00b", "x" * 255, "\u202egpj.exe", "e\u0301", "🙂", "NUL", "aux.txt", "", ". ."],
)
def test_hostile_names_become_safe(name: str) -> None:
    """The name is short, of plain letters, and neither hidden nor an option nor reserved."""
    safe = safe_name(name)
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", safe)
    assert safe.split(".")[0].lower() not in {"con", "nul", "aux", "prn"}


@given(st.text(max_size=300))
def test_any_name_becomes_safe(name: str) -> None:
    """Property for any text. A safe name stays the same."""
    safe = safe_name(name)
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", safe)
    assert safe_name(safe) == safe


@given(st.lists(st.sampled_from(["a", "A", "b", "a-2"]), max_size=8))
def test_equal_names_get_numbers(names: list[str]) -> None:
    """Names that are equal, or differ only in case, get numbers."""
    unique = make_unique(names)
    assert len({name.lower() for name in unique}) == len(names)
