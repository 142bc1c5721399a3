"""`threadline request`: what the model was sent, request by request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import complete_with, home_option, output_options, timezone_option
from threadline.cli.resolve import find_agent, read_session
from threadline.model.context import Request, RequestMessage, RequestOutline
from threadline.model.entries import ChainEntry
from threadline.model.names import version_key
from threadline.model.session import Agent, Session
from threadline.model.text import extract_text, format_time, join_some
from threadline.model.times import zone_name
from threadline.render import clip
from threadline.thread import Requests

_TIME_PATTERN = "%Y-%m-%d %H:%M:%S"
_EPILOG = """
\b
Examples:
  threadline request                   all requests of the newest session
  threadline request last 3            the third request
  threadline request last 3 --json     the third request, for a program
  threadline request last 1 --agent a6147736f7931c0b6
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.argument("number", required=False, type=click.IntRange(min=1))
@click.option("--agent", metavar="ID", help="Only this agent. ID may be a prefix. Default for NUMBER: the main agent.")
@timezone_option
@home_option
@output_options
def request(
    session: str, number: int | None, *, agent: str | None, zone: tzinfo, homes: tuple[str, ...], output: str
) -> int:
    """Show what the model was sent.

    Lists the requests of a session, or shows request NUMBER. Only newer versions of Claude Code (2.1.325 and later)
    write requests to the transcript. SESSION is the start of a session id, a transcript, or `last`, the default.
    """
    loaded = read_session(session, homes)
    agents = [loaded.main, *loaded.agents] if agent is None else [find_agent(loaded, agent)]
    if number is not None:
        return _print_request(Requests(agents[0].entries).rebuild(number), output, zone)
    return out.print_listing(
        [(selected, outline) for selected in agents for outline in Requests(selected.entries).outline()],
        output,
        row=lambda item: _outline_row(*item),
        table=lambda items: _outline_table(loaded, items, zone),
        nothing=lambda: _explain_nothing(loaded),
    )


def _outline_table(session: Session, outlines: Sequence[tuple[Agent, RequestOutline]], zone: tzinfo) -> str:
    rows = [
        (
            format_time(outline.timestamp, zone, _TIME_PATTERN),
            clip(str(agent.id or "main"), 8),
            str(outline.number),
            str(outline.messages),
            str(outline.new),
            str(outline.missing or ""),
            out.format_place(session, outline.place),
            outline.model or "",
            outline.query_source or "",
        )
        for agent, outline in outlines
    ]
    headings = (f"time ({zone_name(zone)})", "agent", "number", "messages", "new", "missing", "line", "model", "source")
    return out.format_table(headings, rows, right=(2, 3, 4, 5, 6), drop=("source", "line", "missing", "new"))


def _explain_nothing(session: Session) -> str:
    versions = {entry.version for entry in session if isinstance(entry, ChainEntry) and entry.version}
    writers = f" This session was written by {join_some(sorted(versions, key=version_key))}." if versions else ""
    return f"No requests: Claude Code records them only from version 2.1.325 on.{writers}"


def _outline_row(agent: Agent, outline: RequestOutline) -> dict[str, Any]:
    return {
        "number": outline.number,
        "agent": agent.id,
        "id": outline.id,
        "timestamp": outline.timestamp,
        "model": outline.model,
        "source": outline.query_source,
        "messages": outline.messages,
        "new": outline.new,
        "missing": outline.missing,
        "place": str(outline.place),
    }


def _print_request(request: Request, output: str, zone: tzinfo) -> int:
    if output == "json":
        out.print_json(
            {**_request_record(request), "messages": [_message_row(message) for message in request.messages]}
        )
    elif output != "table":
        out.print_rows(map(_message_row, request.messages), output)
    else:
        for line in _request_lines(request, zone):
            click.echo(line)
    return EXIT_OK


def _request_record(request: Request) -> dict[str, Any]:
    return {
        "number": request.number,
        "id": request.id,
        "place": str(request.place),
        "timestamp": request.timestamp,
        "agent": request.agent,
        "source": request.query_source,
        "model": request.model,
        "params": request.params,
        "system": request.system,
        "tools": request.tools,
        "missing": request.missing,
        "unknown_before": request.unknown_before,
        "shape_verified": request.shape_verified,
        "digest": request.digest,
        "digest_verified": request.digest_verified,
        "verified": request.verified,
    }


def _message_row(message: RequestMessage) -> dict[str, Any]:
    return {
        "role": message.role,
        "source": str(message.source),
        "verified": message.verified,
        "hash": message.hash,
        "place": str(message.place) if message.place is not None else None,
        "content": message.content,
        "fields": message.fields,
    }


def _request_lines(request: Request, zone: tzinfo) -> Iterator[str]:
    """The request as text that cannot control a terminal."""
    tools_sent = request.tools if isinstance(request.tools, list) else []
    tools = [str(tool.get("name")) for tool in tools_sent if isinstance(tool, dict)]
    when = format_time(request.timestamp, zone, _TIME_PATTERN)
    yield out.escape_line(
        f"Request {request.number}: {request.id} to {request.model} "
        f"at {f'{when} ({zone_name(zone)})' if when else 'an unknown time'}, {request.place}"
    )
    yield out.escape_line(_verification_summary(request))
    yield out.escape_line(f"Tools ({len(tools)}): {', '.join(tools)}")
    yield "\n== system"
    yield from map(out.escape_line, extract_text(request.system).split("\n"))
    for number, message in enumerate(request.messages, 1):
        proof = "verified" if message.verified else "not verified"
        yield ""
        yield out.escape_line(
            f"== {number} {message.role or 'unknown'} ({message.source}, {proof}, {message.hash[:12]})"
        )
        yield from map(out.escape_line, "\n".join(_block_texts(message.content)).split("\n"))


def _verification_summary(request: Request) -> str:
    if request.verified:
        digest = ", and so does the request as a whole" if request.digest_verified else ""
        return f"Verified: every part matches the hash that Claude Code wrote{digest}."
    missing = len(request.missing) + request.unknown_before
    shape = "" if request.shape_verified else " System prompt and tools are missing, or differ from those sent."
    return f"{missing} of {len(request.messages) + request.unknown_before} messages are not in the transcript.{shape}"


def _block_texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else [content]:
        kind = block.get("type") if isinstance(block, dict) else None
        match kind:
            case "tool_use":
                yield f"[call {block.get('name')}] {out.json_text(block.get('input'))}"
            case "tool_result":
                yield f"[result] {extract_text(block.get('content'))}"
            case "thinking":
                yield f"[thinking] {block.get('thinking')}"
            case "text":
                yield str(block.get("text"))
            case None:
                yield "" if block is None else str(block)
            case _:
                yield f"[{kind}]"
