"""Text on a page: nothing in it controls, hides or reverses other text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.render import shorten, visible

_CONTROL_CATEGORIES = {"Cc", "Cs", "Co", "Zl", "Zp"}


@given(st.text())
def test_removes_control_characters(text: str) -> None:
    """Only newlines and tabs remain, and joiners only between letters that they join."""
    characters = [character for character in visible(text) if character not in "\n\t"]
    assert not [character for character in characters if unicodedata.category(character) in _CONTROL_CATEGORIES]
    assert not set(characters) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff\u200b")


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_keeps_plain_text(text: str) -> None:
    """Text without special characters is unchanged."""
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]8;;http://x\x07b", "a\\x1b]8;;http://x\\x07b"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("a\r\nb", "a\nb"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_shows_hidden_characters(text: str, expected: str) -> None:
    """Colours are removed, other control characters are shown as escapes, and an emoji stays one."""
    assert visible(text) == expected


def test_shortens_to_one_line_with_an_ellipsis() -> None:
    """White space is collapsed, and truncation is marked."""
    assert shorten("a  b\n c", 20) == "a b c"
    assert shorten("abcdef", 4) == "abc…"
