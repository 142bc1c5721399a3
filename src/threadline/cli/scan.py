"""`threadline scan`: report secrets found in transcripts, without showing them.

File names, ids and JSON keys may themselves be secrets, so they are redacted as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import cache
from shlex import quote
from typing import Any

import click

from threadline.cli import output as out
from threadline.cli.options import (
    complete_with,
    home_option,
    jobs_option,
    output_options,
    since_option,
    timezone_option,
)
from threadline.cli.resolve import find_by_name, open_archive
from threadline.errors import BadQuery, did_you_mean
from threadline.json_values import to_json_value
from threadline.model.places import Place
from threadline.model.text import count
from threadline.model.times import TimeRange
from threadline.redact import KINDS, PERSONAL_KINDS, Level, find_spans, merge_overlapping
from threadline.render import plain
from threadline.reports import Exposure, ScanResult, SecretFilter

_MAX_PLACES = 3
_PATH_KEY = re.compile(r"[^.$\[\]]+")
_FIELD_NAME = re.compile(r"[A-Za-z_]{1,32}")
_EPILOG = """
\b
Examples:
  threadline scan                        all homes
  threadline scan 55604662               a session with its agents
  threadline scan session.jsonl other/   transcripts, or all in a folder
  threadline scan --kind aws-access-key-id --kind password
  threadline scan --since 7d --jsonl     every place of the last seven days
  threadline scan --personal             also addresses, names and homes
  threadline scan --level strict         also random values, paths and URLs

\b
Exit codes: 0 secrets found; 1 none found; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[SESSION|PATH]...", shell_complete=complete_with("sessions"))
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only secrets of this kind. Repeatable.")
@since_option("Only what was written from WHEN on: 2026-11-03, 7d, yesterday.")
@timezone_option
@click.option(
    "--personal", is_flag=True, help="Also e-mail and IP addresses, host names, user names and home directories."
)
@click.option(
    "--level",
    type=click.Choice([Level.STANDARD.value, Level.STRICT.value]),
    default=Level.STANDARD.value,
    help="strict: also random values, paths, URLs and all addresses, as `export --level strict` removes them."
    f" Default: {Level.STANDARD.value}.",
)
@home_option
@jobs_option
@output_options
def scan(
    paths: tuple[str, ...],
    *,
    kinds: tuple[str, ...],
    since: str | None,
    zone: tzinfo,
    personal: bool,
    level: str,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Report secrets found in transcripts.

    Also scans the files that belong to transcripts. Lists secrets by kind and place, and never shows them. PATH is a
    transcript, a folder or a home; SESSION is the start of a session or agent id, or `last`; without either, all homes
    are scanned. A session includes its agents and side files. docs/redaction.md lists the kinds. Note that a secret may
    remain in a transcript after it was removed from the place where it was used.
    """
    _check_kinds(kinds)
    start = TimeRange.parse(since, tz=zone).since
    criteria = SecretFilter(kinds, personal or bool(PERSONAL_KINDS & set(kinds)), start, Level(level))
    found = [find_by_name(path, homes, whole_session=True)[0] for path in paths] if paths else None
    archive = open_archive(homes, jobs, found=() if paths else None, index=False, require_home=True)
    results = archive.scan(criteria, archive.look() if found is None else found)
    _print_problems(results)
    options = [
        *(("--since", since) if since is not None else ()),
        *(("--level", level) if level != Level.STANDARD else ()),
        *(word for home in homes for word in ("--home", home)),
    ]
    hint = " ".join(map(quote, ["threadline", "scan", *paths, *options]))
    exposures = (exposure for result in results for exposure in result.exposures)
    return out.print_listing(
        sorted(exposures, key=lambda exposure: (exposure.kind, exposure.place)),
        output,
        row=_exposure_row,
        table=lambda exposures: _exposure_page(exposures, len(results), hint),
        nothing=lambda: f"No secrets found in {count(len(results), 'file')}.",
    )


def _check_kinds(kinds: tuple[str, ...]) -> None:
    """Check that all kinds exist.

    Raises:
        BadQuery: one does not.
    """
    for kind in kinds:
        if kind not in KINDS:
            match = did_you_mean(kind, KINDS)
            hint = f"Did you mean {match!r}?" if match else "docs/redaction.md lists all kinds."
            raise BadQuery(f"Unknown kind {kind!r}. {hint}")


def _redacted_place(place: Place) -> str:
    """A place whose JSON path shows only ordinary field names: a key may itself be a secret."""
    path = _redact(place.transcript)
    return f"{path}:{place.line}{_PATH_KEY.sub(_redact_key, place.json_path)}" if place.line else path


@cache
def _redact(name: str) -> str:
    """A file name or id without the secrets in it."""
    for start, end, _ in reversed(merge_overlapping(find_spans(name, personal=False))):
        name = f"{name[:start]}…{name[end:]}"
    return name


def _redact_key(match: re.Match[str]) -> str:
    key = match[0]
    return _redact(key) if _FIELD_NAME.fullmatch(key) or key.isdecimal() else "…"


def _exposure_row(exposure: Exposure) -> dict[str, Any]:
    """A row for programs, without the marks that distinguish secrets within a run."""
    return {
        "kind": exposure.kind,
        "place": _redacted_place(exposure.place),
        "count": exposure.count,
        "session": _redact(exposure.session) if exposure.session is not None else None,
        "timestamp": to_json_value(exposure.timestamp),
    }


def _exposure_page(exposures: Sequence[Exposure], files: int, command: str) -> str:
    """A table of kinds, most frequent first, and a few places of each. `command` scans the same files."""
    kinds: dict[str, list[Exposure]] = {}
    for exposure in exposures:
        kinds.setdefault(exposure.kind, []).append(exposure)
    rows = []
    totals = {kind: sum(exposure.count for exposure in places) for kind, places in kinds.items()}
    for kind, total in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        different = len(frozenset().union(*(exposure.marks for exposure in kinds[kind])))
        rows.append([kind, f"{total:,}", f"{different:,}", f"{len(kinds[kind]):,}", KINDS[kind]])
    table = out.format_table(
        ["kind", "found", "different", "places", "what"], rows, right=(1, 2, 3), drop=("different",)
    )
    heading = out.format_heading(f"Secrets ({count(files, 'file')} scanned)")
    shown = [heading, "", table, "", out.format_heading("Where")]
    return "\n".join([*shown, *_place_lines(kinds, command)])


def _place_lines(kinds: dict[str, list[Exposure]], command: str) -> Iterator[str]:
    for kind, exposures in kinds.items():
        yield f"  {kind}"
        for exposure in exposures[:_MAX_PLACES]:
            place = _redacted_place(exposure.place)
            yield f"    {out.shorten_path(place, out.terminal_width() - 4) if out.has_width() else plain(place)}"
        if len(exposures) > _MAX_PLACES:
            yield out.wrap_text(f"and {len(exposures) - _MAX_PLACES:,} more: {command} --kind {kind} --jsonl", "    ")


def _print_problems(results: Iterable[ScanResult]) -> None:
    for result in results:
        for problem in result.problems:
            out.print_message(_redact(problem.message))
