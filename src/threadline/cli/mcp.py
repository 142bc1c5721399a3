"""`threadline mcp`: an MCP server, so that agents can search and read earlier sessions."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click

from threadline import __version__
from threadline.cli import EXIT_OK
from threadline.cli.options import home_option
from threadline.cli.resolve import open_archive
from threadline.errors import Missing, NotFound
from threadline.export import load_settings

_NO_PROGRESS = 1 << 62
_EPILOG = """
\b
Examples:
  claude mcp add threadline -- threadline mcp                 this project
  claude mcp add threadline -- threadline mcp --project all   all projects
  threadline mcp --project ~/code/app                         another project
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--project",
    metavar="PATH",
    help="Answer about sessions started in this directory or below it; `all` for all. Default: the current directory.",
)
@click.option("--no-redact", is_flag=True, help="Do not remove secrets and personal data from answers.")
@home_option
def mcp(*, project: str | None, no_redact: bool, homes: tuple[str, ...]) -> int:
    """Let agents search and read earlier sessions.

    This is an MCP server on standard input and output. Its tools are search, session, recall, file_history, blame,
    usage, why and sql. Answers are redacted as exports are, cite places, have a limited number of tokens, and mark what
    they quote from transcripts. Nothing is written.
    """
    if find_spec("mcp") is None:
        raise Missing("The MCP server needs a package that is not installed. Run: pip install 'threadline[mcp]'")
    from threadline.mcp import Answers, build_server  # noqa: PLC0415 - imports pydantic, which takes a second

    settings = None if no_redact else load_settings()
    scope = None if project == "all" else Path(project or ".").expanduser().resolve()
    if scope is not None and not scope.is_dir():
        raise NotFound(f"There is no folder {str(scope)!r}. Use --project all for the sessions of all projects.")
    answers = Answers(partial(open_archive, homes, quiet_bytes=_NO_PROGRESS), scope, settings)
    build_server(answers, __version__).run("stdio")
    answers.close()
    return EXIT_OK
