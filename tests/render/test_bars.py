"""Amounts as bars and columns, in block characters and in ASCII."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.render import bar, can_show_blocks, display_width, sparkline

AMOUNTS = st.decimals(min_value=0, max_value=10**9, places=8, allow_nan=False)


@given(AMOUNTS, AMOUNTS, st.integers(0, 60), st.booleans())
def test_a_bar_fits_and_grows_with_its_value(decimal: Decimal, other: Decimal, width: int, plain: bool) -> None:
    """A bar is never too wide, a greater value never has a shorter one, and only zero is empty."""
    maximum = max(decimal, other)
    bars = [bar(value, maximum, width, ascii_only=plain) for value in sorted((decimal, other))]
    assert [display_width(text) <= width for text in bars] == [True, True]
    assert len(bars[0]) <= len(bars[1])
    for value, text in zip(sorted((decimal, other)), bars, strict=True):
        assert bool(text) == (value > 0 and width > 0)
        if plain:
            assert text.isascii()


def test_only_the_greatest_value_fills_its_bar() -> None:
    """A value just below the greatest is shorter than full. The greatest fills all columns."""
    assert bar(1000, 1000, 8) == "█" * 8
    assert bar(999, 1000, 8) == "█" * 7 + "▉"
    assert (bar(None, 10, 8), bar(-3, 10, 8), bar(3, 0, 8)) == ("", "", "")


@given(st.lists(st.one_of(st.none(), AMOUNTS), max_size=80), st.booleans())
def test_a_sparkline_has_one_column_per_value(values: list[Decimal | None], plain: bool) -> None:
    """A value of zero is a space, and the greatest value is the highest column."""
    text = sparkline(values, ascii_only=plain)
    assert len(text) == display_width(text) == len(values)
    assert [char == " " for char in text] == [not value for value in values]
    if any(values):
        highest = max(range(len(values)), key=lambda place: values[place] or Decimal(0))
        assert text[highest] == ("#" if plain else "█")


@pytest.mark.parametrize(
    ("environment", "encoding", "expected"),
    [
        ({"LANG": "de_DE.UTF-8"}, "utf-8", True),
        ({}, "utf-8", True),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "utf-8", True),
        ({"TERM": "dumb", "LANG": "de_DE.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "POSIX"}, "utf-8", False),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", False),
        ({"LANG": "de_DE.ISO-8859-1"}, "latin-1", False),
        ({"LANG": "en_US"}, "cp1252", False),
        ({}, "ascii", False),
        ({}, None, False),
        ({}, "no-such-encoding", False),
    ],
)
def test_detects_whether_blocks_can_be_shown(environment: dict[str, str], encoding: str | None, expected: bool) -> None:
    """ASCII is used on a dumb terminal, in the C locale, and if the encoding lacks block characters."""
    assert can_show_blocks(environment, encoding) is expected
