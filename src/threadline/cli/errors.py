"""`threadline errors`: list failed calls and failed API requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import click

from threadline.cli import output as out
from threadline.cli.options import (
    home_option,
    jobs_option,
    output_options,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive, read_session
from threadline.json_values import to_json_value
from threadline.model.text import format_time
from threadline.model.times import TimeRange, zone_name
from threadline.render import clip, one_line, plain, summarize_input
from threadline.reports import Failure, session_failures

_MIN_WIDTH_FOR_TIME = 100
_EPILOG = """
\b
Examples:
  threadline errors last              failed calls and requests of one session
  threadline errors --since 7d        of all sessions in the last seven days
  threadline errors last --json
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@since_option()
@until_option()
@timezone_option
@home_option
@jobs_option
@output_options
def errors(
    session: str | None,
    *,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List failed, refused, interrupted or lost calls, and failed API requests.

    SESSION is the start of a session id, a transcript, or `last`. Without it, lists the failures of all sessions. A
    failure that a fork or branch copied is listed once, with the original. Only failures that Claude Code recorded
    count, not every text that contains the word "error".
    """
    time = TimeRange.parse(since, until, tz=zone)
    if session is not None:
        failures = session_failures(read_session(session, homes), summarize_input)
    else:
        archive = open_archive(homes, jobs, index=False)
        if not archive.homes:
            out.report_no_home()
        failures = archive.failures(time.since, until=time.until)
    return out.print_listing(
        [failure for failure in failures if failure.timestamp in time],
        output,
        row=to_json_value,
        table=lambda matches: _failure_table(matches, zone, has_sessions=session is None),
        nothing=lambda: _explain_nothing(
            failures if session is not None or not time else archive.failures(), time, zone
        ),
    )


def _explain_nothing(failures: Sequence[Failure], time: TimeRange, zone: tzinfo) -> str:
    if not time:
        return "No failures: every call succeeded or is still open, and no request failed."
    times = [failure.timestamp for failure in failures if failure.timestamp is not None]
    first, last = (format_time(find(times, default=None), zone, "%Y-%m-%d") for find in (min, max))
    others = f" Other failures are from {first} to {last} ({zone_name(zone)})." if times else ""
    return f"No failures in that time.{others}"


def _failure_table(failures: Sequence[Failure], zone: tzinfo, *, has_sessions: bool) -> str:
    precise = "%Y-%m-%d %H:%M" if out.terminal_width() >= _MIN_WIDTH_FOR_TIME else "%Y-%m-%d"
    clock = precise if has_sessions else "%m-%d %H:%M:%S"
    rows = [
        (
            format_time(failure.timestamp, zone, clock),
            *((str(failure.session or "")[:8],) if has_sessions else ()),
            "" if failure.turn is None else str(failure.turn),
            failure.what,
            clip(plain(failure.tool or ""), 16),
            one_line(_failure_text(failure), 400),
        )
        for failure in failures
    ]
    headings = (f"time ({zone_name(zone)})", *(("session",) if has_sessions else ()), "turn", "what", "tool", "text")
    turn, tool = headings.index("turn"), headings.index("tool")
    return out.format_table(headings, rows, right=(turn,), shrink=(tool,))


def _failure_text(failure: Failure) -> str:
    if failure.input:
        return f"{failure.input[:60]} → {failure.text[:400]}"
    return failure.text[:400] or failure.evidence
