"""`threadline errors`: list failed calls and failed API requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from datetime import datetime

    from threadline.reports import Failure

_MIN_WIDTH_FOR_TIME = 100
_EPILOG = """
\b
Examples:
  threadline errors last              calls and requests that failed
  threadline errors --since 7d        of all sessions of the last week
  threadline errors last --json
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@click.option("--since", metavar="WHEN", help="Only from then on: 2026-11-03, 7d, yesterday.")
@click.option("--until", metavar="WHEN", help="Only up to then.")
@home_option
@jobs_option
@output_options
def errors(
    session: str | None,
    *,
    since: str | None,
    until: str | None,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List what went wrong: calls that failed, were refused, interrupted or lost, and requests to the API that failed.

    SESSION is the start of its id, a transcript, or `last`; all sessions when none is given, each failure once: what a
    fork or a branch copied is the original's. What counts is what the
    program recorded, never that a text holds the word "error".
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.model.times import parse_moment

    start = parse_moment(since) if since is not None else None
    stop = parse_moment(until, end=True) if until is not None else None
    if session is not None:
        from threadline.cli.resolve import read_session
        from threadline.reports import session_failures

        found = session_failures(read_session(session, homes))
    else:
        found = _find_all_failures(homes, start, jobs)
    chosen = [one for one in found if _is_in_range(one, start, stop)]
    if output != "table":
        out.print_rows(map(out.to_json_value, chosen), output)
    elif chosen:
        click.echo(_failure_table(chosen, several=session is None))
    if chosen:
        return EXIT_OK
    if start is None and stop is None:
        return screen.report_nothing(
            "Nothing went wrong: every call ended well or is still open, and no request failed."
        )
    when = [one.timestamp for one in found if one.timestamp is not None]
    spread = f"; what did is from {min(when):%Y-%m-%d} to {max(when):%Y-%m-%d}" if when else ""
    return screen.report_nothing(f"Nothing went wrong in that time{spread}.")


def _find_all_failures(homes: tuple[str, ...], start: datetime | None, jobs: int | None) -> list[Failure]:
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    archive = open_archive(homes, jobs, index=False)
    if not archive.homes:
        report_no_home()
    return archive.failures(start)


def _is_in_range(failure: Failure, start: datetime | None, stop: datetime | None) -> bool:
    if start is None and stop is None:
        return True
    when = failure.timestamp
    return when is not None and (start is None or when >= start) and (stop is None or when <= stop)


def _failure_table(chosen: list[Failure], *, several: bool) -> str:
    from threadline.cli import output as out

    exact = "%Y-%m-%d %H:%M" if out.terminal_width() >= _MIN_WIDTH_FOR_TIME else "%Y-%m-%d"
    when = exact if several else "%m-%d %H:%M:%S"
    rows = [
        (
            failure.timestamp.strftime(when) if failure.timestamp else "",
            *((str(failure.session or "")[:8],) if several else ()),
            "" if failure.turn is None else str(failure.turn),
            failure.what,
            out.clip(out.plain(failure.tool or ""), 16),
            f"{failure.input[:60]} → {failure.text[:400]}" if failure.input else failure.text[:400] or failure.evidence,
        )
        for failure in chosen
    ]
    cells = [(*row[:-1], out.one_line(row[-1], 400)) for row in rows]
    headings = ("time (UTC)", *(("session",) if several else ()), "turn", "what", "tool", "text")
    turn, tool = headings.index("turn"), headings.index("tool")
    return out.format_table(headings, cells, right=(turn,), shrink=(tool,))
