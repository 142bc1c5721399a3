"""`threadline doctor`: check every transcript for damage, unknown data, and how much was understood."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import complete_with, home_option, jobs_option, output_options
from threadline.cli.resolve import find_by_name, open_archive
from threadline.json_values import to_json_value
from threadline.model.homes import Found
from threadline.model.places import Place
from threadline.model.text import count, format_coverage, format_size, join_some
from threadline.render import plain
from threadline.reports import Examination

_EPILOG = """
\b
Examples:
  threadline doctor                       all homes
  threadline doctor --check               also verify every byte
  threadline doctor session.jsonl other/  files, or all in a folder
  threadline doctor 55604662              a session with its agents
  threadline doctor --json | jq .drift    what threadline does not know
  threadline doctor --csv                 problems and drift as rows

\b
Exit codes: 0 success; 1 nothing to read; 2 an error, or --check failed.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_with("sessions"))
@click.option("--check", is_flag=True, help="Verify that each transcript's entries reproduce it byte for byte.")
@home_option
@jobs_option
@output_options
def doctor(paths: tuple[str, ...], *, check: bool, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Check every transcript for damage and unknown fields.

    PATH is a transcript, a folder, a home, the start of a session or agent id, or `last`; without it, all homes are
    checked. A session id includes the session's agents and side files. Problems are damaged or inconsistent data and
    required fields that are missing, with their places. Drift is every kind, subtype, block, tool result and field
    that threadline does not know.
    """
    found = _find_paths(paths, homes) if paths else None
    archive = open_archive(homes, jobs, found=() if paths else None, index=False)
    if found is None:
        found = archive.look()
    if not found:
        out.report_no_home()
        if output == "table":
            return EXIT_NOTHING
    examination = archive.examine(found, check=check)
    is_empty = not (examination.transcripts or examination.side_files or examination.problems)
    if is_empty and found:
        where = ", ".join(repr(path) for path in paths or [str(home.home.path) for home in found])
        out.print_message(f"Nothing to read in {where}: no transcripts and no side files.")
    if output == "json":
        out.print_json(examination_record(examination))
    elif output != "table":
        out.print_rows(finding_rows(examination), output)
    elif not is_empty:
        click.echo(examination_page(examination))
    if examination.round_trip is False:
        return EXIT_FAILED
    return EXIT_OK if examination.transcripts else EXIT_NOTHING


def _find_paths(paths: tuple[str, ...], homes: tuple[str, ...]) -> list[Found]:
    """What is at the paths. `--home` only says where to look for ids."""
    results = [find_by_name(path, homes, whole_session=True) for path in paths]
    if homes and not all(is_id for _found, is_id in results):
        raise click.UsageError("Use either PATH or --home: a home may also be a PATH.")
    return [found for found, _is_id in results]


_MAX_ROWS = 40


def examination_record(examination: Examination) -> dict[str, Any]:
    """The findings for a program. The keys are stable."""
    value: dict[str, Any] = to_json_value(examination)
    # The same word as on the page and for the kind of entries.
    names = {"malformed_bytes": "damaged_bytes"}
    return {**{names.get(key, key): item for key, item in value.items()}, "understood": examination.understood}


def finding_rows(examination: Examination) -> Iterator[dict[str, Any]]:
    """Problems and drift as rows of one table."""
    for kind, problem in examination.problems.items():
        yield {
            "finding": "problem",
            "what": kind,
            "name": "",
            "within": "",
            "count": problem.count,
            "recovered": problem.recovered,
            "lost": problem.lost,
            "bytes": None,
            "first_version": None,
            "place": problem.places[0],
        }
    for missing in examination.missing_fields:
        yield {
            "finding": "missing",
            "what": "field",
            "name": missing.field,
            "within": missing.kind,
            "count": missing.count,
            "recovered": None,
            "lost": None,
            "bytes": None,
            "first_version": missing.since,
            "place": missing.places[0],
        }
    for item in examination.drift:
        yield {
            "finding": "drift",
            "what": item.what,
            "name": item.name,
            "within": item.within,
            "count": item.count,
            "recovered": None,
            "lost": None,
            "bytes": item.bytes,
            "first_version": item.first_version,
            "place": item.place,
        }


def examination_page(examination: Examination) -> str:
    """The findings for a person."""
    sections = [
        "\n".join(_summary_lines(examination)),
        _kind_table(examination),
        _version_summary(examination),
        _problem_table(examination),
        _missing_table(examination),
        _drift_table(examination),
    ]
    return "\n\n".join(section for section in sections if section)


def _summary_lines(examination: Examination) -> Iterator[str]:
    counts = (
        count(examination.lines, "line"),
        count(examination.entries, "entry", "entries"),
        format_size(examination.bytes),
    )
    side = sum(examination.side_files.values())
    beside = f" and {count(side, 'side file')}" if side else ""
    yield out.wrap_text(
        f"Read {count(examination.transcripts, 'transcript')} ({', '.join(counts)}){beside}", indent="  "
    )
    damaged = f", {format_size(examination.malformed_bytes)} damaged" if examination.malformed_bytes else ""
    pending = (
        f", {format_size(examination.pending_bytes)} pending (unfinished last lines)"
        if examination.pending_bytes
        else ""
    )
    if examination.bytes:
        yield out.wrap_text(
            f"Understood {format_coverage(examination.understood)} of bytes{damaged}{pending}", indent="  "
        )
    for reason, unlisted in examination.unlisted.items():
        names = join_some(plain(place) for place in unlisted.places)
        yield out.wrap_text(
            f"In no listed session: {count(unlisted.count, 'transcript')}, because {reason}: {names}", indent="  "
        )
    if examination.round_trip is not None:
        subject = "every readable transcript" if "unreadable" in examination.problems else "every transcript"
        yield f"Check passed: {subject} is reproduced byte for byte" if examination.round_trip else "CHECK FAILED"


def _kind_table(examination: Examination) -> str:
    if not examination.kinds:
        return ""
    cells = [(f"{number:,}", kind) for kind, number in examination.kinds.items()]
    others = len(cells) - _MAX_ROWS
    more = f"\n  and {count(others, 'kind')} more: see --json" if others > 0 else ""
    table = out.format_table(("count", "kind"), cells[:_MAX_ROWS], right=(0,))
    return f"{out.format_heading('Entry kinds')}\n{table}{more}"


def _version_summary(examination: Examination) -> str:
    if not examination.versions:
        return ""
    names = list(examination.versions)
    most = sorted(examination.versions.items(), key=lambda item: -item[1])[:5]
    shown = ", ".join(f"{name} ({number:,})" for name, number in most)
    between = f"{len(names)}, from {names[0]} to {names[-1]}; most entries: " if len(names) > 1 else ""
    return f"{out.format_heading('Versions')}\n{out.wrap_text(between + shown, '  ')}"


def _problem_table(examination: Examination) -> str:
    if not examination.problems:
        return f"{out.format_heading('Problems')}\n  none"
    cells = [
        (
            kind,
            f"{problem.count:,}",
            f"{problem.recovered:,}",
            _lost_text(kind, problem.lost, examination),
            _shorten_place(place),
        )
        for kind, problem in examination.problems.items()
        for place in problem.places[:1]
    ]
    headings = ("kind", "count", "recovered", "lost", "for example")
    shown = out.format_table(headings, cells, right=(1, 2, 3), ends=True)
    return f"{out.format_heading('Problems (docs/problems.md explains each kind)')}\n{shown}"


def _missing_table(examination: Examination) -> str:
    if not examination.missing_fields:
        return ""
    cells = [
        (item.kind, item.field, item.since or "", f"{item.count:,}", _shorten_place(item.places[0]))
        for item in examination.missing_fields[:_MAX_ROWS]
    ]
    others = len(examination.missing_fields) - len(cells)
    headings = ("kind", "field", "since", "count", "for example")
    shown = out.format_table(headings, cells, right=(3,), ends=True)
    more = f"\n  and {others:,} more: see --json" if others > 0 else ""
    return f"{out.format_heading('Missing fields that Claude Code always writes')}\n{shown}{more}"


def _lost_text(kind: str, lost: int, examination: Examination) -> str:
    """How much a kind of problem lost. An unfinished last line is not lost: the rest may still be written."""
    if kind == "torn-tail" and examination.pending_bytes:
        return f"{format_size(examination.pending_bytes)} pending"
    return format_size(lost) if lost else ""


def _shorten_place(place: str) -> str:
    """A place for people: file and line, without the JSON path."""
    parsed = Place.parse(place) if "$" in place else None
    return f"{parsed.transcript}:{parsed.line}" if parsed is not None and parsed.line else place


def _drift_table(examination: Examination) -> str:
    if not examination.drift:
        return f"{out.format_heading('Drift')}\n  none: every kind, block, tool result and field is known"
    cells = [
        (item.what, item.name, item.within, f"{item.count:,}", item.first_version or "", _shorten_place(item.place))
        for item in examination.drift[:_MAX_ROWS]
    ]
    others = len(examination.drift) - len(cells)
    headings = ("what", "name", "within", "count", "since", "for example")
    shown = out.format_table(headings, cells, right=(3,), shrink=(1, 2, 4), ends=True)
    more = f"\n  and {others:,} more: see --json" if others > 0 else ""
    note = out.format_heading("Drift: data this version does not know (preserved, see entry.data)")
    return f"{note}\n{shown}{more}"
