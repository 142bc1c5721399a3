"""The doctor: what the index knows to be wrong at once, and what reading everything shows when that is asked for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from threadline.errors import BadQuery
from threadline.model.place import Place
from threadline.render.figures import count
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.said import row_of_facts
from threadline.render.html.table import Column, folded, table
from threadline.render.html.words import one
from threadline.web.carried import carried_fields
from threadline.web.page import Page
from threadline.web.pages.examining import Examining, Reading
from threadline.web.pages.leads import place_address
from threadline.web.pages.recalled import recalled

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index.problem_list import ListedProblem
    from threadline.survey.doctor import Examination
    from threadline.web.asked import Asked

_LITTLE = 64 * 1024 * 1024
_MOST = 200
_FEW = 5
_PERCENT = 10_000
_LOCK = threading.Lock()
_AT_WORK: dict[tuple[str, ...], Examining] = {}


def doctor(asked: Asked) -> Page:
    """What is wrong; everything is read where it is little, or where somebody wants it."""
    archive = asked.archive
    state = archive.generation
    work = _work(archive)
    size = archive.size()
    standing = work.reading
    is_old = standing is not None and not standing.is_at_work and standing.state != state
    if asked.flag("again") or ((standing is None or is_old) and size <= _LITTLE):
        standing = work.begin(state) if standing is None or is_old or asked.flag("again") else standing
        is_old = False
    known = recalled(archive, "problems", archive.problems)
    is_at_work = standing is not None and standing.is_at_work
    main = join(
        (
            el("div", el("h1", "Doctor"), el("p", _told(standing, size, is_old=is_old)), class_="head"),
            _progress(asked, standing) if is_at_work and standing is not None else _begin(asked, standing),
            _found(archive, standing.found) if standing is not None and standing.found is not None else EMPTY,
            _known_table(archive, known) if known or standing is None or standing.found is None else EMPTY,
        )
    )
    scripts = ("doctor.js",) if is_at_work else ()
    return Page("Doctor", "doctor", main, _data(standing, known, is_old=is_old), scripts=scripts)


def _work(archive: Archive) -> Examining:
    homes = tuple(str(home.path) for home in archive.homes)
    with _LOCK:
        return _AT_WORK.setdefault(homes, Examining(homes))


def _told(standing: Reading | None, size: int, *, is_old: bool) -> str:
    if standing is None:
        return f"Reading all {_bytes(size)} shows what is wrong, what is new, and how much was understood."
    if standing.failed is not None:
        return standing.failed
    if standing.found is None:
        return "Everything is being read; other pages can be looked at meanwhile."
    return "This is of an earlier state: something was written since." if is_old else "Everything was read."


def _progress(asked: Asked, standing: Reading) -> Child:
    done = f"{_bytes(standing.done)} of {_bytes(standing.total)}" if standing.total else "beginning"
    bar = el("progress", done, value=standing.done, max=standing.total or 1, aria_label="How much has been read")
    again = el("a", "See how far it is", href=asked.here(again=None))
    return el("p", bar, el("span", done), again, class_="progress")


def _begin(asked: Asked, standing: Reading | None) -> Child:
    label = "Read everything again" if standing is not None else "Read everything"
    button = el("button", label, type="submit", name_="again", value="1")
    return el("form", button, carried_fields(), action=asked.path, method="get", class_="filters")


def _found(archive: Archive, seen: Examination) -> Child:
    facts = [
        count(seen.transcripts, "transcript"),
        count(seen.lines, "line"),
        count(seen.entries, "entry", "entries"),
        _bytes(seen.bytes),
        count(sum(seen.side_files.values()), "side file"),
        f"{_share(seen.understood)} of bytes understood",
        f"{_bytes(seen.malformed_bytes)} damaged" if seen.malformed_bytes else "",
        f"{_bytes(seen.pending_bytes)} in last lines without an end" if seen.pending_bytes else "",
    ]
    return join(
        (
            row_of_facts(facts),
            _block("Problems", _problems(archive, seen), "Nothing is wrong."),
            _block("Drift", _drift(archive, seen), "Every kind, block, tool result and field is known."),
            _counts("kind of entry", "kinds of entries", "Kind", seen.kinds),
            _counts("version", "versions", "Version", seen.versions),
        )
    )


def _problems(archive: Archive, seen: Examination) -> Child:
    if not seen.problems:
        return EMPTY
    columns = (
        Column("Kind"),
        Column("Count", "number"),
        Column("Recovered", "number"),
        Column("Lost", "number"),
        Column("For example", "path"),
    )
    rows = [
        [
            kind,
            f"{each.count:,}",
            f"{each.recovered:,}",
            _bytes(each.lost) if each.lost else "",
            [[" " if at else "", _example(archive, place)] for at, place in enumerate(each.places[:_FEW])],
        ]
        for kind, each in seen.problems.items()
    ]
    return table("Problems by kind", columns, rows, kind="list", hidden_caption=True)


def _drift(archive: Archive, seen: Examination) -> Child:
    if not seen.drift:
        return EMPTY
    columns = (
        Column("What"),
        Column("Name"),
        Column("Within"),
        Column("Count", "number"),
        Column("Since"),
        Column("For example", "path"),
    )
    rows = [
        [
            one(each.what, 40),
            one(each.name, 80),
            one(each.within, 80),
            f"{each.count:,}",
            one(each.first_version or "", 20),
            _example(archive, each.place),
        ]
        for each in seen.drift[:_MOST]
    ]
    return table("What this version does not know; it is kept and shown as JSON", columns, rows, kind="list")


def _counts(noun: str, plural: str, name: str, counts: dict[str, int]) -> Child:
    """Numbers by name, folded: there are many, and few look for them."""
    if not counts:
        return EMPTY
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST]
    rows = [[one(key, 80), f"{number:,}"] for key, number in ordered]
    made = table(plural.capitalize(), (Column(name), Column("Count", "number")), rows, hidden_caption=True)
    return folded(count(len(counts), noun, plural), made)


def _known_table(archive: Archive, known: list[ListedProblem]) -> Child:
    columns = (Column("Kind"), Column("What is wrong"), Column("Recovered"), Column("Where", "path"))
    rows = [
        [
            one(each.kind, 40),
            one(each.message, 300),
            "yes" if each.recovered else "no",
            _place(archive, each.transcript, each.line),
        ]
        for each in known[:_MOST]
    ]
    more = f" The first {_MOST} are shown." if len(known) > _MOST else ""
    told = el("p", f"{count(len(known), 'problem')} met while the index was made.{more}", class_="note")
    made = table("Problems in transcripts", columns, rows, kind="list", hidden_caption=True) if known else EMPTY
    return el("section", el("h2", "What the index knows of"), told, made, class_="block")


def _example(archive: Archive, text: str) -> Child:
    try:
        parsed = Place.parse(text)
    except BadQuery:
        return one(text, 120)
    return _place(archive, parsed.transcript, parsed.line) if parsed.line else one(text, 120)


def _place(archive: Archive, transcript: str, line: int) -> Child:
    address = place_address(archive, transcript, line)
    label = f"{one(Path(transcript).name, 60)}:{line}"
    whole = one(f"{transcript}:{line}", 400)
    return el("a", label, href=address, title=whole) if address else el("span", label, title=whole)


def _block(title: str, inside: Child, nothing: str) -> Child:
    return el("section", el("h2", title), inside or el("p", nothing, class_="good"), class_="block")


def _share(part: float) -> str:
    """A share in hundredths of a percent, never rounded up: 100 % is all."""
    return f"{int(part * _PERCENT) / 100:.2f}".rstrip("0").rstrip(".") + " %"


def _bytes(size: int) -> str:
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:  # noqa: PLR2004 - a thousand of one are one of the next
        value, units = value / 1000, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _data(standing: Reading | None, known: list[ListedProblem], *, is_old: bool) -> dict[str, Any]:
    seen = standing.found if standing is not None else None
    return {
        "state": "none" if standing is None else "at work" if standing.is_at_work else "done",
        "done": standing.done if standing is not None else 0,
        "total": standing.total if standing is not None else 0,
        "old": is_old,
        "examination": {**to_builtins(seen), "understood": seen.understood} if seen is not None else None,
        "known": known,
    }
