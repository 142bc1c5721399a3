"""`threadline history`: what was typed, in all projects, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadline.model.found import Home
    from threadline.render.style import Spans
    from threadline.survey.history import History, TypedPrompt, Wanted

_SHOWN = 30
_PROJECT = 16
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
    help=f"No more than this many; by default {_SHOWN}, and all with --json, --jsonl and --csv.",
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
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home
    from threadline.cli.when import moment
    from threadline.errors import BadQuery
    from threadline.survey.history import Wanted

    wanted = Wanted(
        text,
        project,
        moment(since) if since is not None else None,
        moment(until, end=True) if until is not None else None,
        gone,
    )
    if wanted.since is not None and wanted.until is not None and wanted.since > wanted.until:
        raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")
    archive = archive_of(homes, index=False)
    if not archive.homes:
        say_no_home()
        return NOTHING
    typed = archive.history(wanted)
    if output == "table":
        count = _show(typed.prompts(), limit or _SHOWN, coloured=screen.colour(wanted=not no_color))
    else:
        count = out.print_rows(map(out.to_plain, islice(typed.prompts(), limit)), output)
    _say_problems(typed)
    return FOUND if count else screen.nothing(_why(archive.homes, typed, wanted))


def _show(prompts: Iterator[TypedPrompt], limit: int, *, coloured: bool) -> int:
    """A line a prompt, and whether there are more."""
    from threadline.cli import screen
    from threadline.render.style import Role, Span, Style

    style = Style(colour=coloured)
    width = screen.width()
    count = 0
    for one in islice(prompts, limit):
        click.echo(style.line(_line(one, width)), color=coloured)
        count += 1
    if count == limit and next(prompts, None) is not None:
        told = f"The newest {count}; there are more: see --limit N."
        click.echo("\n" + style.line((Span(told, Role.FAINT),)), color=coloured)
    return count


def _line(one: TypedPrompt, width: int) -> Spans:
    from threadline.cli import output as out
    from threadline.cli.places import short_path
    from threadline.render.figures import moment
    from threadline.render.style import Role, Span

    session = out.plain((one.session or "")[:8])
    project = short_path(one.project or "", _PROJECT)
    pasted = f"  +{one.pasted} pasted" if one.pasted else ""
    before = (
        Span(f"{moment(one.timestamp):<16}  ", Role.FAINT),
        Span(session + " " * (10 - out.columns(session)), Role.CODE),
        Span("gone  " if one.gone else "      ", Role.NOTICE),
        Span(project + " " * (_PROJECT + 2 - out.columns(project)), Role.FAINT),
    )
    room = max(20, width - sum(out.columns(span.text) for span in before) - len(pasted))
    return (*before, Span(out.one_line(one.text, room), Role.PROMPT), Span(pasted, Role.FAINT))


def _say_problems(typed: History) -> None:
    from threadline.cli import output as out

    lost = [one for one in typed.problems if not one.recovered]
    if lost:
        rows = out.counted(len(lost), "row")
        where = f"the first at byte {lost[0].place.offset:,} of {lost[0].place.transcript}: {lost[0].message}"
        click.echo(f"threadline: {out.plain(f'{rows} could not be read, {where}.')}", err=True)


def _why(places: Sequence[Home], typed: History, wanted: Wanted) -> str:
    """Why no prompt is listed, and what there would be."""
    from threadline.render.figures import some

    if not typed.seen:
        homes = some(str(home.path) for home in places)
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
    each = ", ".join(f"{typed.fitting[name]:,} {told[name][1]}" for name in given) if len(given) > 1 else ""
    fits = " and ".join(told[name][0] for name in given)
    return f"No prompt of {typed.seen:,} fits {fits}{f': {each}' if each else ''}{newest}."
