"""Export sessions to files: redact, render, check the result for leaks, and only then hand the files over.

Copies of the transcripts are redacted first, so nothing that is rendered contains a secret. The report
lists what was removed where, and its placeholder, but never the value.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import BadQuery, Missing, NotFound
from threadline.export.conversations import split_session
from threadline.export.data_formats import open_writer
from threadline.export.formats import (
    ExportFormat,
    print_pdf,
    read_raw_lines,
    render_entry,
    render_html,
    render_text,
    require_browser,
)
from threadline.export.leak_check import RecordChecker, StreamChecker, UnsafeExport, find_leftovers, raise_if_unsafe
from threadline.export.output import StagedFile, write_output
from threadline.export.redacted_copies import RedactedCopies, SessionCopy, list_originals
from threadline.files import is_running
from threadline.load import HomeLinks, Session, SessionCharges, read, read_session_charges
from threadline.model.homes import NO_HOMES, Homes
from threadline.model.places import SessionId
from threadline.model.session import ContinuationKind
from threadline.model.text import no_such_number
from threadline.model.titles import SummaryLinks, TitleSource
from threadline.redact import Finding, Level, Redactor, SessionRedactor, Settings
from threadline.render import View, agents_in_view

if TYPE_CHECKING:
    from threadline.export.html_files import PageStream

_PLAIN_FORMATS = frozenset(("md", "txt"))
_FINDING_PLACE = re.compile(r"(?P<file>.+?\.jsonl):(?P<line>\d+)(?:\$|\Z)")
_MAX_ATTEMPTS = 3
Advance = Callable[[int], None]
Sharing = Callable[[Collection[str]], tuple[str, ...] | None]


def _unknown_sharing(_transcripts: Collection[str]) -> None:
    """The default: it is not known which transcripts share messages."""


def _ignore_progress(_done: int) -> None:
    """The default progress callback."""


class ExportOptions(Struct, frozen=True):
    """What to export, and how. Without `settings`, nothing is redacted.

    `entry` is the anchor of a single entry (`L120`, or `AGENT.L7`), which can be exported as Markdown.
    `shape` is for messages: `openai` or `anthropic`. `splits` is for data sets: the share of
    each split in percent; `train` gets the rest.
    """

    form: ExportFormat = ExportFormat.HTML
    view: View = View()
    settings: Settings | None = Settings()
    site: bool = False
    entry: str | None = None
    shape: str = "openai"
    splits: dict[str, float] = {}


class ExportResult(Struct, frozen=True):
    """The exported files, the redacted findings, and the level of redaction (None: nothing was redacted).

    `unseen_words` are the words to hide that the sessions do not contain.
    """

    files: tuple[StagedFile, ...]
    findings: tuple[Finding, ...] = ()
    level: Level | None = None
    unseen_words: tuple[str, ...] = ()

    @property
    def hidden(self) -> dict[str, int]:
        """How many findings of each kind were redacted, most frequent first."""
        counts = Counter[str]()
        for finding in self.findings:
            counts[finding.kind] += finding.count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def export_sessions(
    mains: Iterable[Path],
    options: ExportOptions,
    folder: Path,
    advance: Advance = _ignore_progress,
    *,
    homes: Homes = NO_HOMES,
    links: SummaryLinks | None = None,
    sharing: Sharing = _unknown_sharing,
) -> ExportResult:
    """Create the files in a staging folder and check them.

    `advance` is called with the number of processed bytes: the size of all transcripts, `count_passes(options)` times.
    Some files of a session may exist only in kept homes among `homes`. `links` are the summaries of these homes, and
    `sharing` says which transcripts share messages with some; by default both are searched in the transcripts.

    Raises:
        UnsafeExport: a file would still contain something that must not be shared.
        NotFound: a session does not have the branch or the turns.
        Missing: the format needs something that is not installed.
    """
    if options.form is ExportFormat.PDF:
        require_browser()
    if (options.form is ExportFormat.JSONL or options.form.is_data) and _is_partial_view(options.view):
        raise BadQuery(f"{options.form} exports complete transcripts. To export a part of one, use json.")
    if options.entry is not None and options.form is not ExportFormat.MD:
        raise BadQuery("A single entry can only be exported as Markdown.")
    unique = list(dict.fromkeys(mains))
    if options.settings is None:
        exporter = _Exporter(options, folder / "files", None, advance, homes=homes, links=links, sharing=sharing)
        return ExportResult(tuple(exporter.export(list_originals(unique, homes, advance))))
    redacted = RedactedCopies(folder / "copies", options.settings, images=options.view.images)
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        copies = redacted.make(unique, homes, advance)
        # Copied before rendering: findings that rendering adds are not in the session.
        findings = tuple(redacted.redactor.findings)
        unseen_words = redacted.redactor.unseen_words
        exporter = _Exporter(
            options, folder / "files", redacted.sessions, advance, homes=homes, links=links, sharing=sharing
        )
        try:
            files = exporter.export(copies)
            break
        except UnsafeExport:
            # What only the rendered file reveals is learned, and everything is redacted again without it.
            if attempt == _MAX_ATTEMPTS or not redacted.redactor.learn_leftovers():
                raise
        advance = _ignore_progress
        rmtree(folder / "files")
        rmtree(folder / "copies")
    exported = tuple(filter(exporter.is_exported, findings))
    return ExportResult(tuple(files), exported, options.settings.level, unseen_words)


def count_passes(options: ExportOptions) -> int:
    """How often every byte is processed: listed and rendered; or, with redaction, searched, copied and rendered."""
    return 2 if options.settings is None else 3


def _is_partial_view(view: View) -> bool:
    return any(limit is not None for limit in (view.branch, view.from_turn, view.to_turn))


class _Exporter:
    """Creates the files of one export, and checks each of them for leftovers."""

    def __init__(
        self,
        options: ExportOptions,
        folder: Path,
        redactor: SessionRedactor | None,
        advance: Advance = _ignore_progress,
        *,
        homes: Homes = NO_HOMES,
        links: SummaryLinks | None = None,
        sharing: Sharing = _unknown_sharing,
    ) -> None:
        self._options = options
        self._sharing = sharing
        self._links = links
        self._homes = homes
        self._advance = advance
        self._folder = folder
        self._redactor = redactor.redactor if redactor is not None else None
        self._records = RecordChecker(redactor)
        self._leftovers: list[Finding] = []
        self._exported_lines: dict[str, Container[int]] = {}

    def is_exported(self, finding: Finding) -> bool:
        """Whether a finding is in the exported turns. File names and all lines of complete sessions are."""
        place = _FINDING_PLACE.match(finding.place)
        if place is None or not self._options.view.has_turn_range:
            return True
        return int(place["line"]) in self._exported_lines.get(place["file"], ())

    def export(self, copies: list[SessionCopy]) -> list[StagedFile]:
        self._folder.mkdir(parents=True)
        if self._options.form.is_data:
            files = self._export_data(copies)
        else:
            files = list(self._export_site(copies) if self._options.site else map(self._export_session, copies))
        raise_if_unsafe([*self._leftovers, *self._records.leftovers])
        return files

    def _export_data(self, copies: list[SessionCopy]) -> list[StagedFile]:
        """Write the sessions one after the other in a format for other programs."""
        writer = open_writer(self._options, self._folder, self._records, copies, self._links)
        for copy in copies:
            session = self._read(copy, continued=False)
            writer.add(split_session(session, copy, self._charges(session, copy), self._options.view))
            self._advance(copy.size)
        return writer.finish()

    def _export_session(self, copy: SessionCopy) -> StagedFile:
        form = self._options.form
        name = f"{copy.name}.{form}"
        if form is ExportFormat.JSONL:
            return self._write_raw(copy, name)
        if form not in {ExportFormat.HTML, ExportFormat.PDF}:
            file = self._write_text(self._render_text(copy), name, copy.name)
            self._advance(copy.size)
            return file
        session = self._read(copy)
        total = self._charges(session, copy).own.total
        file = self._write_page(render_html(session, self._options.view, total), name, copy)
        if form is ExportFormat.PDF:
            html = file.path.rename(file.path.with_suffix(".html"))
            raise_if_unsafe(self._leftovers)
            print_pdf(html, file.path, session.started)
        return file

    def _read(self, copy: SessionCopy, *, continued: bool = True) -> Session:
        session = read(copy.main, continued=continued, homes=self._homes, links=self._links_of(copy))
        if copy.id is not None:
            session = replace(session, id=SessionId(copy.id))
        _check_view(session, self._options.view)
        if self._options.view.has_turn_range:
            names = {str(path): below for path, below in copy.files}
            self._exported_lines |= _lines_of_turns(session, self._options.view, names)
        return _redact_links(session, self._redactor) if self._redactor is not None else session

    def _links_of(self, copy: SessionCopy) -> SummaryLinks:
        """The summaries of the homes that the original is in: the copy is in no home."""
        is_in_homes = any(copy.source.is_relative_to(home.path) for home in self._homes)
        if self._links is not None and is_in_homes:
            return self._links
        return HomeLinks(copy.source, self._homes if is_in_homes else NO_HOMES)

    def _render_text(self, copy: SessionCopy) -> str:
        """A session as text. The session itself is freed on return, since the check needs the memory."""
        session = self._read(copy)
        if self._options.entry is not None:
            return render_entry(session, self._options.entry, self._options.view)
        return render_text(self._options.form, session, self._options.view, self._charges(session, copy).own.total)

    def _charges(self, session: Session, copy: SessionCopy) -> SessionCharges:
        """The charges of a session, computed from the original transcripts.

        The sessions that it continues are in the same folder as the originals. Messages that it repeats from them count
        for those sessions, even if they are not exported.
        """
        sharing = self._sharing([str(source) for source in copy.sources])
        return read_session_charges(replace(session, path=copy.source, sharing=sharing))

    def _write_raw(self, copy: SessionCopy, name: str) -> StagedFile:
        from threadline.render import Detail  # noqa: PLC0415 - only jsonl needs it

        selected = replace(copy, files=copy.files[:1]) if self._options.view.agents is Detail.NONE else copy
        path = self._folder / name
        with path.open("wb") as file:
            file.writelines(read_raw_lines(selected))
        self._advance(copy.size)
        self._records.check_lines(path, name)
        return StagedFile(path, name, copy.name)

    def _export_site(self, copies: list[SessionCopy]) -> Iterator[StagedFile]:
        try:
            from threadline.export.html_files import make_site_entry, render_index_page, render_search_page  # noqa: PLC0415 - needs the extra `web`
        except ModuleNotFoundError as error:
            raise Missing(
                f"A site needs {error.name}, which is not installed. Run: pip install 'threadline[web]'"
            ) from None
        view = self._options.view
        pages = {copy.name.lower(): f"{copy.name}.html" for copy in copies}
        entries = []
        for copy in copies:
            session = self._read(copy)
            total = self._charges(session, copy).own.total
            entries.append(make_site_entry(session, copy.name, view, total))
            yield self._write_page(render_html(session, view, total, pages), f"sessions/{copy.name}.html", copy)
        yield self._write_text(render_index_page(entries), "index.html", None)
        yield self._write_text(render_search_page(entries), "search.html", None)

    def _write_page(self, stream: PageStream, name: str, copy: SessionCopy) -> StagedFile:
        """Write a page while it is rendered, and check it while it is written."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        checker = StreamChecker(self._redactor, name) if self._redactor is not None else None
        done = 0
        with path.open("wb") as file:
            for at, piece in enumerate(stream.pieces, 1):
                file.write(piece.encode(errors="replace"))
                if checker is not None:
                    checker.feed(piece)
                share = copy.size * at // stream.count
                self._advance(share - done)
                done = share
        self._leftovers += checker.finish() if checker is not None else []
        return StagedFile(path, name, copy.name)

    def _write_text(self, text: str, name: str, session: str | None) -> StagedFile:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._check_text(text, name).encode(errors="replace"))
        return StagedFile(path, name, session)

    def _check_text(self, text: str, name: str) -> str:
        """Check a finished text, and return it, redacted again if that is possible and necessary."""
        if self._redactor is None:
            return text
        form = str(self._options.form)
        leftovers = find_leftovers(self._redactor, form, text, name)
        if leftovers and form in _PLAIN_FORMATS:
            # Wrapping and cutting lines can create new matches. A plain text can be redacted again.
            text = self._redactor.redact(text, name)
            leftovers = find_leftovers(self._redactor, form, text, name)
        self._leftovers += leftovers
        return text


