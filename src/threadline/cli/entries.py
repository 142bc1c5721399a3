"""`threadline entries`: print the entries of a transcript, filtered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from threadline.cli.filters import AttributedEntry
    from threadline.model.homes import Transcript

_KIND_COLUMN = 7 + 2 + 19 + 2
_NARROW, _NARROW_KIND, _WIDE_KIND = 100, 16, 30
_LOOKAHEAD = 200
_EPILOG = """
\b
Examples:
  threadline entries session.jsonl           all entries of a transcript
  threadline entries 55604662                of the session whose id starts so
  threadline entries last.jsonl --kind user --kind assistant
  threadline entries last.jsonl --since 2026-11-03 --until yesterday
  threadline entries last.jsonl --agent main      without what subagents wrote
  threadline entries ~/.claude --kind pr-link --jsonl   of a whole home
  threadline entries last.jsonl --problems        what is damaged or odd
  threadline entries last.jsonl --kind user --raw   the lines as they are
"""


@click.command(epilog=_EPILOG)
@click.argument("path")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be given several times.")
@click.option(
    "--agent",
    metavar="ID",
    help="Only what this agent wrote: `main` for the main thread, `sub` for all subagents, or an agent's id.",
)
@click.option(
    "--since", metavar="WHEN", help="Only entries from then on: 2026-11-03, 2026-11-03T14:00, 12h, 7d, 2w, yesterday."
)
@click.option("--until", metavar="WHEN", help="Only entries up to then, the same words or `now`; a day is included.")
@click.option("--problems", is_flag=True, help="Only entries with which something is wrong, and what that is.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="No more than this many.")
@click.option("--data", is_flag=True, help="With --json, --jsonl or --csv: each entry's own JSON as well, whole.")
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

    PATH is a transcript, a folder or home with transcripts, the start of a session's or agent's id, or `last`. Days are
    days in UTC.
    """
    from threadline.cli import output as out
    from threadline.cli.filters import EntryFilter
    from threadline.cli.resolve import find_by_name

    if raw and output != "table":
        raise click.UsageError(f"Give either --raw or --{output}: raw lines have no other form.")
    if data and (raw or output == "table"):
        raise click.UsageError("--data goes with --json, --jsonl or --csv; to see lines as they are, give --raw alone.")
    wanted = EntryFilter(kinds, agent, since, until, problems=problems)
    found, is_id = find_by_name(path, homes)
    transcripts = found.transcripts
    limited = islice(wanted.of(_read_all(transcripts)), limit)
    if raw:
        count = _print_raw(limited)
    elif output == "table":
        count = _print_table(limited, named=is_id or len(transcripts) > 1, problems=problems)
    else:
        count = out.print_rows((entry_row(written, data=data) for written in limited), output)
    if count:
        return EXIT_OK
    why = wanted.explain_nothing() if transcripts else f"There is no transcript below {path!r}."
    click.echo(f"threadline: {out.plain(why)}", err=True)
    return EXIT_NOTHING


def _read_all(transcripts: tuple[Transcript, ...]) -> Iterator[AttributedEntry]:
    from threadline.cli import output as out
    from threadline.cli.filters import AttributedEntry
    from threadline.errors import Error
    from threadline.parse import entries as read

    for transcript in transcripts:
        try:
            for entry in read(transcript.path):
                yield AttributedEntry(entry, transcript.agent)
        except Error as error:
            if len(transcripts) == 1:
                raise
            click.echo(f"threadline: {out.plain(str(error))}", err=True)  # the others can still be read


def _print_raw(chosen: Iterator[AttributedEntry]) -> int:
    """The bytes of the entries. Where others were left out between two, they stand on lines of their own."""
    stream = sys.stdout.buffer
    count = 0
    end: tuple[str, int] | None = None
    for written in chosen:
        entry = written.entry
        line = entry.line
        if end not in (None, (line.transcript, line.offset)):
            stream.write(b"\n")
        stream.write(entry.raw)
        end = None if entry.raw.endswith(b"\n") else (line.transcript, line.offset + len(entry.raw))
        count += 1
    stream.flush()
    return count


