"""`threadline history`: list typed prompts of all projects, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import islice

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    colour_option,
    home_option,
    limit_option,
    output_options,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive
from threadline.json_values import to_json_value
from threadline.model.homes import Home
from threadline.model.text import count, format_time, join_some, short_id
from threadline.model.times import TimeRange, zone_name
from threadline.render import Role, Span, Spans, Style, display_width, one_line, plain
from threadline.reports import PromptFilter, PromptHistory, TypedPrompt

_DEFAULT_LIMIT = 30
_PROJECT_WIDTH, _MIN_WIDTH_FOR_PROJECT, _MIN_TEXT = 16, 80, 10
_EPILOG = """
\b
Examples:
  threadline history                        newest prompts
  threadline history parser                 prompts that contain "parser"
  threadline history --project app --since 7d
  threadline history --gone                 whose session was deleted
  threadline history "fix the" --limit 200  more prompts
  threadline history --jsonl                all prompts, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("text", required=False)
@project_option()
@since_option("Only from WHEN on: 2026-11-03, 12h, 7d, yesterday.")
@until_option()
@timezone_option
@click.option("--gone", is_flag=True, help="Only prompts whose session's transcript was deleted.")
@limit_option(f"Show at most N prompts. Default: {_DEFAULT_LIMIT}; no limit for --json, --jsonl and --csv.")
@colour_option
@home_option
@output_options
def history(
    text: str | None,
    *,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    gone: bool,
    limit: int | None,
    colour: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """List the prompts you typed, newest first.

    Shows time, session, project and text. Prompts come from history.jsonl, which Claude Code does not delete;
    `gone` marks those whose session was deleted. Old rows do not name their session and have no mark. With TEXT, lists
    only prompts that contain it, ignoring case.
    """
    time = TimeRange.parse(since, until, tz=zone)
    criteria = PromptFilter(text, project, time.since, time.until, gone)
    archive = open_archive(homes, index=False, require_home=True)
    prompts = archive.history(criteria)
    if output == "table":
        number = _print_prompts(prompts.prompts(), limit or _DEFAULT_LIMIT, zone, colour=out.use_colour(enabled=colour))
    else:
        number = out.print_rows(map(to_json_value, islice(prompts.prompts(), limit)), output)
    _print_problems(prompts)
    return EXIT_OK if number else out.report_nothing(_explain_nothing(archive.homes, prompts, criteria, zone))


def _print_prompts(prompts: Iterator[TypedPrompt], limit: int, zone: tzinfo, *, colour: bool) -> int:
    """Print one line per prompt, and whether there are more; return how many were printed."""
    style = Style(colour=colour)
    width = out.page_width()
    number = 0
    for prompt in islice(prompts, limit):
        click.echo(style.line(_prompt_line(prompt, width, zone)), color=colour)
        number += 1
    notes = [f"Times are {zone_name(zone)}."] if number else []
    if number == limit and next(prompts, None) is not None:
        notes.append(f"Showing the newest {number}. Use --limit N for more.")
    for at, note in enumerate(notes):
        click.echo(("" if at else "\n") + style.line((Span(note, Role.FAINT),)), color=colour)
    return number


def _prompt_line(prompt: TypedPrompt, width: int, zone: tzinfo) -> Spans:
    session = plain(short_id(prompt.session))
    project = out.shorten_path(prompt.project or "", _PROJECT_WIDTH) if width >= _MIN_WIDTH_FOR_PROJECT else None
    pasted = f"  +{prompt.pasted} pasted" if prompt.pasted else ""
    before = (
        Span(f"{format_time(prompt.timestamp, zone):<16}  ", Role.FAINT),
        Span(session + " " * (10 - display_width(session)), Role.CODE),
        Span("gone  " if prompt.gone else "      ", Role.NOTICE),
        Span(project + " " * (_PROJECT_WIDTH + 2 - display_width(project)) if project is not None else "", Role.FAINT),
    )
    room = max(_MIN_TEXT, width - sum(display_width(span.text) for span in before) - len(pasted))
    return (*before, Span(one_line(prompt.text, room), Role.PROMPT), Span(pasted, Role.FAINT))


def _print_problems(prompts: PromptHistory) -> None:
    lost = [problem for problem in prompts.problems if not problem.recovered]
    if lost:
        first = lost[0]
        where = f"The first is at byte {first.place.offset:,} of {first.place.transcript}: {first.message}"
        out.print_message(f"{count(len(lost), 'row')} could not be read. {where}.")


def _explain_nothing(homes: Sequence[Home], prompts: PromptHistory, criteria: PromptFilter, zone: tzinfo) -> str:
    """Why no prompt is listed, and which filters would match."""
    if not prompts.rows_read:
        return f"No prompts: no history.jsonl with rows in {join_some(str(home.path) for home in homes)}."
    descriptions = {
        "text": "contain the text",
        "project": "are from a matching project",
        "since": "are from that time on",
        "until": "are from before its end",
        "gone": "are from deleted sessions",
    }
    used = [name for name in descriptions if getattr(criteria, name)]
    hints = []
    if len(used) > 1:
        hints.append(", ".join(f"{prompts.match_counts[name]:,} {descriptions[name]}" for name in used) + ".")
    if prompts.newest and criteria.since is not None:
        hints.append(f"The newest is from {format_time(prompts.newest, zone)} ({zone_name(zone)}).")
    options = {"" if name == "text" else name: getattr(criteria, name) for name in used}
    return out.no_match_message("prompt", prompts.rows_read, options, " ".join(hints))
