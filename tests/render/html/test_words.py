"""Words that a page may show: nothing in them steers, hides or turns."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.render import shorten, visible

_STEERING = {"Cc", "Cs", "Co", "Zl", "Zp"}


@given(st.text())
def test_no_control_reaches_a_page(text: str) -> None:
    """Newlines and tabs are all that is left of them, and joiners only between letters that they join."""
    left = [character for character in visible(text) if character not in "\n\t"]
    assert not [character for character in left if unicodedata.category(character) in _STEERING]
    assert not set(left) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff\u200b")


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_left_alone(text: str) -> None:
    """What has nothing to hide is shown as it is."""
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
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
def test_what_hides_is_made_visible(text: str, seen: str) -> None:
    """Colours are dropped, all else that steers is told by its number; an emoji stays one."""
    assert visible(text) == seen


def test_one_line_is_cut_with_a_sign() -> None:
    """White space is folded, and a cut is seen."""
    assert shorten("a  b\n c", 20) == "a b c"
    assert shorten("abcdef", 4) == "abc…"
