"""Elements: a text becomes HTML only by being escaped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.render.html.calling import Page

from threadline.render.html import el, join


@given(st.text(), st.text())
def test_any_text_comes_back_as_it_was(text: str, value: str) -> None:
    """As words and as an attribute, a browser reads what was given; no element comes of it."""
    page = Page(el("p", text, title=value))
    assert page.tags == ["p"]
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    assert page.text.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n") == plain


def test_attributes_that_say_nothing_are_left_out() -> None:
    """None and False leave one out, True writes its name; underscores are hyphens."""
    assert el("details", "x", open=True, hidden=False, id=None, aria_label="y") == Markup(
        '<details open aria-label="y">x</details>'
    )


def test_children_may_be_lists_of_lists() -> None:
    """Whatever stands inside is put one after the other, numbers too."""
    assert el("p", ["a", ["<", el("b", 1)], None]) == Markup("<p>a&lt;<b>1</b></p>")
    assert join(["a", "b"], Markup("<br>")) == Markup("a<br>b")
