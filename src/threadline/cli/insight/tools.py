"""`threadline tools`: how reliable, quick and expensive tools are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo

import click

from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter, explain_project
from threadline.cli.insight.period import format_count
from threadline.cli.options import (
    complete_with,
    home_option,
    limit_option,
    output_options,
    project_option,
    since_option,
    timezone_option,
    tools_option,
    until_option,
)
from threadline.cli.resolve import open_archive, session_id
from threadline.insight import TOOL_KEYS, TOOL_SORTS, tool_group_record
from threadline.model.calls import ToolGroup, ToolGroups
from threadline.model.text import count, format_amount, format_duration, format_percent, format_tokens

_DEFAULT_LIMIT = 30
_DROPPED_FIRST = ("lost", "stopped", "exit≠0", "errors", "denied", "output", "p95")
_EPILOG = """
\b
Examples:
  threadline tools --since 30d               each tool of the last 30 days
  threadline tools --by command              by program: git, npm, pytest …
  threadline tools --sort failed             which fail most
  threadline tools --by command --sort p95   which are slow
  threadline tools --by server               by MCP server
  threadline tools --by week --tool Bash     over time
  threadline tools --by version --json       did an update change something?
  threadline tools --no-cost                 quick, without attributing costs
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False, shell_complete=complete_with("sessions"))
@click.option("--by", type=click.Choice(TOOL_KEYS), default="tool", help="Add up by this key. Default: tool.")
@tools_option()
@click.option(
    "--cost/--no-cost", "with_costs", default=True, help="Show output tokens and carried cost. Default: --cost."
)
@click.option(
    "--sort",
    type=click.Choice(TOOL_SORTS),
    help="Show the largest first. failed is the share. Default: calls; for days and weeks, time.",
)
@project_option()
@since_option()
@until_option()
@timezone_option
@limit_option(f"Show at most N rows. Default: {_DEFAULT_LIMIT} in a table, otherwise all.")
@home_option
@output_options
def tools(
    session: str | None,
    *,
    by: str,
    tools: tuple[str, ...],
    with_costs: bool,
    sort: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show how reliable, quick and expensive tools are.

    For each tool: calls, failures by kind, median and 95th percentile of the duration, the size of the results, and
    what it cost to send them and to carry them with later requests. What the calls themselves cost is not included: see
    `threadline why --by tool`. Sizes and costs marked ~ depend on estimates. Durations are the time between a call and
    its result, of calls that ended by themselves. They include waiting for permission.

    With --by command, a shell command counts for each program that it runs. A call that a fork or a resumed session
    repeats counts once. Costs are attributed when they are first needed, which reads every session.

    SESSION is the start of a session id, a transcript, or `last`.
    """
    criteria = CrossSessionFilter.parse(project, since, until, limit, zone)
    shown = criteria.limit or (_DEFAULT_LIMIT if output == "table" else None)
    with open_archive(homes, require_home=True) as archive:
        archive.zone = zone
        filters = criteria.archive_arguments() | {"limit": shown}
        groups = archive.tools(
            by, tools=tools, costs=with_costs, sort=sort, session=session_id(session, archive), **filters
        )
        return out.print_listing(
            groups,
            output,
            row=lambda group: tool_group_record(group, by),
            table=lambda _rows: _table(groups, by),
            nothing=lambda: explain_project(archive, criteria.project) or _explain_nothing(session, criteria, tools),
        )


def _explain_nothing(session: str | None, criteria: CrossSessionFilter, tools: tuple[str, ...]) -> str:
    if session is not None:
        return "No matching calls in this session."
    return "No matching calls. Remove a filter." if criteria.has_filters or tools else "No calls in any session."


def _table(groups: ToolGroups, by: str) -> str:
    columns: dict[str, Callable[[ToolGroup], str]] = {
        "calls": lambda group: f"{group.calls:,}",
        "failed": lambda group: format_percent(group.failure_rate) if group.failure_rate else "",
        "errors": lambda group: format_count(group.errors - group.exit_codes),
        "exit≠0": lambda group: format_count(group.exit_codes),
        "denied": lambda group: format_count(group.denied),
        "stopped": lambda group: format_count(group.interrupted),
        "lost": lambda group: format_count(group.lost),
        "median": lambda group: format_duration(group.median),
        "p95": lambda group: format_duration(group.p95),
        "output": lambda group: _mark(group, format_tokens(group.output_tokens) if group.output_tokens else ""),
        "amount": lambda group: _mark(group, format_amount(group.carried) if group.carried else ""),
    }
    if not any(group.output_tokens for group in groups):
        del columns["output"], columns["amount"]
    cells: list[Sequence[str]] = [[*(show(group) for show in columns.values()), group.key] for group in groups]
    table = out.format_table(
        [*columns, by], cells, right=range(len(columns)), drop=_DROPPED_FIRST, ends=by == "project"
    )
    return f"{table}\n\n{count(groups.more, f'more {by}')}: use --limit N." if groups.more else table


def _mark(group: ToolGroup, text: str) -> str:
    return f"~{text}" if text and group.estimated else text
