"""`threadline history`: list typed prompts of all projects, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadline.model.homes import Home
    from threadline.render import Spans
    from threadline.reports import PromptFilter, PromptHistory, TypedPrompt

_DEFAULT_LIMIT = 30
_PROJECT_WIDTH = 16
_EPILOG = """
\b
Examples:
  threadline history                        the newest prompts
  threadline history parser                 those that hold a text
  threadline history --project app --since 7d
  threadline history --gone                 whose sessions are deleted
  threadline history "fix the" --limit 200  more of them
  threadline history --jsonl                all of them, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("text", required=False)
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@click.option("--since", metavar="WHEN", help="Only prompts from then on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="WHEN", help="Only prompts up to then, the same words; a day is included.")
@click.option("--gone", is_flag=True, help="Only prompts whose session's transcript has been deleted.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"No more than this many; by default {_DEFAULT_LIMIT}, and all with --json, --jsonl and --csv.",
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@home_option
@output_options
def history(
    text: str | None,
    *,
    project: str | None,
    since: str | None,
    until: str | None,
    gone: bool,
    limit: int | None,
    no_color: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """List typed prompts, newest first: time (UTC), session, project, text on one line.

    They come from history.jsonl, which Claude Code never deletes; `gone` marks those whose session has been deleted.
    Old rows do not name their session, and have no mark. With TEXT, only prompts that hold it, in whatever case.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home
    from threadline.errors import BadQuery
    from threadline.model.times import parse_moment
    from threadline.reports import PromptFilter

    wanted = PromptFilter(
        text,
        project,
        parse_moment(since) if since is not None else None,
        parse_moment(until, end=True) if until is not None else None,
        gone,
    )
    if wanted.since is not None and wanted.until is not None and wanted.since > wanted.until:
        raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")
    archive = open_archive(homes, index=False)
    if not archive.homes:
        report_no_home()
        return EXIT_NOTHING
    typed = archive.history(wanted)
    if output == "table":
        count = _print_prompts(
            typed.prompts(), limit or _DEFAULT_LIMIT, coloured=screen.use_colour(wanted=not no_color)
        )
    else:
        count = out.print_rows(map(out.to_json_value, islice(typed.prompts(), limit)), output)
    _print_problems(typed)
    return EXIT_OK if count else screen.report_nothing(_explain_nothing(archive.homes, typed, wanted))


def _print_prompts(prompts: Iterator[TypedPrompt], limit: int, *, coloured: bool) -> int:
    """A line a prompt, and whether there are more."""
    from threadline.cli import screen
    from threadline.render import Role, Span, Style

    style = Style(colour=coloured)
    width = screen.page_width()
    count = 0
    for typed_prompt in islice(prompts, limit):
        click.echo(style.line(_prompt_line(typed_prompt, width)), color=coloured)
        count += 1
    if count == limit and next(prompts, None) is not None:
        told = f"The newest {count}; there are more: see --limit N."
        click.echo("\n" + style.line((Span(told, Role.FAINT),)), color=coloured)
    return count


def _prompt_line(typed_prompt: TypedPrompt, width: int) -> Spans:
    from threadline.cli import output as out
    from threadline.cli.output import shorten_path
    from threadline.model.text import format_time
    from threadline.render import Role, Span

    session = out.plain((typed_prompt.session or "")[:8])
    project = shorten_path(typed_prompt.project or "", _PROJECT_WIDTH)
    pasted = f"  +{typed_prompt.pasted} pasted" if typed_prompt.pasted else ""
    before = (
        Span(f"{format_time(typed_prompt.timestamp):<16}  ", Role.FAINT),
        Span(session + " " * (10 - out.display_width(session)), Role.CODE),
        Span("gone  " if typed_prompt.gone else "      ", Role.NOTICE),
        Span(project + " " * (_PROJECT_WIDTH + 2 - out.display_width(project)), Role.FAINT),
    )
    room = max(20, width - sum(out.display_width(span.text) for span in before) - len(pasted))
    return (*before, Span(out.one_line(typed_prompt.text, room), Role.PROMPT), Span(pasted, Role.FAINT))


def _print_problems(typed: PromptHistory) -> None:
    from threadline.cli import output as out

    lost = [problem for problem in typed.problems if not problem.recovered]
    if lost:
        rows = out.counted(len(lost), "row")
        where = f"the first at byte {lost[0].place.offset:,} of {lost[0].place.transcript}: {lost[0].message}"
        click.echo(f"threadline: {out.plain(f'{rows} could not be read, {where}.')}", err=True)


def _explain_nothing(places: Sequence[Home], typed: PromptHistory, wanted: PromptFilter) -> str:
    """Why no prompt is listed, and what there would be."""
    from threadline.model.text import join_some

    if not typed.seen:
        homes = join_some(str(home.path) for home in places)
        return f"No prompts: there is no history.jsonl with rows in {homes}."
    told = {
        "text": (repr(wanted.text), "hold the text"),
        "project": (f"--project {wanted.project!r}", "are of such a project"),
        "since": ("--since", "are not older"),
        "until": ("--until", "are not newer"),
        "gone": ("--gone", "are of sessions that are gone"),
    }
    given = [name for name in told if getattr(wanted, name)]
    newest = f"; the newest is of {typed.newest:%Y-%m-%d}" if typed.newest and wanted.since is not None else ""
    each = ", ".join(f"{typed.match_counts[name]:,} {told[name][1]}" for name in given) if len(given) > 1 else ""
    fits = " and ".join(told[name][0] for name in given)
    return f"No prompt of {typed.seen:,} fits {fits}{f': {each}' if each else ''}{newest}."
