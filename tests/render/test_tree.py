"""The tree of a session."""

from __future__ import annotations

from pathlib import Path

from tests.render.sessions import session, text_lines
from tests.render.test_session_text import AGENT, forked_session, session_with_agent
from tests.transcripts import call, prompt, reply

from threadline.render import build_tree, display_width, draw_tree


def test_agents_are_below_the_turn_that_started_them(tmp_path: Path) -> None:
    """A turn has its figures and the agent below it. Side agents are shown only with everything."""
    sample = session_with_agent(tmp_path)
    lines = list(draw_tree(build_tree(sample), 120))
    assert "1 turn · 2 calls · 1 agent" in lines[1]
    assert lines[2].startswith("└─ ❯ 1 x")  # noqa: RUF001 - the sign of a prompt
    assert lines[3].startswith("   └─ ↳ Explore: find it")
    assert lines[3].endswith("done")
    assert len(list(draw_tree(build_tree(sample, everything=True), 120))) == 5


def test_branches_are_below_the_turn_they_were_left_in(tmp_path: Path) -> None:
    """Abandoned turns are below their branch, not among the others."""
    lines = list(draw_tree(build_tree(forked_session(tmp_path)), 120))
    assert [line.split("  ")[0].rstrip() for line in lines[2:4]] == ["├─ ❯ 1 first", "│"]  # noqa: RUF001 - as above
    assert "⎇ branch 1, 2 entries" in lines[3]
    assert "2 wrong way" in lines[4]
    assert "3 right way" in lines[5]


def test_a_tree_as_json(tmp_path: Path) -> None:
    """Kinds, figures and children, nested."""
    tree = build_tree(session_with_agent(tmp_path)).as_json()
    assert tree["kind"] == "session"
    turn = tree["children"][0]
    assert (turn["kind"], turn["number"], turn["calls"], turn["failed"]) == ("turn", 1, 1, 0)
    agent = turn["children"][0]
    assert (agent["kind"], agent["type"], agent["status"]) == ("agent", "Explore", "done")


def test_lines_fit_a_narrow_terminal(tmp_path: Path) -> None:
    """No line is wider than the terminal."""
    assert max(map(display_width, draw_tree(build_tree(session_with_agent(tmp_path)), 40))) <= 40


def test_shows_agents_without_a_transcript(tmp_path: Path) -> None:
    """A started agent without a transcript has its line, in the tree and in the text. A refused one has none."""
    details = {"status": "completed", "agentId": AGENT, "content": []}
    arguments = {"subagent_type": "Explore", "description": "find it", "prompt": "Find it!"}
    more_arguments = {"subagent_type": "Explore", "description": "go on", "prompt": "More!"}
    sample = session(
        tmp_path,
        prompt("x"),
        call("Agent", arguments, result="ok", details=details),
        call("Agent", more_arguments, result="ok", details=details),
        call("Agent", arguments, result="No such type", error=True),
    )
    lines = list(draw_tree(build_tree(sample), 120))
    assert "1 agent, no transcripts" in lines[1]
    assert [line.split("  ")[0] for line in lines[3:]] == [""]
    assert lines[3].strip().startswith("└─ ↳ Explore: find it")
    assert lines[3].endswith("(transcript missing)")
    tree = build_tree(sample).as_json()
    assert (tree["agents"], tree["agents_started"]) == (0, 1)
    assert [line for line in text_lines(sample) if "↳" in line] == ["  ↳ Explore: find it (transcript missing)"]


def test_counts_failed_calls_by_outcome(tmp_path: Path) -> None:
    """Errors, refusals and lost results are counted separately."""
    refusal = "The user doesn't want to proceed with this tool use."
    sample = session(
        tmp_path,
        prompt("x"),
        call("Bash", "a", result="Exit code 1", error=True),
        call("Bash", "b", result="Exit code 1", error=True),
        call("Bash", "c", result=refusal, error=True, details="User rejected tool use"),
        reply("ok"),
    )
    assert "3 calls · 2 errors, 1 refused · " in list(draw_tree(build_tree(sample), 100))[2]
    turn = build_tree(sample).as_json()["children"][0]
    assert (turn["failed"], turn["outcomes"]) == (3, {"error": 2, "denied": 1})


def test_turns_have_the_symbol_of_their_kind(tmp_path: Path) -> None:
    """Shell lines and commands have their own symbols. A turn that took no time has no duration."""
    sample = session(
        tmp_path,
        prompt("<bash-input>ls</bash-input>"),
        prompt("<command-name>/model</command-name><command-args>opus</command-args>"),
        prompt("hi"),
        reply("ok"),
    )
    lines = list(draw_tree(build_tree(sample), 120))
    assert [line[3:6] for line in lines[2:]] == ["! 1", "▸ 2", "❯ 3"]  # noqa: RUF001 - the sign of a prompt
    assert lines[2].endswith("  2026-01-05 09:00")
    assert "0ms" not in "".join(lines)
