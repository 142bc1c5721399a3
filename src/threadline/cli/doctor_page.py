"""The doctor's findings, as a page and as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.cli import output as out
from threadline.model.place import Place
from threadline.survey.doctor import Examination

_MOST_ROWS = 40


def as_json(seen: Examination) -> dict[str, Any]:
    """The findings for a program; the keys are stable."""
    value: dict[str, Any] = out.to_plain(seen)
    # One word a thing: what the page and the entries' kind call damaged.
    words = {"malformed_bytes": "damaged_bytes"}
    return {**{words.get(key, key): one for key, one in value.items()}, "understood": seen.understood}


def rows(seen: Examination) -> Iterator[dict[str, Any]]:
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


def page(seen: Examination) -> str:
    """The findings for a person."""
    sections = ["\n".join(_summary(seen)), _kinds(seen), _versions(seen), _problems(seen), _drift(seen)]
    return "\n\n".join(section for section in sections if section)


def _summary(seen: Examination) -> Iterator[str]:
    counts = (out.counted(seen.lines, "line"), out.counted(seen.entries, "entry", "entries"), out.size(seen.bytes))
    side = sum(seen.side_files.values())
    beside = f"; and {out.counted(side, 'side file')}" if side else ""
    yield out.wrapped(f"Read {out.counted(seen.transcripts, 'transcript')}: {', '.join(counts)}{beside}", indent="  ")
    damaged = f", {out.size(seen.malformed_bytes)} damaged" if seen.malformed_bytes else ""
    pending = f", {out.size(seen.pending_bytes)} pending (last lines without an end)" if seen.pending_bytes else ""
    if seen.bytes:
        yield out.wrapped(f"Understood {share(seen.understood)} of bytes{damaged}{pending}", indent="  ")
    if seen.round_trip is not None:
        every = "every transcript that could be read" if "unreadable" in seen.problems else "every transcript"
        yield f"Round trip exact: {every} came back byte for byte" if seen.round_trip else "ROUND TRIP FAILED"


def share(part: float) -> str:
    """A share in hundredths of a percent, never rounded up: 100 % is all.

    >>> share(0.999999)
    '99.99 %'
    """
    return f"{int(part * 10_000) / 100:.2f}".rstrip("0").rstrip(".") + " %"


def _kinds(seen: Examination) -> str:
    if not seen.kinds:
        return ""
    cells = [(f"{count:,}", kind) for kind, count in seen.kinds.items()]
    others = len(cells) - _MOST_ROWS
    more = f"\n  and {out.counted(others, 'kind')} more: see --json" if others > 0 else ""
    return f"{out.heading('Entry kinds')}\n{out.table(('count', 'kind'), cells[:_MOST_ROWS], right=(0,))}{more}"


def _versions(seen: Examination) -> str:
    if not seen.versions:
        return ""
    names = list(seen.versions)
    most = sorted(seen.versions.items(), key=lambda item: -item[1])[:5]
    shown = ", ".join(f"{name} ({count:,})" for name, count in most)
    between = f"{len(names)}, from {names[0]} to {names[-1]}; most entries: " if len(names) > 1 else ""
    return f"{out.heading('Versions')}\n{out.wrapped(between + shown, '  ')}"


def _problems(seen: Examination) -> str:
    if not seen.problems:
        return f"{out.heading('Problems')}\n  none"
    cells = [
        (kind, f"{one.count:,}", f"{one.recovered:,}", _lost(kind, one.lost, seen), _example(place))
        for kind, one in seen.problems.items()
        for place in one.places[:1]
    ]
    headings = ("kind", "count", "recovered", "lost", "for example")
    shown = out.table(headings, cells, right=(1, 2, 3), ends=True)
    return f"{out.heading('Problems (docs/problems.md explains each kind)')}\n{shown}"


def _lost(kind: str, lost: int, seen: Examination) -> str:
    """What a kind of problem cost. An unfinished last line is not lost: the rest of it may still come."""
    if kind == "torn-tail" and seen.pending_bytes:
        return f"{out.size(seen.pending_bytes)} pending"
    return out.size(lost) if lost else ""


def _example(place: str) -> str:
    """A place for a person: file and line. Where in the line, JSON tells."""
    parsed = Place.parse(place) if "$" in place else None
    return f"{parsed.transcript}:{parsed.line}" if parsed is not None and parsed.line else place


def _drift(seen: Examination) -> str:
    if not seen.drift:
        return f"{out.heading('Drift')}\n  none: every kind, block, tool result and field is known"
    cells = [
        (item.what, item.name, item.within, f"{item.count:,}", item.first_version or "", _example(item.place))
        for item in seen.drift[:_MOST_ROWS]
    ]
    others = len(seen.drift) - len(cells)
    headings = ("what", "name", "within", "count", "since", "for example")
    shown = out.table(headings, cells, right=(3,), shrink=(1, 2, 4), ends=True)
    more = f"\n  and {others:,} more: see --json" if others > 0 else ""
    note = out.heading("Drift: what this version does not know (kept, reachable as entry.data)")
    return f"{note}\n{shown}{more}"
