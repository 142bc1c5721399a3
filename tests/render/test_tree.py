"""A session at a glance."""

from __future__ import annotations

from pathlib import Path

from tests.render.reading import session, shown
from tests.render.test_text import AGENT, forked, with_agent
from tests.transcripts import call, prompt, reply

from threadline.render import display_width
from threadline.render.tree import build_tree, draw_tree


def test_agents_hang_under_the_turn_that_started_them(tmp_path: Path) -> None:
    """A turn with its figures, and the agent below it; side agents only when asked for."""
    whole = with_agent(tmp_path)
    lines = list(draw_tree(build_tree(whole), 80))
    assert "1 turn · 2 calls · 1 agent" in lines[1]
    assert lines[2].startswith("└─ ❯ 1 x")  # noqa: RUF001 - the sign of a prompt
    assert lines[3].startswith("   └─ ↳ Explore: find it")
    assert lines[3].endswith("done")
    assert len(list(draw_tree(build_tree(whole, everything=True), 80))) == 5


def test_branches_hang_under_the_turn_they_were_left_in(tmp_path: Path) -> None:
    """What was abandoned is below its branch, and not among the turns that stayed."""
    lines = list(draw_tree(build_tree(forked(tmp_path)), 80))
    assert [line.split("  ")[0].rstrip() for line in lines[2:4]] == ["├─ ❯ 1 first", "│"]  # noqa: RUF001 - as above
    assert "⎇ branch 1, 2 entries" in lines[3]
    assert "2 wrong way" in lines[4]
    assert "3 right way" in lines[5]


def test_a_tree_is_the_same_for_programs(tmp_path: Path) -> None:
    """Kinds, figures and children, nested."""
    told = build_tree(with_agent(tmp_path)).as_json()
    assert told["kind"] == "session"
    turn = told["children"][0]
    assert (turn["kind"], turn["number"], turn["calls"], turn["failed"]) == ("turn", 1, 1, 0)
    agent = turn["children"][0]
    assert (agent["kind"], agent["type"], agent["status"]) == ("agent", "Explore", "done")


def test_lines_fit(tmp_path: Path) -> None:
    """However narrow the terminal is."""
    assert max(map(display_width, draw_tree(build_tree(with_agent(tmp_path)), 40))) <= 40


def test_agents_without_a_transcript_are_told(tmp_path: Path) -> None:
    """One that was started and not kept has its line, in the tree and in the text; one that was refused has none."""
    own = {"status": "completed", "agentId": AGENT, "content": []}
    given = {"subagent_type": "Explore", "description": "find it", "prompt": "Find it!"}
    again = {"subagent_type": "Explore", "description": "go on", "prompt": "More!"}
    whole = session(
        tmp_path,
        prompt("x"),
        call("Agent", given, result="ok", details=own),
        call("Agent", again, result="ok", details=own),
        call("Agent", given, result="No such type", error=True),
    )
    lines = list(draw_tree(build_tree(whole), 90))
    assert "1 agent, no transcripts" in lines[1]
    assert [line.split("  ")[0] for line in lines[3:]] == [""]
    assert lines[3].strip().startswith("└─ ↳ Explore: find it")
    assert lines[3].endswith("(transcript missing)")
    told = build_tree(whole).as_json()
    assert (told["agents"], told["agents_started"]) == (0, 1)
    assert [line for line in shown(whole) if "↳" in line] == ["  ↳ Explore: find it (transcript missing)"]


def test_what_did_not_end_well_is_told_by_how_it_ended(tmp_path: Path) -> None:
    """Errors, refusals and lost results are not one number."""
    refusal = "The user doesn't want to proceed with this tool use."
    whole = session(
        tmp_path,
        prompt("x"),
        call("Bash", "a", result="Exit code 1", error=True),
        call("Bash", "b", result="Exit code 1", error=True),
        call("Bash", "c", result=refusal, error=True, details="User rejected tool use"),
        reply("ok"),
    )
    assert "3 calls · 2 errors, 1 refused · " in list(draw_tree(build_tree(whole), 100))[2]
    turn = build_tree(whole).as_json()["children"][0]
    assert (turn["failed"], turn["outcomes"]) == (3, {"error": 2, "denied": 1})


def test_turns_have_the_signs_of_their_acts(tmp_path: Path) -> None:
    """A shell line and a command are no prompts; what took no time has no duration."""
    whole = session(
        tmp_path,
        prompt("<bash-input>ls</bash-input>"),
        prompt("<command-name>/model</command-name><command-args>opus</command-args>"),
        prompt("hi"),
        reply("ok"),
    )
    lines = list(draw_tree(build_tree(whole), 80))
    assert [line[3:6] for line in lines[2:]] == ["! 1", "▸ 2", "❯ 3"]  # noqa: RUF001 - the sign of a prompt
    assert lines[2].endswith("  2026-01-05 09:00")
    assert "0ms" not in "".join(lines)
