"""`threadline lake`: the command group. Actions are imported when they are used."""

from __future__ import annotations

from importlib import import_module

import click

ACTIONS = {
    "init": ("storage", "Create a lake and set its policy."),
    "push": ("storage", "Upload this machine's sessions."),
    "build": ("tables", "Build tables from what was pushed."),
    "usage": ("queries", "Report tokens and cost by person, team, project, model and more."),
    "sql": ("queries", "Query the tables with SQL."),
    "search": ("queries", "Search the text of all sessions."),
    "teams": ("queries", "Set which team each person is in."),
    "forget": ("tables", "Erase sessions, and prove it."),
    "status": ("storage", "Show who pushed what, and what is not built yet."),
}
"""Every action: the module that defines it, and its one-line help."""
_EPILOG = """
\b
Examples:
  threadline lake init /srv/lake --policy redacted
  threadline lake push /srv/lake --accept redacted
  threadline lake build /srv/lake
  threadline lake usage /srv/lake --by person,model
  threadline lake sql /srv/lake "SELECT count(*) FROM calls"
  threadline lake search /srv/lake rate limit
  threadline lake push s3://team-bucket/lake
  threadline lake build s3://team-bucket/lake --engine sc://spark:15002
"""


class ActionGroup(click.Group):
    """A group that imports an action when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The actions, in help order."""
        del ctx
        return list(ACTIONS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import an action."""
        del ctx
        if cmd_name not in ACTIONS:
            return None
        module, _ = ACTIONS[cmd_name]
        command: click.Command = getattr(import_module(f"threadline.cli.lake.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the actions from the table, without importing their modules."""
        del ctx
        with formatter.section("Actions"):
            formatter.write_dl([(name, text) for name, (_, text) in ACTIONS.items()])


@click.group(cls=ActionGroup, epilog=_EPILOG)
def lake() -> None:
    """Share sessions of many machines in a lake, and query them.

    A lake is a folder or a bucket (`s3://bucket/prefix`). Every machine pushes its sessions to it; `build` turns them
    into tables that DuckDB, Spark, Trino and others read. Needs the extra `lake`: pip install 'threadline[lake]'
    """
