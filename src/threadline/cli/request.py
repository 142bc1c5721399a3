"""`threadline request`: what the model saw, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from threadline.model.context import Request, RequestMessage, RequestOutline
    from threadline.model.session import Agent, Session

_EPILOG = """
\b
Examples:
  threadline request last              all requests of the session
  threadline request last 3            the third, as the model saw it
  threadline request last 3 --json     the same, whole, for a program
  threadline request last 1 --agent a6147736f7931c0b6
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@click.argument("number", required=False, type=click.IntRange(min=1))
@click.option("--agent", metavar="ID", help="Of this agent, by the start of its id; NUMBER is of the main one else.")
@home_option
@output_options
def request(session: str, number: int | None, *, agent: str | None, homes: tuple[str, ...], output: str) -> int:
    """List the requests of a session, or show request NUMBER as the model saw it.

    Newer versions (2.1.325 was seen to) write each request into the transcript; older ones do not. SESSION is the start
    of its id, a transcript, or `last`.
    """
    from threadline.cli.resolve import read_session
    from threadline.thread import Requests

    found = read_session(session, homes)
    agents = _select_agents(found, agent)
    if number is not None:
        return _print_request(Requests(agents[0].entries).rebuild(number), output)
    outlines = [(one, outline) for one in agents for outline in Requests(one.entries).outline()]
    return _print_outlines(found, outlines, output)


def _select_agents(session: Session, wanted: str | None) -> list[Agent]:
    from threadline.errors import NotFound

    every = [session.main, *session.agents]
    if wanted is None or wanted == "main":
        return every if wanted is None else every[:1]
    fitting = [one for one in every if (one.id or "").startswith(wanted)]
    if not fitting:
        raise NotFound(f"The session has no agent {wanted!r}; threadline tree SESSION shows them.")
    return fitting


def _print_outlines(session: Session, outlines: list[tuple[Agent, RequestOutline]], output: str) -> int:
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.output import format_place
    from threadline.model.entries import ChainEntry
    from threadline.model.text import join_some

    if output != "table":
        out.print_rows((_outline_row(agent, one) for agent, one in outlines), output)
    elif outlines:
        rows = [
            (
                one.timestamp.strftime("%Y-%m-%d %H:%M:%S") if one.timestamp else "",
                out.clip(str(agent.id or "main"), 8),
                str(one.number),
                str(one.messages),
                str(one.new),
                str(one.missing or ""),
                format_place(session, one.place),
                one.model or "",
                one.query_source or "",
            )
            for agent, one in outlines
        ]
        headings = ("time (UTC)", "agent", "number", "messages", "new", "missing", "line", "model", "source")
        click.echo(out.format_table(headings, rows, right=(2, 3, 4, 5, 6)))
    if outlines:
        return EXIT_OK
    versions = {entry.version for entry in session if isinstance(entry, ChainEntry) and entry.version}
    wrote = f"; this session was written by {join_some(sorted(versions, key=_version_key))}" if versions else ""
    return screen.report_nothing(f"No requests: 2.1.325 and later write them{wrote}.")


def _version_key(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


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


def _print_request(request: Request, output: str) -> int:
    from threadline.cli import output as out

    if output == "json":
        out.print_json(
            {**_request_record(request), "messages": [_message_row(message) for message in request.messages]}
        )
    elif output != "table":
        out.print_rows(map(_message_row, request.messages), output)
    else:
        for line in _request_lines(request):
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


def _request_lines(request: Request) -> Iterator[str]:
    """The request as a person reads it, no line of which can steer a terminal."""
    from threadline.cli.output import escape_line
    from threadline.model.text import extract_text

    given = request.tools if isinstance(request.tools, list) else []
    tools = [str(tool.get("name")) for tool in given if isinstance(tool, dict)]
    yield escape_line(
        f"Request {request.number}: {request.id} to {request.model} "
        f"at {request.timestamp or 'an unknown time'}, {request.place}"
    )
    yield escape_line(_verification_summary(request))
    yield escape_line(f"Tools ({len(tools)}): {', '.join(tools)}")
    yield "\n== system"
    yield from map(escape_line, extract_text(request.system).split("\n"))
    for number, message in enumerate(request.messages, 1):
        proof = "verified" if message.verified else "not verified"
        yield ""
        yield escape_line(f"== {number} {message.role or 'unknown'} ({message.source}, {proof}, {message.hash[:12]})")
        yield from map(escape_line, "\n".join(_block_texts(message.content)).split("\n"))


def _verification_summary(request: Request) -> str:
    if request.verified:
        digest = " and so has the whole" if request.digest_verified else ""
        return f"Every part of it has the hash that the client wrote{digest}."
    lacking = len(request.missing) + request.unknown_before
    wrong = "" if request.shape_verified else " System prompt and tools are missing or are not those that were sent."
    return f"{lacking} of {len(request.messages) + request.unknown_before} messages are not in the transcript.{wrong}"


def _block_texts(content: Any) -> Iterator[str]:
    from threadline.cli import output as out
    from threadline.model.text import extract_text

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
