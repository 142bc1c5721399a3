"""`threadline search`: full-text search over all sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, cast

import click

from threadline.archive import Archive
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    NO_LIMIT,
    Seconds,
    WholeNumber,
    colour_option,
    complete_with,
    home_option,
    limit_option,
    output_options,
    pager_option,
    timezone_option,
)
from threadline.cli.resolve import ensure_index, open_archive
from threadline.errors import NotFound, did_you_mean
from threadline.json_values import to_json_value
from threadline.model.hits import SNIPPET_LENGTH, Hit, Hits
from threadline.model.text import count, format_time, short_id
from threadline.model.times import zone_name
from threadline.render import Role, Span, Spans, Style, cut_line, one_line, plain, wrap
from threadline.search import FIELDS

if TYPE_CHECKING:
    from threadline.model.session import Session
    from threadline.search import Sort

_DEFAULT_LIMIT = 20
_MIN_SIMILARITY = 0.8
_MAX_TIMEOUT = 86400
_EXCLUDED_WORD = re.compile("-[^-].")
_MIN_WIDTH = 20
_SNIPPET_LINES = 3
_MORE_IN_SESSION = " more in this session"
_EPILOG = """
\b
Examples:
  threadline search rate limit                both words in one entry
  threadline search '"rate limit"'            an exact phrase
  threadline search parseTimestamp            also finds parse_timestamp
  threadline search error:ENOENT since:7d     failures of the last seven days
  threadline search deploy project:app        in one project
  threadline search prompt:deploy -staging    typed prompts, excluding a word
  threadline search '/retry in \\d+ s/'        a regular expression
  threadline search deploy --all --sort time  every entry, newest first
  threadline search deploy --context 2        with surrounding entries
  threadline search deploy --open             show the best hit in its session
  threadline search deploy --open 3           show the third hit
  threadline search deploy --jsonl            for a program
"""


class _SearchCommand(click.Command):
    """Accepts words that start with a minus (`-harbour` is not `-h`), and `--open` without a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; excluded words get a leading space, so that click takes them for words."""
        prepared: list[str] = []
        for argument, following in zip_longest(args, args[1:], fillvalue=""):
            is_bare_open = argument == "--open" and not (following.isascii() and following.isdecimal())
            is_excluded = _EXCLUDED_WORD.match(argument)
            prepared.append("--open=1" if is_bare_open else f" {argument}" if is_excluded else argument)
        return super().parse_args(ctx, prepared)


@click.command(cls=_SearchCommand, epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument(
    "words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="QUERY...", shell_complete=complete_with("query")
)
@limit_option(f"Show at most N sessions, or with --all at most N entries. Default: {_DEFAULT_LIMIT}.", _DEFAULT_LIMIT)
@click.option(
    "--sort",
    type=click.Choice(["rank", "time"]),
    default="rank",
    help="Best match first, or newest first. Default: rank.",
)
@click.option("--all", "every", is_flag=True, help="Show all hits of a session, not only the best one.")
@click.option(
    "--context", type=WholeNumber(most=100), default=0, metavar="N", help="Show N entries around each hit, at most 100."
)
@click.option(
    "--open",
    "opened",
    type=WholeNumber(1),
    metavar="[N]",
    help="Show the turn that contains hit N (default: 1) instead of the list of hits.",
)
@click.option("--exact", is_flag=True, help="Only exact matches: no similar spellings, no partial matches.")
@click.option(
    "--timeout",
    type=Seconds(most=_MAX_TIMEOUT),
    metavar="SECONDS",
    help="Stop after this time. Default: 1 once there is a hit, otherwise 10.",
)
@click.option("--no-refresh", is_flag=True, help="Use the index as it is, without reading recent changes.")
@timezone_option
@colour_option
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
    zone: tzinfo,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Search all sessions.

    QUERY is words, "phrases", -excluded words, OR, field:value and /regular expressions/; docs/search.md describes it.
    Filters are fields, too: project:, since:, until:, tool:, session:, model: and others. Shows the best hit of each
    session: title, time, project, field, snippet and place. If nothing matches, suggests what would.
    """
    _reject_unknown_options(words)
    if opened is not None and output != "table":
        raise click.UsageError("--open cannot be combined with --json, --jsonl or --csv.")
    query = " ".join(word.lstrip() for word in words)
    with open_archive(homes, quiet_bytes=0, require_home=True) as archive:
        if not ensure_index(archive, refresh=not no_refresh):
            return EXIT_NOTHING
        hits = archive.search(
            query,
            limit=max(limit, opened or 1) if limit < NO_LIMIT else None,
            every=every,
            sort=cast("Sort", sort),
            zone=zone,
            near=not exact,
            seconds=timeout,
        )
        if opened is not None:
            _report_note(archive, query, hits, zone)
            return (
                _open_hit(archive, hits.hits, opened, zone, colour=colour, pager=pager) if hits.hits else EXIT_NOTHING
            )
        if output != "table":
            out.print_rows((_hit_row(archive, hit, hits, context) for hit in hits.hits), output)
            if hits.near or hits.cut_short or not hits.hits:
                _report_note(archive, query, hits, zone)
        else:
            _report_note(archive, query, hits, zone)
            colour = out.use_colour(enabled=colour)
            for line in hit_page(archive, hits, context, zone, colour=colour, every=every):
                click.echo(line, color=colour)
    return EXIT_OK if hits.hits and (hits.has_most_words or not hits.near) else EXIT_NOTHING


