"""Amounts as bars and columns, in blocks and in plain letters."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.render import bar, can_show_blocks, display_width, sparkline

AMOUNTS = st.decimals(min_value=0, max_value=10**9, places=8, allow_nan=False)


@given(AMOUNTS, AMOUNTS, st.integers(0, 60), st.booleans())
def test_a_bar_fits_and_grows_with_its_value(decimal: Decimal, other: Decimal, width: int, plain: bool) -> None:
    """No bar is wider than it may be, a greater value has no shorter one, and only nothing shows as nothing."""
    most = max(decimal, other)
    drawn = [bar(value, most, width, ascii_only=plain) for value in sorted((decimal, other))]
    assert [display_width(text) <= width for text in drawn] == [True, True]
    assert len(drawn[0]) <= len(drawn[1])
    for value, text in zip(sorted((decimal, other)), drawn, strict=True):
        assert bool(text) == (value > 0 and width > 0)
        if plain:
            assert text.isascii()


def test_only_the_greatest_fills_its_bar() -> None:
    """A value just below the greatest is drawn shorter than full; the greatest fills all columns."""
    assert bar(1000, 1000, 8) == "█" * 8
    assert bar(999, 1000, 8) == "█" * 7 + "▉"
    assert (bar(None, 10, 8), bar(-3, 10, 8), bar(3, 0, 8)) == ("", "", "")


@given(st.lists(st.one_of(st.none(), AMOUNTS), max_size=80), st.booleans())
def test_a_sparkline_has_a_column_a_value(values: list[Decimal | None], plain: bool) -> None:
    """One column a value, a space exactly where there is nothing, and the greatest value the highest column."""
    drawn = sparkline(values, ascii_only=plain)
    assert len(drawn) == display_width(drawn) == len(values)
    assert [letter == " " for letter in drawn] == [not value for value in values]
    if any(values):
        at = max(range(len(values)), key=lambda place: values[place] or Decimal(0))
        assert drawn[at] == ("#" if plain else "█")


@pytest.mark.parametrize(
    ("environment", "encoding", "fits"),
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
def test_blocks_are_drawn_only_where_they_can_be_shown(
    environment: dict[str, str], encoding: str | None, fits: bool
) -> None:
    """Letters stand in for blocks on a dumb terminal, in the C locale, and where the encoding lacks them."""
    assert can_show_blocks(environment, encoding) is fits
