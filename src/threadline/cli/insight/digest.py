"""`threadline digest`: what was done in a day, a week or a month, and what it cost."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import click

from threadline.account import last_day_with_usage
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import explain_project
from threadline.cli.options import (
    colour_option,
    home_option,
    jobs_option,
    output_options,
    pager_option,
    prices_option,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive, read_rates
from threadline.model.insight.digest import Digest
from threadline.render import Style, digest_lines, plain

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.export import DigestFormat

_DEFAULT_SESSIONS = 10
_THIS = "this"
_FORMATS: dict[str, DigestFormat] = {
    "md": "md",
    "markdown": "md",
    "html": "html",
    "htm": "html",
    "json": "json",
    "txt": "text",
    "text": "text",
}
_EPILOG = """
\b
Examples:
  threadline digest                               this week
  threadline digest --week last                   the week before
  threadline digest --week 2026-W45
  threadline digest --day yesterday
  threadline digest --month 2026-10 --project app
  threadline digest --since 2026-11-01 --until 2026-11-10
  threadline digest --week last --out week.html   redacted, to share
  threadline digest --json                        for a program

\b
Exit codes: 0 success; 1 nothing was spent in the period; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--day", is_flag=False, flag_value=_THIS, metavar="[WHEN]", help="A day: today, or `yesterday`, or 2026-11-03."
)
@click.option(
    "--week",
    is_flag=False,
    flag_value=_THIS,
    metavar="[WHEN]",
    help="A week from Monday on: this one, or `last`, 2026-W45, or a date in it. Default: this week.",
)
@click.option(
    "--month",
    is_flag=False,
    flag_value=_THIS,
    metavar="[WHEN]",
    help="A month: this one, or `last`, 2026-10, or a date in it.",
)
@since_option("Any period: from WHEN on. It is compared with the same length of time before.")
@until_option("Up to and including WHEN. Default: now.")
@project_option()
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "md", "html", "json"]),
    help="Default: the suffix of --out; text on a terminal, md in a pipe.",
)
@click.option("--out", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--redact/--no-redact",
    default=None,
    help="Redact secrets, names, addresses and home directories. Default: redact what --out writes, and html.",
)
@click.option(
    "--sessions",
    "max_sessions",
    type=click.IntRange(min=0),
    default=_DEFAULT_SESSIONS,
    metavar="N",
    help=f"List at most N sessions of each project; 0 lists all. JSON has all. Default: {_DEFAULT_SESSIONS}.",
)
@timezone_option
@prices_option
@colour_option
@pager_option
@home_option
@jobs_option
@output_options
def digest(
    *,
    day: str | None,
    week: str | None,
    month: str | None,
    since: str | None,
    until: str | None,
    project: str | None,
    format_name: str | None,
    target: Path | None,
    force: bool,
    redact: bool | None,
    max_sessions: int,
    zone: tzinfo,
    price_files: tuple[str, ...],
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Show what was done in a week, and what it cost.

    Lists the sessions of each project with what they produced, compares the cost with the period before, and names the
    three most expensive causes with what to do about them. Amounts are those of `threadline usage` for the period.
    """
    units = {name: value for name, value in (("day", day), ("week", week), ("month", month)) if value is not None}
    if len(units) + (since is not None) > 1 or (until is not None and since is None):
        raise click.UsageError("Use one of --day, --week, --month, or --since with or without --until.")
    form = _choose_format(format_name, target, output, is_redacted=bool(redact))
    rates = read_rates(price_files)
    with open_archive(homes, jobs, require_home=True) as archive:
        archive.zone = zone
        if target is not None:
            from threadline.export import check_destinations, protected_folders  # noqa: PLC0415 - only files need it

            check_destinations([target], protected_folders((), (home.path for home in archive.homes)), force=force)
        unit, value = next(iter(units.items()), ("week", _THIS))
        result = archive.digest(unit, value, project=project, since=since, until=until, prices=rates, now=_now())
        if output in {"jsonl", "csv"}:
            out.print_rows((out.json_record(session.record()) for session in result.sessions), output)
        elif result.sum.charges or form == "json":
            is_shared = redact if redact is not None else target is not None or form == "html"
            limit = max_sessions or len(result.sessions)
            if form == "text" and target is None and not is_shared:
                colour = out.use_colour(enabled=colour)
                lines = digest_lines(result, zone, out.page_width(), max_sessions=limit)
                out.print_lines(map(Style(colour=colour).line, lines), colour=colour, pager=pager)
            else:
                _write_file(result, form, zone, limit, target, is_redacted=is_shared)
        if result.sum.charges:
            return EXIT_OK
        return out.report_nothing(_explain_nothing(archive, result, project, zone))


def _write_file(
    result: Digest, form: DigestFormat, zone: tzinfo, limit: int, target: Path | None, *, is_redacted: bool
) -> None:
    """Write a digest to a file, or to standard output."""
    from threadline.export import load_settings, render_digest_file, write_output  # noqa: PLC0415 - a terminal does without

    settings = load_settings() if is_redacted else None
    text = render_digest_file(result, form, zone, max_sessions=limit, settings=settings)
    if target is None:
        out.print_text(text)
        return
    out.report_new_folder(target)
    write_output(target, text.encode(errors="surrogatepass"))
    click.echo(f"Wrote {plain(str(target))}, {'redacted' if is_redacted else 'not redacted'}.", err=True)


def _now() -> datetime:
    """The current time; tests replace it."""
    return datetime.now(UTC)


def _choose_format(name: str | None, target: Path | None, output: str, *, is_redacted: bool) -> DigestFormat:
    """The format: as given, by the suffix of the file, or by whether standard output is a terminal."""
    if output != "table":
        if target is not None:
            raise click.UsageError(f"--{output} prints to standard output. Use --format json and --out for a file.")
        if name is not None:
            raise click.UsageError(f"--{output} is a format of its own; omit --format.")
        if is_redacted and output != "json":
            raise click.UsageError(f"--redact cannot be combined with --{output}. Use --json.")
        return "json"
    if name is not None:
        return _FORMATS[name]
    if target is None:
        return "text" if sys.stdout.isatty() else "md"
    suffix = target.suffix.removeprefix(".").lower()
    if suffix not in _FORMATS:
        raise click.UsageError(
            f"Unknown suffix {target.suffix!r} of --out. Use .md, .html, .txt or .json, or --format."
        )
    return _FORMATS[suffix]


def _explain_nothing(archive: Archive, result: Digest, project: str | None, zone: tzinfo) -> str:
    """Why there is nothing, and when something was spent last."""
    reason = explain_project(archive, project)
    if reason is not None:
        return reason
    day = last_day_with_usage(archive.ledger(calls=False, project=project), _now(), zone)
    about = f" by projects that match {project!r}" if project is not None else ""
    if day is None:
        return f"Nothing was spent in {result.period.name}{about}. There is no usage yet."
    unit = result.period.unit if result.period.unit in {"day", "week", "month"} else "week"
    last = f"The last usage is from {day}; to see it, use --{unit} {day}."
    return f"Nothing was spent in {result.period.name}{about}. {last}"