def _reject_unknown_options(words: Sequence[str]) -> None:
    """Reject words that look like an option: misspelt, or a filter of other commands, which is a field of the query."""
    options = [option for param in click.get_current_context().command.params for option in param.opts]
    long_options = [option for option in options if option.startswith("--")]
    for word in words:
        if not word.startswith("--"):
            continue
        name = word.split("=")[0]
        match = did_you_mean(name, long_options, cutoff=_MIN_SIMILARITY)
        field = name.removeprefix("--")
        if match or field in FIELDS:
            instead = f"Did you mean {match}?" if match else f"Filters are part of the query: {field}:VALUE."
            raise click.UsageError(f"No such option {name}. {instead} To search for it, use '\"{word}\"'.")


def _hit_row(archive: Archive, hit: Hit, hits: Hits, context: int) -> dict[str, Any]:
    from threadline.cli.rows import conversation_row  # noqa: PLC0415 - loads the entry model, which only context needs

    before, after = archive.entries_around(hit, context) if context else ([], [])
    return {
        "session": hit.session,
        "title": hit.title,
        "timestamp": to_json_value(hit.timestamp),
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
        "before": [to_json_value(conversation_row(entry, None, hit.agent)) for entry in before],
        "after": [to_json_value(conversation_row(entry, None, hit.agent)) for entry in after],
        # New columns come last: scripts read CSV by position.
        "cut_short": hits.cut_short,
        "at_least": hit.at_least,
    }


def _report_note(archive: Archive, query: str, hits: Hits, zone: tzinfo) -> None:
    """Print the note on the hits, or why there are none."""
    if hits.note is not None:
        out.print_message(f"{hits.note}{' --timeout allows more time.' if hits.cut_short else ''}")
    elif not hits.hits:
        out.print_message(archive.explain_no_hits(query, zone=zone))


def hit_page(
    archive: Archive, hits: Hits, context: int, zone: tzinfo, *, colour: bool, every: bool = False
) -> Iterator[str]:
    """The lines of the page; with `every`, hits are entries rather than sessions."""
    style = Style(colour=colour)
    width = out.page_width()
    numbers = len(str(len(hits.hits)))
    for number, hit in enumerate(hits.hits, 1):
        if number > 1:
            yield ""
        for line in _hit_lines(archive, hit, f"{number:>{numbers}}", width, context, zone=zone):
            yield style.line(line)
    if hits.hits:
        yield ""
        yield style.line((Span(f"Times are {zone_name(zone)}.", Role.FAINT),))
    notes = " ".join(_omitted_notes(hits, every=every))
    if notes:
        yield from map(style.line, wrap((Span(notes, Role.FAINT),), width))


