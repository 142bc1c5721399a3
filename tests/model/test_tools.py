"""Tools that were renamed are one tool in every report."""

from __future__ import annotations

import pytest

from threadline.model.names import AGENT_TOOLS, TOOL_RENAMES, current_tool_name, names_tool
from threadline.thread import BACKGROUND_OUTPUT_TOOLS, parse_exit_code


def test_current_names_are_not_renamed_again() -> None:
    """One lookup gives the current name."""
    assert not set(TOOL_RENAMES) & set(TOOL_RENAMES.values())


@pytest.mark.parametrize(
    ("name", "tool", "matches"),
    [
        ("Read", "View", True),
        ("View", "Read", True),
        ("LSTool", "LS", True),
        ("Task", "Agent", True),
        ("KillBash", "KillShell", True),
        ("read", "VIEW", True),
        ("Read", "Edit", False),
        ("TodoWrite", "TaskCreate", False),
    ],
)
def test_names_match_by_old_and_new_name(name: str, tool: str, *, matches: bool) -> None:
    """Case does not matter, unless names are exact."""
    assert names_tool([name], tool) is matches
    assert names_tool([name], tool, exact=True) is (name == tool)


def test_unknown_tool_keeps_its_name() -> None:
    """Tools of MCP servers are not renamed."""
    assert current_tool_name("mcp__x__View") == "mcp__x__View"


def test_groups_of_tools_include_every_old_name() -> None:
    """The groups come from the table of renamed tools, so that a tool with an old name is treated like the new one."""
    assert {"Task", "Agent"} == AGENT_TOOLS
    assert {tool for tool in TOOL_RENAMES if current_tool_name(tool) == "TaskOutput"} < BACKGROUND_OUTPUT_TOOLS
    for tool in ("TaskOutput", "BashOutput", "BashOutputTool", "AgentOutputTool"):
        assert parse_exit_code(tool, None, "<status>failed</status>\n<exit_code>3</exit_code>") == 3
