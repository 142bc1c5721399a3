"""Elements: text becomes HTML only by being escaped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.render.html.calls_and_pages import Page

from threadline.render.html import el, facts_row, join, project_link


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


def test_facts_are_separated_by_spaces() -> None:
    """Copied text and screen readers have a space between facts. Empty ones are left out."""
    row = facts_row(["2 turns", "", None, el("a", "context", href="/x"), "$0.12"])
    assert row == ('<p class="facts"><span>2 turns</span> <span><a href="/x">context</a></span> <span>$0.12</span></p>')


def test_a_project_is_written_like_its_path() -> None:
    """The short form of a path has the separators of the path: other pages show the same path in full."""
    assert ">D:\\oh-my-posh<" in project_link("D:\\oh-my-posh")
    assert ">work\\app<" in project_link("C:\\Users\\me\\work\\app")
    assert ">work/app<" in project_link("/home/me/work/app")
