"""The doctor page: problems known to the index, and a background examination of everything."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from threadline import archive
from threadline.errors import BadQuery, Error
from threadline.model.places import Place
from threadline.model.text import count
from threadline.render import shorten
from threadline.render.html import EMPTY, Child, Column, el, facts_row, folded_table, join, render_table
from threadline.reports import Examination
from threadline.web.archive_pool import cached_figure
from threadline.web.request import Page
from threadline.web.urls import carried_inputs, place_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import ListedProblem
    from threadline.web.request import PageRequest

_LOG = logging.getLogger("threadline")
_FAILURE = "The reading ended before it was done; try `threadline doctor`."


class ExaminationProgress(Struct, frozen=True):
    """How far it has come: bytes read of how many; what was found; or why it failed.

    `state` is that of the homes when it began.
    """

    state: str
    done: int = 0
    total: int = 0
    found: Examination | None = None
    failed: str | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether it goes on."""
        return self.found is None and self.failed is None


class Examiner:
    """At most one reading at a time of the same homes, and what the last one found."""

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = list(homes)
        self._lock = threading.Lock()
        self._reading: ExaminationProgress | None = None

    @property
    def reading(self) -> ExaminationProgress | None:
        """How the last reading stands; None where there was none."""
        return self._reading

    def begin(self, state: str) -> ExaminationProgress:
        """Begin, unless it is at work; give how it stands."""
        with self._lock:
            if self._reading is None or not self._reading.is_at_work:
                self._reading = ExaminationProgress(state)
                # It ends with the server, wherever it is: it only reads.
                threading.Thread(target=self._read, args=(self._reading,), daemon=True, name="examining").start()
            return self._reading

    def _read(self, begun: ExaminationProgress) -> None:
        """Read everything, without the index and by this thread alone: to fork beside others is not safe."""
        try:
            every = archive.open(self._homes, index=False, jobs=1, progress=self._showing, keep=False)
            self._reading = replace(begun, found=every.examine())
        except Error as error:
            self._reading = replace(begun, failed=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, the page has to say that it is over
            _LOG.exception("threadline: reading everything failed.")
            self._reading = replace(begun, failed=_FAILURE)

    @contextmanager
    def _showing(self, _label: str, total: int) -> Iterator[Callable[[int], None]]:
        """Notes how many bytes were read."""

        def advance(done: int) -> None:
            if self._reading is not None:
                self._reading = replace(self._reading, done=self._reading.done + done, total=total)

        yield advance


_MAX_AUTOMATIC_BYTES = 64 * 1024 * 1024
_MAX_ROWS = 200
_MAX_EXAMPLES = 5
_HUNDREDTHS = 10_000
_EXAMINERS_LOCK = threading.Lock()
_EXAMINERS: dict[tuple[str, ...], Examiner] = {}


def doctor(asked: PageRequest) -> Page:
    """What is wrong; everything is read where it is little, or where somebody wants it."""
    archive = asked.archive
    state = archive.open_index().generation
    work = _examiner_of(archive)
    size = archive.open_index().total_size()
    standing = work.reading
    is_old = standing is not None and not standing.is_at_work and standing.state != state
    if asked.flag("again") or ((standing is None or is_old) and size <= _MAX_AUTOMATIC_BYTES):
        standing = work.begin(state) if standing is None or is_old or asked.flag("again") else standing
        is_old = False
    known = cached_figure(archive, "problems", archive.open_index().list_problems)
    is_at_work = standing is not None and standing.is_at_work
    main = join(
        (
            el("div", el("h1", "Doctor"), el("p", _status_text(standing, size, is_old=is_old)), class_="head"),
            _progress(asked, standing) if is_at_work and standing is not None else _start_form(asked, standing),
            _examination_section(archive, standing.found)
            if standing is not None and standing.found is not None
            else EMPTY,
            _indexed_problems(archive, known) if known or standing is None or standing.found is None else EMPTY,
        )
    )
    scripts = ("doctor.js",) if is_at_work else ()
    return Page("Doctor", "doctor", main, _doctor_record(standing, known, is_old=is_old), scripts=scripts)


def _examiner_of(archive: Archive) -> Examiner:
    homes = tuple(str(home.path) for home in archive.homes)
    with _EXAMINERS_LOCK:
        return _EXAMINERS.setdefault(homes, Examiner(homes))


def _status_text(standing: ExaminationProgress | None, size: int, *, is_old: bool) -> str:
    if standing is None:
        return f"Reading all {_format_size(size)} shows what is wrong, what is new, and how much was understood."
    if standing.failed is not None:
        return standing.failed
    if standing.found is None:
        return "Everything is being read; other pages can be looked at meanwhile."
    return "This is of an earlier state: something was written since." if is_old else "Everything was read."


def _progress(asked: PageRequest, standing: ExaminationProgress) -> Child:
    done = f"{_format_size(standing.done)} of {_format_size(standing.total)}" if standing.total else "beginning"
    bar = el("progress", done, value=standing.done, max=standing.total or 1, aria_label="How much has been read")
    again = el("a", "See how far it is", href=asked.here(again=None))
    return el("p", bar, el("span", done), again, class_="progress")


def _start_form(asked: PageRequest, standing: ExaminationProgress | None) -> Child:
    label = "Read everything again" if standing is not None else "Read everything"
    button = el("button", label, type="submit", name_="again", value="1")
    return el("form", button, carried_inputs(), action=asked.path, method="get", class_="filters")


def _examination_section(archive: Archive, seen: Examination) -> Child:
    facts = [
        count(seen.transcripts, "transcript"),
        count(seen.lines, "line"),
        count(seen.entries, "entry", "entries"),
        _format_size(seen.bytes),
        count(sum(seen.side_files.values()), "side file"),
        f"{_format_share(seen.understood)} of bytes understood",
        f"{_format_size(seen.malformed_bytes)} damaged" if seen.malformed_bytes else "",
        f"{_format_size(seen.pending_bytes)} in last lines without an end" if seen.pending_bytes else "",
    ]
    return join(
        (
            facts_row(facts),
            _block("Problems", _problem_table(archive, seen), "Nothing is wrong."),
            _block("Drift", _drift_table(archive, seen), "Every kind, block, tool result and field is known."),
            _count_table("kind of entry", "kinds of entries", "Kind", seen.kinds),
            _count_table("version", "versions", "Version", seen.versions),
        )
    )


def _problem_table(archive: Archive, seen: Examination) -> Child:
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
            _format_size(each.lost) if each.lost else "",
            [
                [" " if at else "", _example_link(archive, place)]
                for at, place in enumerate(each.places[:_MAX_EXAMPLES])
            ],
        ]
        for kind, each in seen.problems.items()
    ]
    return render_table("Problems by kind", columns, rows, kind="list", hidden_caption=True)