def _omitted_notes(hits: Hits, *, every: bool) -> Iterator[str]:
    """How many hits are not shown, and which option shows them."""
    exact = [hit for hit in hits.hits if not hit.lacks]
    least = "At least " if hits.at_least else ""
    beyond = hits.total - sum(1 + hit.more for hit in exact)
    sessions = hits.listed - len(exact)
    if every and beyond > 0:
        yield f"{least}{count(beyond, 'more entry', 'more entries')}: use --limit N."
    elif every and hits.cut_short:
        yield "There may be more entries: use --timeout SECONDS."
    elif sessions > 0 and beyond > 0:
        entries = count(beyond, "entry", "entries")
        yield f"{least}{count(sessions, 'more session')} ({entries}): use --limit N."
    elif hits.cut_short and not every:
        yield "There may be more sessions: use --timeout SECONDS."
    elif hits.maybe_more and not every:  # the search stops once it has enough sessions
        yield "There may be more sessions: use --limit N."
    inside = sum(hit.more for hit in exact)
    if inside and not every:
        yield f"{least}{count(inside, 'more entry', 'more entries')} in the sessions shown: use --all."


def _hit_lines(archive: Archive, hit: Hit, number: str, width: int, context: int, *, zone: tzinfo) -> Iterator[Spans]:
    """The session, the facts, the snippet with its context, and the place."""
    margin = Span(" " * (len(number) + 2))
    room = max(_MIN_WIDTH, width - len(margin.text))
    title = hit.title or "(no title)"
    session = short_id(hit.session)
    yield (
        Span(f"{number}  ", Role.FAINT),
        Span(f"{session}  " if session else "", Role.CODE),
        Span(one_line(title, room - len(session) - 2), Role.TITLE),
    )
    facts = " · ".join(_hit_facts(archive, hit, width, zone))
    if room - len(facts) < _MIN_WIDTH:
        facts = facts.replace(_MORE_IN_SESSION, " more")
    left = max(_MIN_WIDTH, room - len(facts) - 3)
    yield cut_line((margin, Span(f"{facts} · {out.shorten_path(hit.project, left)}", Role.FAINT)), width)
    before, after = archive.entries_around(hit, context) if context else ([], [])
    for entry in before:
        yield _context_line(entry, margin, room)
    snippet = [span for span in _highlighted_snippet(archive, hit) if span.text]
    if snippet:
        yield from islice(wrap(snippet, width, first=(margin,), rest=(margin,)), _SNIPPET_LINES)
    for entry in after:
        yield _context_line(entry, margin, room)
    yield (margin, Span(_hit_place(hit, room), Role.FAINT))


