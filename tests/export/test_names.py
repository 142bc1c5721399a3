"""File names are plain whatever a session is called, and no two are taken for the same."""

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
def test_hostile_names_become_plain(name: str) -> None:
    """Whatever it is called, the name is short, of plain letters, and neither hidden nor an option nor reserved."""
    made = safe_name(name)
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", made)
    assert made.split(".")[0].lower() not in {"con", "nul", "aux", "prn"}


@given(st.text(max_size=300))
def test_any_name_becomes_plain(name: str) -> None:
    """The law for any text; a name that is plain already stays as it is."""
    made = safe_name(name)
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", made)
    assert safe_name(made) == made


@given(st.lists(st.sampled_from(["a", "A", "b", "a-2"]), max_size=8))
def test_twins_are_told_apart(names: list[str]) -> None:
    """Names that differ in nothing or in case alone are given numbers."""
    made = make_unique(names)
    assert len({name.lower() for name in made}) == len(names)
