"""Summaries of calls in lists, including tools whose arguments are shown with the result elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from threadline.model.call_summary import summarize_call, summarize_input

TODOS = [
    {"content": "read it", "status": "completed"},
    {"content": "mend it", "status": "in_progress"},
    {"content": "try it", "status": "pending"},
]


@pytest.mark.parametrize(
    ("tool", "arguments", "summary"),
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
def test_summarizes_calls_in_lists(tool: str, arguments: Any, summary: str) -> None:
    """Questions, todos and plans are summarised in lists, but not beside a result, which shows them."""
    assert summarize_call(tool, arguments) == summary
    assert summarize_input(tool, arguments) == (summary if tool == "Bash" else "")


def test_repeated_arguments_are_shown_once() -> None:
    """A message that names its recipient under two names shows it once."""
    assert summarize_input("SendMessage", {"to": "scout", "recipient": "scout", "summary": "go on"}) == "scout · go on"
