"""Rows of facts are readable without styles."""

from __future__ import annotations

from threadline.render.html import el, facts_row


def test_facts_are_separated_by_spaces() -> None:
    """Copied text and screen readers have a space between facts. Empty ones are left out."""
    row = facts_row(["2 turns", "", None, el("a", "context", href="/x"), "$0.12"])
    assert row == ('<p class="facts"><span>2 turns</span> <span><a href="/x">context</a></span> <span>$0.12</span></p>')
