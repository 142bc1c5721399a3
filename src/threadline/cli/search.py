"""`threadline search`: full-text search over all sessions."""

from __future__ import annotations

import re
import sys
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, cast

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK, screen
from threadline.cli import output as out
from threadline.cli.options import home_option, output_options
from threadline.cli.output import shorten_path
from threadline.cli.screen import pager_option
from threadline.model.hits import SNIPPET_LENGTH
from threadline.model.text import format_time
from threadline.render import Role, Span, Style, cut_line, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from threadline.archive import Archive
    from threadline.model.hits import Hit, Hits
    from threadline.model.session import Session
    from threadline.render import Spans
    from threadline.search import Sort

_DEFAULT_LIMIT = 20
_MIN_SIMILARITY = 0.8
_EXCLUDED_WORD = re.compile("-[^-].")
_EPILOG = """
\b
Examples:
  threadline search rate limit                both words, in one entry
  threadline search '"rate limit"'            these words in a row
  threadline search parseTimestamp            also parse_timestamp
  threadline search error:ENOENT since:7d     what failed so, in the last week
  threadline search prompt:deploy -staging    what was typed, without a word
  threadline search '/retry in \\d+ s/'        a regular expression
  threadline search deploy --all --sort time  every entry, the newest first
  threadline search deploy --context 2        with what was said around it
  threadline search deploy --open             go to the best hit
  threadline search deploy --open 3           go to the third
  threadline search deploy --jsonl            for a program
"""


class _SearchCommand(click.Command):
    """A command whose words may begin with a minus: `-harbour` is no `-h`. `--open` may be without a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, those that are words with a space before them."""
        given: list[str] = []
        for one, after in zip_longest(args, args[1:], fillvalue=""):
            is_first = one == "--open" and not (after.isascii() and after.isdecimal())
            given.append("--open=1" if is_first else f" {one}" if _EXCLUDED_WORD.match(one) else one)
        return super().parse_args(ctx, given)


