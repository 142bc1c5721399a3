"""`threadline entries`: the entries of a transcript, filtered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from threadline.model.entries import Entry
    from threadline.model.found import Transcript

_KIND_WIDTH = 30
_TEXT_AT = 7 + 2 + 19 + 2 + _KIND_WIDTH + 2
_EPILOG = """
\b
Examples:
  threadline entries session.jsonl                     all entries of a transcript
  threadline entries 55604662                          of the session whose id starts so
  threadline entries session.jsonl --kind user --kind assistant
  threadline entries session.jsonl --since 2026-11-03 --until yesterday
  threadline entries session.jsonl --agent main        without what subagents wrote
  threadline entries ~/.claude --kind pr-link --jsonl  of all transcripts of a home
  threadline entries session.jsonl --problems          what is damaged or odd
  threadline entries session.jsonl --kind user --raw   the lines as they are
"""


@click.command(epilog=_EPILOG)
@click.argument("path")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be given several times.")
@click.option(
    "--agent", metavar="ID", help="Only what this agent wrote; `main` for the main thread, `any` for all agents."
)
@click.option("--since", metavar="WHEN", help="Only entries from then on: 2026-11-03, 7d, yesterday.")
@click.option("--until", metavar="WHEN", help="Only entries up to then.")
@click.option("--problems", is_flag=True, help="Only entries with which something is wrong.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="No more than this many.")
@click.option("--data", is_flag=True, help="With --json or --jsonl: each entry's own JSON as well, whole.")
@click.option("--raw", is_flag=True, help="Print the lines as they are in the file, byte for byte.")
@home_option
@output_options
def entries(
    path: str,
    *,
    kinds: tuple[str, ...],
    agent: str | None,
    since: str | None,
    until: str | None,
    problems: bool,
    limit: int | None,
    data: bool,
    raw: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Print the entries of a transcript: place, time, kind and text.

    PATH is a transcript, a folder or home with transcripts, or the start of a session's or agent's id.
    """
    from itertools import islice

    from threadline.cli import output as out
    from threadline.cli.when import moment

    start = moment(since) if since is not None else None
    stop = moment(until, end=True) if until is not None else None
    transcripts = _transcripts(path, homes)
    chosen = (
        entry
        for entry in _all(transcripts)
        if (not kinds or entry.kind in kinds)
        and (not problems or entry.problems)
        and _by(entry, agent)
        and _within(entry, start, stop)
    )
    limited = islice(chosen, limit)
    if raw:
        count = _print_raw(limited)
    elif output == "table":
        count = _print_table(limited, many=len(transcripts) > 1)
    else:
        count = out.print_rows((_row(entry, data=data) for entry in limited), output)
    return FOUND if count else NOTHING


def _transcripts(path: str, homes: tuple[str, ...]) -> tuple[Transcript, ...]:
    from threadline.cli.reading import found_at, found_homes
    from threadline.errors import NotFound
    from threadline.find import by_id

    try:
        return found_at(path).transcripts
    except NotFound:
        return (by_id(path, found_homes(homes)),)


def _all(transcripts: tuple[Transcript, ...]) -> Iterator[Entry]:
    from threadline.cli import output as out
    from threadline.errors import Error
    from threadline.parse import entries as read

    for transcript in transcripts:
        try:
            yield from read(transcript.path)
        except Error as error:
            if len(transcripts) == 1:
                raise
            click.echo(f"threadline: {out.plain(str(error))}", err=True)  # the others can still be read


def _by(entry: Entry, agent: str | None) -> bool:
    """Whether the agent asked for wrote the entry. Entries outside the conversation are nobody's: main's."""
    if agent is None:
        return True
    author = getattr(entry, "agent_id", None)
    is_agent = bool(author or getattr(entry, "is_agent", None))
    return {"main": not is_agent, "any": is_agent}.get(agent, author == agent)


def _within(entry: Entry, start: datetime | None, stop: datetime | None) -> bool:
    if start is None and stop is None:
        return True
    written = entry.timestamp
    return written is not None and (start is None or written >= start) and (stop is None or written <= stop)


def _print_raw(chosen: Iterator[Entry]) -> int:
    """The bytes of the entries. Where others were left out between two, they stand on lines of their own."""
    stream = sys.stdout.buffer
    count = 0
    end: tuple[str, int] | None = None
    for entry in chosen:
        line = entry.line
        if end not in (None, (line.transcript, line.offset)):
            stream.write(b"\n")
        stream.write(entry.raw)
        end = None if entry.raw.endswith(b"\n") else (line.transcript, line.offset + len(entry.raw))
        count += 1
    stream.flush()
    return count


def _print_table(chosen: Iterator[Entry], *, many: bool) -> int:
    """One line an entry, as it comes: a transcript may have a million. Of several, each is named first."""
    from threadline.cli import output as out

    room = max(20, out.terminal_width() - _TEXT_AT)
    count = 0
    shown = None
    for entry in chosen:
        if many and entry.line.transcript != shown:
            shown = entry.line.transcript
            click.echo(("\n" if count else "") + out.plain(shown))
        if not count:
            click.echo(f"{'line':>7}  {'time (UTC)':<19}  {'kind':<{_KIND_WIDTH}}  text")
        written = entry.timestamp
        when = written.strftime("%Y-%m-%d %H:%M:%S") if written else ""
        mark = "⎇ " if getattr(entry, "is_agent", None) else ""
        kind = out.clip(out.plain(_kind(entry)), _KIND_WIDTH)
        text = out.one_line(mark + _text(entry), room)
        click.echo(f"{entry.line.number:>7}  {when:<19}  {kind:<{_KIND_WIDTH}}  {text}".rstrip())
        count += 1
    return count


def _kind(entry: Entry) -> str:
    subtype = _subtype(entry)
    return f"{entry.kind}/{subtype}" if subtype else entry.kind


def _subtype(entry: Entry) -> str | None:
    return getattr(entry, "subtype", None) or getattr(getattr(entry, "attachment", None), "type", None)


def _text(entry: Entry) -> str:
    """What the entry says, in a few words: its text, or its calls and results."""
    from threadline.cli.entry_text import entry_text

    return entry_text(entry)


def _row(entry: Entry, *, data: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "place": str(entry.place),
        "line": entry.line.number,
        "offset": entry.line.offset,
        "length": len(entry.raw),
        "kind": entry.kind,
        "subtype": _subtype(entry),
        "uuid": entry.uuid,
        "parent_uuid": getattr(entry, "parent_uuid", None),
        "session": entry.session_id,
        "agent": getattr(entry, "agent_id", None),
        "is_agent": bool(getattr(entry, "is_agent", None)),
        "timestamp": entry.timestamp,
        "version": getattr(entry, "version", None),
        "text": _text(entry),
        "problems": [
            {"kind": str(one.kind), "place": str(one.place), "message": one.message} for one in entry.problems
        ],
    }
    if data:
        row["data"] = _data(entry)
    return row


def _data(entry: Entry) -> Any:
    """The entry's JSON; its text where that is nested too deeply to be written again."""
    from threadline.cli import output as out

    try:
        out.json_text([entry.data])
    except RecursionError:
        return entry.raw.decode(errors="replace")
    return entry.data
