"""Export sessions to files: redact, render, check the result for leaks, and only then hand the files over.

Redaction comes first, on copies of the transcripts, so nothing that is rendered has ever seen a secret. The report
says what was removed where and what replaced it, never what it was.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import BadQuery, Missing, NotFound
from threadline.export.formats import ExportFormat, find_browser, print_pdf, read_raw_lines, render_html, render_text
from threadline.export.leak_check import StreamChecker, find_leftovers, raise_if_unsafe
from threadline.export.output import put_in_place
from threadline.export.redacted_copies import RedactedCopies, SessionCopy, list_originals
from threadline.load import Session, read, session_ledger
from threadline.model.text import count
from threadline.model.totals import Sum
from threadline.redact import Finding, Redactor, Settings
from threadline.render import View

if TYPE_CHECKING:
    from threadline.export.html_files import PageStream

_PLAIN_FORMATS = frozenset(("md", "txt"))
Advance = Callable[[int], None]


def _ignore_progress(_done: int) -> None:
    """What is told how far the work has come, where nobody asked."""


class ExportOptions(Struct, frozen=True):
    """What is to be given out, and how. Without `settings` nothing is taken out."""

    form: ExportFormat = ExportFormat.HTML
    view: View = View()
    settings: Settings | None = Settings()
    site: bool = False


class StagedFile(Struct, frozen=True):
    """A finished file that is not yet at its place: where it lies, what it is called there, and whose it is."""

    path: Path
    name: str
    session: str | None = None


class ExportResult(Struct, frozen=True):
    """What was made; `findings` are what was taken out."""

    files: tuple[StagedFile, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def hidden(self) -> dict[str, int]:
        """How much of which kind was taken out, the most first."""
        counts = Counter[str]()
        for finding in self.findings:
            counts[finding.kind] += finding.count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def export_sessions(
    mains: Iterable[Path], order: ExportOptions, folder: Path, advance: Advance = _ignore_progress
) -> ExportResult:
    """Make the files in a folder, checked and ready to be put at their places.

    `advance` is told how many bytes are done: all of the transcripts, `passes(order)` times.

    Raises:
        Unsafe: something that must not be shared would be left.
        NotFound: a session lacks the branch or the turns that were asked for.
        Missing: what a form needs is not installed.
    """
    if order.form is ExportFormat.PDF and find_browser() is None:
        print_pdf(folder, folder, None)  # says what is missing before anything is read
    if order.form is ExportFormat.JSONL and _is_partial_view(order.view):
        raise BadQuery("jsonl gives whole transcripts; for a part of one, export to json.")
    redactor: Redactor | None = None
    chosen = list(dict.fromkeys(mains))
    if order.settings is None:
        copies = list_originals(chosen, advance)
    else:
        made = RedactedCopies(folder / "copies", order.settings, images=order.view.images)
        redactor = made.redactor
        copies = made.make(chosen, advance)
    # Before anything is drawn: what drawing meets beyond it was not in the session.
    found = tuple(redactor.findings) if redactor is not None else ()
    done = _Exporter(order, folder / "made", redactor, advance).all(copies)
    return ExportResult(tuple(done), found)


def count_passes(order: ExportOptions) -> int:
    """How often every byte is gone over: read for what is secret, copied, drawn; or looked for and drawn."""
    return 2 if order.settings is None else 3


def _is_partial_view(view: View) -> bool:
    return any(one is not None for one in (view.branch, view.from_turn, view.to_turn))


class _Exporter:
    """Makes the files of one export, looking at each again."""

    def __init__(
        self, order: ExportOptions, folder: Path, redactor: Redactor | None, advance: Advance = _ignore_progress
    ) -> None:
        self._order = order
        self._advance = advance
        self._folder = folder
        self._redactor = redactor
        self._left: list[Finding] = []

    def all(self, copies: list[SessionCopy]) -> list[StagedFile]:
        self._folder.mkdir(parents=True)
        files = list(self._site(copies) if self._order.site else map(self._file, copies))
        raise_if_unsafe(self._left)
        return files

    def _file(self, copy: SessionCopy) -> StagedFile:
        form = self._order.form
        name = f"{copy.name}.{form}"
        if form is ExportFormat.JSONL:
            return self._raw(copy, name)
        if form not in {ExportFormat.HTML, ExportFormat.PDF}:
            made = self._written(self._text(copy), name, copy.name)
            self._advance(copy.size)
            return made
        whole = self._read(copy)
        made = self._page(render_html(whole, self._order.view, session_total(whole, copy)), name, copy)
        if form is ExportFormat.PDF:
            html = made.path.rename(made.path.with_suffix(".html"))
            raise_if_unsafe(self._left)
            print_pdf(html, made.path, whole.started)
        return made

    def _read(self, copy: SessionCopy) -> Session:
        whole = read(copy.main)
        _check_view(whole, self._order.view)
        return whole

    def _text(self, copy: SessionCopy) -> str:
        """A session as text; here the session ends, as the second look needs the memory."""
        whole = self._read(copy)
        return render_text(self._order.form, whole, self._order.view, session_total(whole, copy))

    def _raw(self, copy: SessionCopy, name: str) -> StagedFile:
        from threadline.render import AgentDetail  # noqa: PLC0415 - one form alone

        only = replace(copy, files=copy.files[:1]) if self._order.view.agents is AgentDetail.NONE else copy
        path = self._folder / name
        with path.open("wb") as file:
            file.writelines(read_raw_lines(only))
        self._advance(copy.size)
        if self._redactor is not None:
            # Line by line: what is secret in a line stands in it, and a transcript may be of any size.
            with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                self._left += [
                    leftover for line in lines for leftover in find_leftovers(self._redactor, "jsonl", line, name)
                ]
        return StagedFile(path, name, copy.name)

    def _site(self, copies: list[SessionCopy]) -> Iterator[StagedFile]:
        try:
            from threadline.export.html_files import make_site_entry, render_index_page, render_search_page  # noqa: PLC0415 - needs the extra `web`
        except ModuleNotFoundError as error:
            raise Missing(
                f"A site needs {error.name}, which is not installed; run: pip install 'threadline[web]'"
            ) from None
        view = self._order.view
        pages = {copy.name.lower(): f"{copy.name}.html" for copy in copies}
        every = []
        for copy in copies:
            whole = self._read(copy)
            total = session_total(whole, copy)
            every.append(make_site_entry(whole, copy.name, view, total))
            yield self._page(render_html(whole, view, total, pages), f"sessions/{copy.name}.html", copy)
        yield self._written(render_index_page(every), "index.html", None)
        yield self._written(render_search_page(every), "search.html", None)

    def _page(self, pieces: PageStream, name: str, copy: SessionCopy) -> StagedFile:
        """Write a page as it is drawn, and look at it again as it is written."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        look = StreamChecker(self._redactor, name) if self._redactor is not None else None
        done = 0
        with path.open("wb") as file:
            for at, piece in enumerate(pieces.each, 1):
                file.write(piece.encode(errors="replace"))
                if look is not None:
                    look.more(piece)
                share = copy.size * at // pieces.many
                self._advance(share - done)
                done = share
        self._left += look.end() if look is not None else []
        return StagedFile(path, name, copy.name)

    def _written(self, text: str, name: str, session: str | None) -> StagedFile:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._looked_at(text, name).encode(errors="replace"))
        return StagedFile(path, name, session)

    def _looked_at(self, text: str, name: str) -> str:
        """A finished text, after the second look."""
        if self._redactor is None:
            return text
        form = str(self._order.form)
        left = find_leftovers(self._redactor, form, text, name)
        if left and form in _PLAIN_FORMATS:
            # Lines that are broken or cut can bring together what stood apart, and a plain text can be done again.
            text = self._redactor.redact(text, name)
            left = find_leftovers(self._redactor, form, text, name)
        self._left += left
        return text


