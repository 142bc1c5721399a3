"""`threadline scan`: report secrets found in transcripts, without showing them.

File names, ids and JSON keys may themselves be secrets, so that they are redacted as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from threadline.model.homes import Found
    from threadline.model.places import Place
    from threadline.reports import Exposure, ScanResult

_MAX_PLACES = 3
_PATH_KEY = re.compile(r"[^.$\[\]]+")
_FIELD_NAME = re.compile(r"[A-Za-z_]{1,32}")
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
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home
    from threadline.model.times import parse_moment
    from threadline.reports import SecretFilter

    wanted = SecretFilter(
        _check_kinds(kinds),
        personal or bool(_personal_kinds(kinds)),
        parse_moment(since) if since is not None else None,
    )
    named = _find_paths(paths, homes) if paths else None
    archive = open_archive(homes, jobs, found=() if paths else None, index=False)
    found = archive.look() if named is None else named
    if not found:
        report_no_home()
        return screen.report_nothing("Nothing was scanned.")
    seen = archive.scan(wanted, found)
    exposures = sorted(
        (exposure for part in seen for exposure in part.exposures), key=lambda one: (one.kind, one.place)
    )
    _print_problems(seen)
    if output != "table":
        out.print_rows(map(_exposure_row, exposures), output)
    elif exposures:
        click.echo(_exposure_page(exposures, len(seen)))
    if exposures:
        return EXIT_OK
    return screen.report_nothing(f"Nothing was found in {out.counted(len(seen), 'file')}.")


def _check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that were asked for, if there are such.

    Raises:
        BadQuery: there is no such kind.
    """
    from difflib import get_close_matches

    from threadline.errors import BadQuery
    from threadline.redact import KINDS

    for kind in kinds:
        if kind not in KINDS:
            near = get_close_matches(kind, KINDS, n=1)
            meant = f"did you mean {near[0]!r}?" if near else "docs/redaction.md lists all."
            raise BadQuery(f"There is no kind {kind!r}; {meant}")
    return kinds


def _personal_kinds(kinds: tuple[str, ...]) -> frozenset[str]:
    from threadline.redact import PERSONAL_KINDS

    return PERSONAL_KINDS & set(kinds)


def _find_paths(paths: tuple[str, ...], homes: tuple[str, ...]) -> list[Found]:
    """What lies at the paths; `--home` says where to look for ids."""
    from threadline.cli.resolve import find_by_name

    return [find_by_name(path, homes)[0] for path in paths]


def _redacted_place(place: Place) -> str:
    """A place without those of its keys that are no names of fields: a key may itself be a secret."""
    path = _redact(place.transcript)
    return f"{path}:{place.line}{_PATH_KEY.sub(_redact_key, place.json_path)}" if place.line else path


@cache
def _redact(name: str) -> str:
    """A file's name or an id without what is a secret in it: whoever writes a file may name it by one."""
    from threadline.redact import find_spans, merge_overlapping

    for start, end, _ in reversed(merge_overlapping(find_spans(name, personal=False))):
        name = f"{name[:start]}…{name[end:]}"
    return name


def _redact_key(found: re.Match[str]) -> str:
    key = found[0]
    return _redact(key) if _FIELD_NAME.fullmatch(key) or key.isdecimal() else "…"


def _exposure_row(exposure: Exposure) -> dict[str, Any]:
    """A row for programs; what tells secrets apart within a run stays inside."""
    from threadline.cli import output as out

    return {
        "kind": exposure.kind,
        "place": _redacted_place(exposure.place),
        "count": exposure.count,
        "session": _redact(exposure.session) if exposure.session is not None else None,
        "timestamp": out.to_json_value(exposure.timestamp),
    }


def _exposure_page(exposures: list[Exposure], files: int) -> str:
    """A table of kinds, the most frequent first, and a few places of each."""
    from threadline.cli import output as out
    from threadline.redact import KINDS

    kinds: dict[str, list[Exposure]] = {}
    for exposure in exposures:
        kinds.setdefault(exposure.kind, []).append(exposure)
    rows = []
    for kind, ones in sorted(kinds.items(), key=lambda item: (-sum(one.count for one in item[1]), item[0])):
        different = len(frozenset().union(*(one.marks for one in ones)))
        rows.append([kind, f"{sum(one.count for one in ones):,}", f"{different:,}", f"{len(ones):,}", KINDS[kind]])
    table = out.format_table(["kind", "found", "different", "places", "what"], rows, right=(1, 2, 3))
    shown = [out.format_heading(f"Secrets in {out.counted(files, 'file')}"), "", table, "", out.format_heading("Where")]
    return "\n".join([*shown, *_place_lines(kinds)])


def _place_lines(kinds: dict[str, list[Exposure]]) -> Iterator[str]:
    from threadline.cli import output as out

    for kind, ones in kinds.items():
        yield f"  {kind}"
        for one in ones[:_MAX_PLACES]:
            yield f"    {out.plain(_redacted_place(one.place))}"
        if len(ones) > _MAX_PLACES:
            yield f"    and {len(ones) - _MAX_PLACES:,} more: threadline scan --kind {kind} --jsonl"


def _print_problems(seen: Iterable[ScanResult]) -> None:
    from threadline.cli import output as out

    for problem in (problem for part in seen for problem in part.problems):
        click.echo(f"threadline: {out.plain(_redact(problem.message))}", err=True)
