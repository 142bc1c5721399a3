"""`threadline mcp`: an MCP server, so that agents can search and read earlier sessions."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline import __version__, web
from threadline import mcp as tools
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option
from threadline.cli.resolve import open_archive
from threadline.cli.serve import require_web
from threadline.errors import BadQuery, Missing, NotFound
from threadline.export import load_settings

if TYPE_CHECKING:
    from threadline.web import Access

_NO_PROGRESS = 1 << 62
_LEARN_AT_ONCE = 300_000
"""How many bytes of a session are searched for secrets before the first answer about it; the rest is afterwards."""
_ADDRESS, _PATH = "127.0.0.1", "/mcp"
_TOKEN_VARIABLE = "THREADLINE_MCP_TOKEN"  # noqa: S105 - the name of the variable
_MIN_TOKEN_LENGTH = 32
_EPILOG = """
\b
Examples:
  claude mcp add threadline -- threadline mcp                 this project
  claude mcp add threadline -- threadline mcp --project all   all projects
  threadline mcp --project ~/code/app                         another project
  threadline mcp --http --port 8765                           over HTTP
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--project",
    metavar="PATH",
    help="Only sessions started in this directory or below it; `all` for all. Default: the current directory.",
)
@click.option("--no-redact", is_flag=True, help="Do not remove secrets and personal data from answers.")
@click.option("--http", "is_http", is_flag=True, help="Listen on a port of this machine instead, and print a token.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port for --http. Default: any free port.")
@home_option
def mcp(*, project: str | None, no_redact: bool, is_http: bool, port: int | None, homes: tuple[str, ...]) -> int:
    """Let agents search and read earlier sessions.

    This is an MCP server on standard input and output. Its tools are search, session, recall, file_history, blame,
    usage, why and sql. Answers are redacted as exports are, cite places, have a limited number of tokens, and mark what
    they quote from transcripts. Nothing is written.

    With --http, it listens on 127.0.0.1 and answers requests with the token that it prints, or that
    THREADLINE_MCP_TOKEN contains.
    """
    if port is not None and not is_http:
        raise click.UsageError("--port needs --http.")
    build_server = _load_builder()
    if is_http:
        require_web("threadline mcp --http")
    settings = None if no_redact else load_settings()
    scope = None if project == "all" else Path(project or ".").expanduser().resolve()
    if scope is not None and not scope.is_dir():
        raise NotFound(f"There is no folder {str(scope)!r}. Use --project all for the sessions of all projects.")
    answers = tools.Answers(
        partial(open_archive, homes, quiet_bytes=_NO_PROGRESS), scope, settings, learn_at_once=_LEARN_AT_ONCE
    )
    server = build_server(answers, __version__, prepare=True)
    if is_http:
        _serve_http(server, port or 0)
    else:
        server.run("stdio")
    answers.close()
    return EXIT_OK


def _load_builder() -> Callable[..., Any]:
    """Load the function that builds the server: here, because its package imports pydantic, which takes a second.

    Raises:
        Missing: the package mcp is not installed, or is an older version.
    """
    command = "Run: pip install 'threadline[mcp]'"
    if find_spec("mcp") is None:
        raise Missing(f"The MCP server needs mcp, which is not installed. {command}")
    try:
        return tools.build_server
    except ImportError as error:
        raise Missing(f"The MCP server needs another version of mcp ({error}). {command}") from error


def _serve_http(server: Any, port: int) -> None:
    """Answer over HTTP, on this machine only, behind the guard of the page."""
    token = _choose_token()
    host_name = web.choose_host_name(None)
    app = server.streamable_http_app(streamable_http_path=_PATH, json_response=True, stateless_http=True)

    def build(access: Access, port: int) -> tuple[Any, Callable[[], None]]:
        return web.Guard(app, access, host=host_name, port=port, script_paths={_PATH}), lambda: None

    def ready(_access: Access, host: str, port: int) -> None:
        click.echo(f"http://{host}:{port}{_PATH}")
        if _TOKEN_VARIABLE not in os.environ:
            click.echo(f"Token: {token}")
        sys.stdout.flush()
        out.print_message("Send the token as `Authorization: Bearer TOKEN`. Press Ctrl-C to stop.")

    web.serve_app(build, _ADDRESS, port, ready, host_name=host_name, api_token=token)


def _choose_token() -> str:
    token = os.environ.get(_TOKEN_VARIABLE)
    if token is None:
        return secrets.token_urlsafe(32)
    if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise BadQuery(f"{_TOKEN_VARIABLE} must have at least {_MIN_TOKEN_LENGTH} characters, without spaces.")
    return token
