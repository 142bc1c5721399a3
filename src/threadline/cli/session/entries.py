"""`threadline entries`: print the entries of a transcript, filtered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import tzinfo
from itertools import chain, islice

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import ExplainedEntryFilter
from threadline.cli.options import (
    complete_with,
    home_option,
    kinds_option,
    limit_option,
    output_options,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import find_by_name
from threadline.cli.rows import entry_row, entry_text
from threadline.errors import Error
from threadline.model.entries import kind_label
from threadline.model.entry_filter import AttributedEntry
from threadline.model.homes import Transcript
from threadline.model.text import format_time
from threadline.model.times import TimeRange, zone_name
from threadline.parse import entries as parse_entries
from threadline.render import clip, display_width, one_line, plain

_TIME_WIDTH = len("2026-11-03 14:00:00")
_KIND_COLUMN = 7 + 2 + _TIME_WIDTH + 2
_NARROW, _NARROW_KIND, _WIDE_KIND = 100, 16, 30
_LOOKAHEAD = 200
_MIN_TEXT = 18
_EPILOG = """
\b
Examples:
  threadline entries                          those of the newest session
  threadline entries session.jsonl            all entries of a transcript
  threadline entries 55604662                 by the start of a session id
  threadline entries last --agent main        without subagents
  threadline entries last --problems          damaged or odd entries
  threadline entries last --kind user --raw   the original lines
  threadline entries last --kind user --kind assistant
  threadline entries last --since 2026-11-03 --until yesterday
  threadline entries ~/.claude --kind pr-link --jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("path", default="last", shell_complete=complete_with("sessions"))
@kinds_option
@click.option(
    "--agent",
    metavar="ID",
    help="Only entries by this agent: an agent id, `main` for the main thread, or `sub` for all subagents.",
)
@since_option("Only from WHEN on: 2026-11-03, 2026-11-03T14:00, 12h, 7d, 2w, yesterday.")
@until_option()
@timezone_option
@click.option("--problems", is_flag=True, help="Only entries with problems, and what they are.")
@limit_option("Print at most N entries.")
@click.option("--data", is_flag=True, help="With --json, --jsonl or --csv: include each entry's own JSON.")
@click.option("--raw", is_flag=True, help="Print the original lines, byte for byte.")
@home_option
@output_options
def entries(
    path: str,
    *,
    kinds: tuple[str, ...],
    agent: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    problems: bool,
    limit: int | None,
    data: bool,
    raw: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Print the entries of a transcript.

    Shows line, time, kind and text. PATH is a transcript, a folder or home with transcripts, the start of a session or
    agent id, or `last`, the default.
    """
    if raw and output != "table":
        raise click.UsageError(f"--raw cannot be combined with --{output}.")
    if data and (raw or output == "table"):
        raise click.UsageError("--data requires --json, --jsonl or --csv. To see the original lines, use --raw alone.")
    criteria = ExplainedEntryFilter(kinds, agent, TimeRange.parse(since, until, tz=zone), zone, problems=problems)
    found, is_id = find_by_name(path, homes)
    transcripts = found.transcripts
    matches = islice(criteria.apply(_read_all(transcripts)), limit)
    if raw:
        number = _print_raw(matches)
    elif output == "table":
        number = _print_table(matches, zone, has_names=is_id or len(transcripts) > 1, problems=problems)
    else:
        number = out.print_rows((entry_row(attributed, data=data) for attributed in matches), output)
    if number:
        return EXIT_OK
    return out.report_nothing(criteria.explain_nothing() if transcripts else f"No transcripts in {path!r}.")


def _read_all(transcripts: tuple[Transcript, ...]) -> Iterator[AttributedEntry]:
    for transcript in transcripts:
        try:
            for entry in parse_entries(transcript.path):
                yield AttributedEntry(entry, transcript.agent, transcript.session)
        except Error as error:
            if len(transcripts) == 1:
                raise
            out.print_message(str(error))  # the others can still be read


def _print_raw(matches: Iterator[AttributedEntry]) -> int:
    """Print the entries' bytes. Entries that do not follow each other in the file start on a new line."""
    stream = sys.stdout.buffer
    number = 0
    end: tuple[str, int] | None = None
    for attributed in matches:
        entry = attributed.entry
        line = entry.line
        if end not in (None, (line.transcript, line.offset)):
            stream.write(b"\n")
        stream.write(entry.raw)
        end = None if entry.raw.endswith(b"\n") else (line.transcript, line.offset + len(entry.raw))
        number += 1
    stream.flush()
    return number


def _print_table(matches: Iterator[AttributedEntry], zone: tzinfo, *, has_names: bool, problems: bool) -> int:
    """Print one line per entry as it is read, because a transcript may have a million.

    With `has_names`, a heading names each transcript.
    """
    ahead = list(islice(matches, _LOOKAHEAD))
    kind_width = _kind_width(ahead)
    room = max(_MIN_TEXT, out.terminal_width() - _KIND_COLUMN - kind_width - 2)
    number = 0
    transcript = None
    for attributed in chain(ahead, matches):
        entry = attributed.entry
        if has_names and entry.line.transcript != transcript:
            transcript = entry.line.transcript
            click.echo(("\n" if number else "") + out.format_heading(_transcript_heading(transcript)))
        if not number:
            heading = clip(f"time ({zone_name(zone)})", _TIME_WIDTH)
            what = "problem" if problems else "text"
            click.echo(f"{'line':>7}  {heading:<{_TIME_WIDTH}}  {'kind':<{kind_width}}  {what}")
        when = format_time(entry.timestamp, zone, "%Y-%m-%d %H:%M:%S")
        mark = "⎇ " if attributed.is_agent else ""
        text = (
            "; ".join(f"{problem.kind}: {problem.message}" for problem in attributed.problems)
            if problems
            else entry_text(entry)
        )
        kind = clip(plain(kind_label(entry)), kind_width)
        kind += " " * (kind_width - display_width(kind))
        click.echo(f"{entry.line.number:>7}  {when:<{_TIME_WIDTH}}  {kind}  {one_line(mark + text, room)}".rstrip())
        number += 1
    return number


def _transcript_heading(transcript: str) -> str:
    return out.shorten_path(transcript, out.terminal_width()) if out.has_width() else plain(transcript)


def _kind_width(ahead: list[AttributedEntry]) -> int:
    """The width of the kind column that the first entries need, within limits; later ones may be wider."""
    width = out.terminal_width()
    most = min(_NARROW_KIND if width < _NARROW else _WIDE_KIND, max(4, width - _KIND_COLUMN - 2 - _MIN_TEXT))
    least = min(_NARROW_KIND, most) if len(ahead) == _LOOKAHEAD else len("kind")
    needed = max((display_width(plain(kind_label(attributed.entry))) for attributed in ahead), default=0)
    return max(least, min(needed, most))