def _hit_facts(archive: Archive, hit: Hit, width: int, zone: tzinfo) -> Iterator[str]:
    """Time, field and other facts. A title has no time of its own, so the session's is shown."""
    when = hit.timestamp
    if when is None and hit.session is not None:
        when = archive.session_facts(hit.session).last
    if when is not None:
        yield format_time(when, zone)
    yield hit.field or hit.kind
    if hit.agent:
        yield f"agent {short_id(plain(hit.agent))}"
    if hit.gone:
        yield "transcript deleted"
    if hit.kept:
        yield "kept"
    if hit.more:
        where = " more in remaining files" if hit.gone else _MORE_IN_SESSION
        yield f"{'at least ' if hit.at_least else '+'}{hit.more:,}{where}"
    if hit.lacks:
        yield one_line(f"without {', '.join(hit.lacks)}", width // 2)


def _hit_place(hit: Hit, room: int) -> str:
    """The place; on a terminal, shortened to one line."""
    return out.shorten_path(str(hit.place), room) if out.has_width() else plain(str(hit.place))


def _context_line(entry: Any, margin: Span, room: int) -> Spans:
    from threadline.cli.rows import entry_text  # noqa: PLC0415 - loads the entry model, which only context needs

    text = one_line(entry_text(entry), max(_MIN_WIDTH, room - 18))
    return (margin, Span(f"{entry.line.number:>5} {entry.kind:<9}  {text}", Role.FAINT))


def _highlighted_snippet(archive: Archive, hit: Hit) -> Iterator[Span]:
    """The snippet with its matches emphasised; if it only repeats the title, the first prompt instead."""
    if hit.title is not None and plain(hit.snippet).split() == plain(hit.title).split():
        first = archive.session_facts(hit.session).first_prompt if hit.session is not None else None
        prompt = one_line(first or "", SNIPPET_LENGTH)
        yield Span(prompt if prompt.split() != plain(hit.title).split() else "")
        return
    at = 0
    for start, end in hit.highlights:
        yield Span(hit.snippet[at:start])
        yield Span(hit.snippet[start:end], Role.STRONG)
        at = end
    yield Span(hit.snippet[at:])


def _open_hit(
    archive: Archive, hits: Sequence[Hit], number: int, zone: tzinfo, *, colour: bool, pager: bool = True
) -> int:
    """Show the turn that contains a hit, numbered from 1. The pager starts at the hit if it can."""
    from threadline.load import read  # noqa: PLC0415 - a list of hits needs no reader
    from threadline.render import Detail, TextOptions, session_to_text  # noqa: PLC0415 - likewise
    from threadline.thread import find_notifications  # noqa: PLC0415 - likewise

    if number > len(hits):
        raise NotFound(f"No hit {number}: the query has {count(len(hits), 'hit')}.")
    hit = hits[number - 1]
    if hit.gone:
        out.print_message(f"The transcript of this prompt was deleted. The prompt is from {hit.place}.")
        for line in archive.deleted_prompt(hit).split("\n"):
            click.echo(plain(line))
        return EXIT_OK
    session = read(hit.place.transcript, homes=archive.homes, links=archive.links())
    turn, branch = _find_turn_or_branch(session, hit.place.line)
    colour = out.use_colour(enabled=colour)
    options = TextOptions(
        width=out.page_width(),
        colour=colour,
        agents=Detail.FOLD,
        everything=True,
        branch=branch,
        turn=turn,
        zone=zone,
    )
    out.print_message(str(hit.place))
    lines: Iterable[str] = session_to_text(session, options, find_notifications(session))
    first_line = 0
    if turn is not None or branch is not None:
        lines = list(lines)
        first_line = _find_hit_line(hit, lines)
    out.print_lines(lines, colour=colour, pager=pager, first_line=first_line)
    return EXIT_OK if len(session) else EXIT_NOTHING


def _find_hit_line(hit: Hit, lines: Sequence[str]) -> int:
    """The line with most of a hit's words, together with the two lines after it; 0 if no line has a match."""
    matched = {
        hit.snippet[start:end].split()[0].lower() for start, end in hit.highlights if hit.snippet[start:end].split()
    }
    words = {word.lower() for word in hit.snippet.strip("…").split()}
    shown = [click.unstyle(line).lower() for line in lines]
    best, at = 0, 0
    for number, line in enumerate(shown, 1):
        if any(word in line for word in matched):
            common = len(words.intersection(" ".join(shown[number - 1 : number + 2]).split()))
            if common > best:
                best, at = common, number
    return at


def _find_turn_or_branch(session: Session, line: int) -> tuple[int | None, int | None]:
    """The turn or the branch that contains a line; neither if the line is in none, and then all is shown."""
    for number, branch in enumerate(session.branches, 1):
        if any(entry.line.number == line for entry in branch.entries):
            return None, number
    for turn in session.turns:
        if any(entry.line.number == line for entry in turn.entries):
            return turn.number, None
    return None, None
