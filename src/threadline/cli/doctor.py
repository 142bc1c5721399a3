"""`threadline doctor`: read everything; report damage, unknown data and how much was understood."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, jobs_option, output_options
from threadline.model.places import Place
from threadline.reports import Examination

if TYPE_CHECKING:
    from threadline.model.homes import Found

_EPILOG = """
\b
Examples:
  threadline doctor                       all homes
  threadline doctor --check               and prove that every byte comes back
  threadline doctor session.jsonl other/  transcripts, or all below a folder
  threadline doctor 55604662              the session whose id starts so
  threadline doctor --json | jq .drift    what this version does not know
  threadline doctor --csv                 problems and drift as rows

\b
Exit codes: 0 read; 1 nothing to read; 2 an error, or a failed round trip.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Read each transcript twice and prove that its entries give it back.")
@home_option
@jobs_option
@output_options
def doctor(paths: tuple[str, ...], *, check: bool, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Read everything; say what is wrong, what is new, and how much was understood.

    PATH is a transcript, a folder, a home, the start of a session's or agent's id, or `last`; all homes without one.
    Problems are damage and oddities with their places. Drift is every kind, subtype, block, tool result and field that
    the model does not know.
    """
    from threadline.cli import output as out
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    named = _find_paths(paths, homes) if paths else None
    archive = open_archive(homes, jobs, found=() if paths else None, index=False)
    found = archive.look() if named is None else named
    if not found:
        report_no_home()
        if output == "table":
            return EXIT_NOTHING
    seen = archive.examine(found, check=check)
    nothing = not (seen.transcripts or seen.side_files or seen.problems)
    if nothing and found:
        where = ", ".join(repr(path) for path in paths or map(str, (one.home.path for one in found)))
        click.echo(f"threadline: Nothing to read in {out.plain(where)}: no transcripts, no side files.", err=True)
    if output == "json":
        out.print_json(examination_record(seen))
    elif output == "table":
        if not nothing:
            click.echo(examination_page(seen))
    else:
        out.print_rows(finding_rows(seen), output)
    if seen.round_trip is False:
        return EXIT_FAILED
    return EXIT_OK if seen.transcripts else EXIT_NOTHING


def _find_paths(paths: tuple[str, ...], homes: tuple[str, ...]) -> list[Found]:
    """What lies at the paths; `--home` says where to look for ids."""
    from threadline.cli.resolve import find_by_name

    named = [find_by_name(path, homes) for path in paths]
    if homes and not all(is_id for _found, is_id in named):
        raise click.UsageError("Give either PATH or --home: a home is a path, too.")
    return [found for found, _is_id in named]


_MAX_ROWS = 40


def examination_record(seen: Examination) -> dict[str, Any]:
    """The findings for a program; the keys are stable."""
    value: dict[str, Any] = out.to_json_value(seen)
    # One word a thing: what the page and the entries' kind call damaged.
    words = {"malformed_bytes": "damaged_bytes"}
    return {**{words.get(key, key): one for key, one in value.items()}, "understood": seen.understood}


def finding_rows(seen: Examination) -> Iterator[dict[str, Any]]:
    """Problems and drift as rows of one table."""
    for kind, problem in seen.problems.items():
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
    for item in seen.drift:
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


def examination_page(seen: Examination) -> str:
    """The findings for a person."""
    sections = [
        "\n".join(_summary_lines(seen)),
        _kind_table(seen),
        _version_summary(seen),
        _problem_table(seen),
        _drift_table(seen),
    ]
    return "\n\n".join(section for section in sections if section)


def _summary_lines(seen: Examination) -> Iterator[str]:
    counts = (
        out.counted(seen.lines, "line"),
        out.counted(seen.entries, "entry", "entries"),
        out.format_size(seen.bytes),
    )
    side = sum(seen.side_files.values())
    beside = f"; and {out.counted(side, 'side file')}" if side else ""
    yield out.wrap_text(f"Read {out.counted(seen.transcripts, 'transcript')}: {', '.join(counts)}{beside}", indent="  ")
    damaged = f", {out.format_size(seen.malformed_bytes)} damaged" if seen.malformed_bytes else ""
    pending = (
        f", {out.format_size(seen.pending_bytes)} pending (last lines without an end)" if seen.pending_bytes else ""
    )
    if seen.bytes:
        yield out.wrap_text(f"Understood {format_share(seen.understood)} of bytes{damaged}{pending}", indent="  ")
    if seen.round_trip is not None:
        every = "every transcript that could be read" if "unreadable" in seen.problems else "every transcript"
        yield f"Round trip exact: {every} came back byte for byte" if seen.round_trip else "ROUND TRIP FAILED"


def format_share(part: float) -> str:
    """A share in hundredths of a percent, never rounded up: 100 % is all.

    >>> share(0.999999)
    '99.99 %'
    """
    return f"{int(part * 10_000) / 100:.2f}".rstrip("0").rstrip(".") + " %"


def _kind_table(seen: Examination) -> str:
    if not seen.kinds:
        return ""
    cells = [(f"{count:,}", kind) for kind, count in seen.kinds.items()]
    others = len(cells) - _MAX_ROWS
    more = f"\n  and {out.counted(others, 'kind')} more: see --json" if others > 0 else ""
    table = out.format_table(("count", "kind"), cells[:_MAX_ROWS], right=(0,))
    return f"{out.format_heading('Entry kinds')}\n{table}{more}"


def _version_summary(seen: Examination) -> str:
    if not seen.versions:
        return ""
    names = list(seen.versions)
    most = sorted(seen.versions.items(), key=lambda item: -item[1])[:5]
    shown = ", ".join(f"{name} ({count:,})" for name, count in most)
    between = f"{len(names)}, from {names[0]} to {names[-1]}; most entries: " if len(names) > 1 else ""
    return f"{out.format_heading('Versions')}\n{out.wrap_text(between + shown, '  ')}"


def _problem_table(seen: Examination) -> str:
    if not seen.problems:
        return f"{out.format_heading('Problems')}\n  none"
    cells = [
        (kind, f"{one.count:,}", f"{one.recovered:,}", _lost_text(kind, one.lost, seen), _shorten_place(place))
        for kind, one in seen.problems.items()
        for place in one.places[:1]
    ]
    headings = ("kind", "count", "recovered", "lost", "for example")
    shown = out.format_table(headings, cells, right=(1, 2, 3), ends=True)
    return f"{out.format_heading('Problems (docs/problems.md explains each kind)')}\n{shown}"


def _lost_text(kind: str, lost: int, seen: Examination) -> str:
    """What a kind of problem cost. An unfinished last line is not lost: the rest of it may still come."""
    if kind == "torn-tail" and seen.pending_bytes:
        return f"{out.format_size(seen.pending_bytes)} pending"
    return out.format_size(lost) if lost else ""


def _shorten_place(place: str) -> str:
    """A place for a person: file and line. Where in the line, JSON tells."""
    parsed = Place.parse(place) if "$" in place else None
    return f"{parsed.transcript}:{parsed.line}" if parsed is not None and parsed.line else place


def _drift_table(seen: Examination) -> str:
    if not seen.drift:
        return f"{out.format_heading('Drift')}\n  none: every kind, block, tool result and field is known"
    cells = [
        (item.what, item.name, item.within, f"{item.count:,}", item.first_version or "", _shorten_place(item.place))
        for item in seen.drift[:_MAX_ROWS]
    ]
    others = len(seen.drift) - len(cells)
    headings = ("what", "name", "within", "count", "since", "for example")
    shown = out.format_table(headings, cells, right=(3,), shrink=(1, 2, 4), ends=True)
    more = f"\n  and {others:,} more: see --json" if others > 0 else ""
    note = out.format_heading("Drift: what this version does not know (kept, reachable as entry.data)")
    return f"{note}\n{shown}{more}"
