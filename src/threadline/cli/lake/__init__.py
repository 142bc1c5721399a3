"""`threadline lake`: the command group, whose actions are imported when they are used."""

from __future__ import annotations

import click

from threadline.cli.commands import LazyGroup

ACTIONS = {
    "init": ("lake.storage:init", "Create a lake and set its policy."),
    "push": ("lake.storage:push", "Upload this machine's sessions."),
    "build": ("lake.tables:build", "Build tables from what was pushed."),
    "usage": ("lake.queries:usage", "Report tokens and cost by person, team, project, model and more."),
    "sql": ("lake.queries:sql", "Query the tables with SQL."),
    "search": ("lake.queries:search", "Search the text of all sessions."),
    "teams": ("lake.queries:teams", "Show or set which team each person is in."),
    "clickhouse": ("lake.tables:clickhouse", "Load the tables into ClickHouse."),
    "forget": ("lake.tables:forget", "Erase sessions, and prove it."),
    "status": ("lake.storage:status", "Show who pushed what, and what is not built yet."),
}
_EPILOG = """
\b
Examples:
  threadline lake init /srv/lake --policy redacted
  threadline lake push /srv/lake --accept redacted
  threadline lake build /srv/lake
  threadline lake usage /srv/lake --by person,model
  threadline lake sql /srv/lake "SELECT count(*) FROM calls"
  threadline lake search /srv/lake rate limit
  threadline serve --lake /srv/lake
  threadline lake push s3://team-bucket/lake
  threadline lake build s3://team-bucket/lake --engine sc://spark:15002
"""


@click.group(cls=LazyGroup, sections={"Actions": ACTIONS}, subcommand_metavar="ACTION [ARGS]...", epilog=_EPILOG)
def lake() -> None:
    """Share sessions of many machines in a lake, and query them.

    A lake is a folder or a bucket (`s3://bucket/prefix`). Every machine pushes its sessions to it; `build` turns them
    into tables that DuckDB, Spark, Trino and others read. Needs the extra `lake`, which `all` does not include.
    In a clone, run: pip install '.[lake]'
    """
