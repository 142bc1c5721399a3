"""`threadline blame`: who wrote each line of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import click

from threadline import __version__
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, output_options, timezone_option
from threadline.cli.resolve import open_archive
from threadline.insight import blame_record, blamed_line_record
from threadline.model.insight.blame import Blame, BlamedLine
from threadline.model.text import count, format_time, short_id
from threadline.model.times import zone_name
from threadline.render import clip, one_line

_MAX_WRITERS = 12
_TAB = 4
_RANGE = re.compile(r"(?P<file>.+?):(?P<first>[0-9]{1,9})?(?:(?P<dash>-|,|\.\.)(?P<last>[0-9]{1,9})?)?", re.DOTALL)
_AGENT_TRACE = "agent-trace"
_EPILOG = """
\b
Examples:
  threadline blame src/app.py            every line
  threadline blame src/app.py:40-60      some lines
  threadline blame src/app.py:12         one line
  threadline blame src/app.py --json
  threadline blame src/app.py --format agent-trace
  threadline blame src/app.py --no-git   only from sessions
"""


@click.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE[:LINE[-LINE]]")
@click.option("--no-git", is_flag=True, help="Ignore the git repository that contains the file.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", _AGENT_TRACE]),
    default="table",
    help="agent-trace prints an Agent Trace 0.1.0 record. Default: table.",
)
@timezone_option
@home_option
@output_options
def blame(file: str, *, no_git: bool, format_: str, zone: tzinfo, homes: tuple[str, ...], output: str) -> int:
    """Show who wrote each line of a file.

    For each line: the session and the turn whose edit wrote it, with its prompt, model, agent and time; or the commit
    that added it, if no session wrote it; or `?` if that cannot be proven. With git, lines are followed through
    commits, renames, moves and changes of spaces and line breaks.

    FILE may be a path that no longer exists: then the last text that sessions recorded is shown. LINE counts from 1;
    40-60 is a range.
    """
    if format_ == _AGENT_TRACE and output not in ("table", "json"):
        raise click.UsageError(f"--format {_AGENT_TRACE} cannot be combined with --{output}.")
    path, first, last = parse_range(file)
    with open_archive(homes, require_home=True) as archive:
        result = archive.blame(path, first=first, last=last, git=not no_git)
    for statement in result.statements:
        out.print_message(statement)
    if format_ == _AGENT_TRACE:
        from threadline.insight import agent_trace_record  # noqa: PLC0415 - only this format needs it

        out.print_json(agent_trace_record(result, tool_version=__version__, recorded=datetime.now(UTC)))
    elif output == "json":
        out.print_json(blame_record(result))
    elif output != "table":
        out.print_rows(map(blamed_line_record, result.lines), output)
    elif result.lines:
        out.print_text("".join(f"{line}\n" for line in _table(result, zone)))
    if result.lines:
        return EXIT_OK
    return out.report_nothing(f"{path!r} is empty.")


def parse_range(text: str) -> tuple[str, int | None, int | None]:
    r"""Split FILE, FILE:LINE or FILE:LINE-LINE. A file whose name looks like that is the file.

    >>> parse_range("a.py:3"), parse_range("a.py:3-"), parse_range("a.py")
    (('a.py', 3, 3), ('a.py', 3, None), ('a.py', None, None))
    >>> parse_range("C:\\a.py"), parse_range("C:\\a.py:4")
    (('C:\\a.py', None, None), ('C:\\a.py', 4, 4))
    """
    match = _RANGE.fullmatch(text)
    if match is None or not (match["first"] or match["last"]) or Path(text).exists():
        return text, None, None
    first = int(match["first"]) if match["first"] else None
    last = int(match["last"]) if match["last"] else first if not match["dash"] else None
    return match["file"], first, last


def _table(result: Blame, zone: tzinfo) -> Iterator[str]:
    rows = [(*_writer(line, zone), str(line.line), line.text) for line in result.lines]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    width = out.page_width() if out.has_width() else None
    for who, turn, time, number, text in rows:
        shown = out.escape_line(text.expandtabs(_TAB))
        line = f"{who:<{widths[0]}} {turn:<{widths[1]}} {time:<{widths[2]}} {number:>{widths[3]}}) {shown}".rstrip()
        yield clip(line, width) if width is not None else line
    yield ""
    yield from _summary(result, zone)


def _writer(line: BlamedLine, zone: tzinfo) -> tuple[str, str, str]:
    if not line.known:
        return "?", "", ""
    time = format_time(line.time, zone) if line.time is not None else ""
    if line.session is None:
        return short_id(line.commit), "commit", time
    turn = f"turn {line.turn}" if line.turn is not None else ""
    return short_id(line.session), turn, time


def _summary(result: Blame, zone: tzinfo) -> Iterator[str]:
    """How many lines are whose, and the prompts of the edits that wrote most of them."""
    lines = result.lines
    by_session = sum(line.session is not None for line in lines)
    by_commit = sum(line.known and line.session is None for line in lines)
    unknown = [line for line in lines if not line.known]
    parts = [f"{count(len(lines), 'line')}: {by_session:,} written by sessions"]
    if result.repository is not None:
        parts.append(f"{by_commit:,} not written by a session")
    parts.append(f"{len(unknown):,} unknown")
    yield f"{', '.join(parts)}. Times are {zone_name(zone)}."
    writers = Counter(
        (_writer(line, zone)[:2], line.author, line.model, line.agent, line.prompt) for line in lines if line.known
    )
    for ((who, turn), author, model, agent, prompt), number in writers.most_common(_MAX_WRITERS):
        facts = [turn if not author else f"commit by {author}", model, f"agent {short_id(agent)}" if agent else None]
        text = f": {prompt}" if prompt else ""
        line = f"{who} {', '.join(fact for fact in facts if fact)} ({count(number, 'line')}){text}"
        yield f"  {one_line(line, out.page_width() - 2)}"
    if len(writers) > _MAX_WRITERS:
        yield f"  and {len(writers) - _MAX_WRITERS:,} more"
    for reason, number in Counter(line.reason for line in unknown).most_common():
        yield f"  ? ({count(number, 'line')}): {reason}"