def _print_table(chosen: Iterator[AttributedEntry], *, named: bool, problems: bool) -> int:
    """One line an entry, as it comes: a transcript may have a million. Where not evident, each is named first."""
    from threadline.cli import output as out

    ahead = list(islice(chosen, _LOOKAHEAD))
    wide = _kind_width(ahead)
    room = max(20, out.terminal_width() - _KIND_COLUMN - wide - 2)
    count = 0
    shown = None
    for written in chain(ahead, chosen):
        entry = written.entry
        if named and entry.line.transcript != shown:
            shown = entry.line.transcript
            click.echo(("\n" if count else "") + out.format_heading(shown))
        if not count:
            click.echo(f"{'line':>7}  {'time (UTC)':<19}  {'kind':<{wide}}  {'problem' if problems else 'text'}")
        moment = entry.timestamp
        when = moment.strftime("%Y-%m-%d %H:%M:%S") if moment else ""
        mark = "⎇ " if written.is_agent else ""
        said = (
            "; ".join(f"{problem.kind}: {problem.message}" for problem in written.problems)
            if problems
            else _entry_text(written)
        )
        kind = out.clip(out.plain(_kind_label(written)), wide)
        kind += " " * (wide - out.display_width(kind))
        click.echo(f"{entry.line.number:>7}  {when:<19}  {kind}  {out.one_line(mark + said, room)}".rstrip())
        count += 1
    return count


def _kind_width(ahead: list[AttributedEntry]) -> int:
    """As wide as what is seen ahead needs, within reason; more may come after it."""
    from threadline.cli import output as out

    most = _NARROW_KIND if out.terminal_width() < _NARROW else _WIDE_KIND
    least = _NARROW_KIND if len(ahead) == _LOOKAHEAD else len("kind")
    needed = max((out.display_width(out.plain(_kind_label(written))) for written in ahead), default=0)
    return max(least, min(needed, most))


def _kind_label(written: AttributedEntry) -> str:
    subtype = _subtype(written)
    return f"{written.entry.kind}/{subtype}" if subtype else written.entry.kind


def _subtype(written: AttributedEntry) -> str | None:
    entry = written.entry
    return getattr(entry, "subtype", None) or getattr(getattr(entry, "attachment", None), "type", None)


def _entry_text(written: AttributedEntry) -> str:
    """What the entry says, in a few words: its text, or its calls and results."""
    from threadline.cli.rows import entry_text

    return entry_text(written.entry)


def entry_row(written: AttributedEntry, *, data: bool) -> dict[str, Any]:
    """An entry as a row for programs; with `data`, its JSON as it stands as well."""
    entry = written.entry
    row: dict[str, Any] = {
        "place": str(entry.place),
        "line": entry.line.number,
        "offset": entry.line.offset,
        "length": len(entry.raw),
        "kind": entry.kind,
        "subtype": _subtype(written),
        "uuid": entry.uuid,
        "parent_uuid": getattr(entry, "parent_uuid", None),
        "session": entry.session_id,
        "agent": written.agent,
        "is_agent": written.is_agent,
        "timestamp": entry.timestamp,
        "version": getattr(entry, "version", None),
        "text": _entry_text(written),
        "problems": [
            {"kind": str(problem.kind), "place": str(problem.place), "message": problem.message}
            for problem in written.problems
        ],
    }
    if data:
        row["data"] = _entry_data(written)
    return row


def _entry_data(written: AttributedEntry) -> Any:
    """The entry's JSON; its text where that is nested too deeply to be written again."""
    from threadline.cli import output as out

    entry = written.entry
    try:
        out.json_text([entry.data])
    except RecursionError:
        return entry.raw.decode(errors="replace")
    return entry.data