def session_total(whole: Session, copy: SessionCopy) -> Sum:
    """What a session spent, counted over the transcripts it was made of.

    Beside those lie the sessions that it goes on from, whose messages are theirs, whether they are given out or not.
    """
    return session_ledger(replace(whole, path=copy.source)).total


def _check_view(whole: Session, view: View) -> None:
    """Refuse numbers that the session does not have.

    Raises:
        NotFound: there is no such branch or turn.
    """
    have = len(whole.branches)
    if view.branch is not None and view.branch > have:
        raise NotFound(f"The session has {count(have, 'branch', 'branches')}; there is no branch {view.branch}.")
    last = max((turn.number for turn in whole.turns), default=0)
    if view.from_turn is not None and view.from_turn > last:
        raise NotFound(f"The session has {count(last, 'turn')}; there is no turn {view.from_turn}.")


def make_staging_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the work, which nobody else may look into and which is gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="threadline-export-")


def write_report(made: ExportResult, place: Path) -> None:
    """Write the report of an export as JSON."""
    value = {
        "hidden": made.hidden,
        "findings": [
            {"kind": finding.kind, "place": finding.place, "placeholder": finding.placeholder, "count": finding.count}
            for finding in made.findings
        ],
    }
    with tempfile.TemporaryDirectory(prefix="threadline-report-") as folder:
        staged = Path(folder) / "report.json"
        staged.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
        put_in_place(staged, place)
