"""A session at a glance."""

from __future__ import annotations

from pathlib import Path

from tests.render.test_text import forked, with_agent

from threadline.render.terminal_text import columns
from threadline.render.tree import draw, tree


def test_agents_hang_under_the_turn_that_started_them(tmp_path: Path) -> None:
    """A turn with its figures, and the agent below it; side agents only when asked for."""
    whole = with_agent(tmp_path)
    lines = list(draw(tree(whole), 80))
    assert "1 turn · 2 calls · 1 agent" in lines[1]
    assert lines[2].startswith("└─ ❯ 1 x")  # noqa: RUF001 - the sign of a prompt
    assert lines[3].startswith("   └─ ↳ Explore: find it")
    assert lines[3].endswith("done")
    assert len(list(draw(tree(whole, everything=True), 80))) == 5


def test_branches_hang_under_the_turn_they_were_left_in(tmp_path: Path) -> None:
    """What was abandoned is below its branch, and not among the turns that stayed."""
    lines = list(draw(tree(forked(tmp_path)), 80))
    assert [line.split("  ")[0].rstrip() for line in lines[2:4]] == ["├─ ❯ 1 first", "│"]  # noqa: RUF001 - as above
    assert "⎇ branch 1, 2 entries left" in lines[3]
    assert "2 wrong way" in lines[4]
    assert "3 right way" in lines[5]


def test_a_tree_is_the_same_for_programs(tmp_path: Path) -> None:
    """Kinds, figures and children, nested."""
    told = tree(with_agent(tmp_path)).as_json()
    assert told["kind"] == "session"
    turn = told["children"][0]
    assert (turn["kind"], turn["number"], turn["calls"], turn["failed"]) == ("turn", 1, 1, 0)
    agent = turn["children"][0]
    assert (agent["kind"], agent["type"], agent["status"]) == ("agent", "Explore", "done")


def test_lines_fit(tmp_path: Path) -> None:
    """However narrow the terminal is."""
    assert max(map(columns, draw(tree(with_agent(tmp_path)), 40))) <= 40
