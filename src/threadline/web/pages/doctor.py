"""The doctor page: problems known to the index, and a check of all transcripts in the background."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from threadline.errors import BadQuery
from threadline.model.places import Place, ProblemKind
from threadline.model.text import count, format_size
from threadline.render import shorten
from threadline.render.html import EMPTY, Child, Column, el, facts_row, folded_table, join, render_table
from threadline.web.pages.forms import progress_bar
from threadline.web.request import Page
from threadline.web.urls import carried_inputs, place_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import ListedProblem
    from threadline.reports import Examination
    from threadline.web.examiner import ExaminationProgress
    from threadline.web.request import PageRequest

_MAX_AUTOMATIC_BYTES = 1024 * 1024 * 1024
_MAX_ROWS = 200
_MAX_EXAMPLES = 5
_HUNDREDTHS = 10_000
_PROBLEM_NAMES: dict[str, str] = {
    ProblemKind.TORN_TAIL: "Incomplete last line",
    ProblemKind.TORN_LINE: "Incomplete line",
    ProblemKind.GLUED: "Two records on one line",
    ProblemKind.SPLICED: "Record inside another record",
    ProblemKind.NUL_RUN: "Zero bytes",
    ProblemKind.FOREIGN: "Text that is not JSON",
    ProblemKind.NOT_AN_OBJECT: "JSON that is not an object",
    ProblemKind.NO_TYPE: "Record without a type",
    ProblemKind.WRONG_TYPE: "Field of an unexpected type",
    ProblemKind.BAD_UTF8: "Invalid UTF-8",
    ProblemKind.LONE_SURROGATE: "Invalid Unicode",
    ProblemKind.BAD_NUMBER: "Invalid number",
    ProblemKind.CONTROL_CHARACTER: "Control character",
    ProblemKind.TOO_DEEP: "Nested too deeply",
    ProblemKind.TOO_LONG: "Line too long",
    ProblemKind.BOM: "Byte order mark",
    ProblemKind.BAD_TIMESTAMP: "Invalid time",
    ProblemKind.MISSING_FIELD: "Missing field",
    ProblemKind.CHANGED: "Changed while it was read",
    ProblemKind.UNREADABLE: "Unreadable file",
    ProblemKind.SKIPPED: "Skipped file",
}


def doctor_page(request: PageRequest) -> Page:
    """What is damaged or unknown. Everything is checked at once if it is small, and otherwise on request."""
    archive, examiner = request.archive, request.pool.examiner
    generation, size = archive.open_index().generation, archive.open_index().total_size()
    progress = examiner.progress
    is_old = progress is not None and not progress.is_running and progress.generation != generation
    if request.flag("again") or ((progress is None or is_old) and size <= _MAX_AUTOMATIC_BYTES):
        progress = examiner.start(generation, [str(home.path) for home in archive.homes])
        is_old = False
    problems = request.cached("problems", archive.open_index().list_problems)
    is_running = progress is not None and progress.is_running
    result = progress.result if progress is not None else None
    main = join(
        (
            el("div", el("h1", "Doctor"), el("p", _status_text(progress, size, is_old=is_old)), class_="head"),
            _headline(result) if result is not None else EMPTY,
            _progress_bar(request, progress)
            if progress is not None and progress.is_running
            else _start_form(request, is_repeated=progress is not None),
            _examination_section(archive, result) if result is not None else EMPTY,
            _indexed_problems(archive, problems) if problems else EMPTY,
        )
    )
    scripts = ("progress.js",) if is_running else ()
    return Page("Doctor", "doctor", main, _doctor_record(progress, problems, is_old=is_old), scripts=scripts)


def _status_text(progress: ExaminationProgress | None, size: int, *, is_old: bool) -> str:
    if progress is None:
        return f"Check all {format_size(size)} for damage and unknown data."
    if progress.failure is not None:
        return progress.failure
    if progress.result is None:
        return "Checking all transcripts. You can use other pages meanwhile."
    return "This result is out of date: transcripts have changed since." if is_old else "All transcripts were checked."


def _progress_bar(request: PageRequest, progress: ExaminationProgress) -> Child:
    text = f"{format_size(progress.done)} of {format_size(progress.total)}" if progress.total else "starting"
    return progress_bar("Progress of the check", text, progress.done, progress.total, request.url_with(again=None))


def _start_form(request: PageRequest, *, is_repeated: bool) -> Child:
    label = "Check again" if is_repeated else "Check everything"
    button = el("button", label, type="submit", name_="again", value="1")
    return el("form", button, carried_inputs(), action=request.path, method="get", class_="filters")


def _headline(result: Examination) -> Child:
    """How much was understood, as a statement: the figure that every other page depends on."""
    is_whole = result.understood == 1
    share = el("b", _format_share(result.understood))
    text = f" of {format_size(result.bytes)} understood"
    note = "Nothing in these transcripts is skipped: every byte is parsed, shown and counted."
    if result.malformed_bytes:
        note = f"{format_size(result.malformed_bytes)} are damaged. The rest is parsed, shown and counted."
    elif not is_whole:
        note = "Nothing is damaged. What this version of threadline does not know is shown as JSON."
    kind = "headline good" if is_whole else "headline"
    return el("div", el("p", share, text, class_=kind), el("p", note, class_="note"))


def _examination_section(archive: Archive, result: Examination) -> Child:
    facts = [
        count(result.transcripts, "transcript"),
        count(result.lines, "line"),
        count(result.entries, "entry", "entries"),
        count(sum(result.side_files.values()), "side file"),
        f"{format_size(result.malformed_bytes)} damaged" if result.malformed_bytes else "",
        f"{format_size(result.pending_bytes)} in incomplete last lines" if result.pending_bytes else "",
    ]
    return join(
        (
            facts_row(facts),
            _block("Problems", _problem_table(archive, result), "No problems."),
            _missing_section(archive, result),
            _block(
                "Drift", _drift_table(archive, result), "Every kind of entry, block, tool result and field is known."
            ),
            _count_table("kind of entry", "kinds of entries", "Kind", result.kinds),
            _count_table("version", "versions", "Version", result.versions),
        )
    )


def _problem_table(archive: Archive, result: Examination) -> Child:
    if not result.problems:
        return EMPTY
    columns = (
        Column("Kind"),
        Column("Count", "number"),
        Column("Recovered", "number"),
        Column("Lost", "number"),
        Column("Examples", "path"),
    )
    rows = [
        [
            _problem_name(kind),
            f"{problem.count:,}",
            f"{problem.recovered:,}",
            format_size(problem.lost) if problem.lost else "",
            [
                [" " if at else "", _example_link(archive, place)]
                for at, place in enumerate(problem.places[:_MAX_EXAMPLES])
            ],
        ]
        for kind, problem in result.problems.items()
    ]
    return render_table("Problems by kind", columns, rows, kind="list", hidden_caption=True)


def _missing_section(archive: Archive, result: Examination) -> Child:
    """The required fields that are missing, by kind of entry and field."""
    if not result.missing_fields:
        return EMPTY
    columns = (Column("Kind"), Column("Field"), Column("Since"), Column("Count", "number"), Column("Examples", "path"))
    rows = [
        [
            shorten(item.kind, 40),
            shorten(item.field, 80),
            item.since or "",
            f"{item.count:,}",
            [
                [" " if at else "", _example_link(archive, place)]
                for at, place in enumerate(item.places[:_MAX_EXAMPLES])
            ],
        ]
        for item in result.missing_fields[:_MAX_ROWS]
    ]
    table = render_table("Fields that Claude Code always writes", columns, rows, kind="list", hidden_caption=True)
    return _block("Missing fields", table, "")


def _drift_table(archive: Archive, result: Examination) -> Child:
    if not result.drift:
        return EMPTY
    columns = (
        Column("What"),
        Column("Name"),
        Column("Within"),
        Column("Count", "number"),
        Column("Since"),
        Column("Examples", "path"),
    )
    rows = [
        [
            shorten(drift.what, 40),
            shorten(drift.name, 80),
            shorten(drift.within, 80),
            f"{drift.count:,}",
            shorten(drift.first_version or "", 20),
            _example_link(archive, drift.place),
        ]
        for drift in result.drift[:_MAX_ROWS]
    ]
    return render_table("Unknown to this version of threadline; shown as JSON", columns, rows, kind="list")


def _count_table(noun: str, plural: str, name: str, counts: dict[str, int]) -> Child:
    """Numbers by name, folded because there are many."""
    if not counts:
        return EMPTY
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_ROWS]
    rows = [[shorten(key, 80), f"{number:,}"] for key, number in ordered]
    table = render_table(plural.capitalize(), (Column(name), Column("Count", "number")), rows, hidden_caption=True)
    return folded_table(count(len(counts), noun, plural), table)


def _indexed_problems(archive: Archive, problems: list[ListedProblem]) -> Child:
    columns = (Column("Kind"), Column("Problem"), Column("Recovered"), Column("Where", "path"))
    rows = [
        [
            _problem_name(problem.kind),
            shorten(problem.message, 300),
            "yes" if problem.recovered else "no",
            _place_link(archive, Place(problem.transcript, problem.line)),
        ]
        for problem in problems[:_MAX_ROWS]
    ]
    note = el("p", f"Showing the first {_MAX_ROWS}.", class_="note") if len(problems) > _MAX_ROWS else EMPTY
    table = render_table("Problems in transcripts", columns, rows, kind="list", hidden_caption=True) if rows else EMPTY
    return el("section", el("h2", f"Found while indexing ({len(problems):,})"), note, table, class_="block")


def _problem_name(kind: str) -> Child:
    return el("span", _PROBLEM_NAMES.get(kind, shorten(kind, 40)), title=shorten(kind, 40))


def _example_link(archive: Archive, text: str) -> Child:
    try:
        place = Place.parse(text)
    except BadQuery:
        return shorten(text, 120)
    return _place_link(archive, place) if place.line else shorten(text, 120)


def _place_link(archive: Archive, place: Place) -> Child:
    url = place_url(archive, place)
    label = f"{shorten(Path(place.transcript).name, 60)}:{place.line}"
    title = shorten(f"{place.transcript}:{place.line}", 400)
    return el("a", label, href=url, title=title) if url else el("span", label, title=title)


def _block(title: str, content: Child, if_empty: str) -> Child:
    return el("section", el("h2", title), content or el("p", if_empty, class_="good"), class_="block")


def _format_share(share: float) -> str:
    """A percentage with two decimals, never rounded up: 100% means everything."""
    return f"{int(share * _HUNDREDTHS) / 100:.2f}".rstrip("0").rstrip(".") + "%"


def _doctor_record(
    progress: ExaminationProgress | None, problems: list[ListedProblem], *, is_old: bool
) -> dict[str, Any]:
    result = progress.result if progress is not None else None
    return {
        "state": "none" if progress is None else "at work" if progress.is_running else "done",
        "done": progress.done if progress is not None else 0,
        "total": progress.total if progress is not None else 0,
        "old": is_old,
        "examination": {**to_builtins(result), "understood": result.understood} if result is not None else None,
        "known": problems,
    }
