"""`threadline request`: what the model saw, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from threadline.model.agent import Agent
    from threadline.model.request import Request, RequestMessage, RequestOutline
    from threadline.model.session import Session

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
    from threadline.cli.session import named
    from threadline.thread.requests import Requests

    found = named(session, homes)
    agents = _agents(found, agent)
    if number is not None:
        return _show(Requests(agents[0].entries).rebuild(number), output)
    outlines = [(one, outline) for one in agents for outline in Requests(one.entries).outline()]
    return _list(found, outlines, output)


def _agents(session: Session, wanted: str | None) -> list[Agent]:
    from threadline.errors import NotFound

    every = [session.main, *session.agents]
    if wanted is None or wanted == "main":
        return every if wanted is None else every[:1]
    fitting = [one for one in every if (one.id or "").startswith(wanted)]
    if not fitting:
        raise NotFound(f"The session has no agent {wanted!r}; threadline tree SESSION shows them.")
    return fitting


def _list(session: Session, outlines: list[tuple[Agent, RequestOutline]], output: str) -> int:
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.at import where
    from threadline.model.entries import ChainEntry
    from threadline.render.figures import some

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
                where(session, one.place),
                one.model or "",
                one.query_source or "",
            )
            for agent, one in outlines
        ]
        headings = ("time (UTC)", "agent", "number", "messages", "new", "missing", "line", "model", "source")
        click.echo(out.table(headings, rows, right=(2, 3, 4, 5, 6)))
    if outlines:
        return FOUND
    versions = {entry.version for entry in session if isinstance(entry, ChainEntry) and entry.version}
    wrote = f"; this session was written by {some(sorted(versions, key=_numbers))}" if versions else ""
    return screen.nothing(f"No requests: 2.1.325 and later write them{wrote}.")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


def _outline_row(agent: Agent, one: RequestOutline) -> dict[str, Any]:
    return {
        "number": one.number,
        "agent": agent.id,
        "id": one.id,
        "timestamp": one.timestamp,
        "model": one.model,
        "source": one.query_source,
        "messages": one.messages,
        "new": one.new,
        "missing": one.missing,
        "place": str(one.place),
    }


def _show(one: Request, output: str) -> int:
    from threadline.cli import output as out

    if output == "json":
        out.print_json({**_whole(one), "messages": [_message_row(message) for message in one.messages]})
    elif output != "table":
        out.print_rows(map(_message_row, one.messages), output)
    else:
        for line in _page(one):
            click.echo(line)
    return FOUND


def _whole(one: Request) -> dict[str, Any]:
    return {
        "number": one.number,
        "id": one.id,
        "place": str(one.place),
        "timestamp": one.timestamp,
        "agent": one.agent,
        "source": one.query_source,
        "model": one.model,
        "params": one.params,
        "system": one.system,
        "tools": one.tools,
        "missing": one.missing,
        "unknown_before": one.unknown_before,
        "shape_verified": one.shape_verified,
        "digest": one.digest,
        "digest_verified": one.digest_verified,
        "verified": one.verified,
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


def _page(one: Request) -> Iterator[str]:
    """The request as a person reads it, no line of which can steer a terminal."""
    from threadline.cli.at import tame
    from threadline.model.text import extract_text

    given = one.tools if isinstance(one.tools, list) else []
    tools = [str(tool.get("name")) for tool in given if isinstance(tool, dict)]
    yield tame(f"Request {one.number}: {one.id} to {one.model} at {one.timestamp or 'an unknown time'}, {one.place}")
    yield tame(_verdict(one))
    yield tame(f"Tools ({len(tools)}): {', '.join(tools)}")
    yield "\n== system"
    yield from map(tame, extract_text(one.system).split("\n"))
    for number, message in enumerate(one.messages, 1):
        proof = "verified" if message.verified else "not verified"
        yield ""
        yield tame(f"== {number} {message.role or 'unknown'} ({message.source}, {proof}, {message.hash[:12]})")
        yield from map(tame, "\n".join(_blocks(message.content)).split("\n"))


def _verdict(one: Request) -> str:
    if one.verified:
        digest = " and so has the whole" if one.digest_verified else ""
        return f"Every part of it has the hash that the client wrote{digest}."
    lacking = len(one.missing) + one.unknown_before
    wrong = "" if one.shape_verified else " System prompt and tools are missing or are not those that were sent."
    return f"{lacking} of {len(one.messages) + one.unknown_before} messages are not in the transcript.{wrong}"


def _blocks(content: Any) -> Iterator[str]:
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
