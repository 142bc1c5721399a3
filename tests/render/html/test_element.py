"""Elements: text becomes HTML only by being escaped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.render.html.calls_and_pages import Page

from threadline.render.html import el, join


@given(st.text(), st.text())
def test_any_text_survives_as_text_and_attribute(text: str, value: str) -> None:
    """A browser reads what was given, and no element results from it."""
    page = Page(el("p", text, title=value))
    assert page.tags == ["p"]
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    assert page.text.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n") == plain


def test_empty_attributes_are_left_out() -> None:
    """None and False leave an attribute out, True writes its name. Underscores become hyphens."""
    assert el("details", "x", open=True, hidden=False, id=None, aria_label="y") == Markup(
        '<details open aria-label="y">x</details>'
    )


def test_children_may_be_nested_lists() -> None:
    """Children are concatenated, numbers too."""
    assert el("p", ["a", ["<", el("b", 1)], None]) == Markup("<p>a&lt;<b>1</b></p>")
    assert join(["a", "b"], Markup("<br>")) == Markup("a<br>b")