def _lines_of_turns(session: Session, view: View, names: Mapping[str, str]) -> dict[str, Container[int]]:
    """The lines of the turns that a view selects, and all lines of agents that they started, by name of the file."""
    turns = [turn for turn in session.turns if view.shows_turn(turn.number)]
    lines: dict[str, Container[int]] = {}
    lines[names.get(str(session.path), "")] = {entry.line.number for turn in turns for entry in turn.entries}
    for agent in agents_in_view(session, replace(view, everything=True)):
        lines[names.get(str(agent.transcript), "")] = range(sys.maxsize)
    return lines


def _redact_links(session: Session, redactor: Redactor) -> Session:
    """The session with redacted texts from other sessions: their summaries may title it, and it may name their ids."""
    title = session.title
    if title.source is TitleSource.SUMMARY:
        is_hidden = redactor.level is Level.METRICS
        title = replace(title, text="" if is_hidden else redactor.redact(title.text, "title"))
    continuations = tuple(
        replace(link, session=SessionId(redactor.redact(link.session, "name")))
        if link.kind is ContinuationKind.SUMMARY and link.session is not None
        else link
        for link in session.continuations
    )
    return replace(session, title=title, continuations=continuations)


def _check_view(session: Session, view: View) -> None:
    """Check that the session has the branch and the turns of a view.

    Raises:
        NotFound: the branch or turn does not exist.
    """
    branches = len(session.branches)
    if view.branch is not None and view.branch > branches:
        raise NotFound(no_such_number("branch", view.branch, branches, plural="branches"))
    last = max((turn.number for turn in session.turns), default=0)
    if view.from_turn is not None and view.from_turn > last:
        raise NotFound(no_such_number("turn", view.from_turn, last))


_STAGING_PREFIX = "threadline-export-"
_STAGING_NAME = re.compile(_STAGING_PREFIX + r"([0-9]+)-")


def make_staging_folder() -> tempfile.TemporaryDirectory[str]:
    """A private temporary folder, removed after use. Folders that killed exports left behind are removed first."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            match = _STAGING_NAME.match(entry.name)
            if match and not is_running(int(match[1])) and entry.is_dir(follow_symlinks=False) and _is_own(entry):
                rmtree(entry.path, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"{_STAGING_PREFIX}{os.getpid()}-")


def _is_own(entry: os.DirEntry[str]) -> bool:
    return not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()


def write_report(result: ExportResult, path: Path) -> None:
    """Write the report of an export as JSON."""
    report = {
        "level": result.level,
        "hidden": result.hidden,
        "findings": [
            {"kind": finding.kind, "place": finding.place, "placeholder": finding.placeholder, "count": finding.count}
            for finding in result.findings
        ],
    }
    write_output(path, msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
