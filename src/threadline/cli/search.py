"""`threadline search`: find anything that was said or done, in all sessions."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, output_options
from threadline.cli.screen import pager_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadline.archive import Archive
    from threadline.model.hit import Hit, Hits
    from threadline.search.ranking import Sort

_SHOWN = 20
_LIKE = 0.8
_LEFT_OUT = re.compile("-[^-].")
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


class _Asking(click.Command):
    """A command whose words may begin with a minus: `-harbour` is no `-h`. `--open` may be without a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, those that are words with a space before them."""
        given: list[str] = []
        for one, after in zip_longest(args, args[1:], fillvalue=""):
            is_first = one == "--open" and not (after.isascii() and after.isdecimal())
            given.append("--open=1" if is_first else f" {one}" if _LEFT_OUT.match(one) else one)
        return super().parse_args(ctx, given)


@click.command(cls=_Asking, epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="QUERY...")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_SHOWN,
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
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home
    from threadline.cli.refreshing import is_there
    from threadline.cli.search_open import open_hit
    from threadline.cli.search_page import page
    from threadline.model.zone import zone

    _check(words)
    if opened is not None and output != "table":
        raise click.UsageError("--open shows a session to be read; leave out --json, --jsonl and --csv.")
    text = " ".join(words)
    is_page = output == "table"
    with archive_of(homes, quiet=0) as archive:
        if not archive.homes:
            say_no_home()
            return NOTHING
        if not is_there(archive, fresh=not no_refresh):
            return NOTHING
        hits = archive.search(
            text, limit=limit, every=every, sort=cast("Sort", sort), zone=zone(), near=not exact, seconds=timeout
        )
        if opened is not None:
            _say(archive, text, hits)
            return open_hit(archive, hits.hits, opened, colour=not no_color, pager=pager) if hits.hits else NOTHING
        if not is_page:
            out.print_rows((_row(archive, hit, context) for hit in hits.hits), output)
        else:
            _say(archive, text, hits)
            coloured = screen.colour(wanted=not no_color)
            for line in page(archive, hits, context, coloured=coloured, every=every):
                click.echo(line, color=coloured)
        if not is_page and (hits.near or hits.cut_short or not hits.hits):
            _say(archive, text, hits)
    return FOUND if hits.hits and not hits.near else NOTHING


def _check(words: Sequence[str]) -> None:
    """What looks like an option that is spelt wrong is no word to be found."""
    from difflib import get_close_matches

    known = [option for one in click.get_current_context().command.params for option in one.opts]
    for word in words:
        near = get_close_matches(word.split("=")[0], [one for one in known if one.startswith("--")], 1, _LIKE)
        if word.startswith("--") and near:
            raise click.UsageError(f"There is no option {word}; did you mean {near[0]}? To find it: '\"{word}\"'.")


def _row(archive: Archive, hit: Hit, context: int) -> dict[str, Any]:
    from threadline.cli import output as out
    from threadline.cli.session_rows import entry_row

    before, after = archive.around(hit, context) if context else ([], [])
    return {
        "session": hit.session,
        "title": hit.title,
        "timestamp": out.to_plain(hit.timestamp),
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
        "before": [out.to_plain(entry_row(one, None, hit.agent)) for one in before],
        "after": [out.to_plain(entry_row(one, None, hit.agent)) for one in after],
    }


def _say(archive: Archive, text: str, hits: Hits) -> None:
    """Say what there is instead, where nothing matches."""
    from threadline.cli import screen
    from threadline.model.zone import zone

    if hits.note is not None:
        screen.nothing(hits.note)
    elif not hits.hits:
        screen.nothing(archive.why(text, zone=zone()))
