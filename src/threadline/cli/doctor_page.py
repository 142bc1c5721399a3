"""The doctor's findings, as a page and as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.cli import output as out
from threadline.survey import Examination

_MOST_ROWS = 40


def as_json(seen: Examination) -> dict[str, Any]:
    """The findings for a program; the keys are stable."""
    value: dict[str, Any] = out.to_plain(seen)
    return {**value, "understood": seen.understood}


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
            "bytes": problem.lost,
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
            "recovered": item.count,
            "bytes": item.bytes,
            "first_version": item.first_version,
            "place": item.place,
        }


def page(seen: Examination) -> str:
    """The findings for a person."""
    sections = ["\n".join(_summary(seen)), _kinds(seen), _versions(seen), _problems(seen), _drift(seen)]
    return "\n\n".join(section for section in sections if section)


def _summary(seen: Examination) -> Iterator[str]:
    yield (
        f"Read {seen.transcripts:,} transcripts: {seen.lines:,} lines, {seen.entries:,} entries, {out.size(seen.bytes)}"
        + (f"; and {sum(seen.side_files.values()):,} side files" if seen.side_files else "")
    )
    share = _share(seen.understood)
    damaged = f", {out.size(seen.malformed_bytes)} damaged beyond repair" if seen.malformed_bytes else ""
    pending = f", {out.size(seen.pending_bytes)} of unfinished last lines" if seen.pending_bytes else ""
    yield f"Understood {share} of bytes{damaged}{pending}"
    if seen.round_trip is not None:
        every = "every transcript that could be read" if "unreadable" in seen.problems else "every transcript"
        yield f"Round trip exact: {every} came back byte for byte" if seen.round_trip else "ROUND TRIP FAILED"


def _share(share: float) -> str:
    """A share that is never rounded up to all."""
    percent = int(share * 1_000_000) / 10_000
    return f"{percent:.4f}".rstrip("0").rstrip(".") + " %"


def _kinds(seen: Examination) -> str:
    if not seen.kinds:
        return ""
    cells = [(f"{count:,}", kind) for kind, count in seen.kinds.items()]
    return f"Entry kinds\n{out.table(('count', 'kind'), cells[:_MOST_ROWS], right=(0,))}"


def _versions(seen: Examination) -> str:
    if not seen.versions:
        return ""
    names = list(seen.versions)
    most = sorted(seen.versions.items(), key=lambda item: -item[1])[:5]
    shown = ", ".join(f"{name} ({count:,})" for name, count in most)
    return "Versions\n  " + out.plain(f"{len(names)}, from {names[0]} to {names[-1]}; most entries: {shown}")


def _problems(seen: Examination) -> str:
    if not seen.problems:
        return "Problems\n  none"
    cells = [
        (kind, f"{one.count:,}", f"{one.recovered:,}", out.size(one.lost) if one.lost else "", place)
        for kind, one in seen.problems.items()
        for place in one.places[:1]
    ]
    headings = ("kind", "count", "recovered", "lost", "for example")
    return f"Problems (docs/problems.md explains each kind)\n{out.table(headings, cells, right=(1, 2, 3))}"


def _drift(seen: Examination) -> str:
    if not seen.drift:
        return "Drift\n  none: every kind, block, tool result and field is known"
    cells = [
        (item.what, item.name, item.within, f"{item.count:,}", item.first_version or "", item.place)
        for item in seen.drift[:_MOST_ROWS]
    ]
    more = len(seen.drift) - len(cells)
    headings = ("what", "name", "within", "count", "first version", "for example")
    shown = out.table(headings, cells, right=(3,))
    note = "Drift: what this version of threadline does not know (it is kept, and reachable as entry.data)"
    return f"{note}\n{shown}" + (f"\n  and {more} more: see --json" if more > 0 else "")