def _drift_table(archive: Archive, seen: Examination) -> Child:
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
            shorten(each.what, 40),
            shorten(each.name, 80),
            shorten(each.within, 80),
            f"{each.count:,}",
            shorten(each.first_version or "", 20),
            _example_link(archive, each.place),
        ]
        for each in seen.drift[:_MAX_ROWS]
    ]
    return render_table("What this version does not know; it is kept and shown as JSON", columns, rows, kind="list")


def _count_table(noun: str, plural: str, name: str, counts: dict[str, int]) -> Child:
    """Numbers by name, folded: there are many, and few look for them."""
    if not counts:
        return EMPTY
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_ROWS]
    rows = [[shorten(key, 80), f"{number:,}"] for key, number in ordered]
    made = render_table(plural.capitalize(), (Column(name), Column("Count", "number")), rows, hidden_caption=True)
    return folded_table(count(len(counts), noun, plural), made)


def _indexed_problems(archive: Archive, known: list[ListedProblem]) -> Child:
    columns = (Column("Kind"), Column("What is wrong"), Column("Recovered"), Column("Where", "path"))
    rows = [
        [
            shorten(each.kind, 40),
            shorten(each.message, 300),
            "yes" if each.recovered else "no",
            _place_link(archive, each.transcript, each.line),
        ]
        for each in known[:_MAX_ROWS]
    ]
    more = f" The first {_MAX_ROWS} are shown." if len(known) > _MAX_ROWS else ""
    told = el("p", f"{count(len(known), 'problem')} met while the index was made.{more}", class_="note")
    made = render_table("Problems in transcripts", columns, rows, kind="list", hidden_caption=True) if known else EMPTY
    return el("section", el("h2", "What the index knows of"), told, made, class_="block")


def _example_link(archive: Archive, text: str) -> Child:
    try:
        parsed = Place.parse(text)
    except BadQuery:
        return shorten(text, 120)
    return _place_link(archive, parsed.transcript, parsed.line) if parsed.line else shorten(text, 120)


def _place_link(archive: Archive, transcript: str, line: int) -> Child:
    address = place_url(archive, transcript, line)
    label = f"{shorten(Path(transcript).name, 60)}:{line}"
    whole = shorten(f"{transcript}:{line}", 400)
    return el("a", label, href=address, title=whole) if address else el("span", label, title=whole)


def _block(title: str, inside: Child, nothing: str) -> Child:
    return el("section", el("h2", title), inside or el("p", nothing, class_="good"), class_="block")


def _format_share(part: float) -> str:
    """A share in hundredths of a percent, never rounded up: 100 % is all."""
    return f"{int(part * _HUNDREDTHS) / 100:.2f}".rstrip("0").rstrip(".") + " %"


def _format_size(size: int) -> str:
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:  # noqa: PLR2004 - a thousand of one are one of the next
        value, units = value / 1000, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _doctor_record(standing: ExaminationProgress | None, known: list[ListedProblem], *, is_old: bool) -> dict[str, Any]:
    seen = standing.found if standing is not None else None
    return {
        "state": "none" if standing is None else "at work" if standing.is_at_work else "done",
        "done": standing.done if standing is not None else 0,
        "total": standing.total if standing is not None else 0,
        "old": is_old,
        "examination": {**to_builtins(seen), "understood": seen.understood} if seen is not None else None,
        "known": known,
    }
