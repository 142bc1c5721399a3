"""Names in transcripts: tools that Claude Code renamed, MCP servers, and versions of Claude Code."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

TOOL_RENAMES = {
    "View": "Read",
    "LSTool": "LS",
    "GlobTool": "Glob",
    "GrepTool": "Grep",
    "exit_plan_mode": "ExitPlanMode",
    "Task": "Agent",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
    "BashOutput": "TaskOutput",
    "BashOutputTool": "TaskOutput",
    "AgentOutputTool": "TaskOutput",
}
"""The tools that Claude Code renamed: the old name, and the current one."""


def current_tool_name(name: str) -> str:
    """Return the current name of a tool; a tool that was never renamed keeps its name.

    >>> current_tool_name("View"), current_tool_name("Read"), current_tool_name("Edit")
    ('Read', 'Read', 'Edit')
    """
    return TOOL_RENAMES.get(name, name)


def tool_names(current: str) -> frozenset[str]:
    """Return the current name of a tool and all its old names.

    >>> sorted(tool_names("Agent"))
    ['Agent', 'Task']
    """
    return frozenset({current, *(old for old, new in TOOL_RENAMES.items() if new == current)})


AGENT_TOOLS = tool_names("Agent")
"""The tools whose only purpose is to start an agent."""


def names_tool(names: Collection[str], tool: str, *, exact: bool = False) -> bool:
    """Whether names, such as those of `--tool`, include a tool. An old name includes the new one, and vice versa.

    Upper and lower case are equal. With `exact`, only the name that the transcript contains counts, as it is written.

    >>> names_tool(["read"], "View"), names_tool(["View"], "Read"), names_tool(["Read"], "View", exact=True)
    (True, True, False)
    """
    if exact:
        return tool in names
    key = _comparison_key(tool)
    return any(_comparison_key(name) == key for name in names)


_CURRENT_BY_LOWER_CASE = {old.casefold(): new.casefold() for old, new in TOOL_RENAMES.items()}


def _comparison_key(name: str) -> str:
    lower = name.casefold()
    return _CURRENT_BY_LOWER_CASE.get(lower, lower)


def mcp_server(tool: str) -> str | None:
    """The MCP server that provides a tool; None if no server does.

    >>> mcp_server("mcp__github__list_issues"), mcp_server("Read")
    ('github', None)
    """
    prefix, _, rest = tool.partition("__")
    server, separator, _name = rest.partition("__")
    return server if prefix == "mcp" and separator else None


def tool_label(name: str) -> str:
    """The name of a tool for people.

    >>> tool_label("mcp__github__list_issues"), tool_label("Read"), tool_label("")
    ('github: list_issues', 'Read', '(no name)')
    """
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name or "(no name)"


_TOO_MANY_DIGITS = 10


@lru_cache(maxsize=256)
def parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows a `-` or `+`; empty if it is not a version.

    >>> parse_version("2.1.9") < parse_version("2.1.10-beta")
    True
    >>> parse_version("2.1.x")
    ()
    """
    parts = version.partition("+")[0].partition("-")[0].split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < _TOO_MANY_DIGITS for part in parts):
        return ()
    return tuple(int(part) for part in parts)


def version_key(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return a sort key: by numbers, and a pre-release before its release. Texts that are not versions come first.

    >>> sorted(["2.1.10", "2.1.9", "2.1.10-beta", "dev"], key=version_key)
    ['dev', '2.1.9', '2.1.10-beta', '2.1.10']
    """
    is_release = "-" not in version.partition("+")[0]
    return parse_version(version), is_release, version