@click.command(cls=_SearchCommand, epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="QUERY...")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    metavar="N",
    help="No more sessions than this, or with --all no more entries.",
)
@click.option(
    "--sort",
    type=click.Choice(["rank", "time"]),
    default="rank",
    show_default=True,
    help="What was most likely meant first, or the newest.",
)
@click.option("--all", "every", is_flag=True, help="All hits of a session, not only its best.")
@click.option("--context", type=click.IntRange(0, 100), default=0, metavar="N", help="So many entries around each hit.")
@click.option(
    "--open",
    "opened",
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Show the turn of the Nth hit, the first unless said, instead of the hits.",
)
@click.option("--exact", is_flag=True, help="Only what matches: no other spelling, and nothing that lacks a word.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Read no longer than this; by default 1 once something is found, else 10.",
)
@click.option("--no-refresh", is_flag=True, help="Ask the index as it is, and do not read what changed since.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@output_options
def search(
    words: tuple[str, ...],
    *,
    limit: int,
    sort: str,
    every: bool,
    context: int,
    opened: int | None,
    exact: bool,
    timeout: float | None,
    no_refresh: bool,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Find entries that a QUERY asks for: words, "phrases", -without, OR, field:value, /expressions/.

    Of each session its best hit is shown: title, time (UTC), project, field, the words around, and its place.
    docs/search.md has the whole language. Where nothing matches, it says what would have.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.resolve import ensure_index, open_archive
    from threadline.cli.screen import report_no_home
    from threadline.model.times import parse_zone

    _reject_misspelt_options(words)
    if opened is not None and output != "table":
        raise click.UsageError("--open shows a session to be read; leave out --json, --jsonl and --csv.")
    text = " ".join(words)
    is_page = output == "table"
    with open_archive(homes, quiet=0) as archive:
        if not archive.homes:
            report_no_home()
            return EXIT_NOTHING
        if not ensure_index(archive, fresh=not no_refresh):
            return EXIT_NOTHING
        hits = archive.search(
            text, limit=limit, every=every, sort=cast("Sort", sort), zone=parse_zone(), near=not exact, seconds=timeout
        )
        if opened is not None:
            _report_note(archive, text, hits)
            return open_hit(archive, hits.hits, opened, colour=not no_color, pager=pager) if hits.hits else EXIT_NOTHING
        if not is_page:
            out.print_rows((_hit_row(archive, hit, context) for hit in hits.hits), output)
        else:
            _report_note(archive, text, hits)
            coloured = screen.use_colour(wanted=not no_color)
            for line in hit_page(archive, hits, context, coloured=coloured, every=every):
                click.echo(line, color=coloured)
        if not is_page and (hits.near or hits.cut_short or not hits.hits):
            _report_note(archive, text, hits)
    return EXIT_OK if hits.hits and not hits.near else EXIT_NOTHING


def _reject_misspelt_options(words: Sequence[str]) -> None:
    """What looks like an option that is spelt wrong is no word to be found."""
    from difflib import get_close_matches

    known = [option for param in click.get_current_context().command.params for option in param.opts]
    for word in words:
        near = get_close_matches(word.split("=")[0], [one for one in known if one.startswith("--")], 1, _MIN_SIMILARITY)
        if word.startswith("--") and near:
            raise click.UsageError(f"There is no option {word}; did you mean {near[0]}? To find it: '\"{word}\"'.")


def _hit_row(archive: Archive, hit: Hit, context: int) -> dict[str, Any]:
    from threadline.cli import output as out
    from threadline.cli.rows import conversation_row

    before, after = archive.around(hit, context) if context else ([], [])
    return {
        "session": hit.session,
        "title": hit.title,
        "timestamp": out.to_json_value(hit.timestamp),
        "project": hit.project,
        "agent": hit.agent,
        "kind": hit.kind,
        "field": hit.field,
        "snippet": hit.snippet,
        "highlights": [list(span) for span in hit.highlights],
        "place": str(hit.place),
        "score": hit.score,
        "more": hit.more,
        "lacks": list(hit.lacks),
        "gone": hit.gone,
        "kept": hit.kept,
        "before": [out.to_json_value(conversation_row(one, None, hit.agent)) for one in before],
        "after": [out.to_json_value(conversation_row(one, None, hit.agent)) for one in after],
    }


def _report_note(archive: Archive, text: str, hits: Hits) -> None:
    """Say what there is instead, where nothing matches."""
    from threadline.cli import screen
    from threadline.model.times import parse_zone

    if hits.note is not None:
        screen.report_nothing(hits.note)
    elif not hits.hits:
        screen.report_nothing(archive.why(text, zone=parse_zone()))


_MIN_WIDTH = 20
_SNIPPET_LINES = 3
_MORE_IN_SESSION = " more in this session"


def hit_page(archive: Archive, hits: Hits, context: int, *, coloured: bool, every: bool = False) -> Iterator[str]:
    """The lines of the page; with `every`, all entries were asked for."""
    style = Style(colour=coloured)
    width = screen.page_width()
    numbers = len(str(len(hits.hits)))
    for number, hit in enumerate(hits.hits, 1):
        if number > 1:
            yield ""
        for line in _hit_lines(archive, hit, f"{number:>{numbers}}", width, context):
            yield style.line(line)
    left = " ".join(_omitted_notes(hits, every=every))
    if left:
        yield ""
        yield style.line((Span(left, Role.FAINT),))


def _omitted_notes(hits: Hits, *, every: bool) -> Iterator[str]:
    """What is not shown, and which option shows it."""
    exact = [hit for hit in hits.hits if not hit.lacks]
    least = "At least " if hits.at_least else ""
    beyond = hits.total - sum(1 + hit.more for hit in exact)
    sessions = hits.listed - len(exact)
    if every and beyond > 0:
        yield f"{least}{out.counted(beyond, 'more entry', 'more entries')}: see --limit N."
    elif sessions > 0 and beyond > 0:
        entries = out.counted(beyond, "entry", "entries")
        yield f"{least}{out.counted(sessions, 'more session')} ({entries}): see --limit N."
    elif hits.maybe_more and not every:  # nobody went on to look for others, once there were enough
        yield "There may be more sessions: see --limit N."
    inside = sum(hit.more for hit in exact)
    if inside and not every:
        yield f"{least}{out.counted(inside, 'more entry', 'more entries')} in those shown: see --all."


def _hit_lines(archive: Archive, hit: Hit, number: str, width: int, context: int) -> Iterator[Spans]:
    """What session it is, where in it, and what it says."""
    margin = Span(" " * (len(number) + 2))
    room = max(_MIN_WIDTH, width - len(margin.text))
    title = hit.title or "(no title)"
    session = (hit.session or "")[:8]
    yield (
        Span(f"{number}  ", Role.FAINT),
        Span(f"{session}  " if session else "", Role.CODE),
        Span(out.one_line(title, room - len(session) - 2), Role.TITLE),
    )
    told = " · ".join(_hit_facts(archive, hit, width))
    if room - len(told) < _MIN_WIDTH:
        told = told.replace(_MORE_IN_SESSION, " more")
    left = max(_MIN_WIDTH, room - len(told) - 3)
    yield cut_line((margin, Span(f"{told} · {shorten_path(hit.project, left)}", Role.FAINT)), width)
    before, after = archive.around(hit, context) if context else ([], [])
    for entry in before:
        yield _context_line(entry, margin, room)
    shown = [span for span in _highlighted_snippet(archive, hit) if span.text]
    if shown:
        yield from islice(wrap(shown, width, first=(margin,), rest=(margin,)), _SNIPPET_LINES)
    for entry in after:
        yield _context_line(entry, margin, room)
    yield (margin, Span(_hit_place(hit, room), Role.FAINT))


def _hit_facts(archive: Archive, hit: Hit, width: int) -> Iterator[str]:
    """When, what it is, and what else there is to know. A title has no time of its own: then it is the session's."""
    when = hit.timestamp
    if when is None and hit.session is not None:
        when = archive.facts(hit.session).last
    if when is not None:
        yield format_time(when)
    yield hit.field or hit.kind
    if hit.agent:
        yield f"agent {out.plain(hit.agent)[:8]}"
    if hit.gone:
        yield "its transcript is gone"
    if hit.kept:
        yield "kept"
    if hit.more:
        yield f"+{hit.more:,}{' more of what is left' if hit.gone else _MORE_IN_SESSION}"
    if hit.lacks:
        yield out.one_line(f"without {', '.join(hit.lacks)}", width // 2)


def _hit_place(hit: Hit, room: int) -> str:
    """The place; on a terminal, as much of it as a line holds."""
    return shorten_path(str(hit.place), room) if sys.stdout.isatty() else out.plain(str(hit.place))


def _context_line(entry: Any, margin: Span, room: int) -> Spans:
    from threadline.cli.rows import entry_text

    text = out.one_line(entry_text(entry), max(_MIN_WIDTH, room - 18))
    return (margin, Span(f"{entry.line.number:>5} {entry.kind:<9}  {text}", Role.FAINT))


def _highlighted_snippet(archive: Archive, hit: Hit) -> Iterator[Span]:
    """The snippet, with what was asked for standing out; where that is the title again, what was typed first."""
    if hit.title is not None and out.plain(hit.snippet).split() == out.plain(hit.title).split():
        first = archive.facts(hit.session).typed if hit.session is not None else None
        typed = out.one_line(first or "", SNIPPET_LENGTH)
        yield Span(typed if typed.split() != out.plain(hit.title).split() else "")
        return
    at = 0
    for start, end in hit.highlights:
        yield Span(hit.snippet[at:start])
        yield Span(hit.snippet[start:end], Role.STRONG)
        at = end
    yield Span(hit.snippet[at:])


def open_hit(archive: Archive, hits: Sequence[Hit], number: int, *, colour: bool, pager: bool = True) -> int:
    """Show the turn of a hit; the number counts from 1. A pager begins where the hit stands, if it can."""
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.load import read
    from threadline.render import AgentDetail, TextOptions, session_to_text
    from threadline.thread import find_notifications

    if number > len(hits):
        return screen.report_nothing(f"There is no hit {number}; the query has {out.counted(len(hits), 'hit')}.")
    hit = hits[number - 1]
    if hit.gone:
        click.echo(f"threadline: the transcript of this prompt is gone; {hit.place} still has it.", err=True)
        for line in archive.typed(hit).split("\n"):
            click.echo(out.plain(line))
        return EXIT_OK
    session = read(hit.place.transcript)
    turn, branch = _find_turn_or_branch(session, hit.place.line)
    coloured = screen.use_colour(wanted=colour)
    options = TextOptions(
        width=screen.page_width(),
        colour=coloured,
        agents=AgentDetail.FOLD,
        everything=True,
        branch=branch,
        turn=turn,
    )
    click.echo(f"threadline: {out.plain(str(hit.place))}", err=True)
    lines: Iterable[str] = session_to_text(session, options, find_notifications(session))
    begin = 0
    if turn is not None or branch is not None:
        lines = list(lines)
        begin = _find_hit_line(hit, lines)
    screen.print_lines(lines, coloured=coloured, pager=pager, begin=begin)
    return EXIT_OK if len(session) else EXIT_NOTHING


def _find_hit_line(hit: Hit, lines: Sequence[str]) -> int:
    """The line that has most of a hit's words together with the two after it; 0 where what was asked for is in none."""
    asked = {
        hit.snippet[start:end].split()[0].lower() for start, end in hit.highlights if hit.snippet[start:end].split()
    }
    words = {word.lower() for word in hit.snippet.strip("…").split()}
    shown = [click.unstyle(line).lower() for line in lines]
    best, at = 0, 0
    for number, line in enumerate(shown, 1):
        if any(one in line for one in asked):
            has = len(words.intersection(" ".join(shown[number - 1 : number + 2]).split()))
            best, at = max((best, at), (has, number), key=lambda one: one[0])
    return at


def _find_turn_or_branch(session: Session, line: int) -> tuple[int | None, int | None]:
    """The turn that a line stands in, or the branch; neither where it stands in none: then all is shown."""
    for number, branch in enumerate(session.branches, 1):
        if any(entry.line.number == line for entry in branch.entries):
            return None, number
    for turn in session.turns:
        if any(entry.line.number == line for entry in turn.entries):
            return turn.number, None
    return None, None
