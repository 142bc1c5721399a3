"""What lists say of things: facts that stand apart for every reader."""

from __future__ import annotations

from threadline.render.html import el, facts_row


def test_facts_are_parted_by_more_than_style() -> None:
    """Whoever copies a row of facts, or hears it read, finds a blank between them; what is empty is left out."""
    row = facts_row(["2 turns", "", None, el("a", "context", href="/x"), "$0.12"])
    assert row == ('<p class="facts"><span>2 turns</span> <span><a href="/x">context</a></span> <span>$0.12</span></p>')
