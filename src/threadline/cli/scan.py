"""`threadline scan`: which secrets stand in the archive, and where; it never shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from threadline.model.found import Found
    from threadline.model.place import Place
    from threadline.survey.scan import Exposure, Scanned

_PLACES = 3
_KEY = re.compile(r"[^.$\[\]]+")
_NAME = re.compile(r"[A-Za-z_]{1,32}")
_EPILOG = """
\b
Examples:
  threadline scan                        all homes
  threadline scan 55604662               the session whose id starts so
  threadline scan session.jsonl other/   transcripts, or all below a folder
  threadline scan --kind aws-access-key-id --kind password
  threadline scan --since 7d --jsonl     every place of the last week
  threadline scan --personal             addresses, names and homes, too

\b
Exit codes: 0 something was found; 1 nothing was; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[SESSION|PATH]...")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only of this kind; may be given several times.")
@click.option("--since", metavar="WHEN", help="Only what was written from then on: 2026-11-03, 7d, yesterday.")
@click.option("--personal", is_flag=True, help="E-mail and IP addresses, host names, user names and homes, too.")
@home_option
@jobs_option
@output_options
def scan(
    paths: tuple[str, ...],
    *,
    kinds: tuple[str, ...],
    since: str | None,
    personal: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Say which secrets stand in transcripts and the files beside them, by kind and place. They are never shown.

    PATH is a transcript, a folder or a home; SESSION the start of a session's or agent's id, or `last`; all homes when
    none is given. Kinds are listed in docs/redaction.md. A secret may be gone from where it was used and still stand
    here.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home
    from threadline.cli.when import moment
    from threadline.survey.scan import Wanted

    wanted = Wanted(_known(kinds), personal or bool(_personal(kinds)), moment(since) if since is not None else None)
    named = _named(paths, homes) if paths else None
    archive = archive_of(homes, jobs, found=() if paths else None, index=False)
    found = archive.look() if named is None else named
    if not found:
        say_no_home()
        return screen.nothing("Nothing was scanned.")
    seen = archive.scan(wanted, found)
    exposures = sorted((one for part in seen for one in part.exposures), key=lambda one: (one.kind, one.place))
    _say_problems(seen)
    if output != "table":
        out.print_rows(map(_row, exposures), output)
    elif exposures:
        click.echo(_page(exposures, len(seen)))
    if exposures:
        return FOUND
    return screen.nothing(f"Nothing was found in {out.counted(len(seen), 'file')}.")


def _known(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that were asked for, if there are such.

    Raises:
        BadQuery: there is no such kind.
    """
    from difflib import get_close_matches

    from threadline.errors import BadQuery
    from threadline.render.redaction.kinds import KINDS

    for kind in kinds:
        if kind not in KINDS:
            near = get_close_matches(kind, KINDS, n=1)
            meant = f"did you mean {near[0]!r}?" if near else "docs/redaction.md lists all."
            raise BadQuery(f"There is no kind {kind!r}; {meant}")
    return kinds


def _personal(kinds: tuple[str, ...]) -> frozenset[str]:
    from threadline.render.redaction.finder import PERSONAL

    return PERSONAL & set(kinds)


def _named(paths: tuple[str, ...], homes: tuple[str, ...]) -> list[Found]:
    """What lies at the paths; `--home` says where to look for ids."""
    from threadline.cli.opening import by_name

    return [by_name(path, homes)[0] for path in paths]


def _told(place: Place) -> str:
    """A place without those of its keys that are no names of fields: a key may itself be a secret."""
    path = _harmless(place.transcript)
    return f"{path}:{place.line}{_KEY.sub(_plain_key, place.json_path)}" if place.line else path


@cache
def _harmless(name: str) -> str:
    """A file's name or an id without what is a secret in it: whoever writes a file may name it by one."""
    from threadline.render.redaction.finder import disjoint, spans

    for start, end, _ in reversed(disjoint(spans(name, personal=False))):
        name = f"{name[:start]}…{name[end:]}"
    return name


def _plain_key(found: re.Match[str]) -> str:
    key = found[0]
    return _harmless(key) if _NAME.fullmatch(key) or key.isdecimal() else "…"


def _row(one: Exposure) -> dict[str, Any]:
    """A row for programs; what tells secrets apart within a run stays inside."""
    from threadline.cli import output as out

    return {
        "kind": one.kind,
        "place": _told(one.place),
        "count": one.count,
        "session": _harmless(one.session) if one.session is not None else None,
        "timestamp": out.to_plain(one.timestamp),
    }


def _page(exposures: list[Exposure], files: int) -> str:
    """A table of kinds, the most frequent first, and a few places of each."""
    from threadline.cli import output as out
    from threadline.render.redaction.kinds import KINDS

    kinds: dict[str, list[Exposure]] = {}
    for one in exposures:
        kinds.setdefault(one.kind, []).append(one)
    rows = []
    for kind, ones in sorted(kinds.items(), key=lambda item: (-sum(one.count for one in item[1]), item[0])):
        different = len(frozenset().union(*(one.marks for one in ones)))
        rows.append([kind, f"{sum(one.count for one in ones):,}", f"{different:,}", f"{len(ones):,}", KINDS[kind]])
    table = out.table(["kind", "found", "different", "places", "what"], rows, right=(1, 2, 3))
    shown = [out.heading(f"Secrets in {out.counted(files, 'file')}"), "", table, "", out.heading("Where")]
    return "\n".join([*shown, *_places(kinds)])


def _places(kinds: dict[str, list[Exposure]]) -> Iterator[str]:
    from threadline.cli import output as out

    for kind, ones in kinds.items():
        yield f"  {kind}"
        for one in ones[:_PLACES]:
            yield f"    {out.plain(_told(one.place))}"
        if len(ones) > _PLACES:
            yield f"    and {len(ones) - _PLACES:,} more: threadline scan --kind {kind} --jsonl"


def _say_problems(seen: Iterable[Scanned]) -> None:
    from threadline.cli import output as out

    for problem in (problem for part in seen for problem in part.problems):
        click.echo(f"threadline: {out.plain(_harmless(problem.message))}", err=True)
