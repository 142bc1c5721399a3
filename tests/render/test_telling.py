"""What a call was about: in a list even of tools whose own words stand in their result elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from threadline.render import summarize_call, summarize_input

TODOS = [
    {"content": "read it", "status": "completed"},
    {"content": "mend it", "status": "in_progress"},
    {"content": "try it", "status": "pending"},
]


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("AskUserQuestion", {"questions": [{"question": "Which?"}, {"question": "When?"}]}, "Which? · When?"),
        ("TodoWrite", {"todos": TODOS}, "1 of 3 done · mend it"),
        ("ExitPlanMode", {"plan": "## Mend the lamp\n\n1. Look."}, "Mend the lamp"),
        ("Bash", {"command": "ls"}, "ls"),
        ("AskUserQuestion", {"questions": "odd"}, ""),
        ("AskUserQuestion", {"questions": [None, {"question": 5}, {"question": ["odd"]}]}, "5"),
        ("TodoWrite", {"todos": [1, None]}, ""),
        ("TodoRead", {}, ""),
        ("AskUserQuestion", None, ""),
    ],
)
def test_a_list_says_what_was_asked(tool: str, given: Any, told: str) -> None:
    """Questions, lists and plans are told where no result stands beside the call; beside one they stay silent."""
    assert summarize_call(tool, given) == told
    assert summarize_input(tool, given) == (told if tool == "Bash" else "")


def test_what_is_given_twice_is_told_once() -> None:
    """A message that names whom it is for under two names says it once."""
    assert summarize_input("SendMessage", {"to": "scout", "recipient": "scout", "summary": "go on"}) == "scout · go on"
