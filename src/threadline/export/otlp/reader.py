"""Read sessions from an archive as traces, one at a time.

Charges come from the archive's ledger: each is in the trace of the session that owns it, so that the sum over a trace
is what `threadline usage --session` reports, and the sum over all traces what `threadline usage` reports.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.export.exporter import make_staging_folder
from threadline.export.leak_check import find_leftovers, raise_if_unsafe
from threadline.export.otlp import conventions as names
from threadline.export.otlp.content import Content, NameRedactor
from threadline.export.otlp.message_rows import SessionFacts, TurnRange
from threadline.export.otlp.spans import Span, trace_key
from threadline.export.otlp.trace import build_spans
from threadline.export.redacted_copies import RedactedCopies, list_session_files
from threadline.json_values import encode_json
from threadline.load import Session, read, read_session_charges
from threadline.model.homes import Transcript
from threadline.model.ledger import Charge
from threadline.redact import SessionRedactor, Settings

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.archive import Archive, SpendingBySession

_MAX_ATTEMPTS = 3
_CONTENT_KEYS = (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES, names.TOOL_ARGUMENTS, names.TOOL_RESULT, names.TITLE)


class TraceOptions(Struct, frozen=True):
    """What traces contain. Without `settings`, nothing is redacted."""

    content: bool = False
    thinking: bool = True
    settings: Settings | None = Settings()
    first_turn: int | None = None
    last_turn: int | None = None

    @property
    def turns(self) -> TurnRange:
        """The turns to export."""
        return TurnRange(self.first_turn, self.last_turn)


class Trace(Struct, frozen=True):
    """The spans of one session, children first. The last one is the main agent's."""

    session: str
    path: Path
    spans: list[Span]


class TraceReader:
    """Reads sessions as traces. With `mains`, only those main transcripts will be read, which an index sums faster."""

    def __init__(self, archive: Archive, options: TraceOptions, mains: Collection[Path] | None = None) -> None:
        self._archive = archive
        self._options = options
        self._mains = mains

    def list_all(self) -> list[Path]:
        """List every transcript to read: all sessions, oldest first, and agents whose sessions are missing."""
        sessions = [session.path for session in self._archive.sessions().sessions]
        unlisted = [row.transcripts[0] for row in self._spending.unlisted(sessions)]
        return [*unlisted, *reversed(sessions)]

    def read(self, main: Path) -> Trace:
        """Read one session.

        Raises:
            NotFound: the transcript does not exist.
            BadQuery: it is an agent's, and the session exists.
            UnsafeExport: content was asked for, and would still contain something that must not be shared.
        """
        session = self._archive.session_at(main)
        facts = self._facts(session, main)
        return Trace(facts.id, main, self._build(facts, main))

    def _build(self, facts: SessionFacts, main: Path) -> list[Span]:
        options = self._options
        if options.settings is None:
            content = Content(facts.session, thinking=options.thinking) if options.content else None
            return build_spans(facts, NameRedactor(None), content, options.turns)
        if not options.content:
            return build_spans(facts, NameRedactor(SessionRedactor(options.settings)), None, options.turns)
        return self._build_redacted(facts, main, options.settings)

    def _build_redacted(self, facts: SessionFacts, main: Path, settings: Settings) -> list[Span]:
        """Build spans with content from a redacted copy of the session, and check them like every exported file."""
        with make_staging_folder() as folder:
            copies = Path(folder) / "copies"
            redacted = RedactedCopies(copies, settings)
            for attempt in range(1, _MAX_ATTEMPTS + 1):
                (copy,) = redacted.make([main], self._archive.homes)
                originals = [str(file.path) for file in list_session_files(main, self._archive.homes) if file.is_lines]
                paths = dict(zip((str(path) for path, _name in copy.files), originals, strict=True))
                content = Content(read(copy.main, continued=False), paths, thinking=self._options.thinking)
                spans = build_spans(facts, NameRedactor(redacted.sessions), content, self._options.turns)
                leftovers = [
                    leftover
                    for span in spans
                    for leftover in find_leftovers(redacted.redactor, "jsonl", _content_lines(span), facts.id)
                ]
                if not leftovers or attempt == _MAX_ATTEMPTS or not redacted.redactor.learn_leftovers():
                    break
                rmtree(copies)
            raise_if_unsafe(leftovers)
        return spans

    def _facts(self, session: Session, main: Path) -> SessionFacts:
        transcript = self._transcripts.get(main.absolute())
        transcripts = self._own_transcripts(transcript, main)
        own, shared = self._charges(session, transcripts)
        folder = transcript.folder if transcript is not None else main.absolute().parent.name
        id_ = self._unlisted_id(transcript) or str(session.id or main.stem)
        return SessionFacts(
            session,
            own,
            shared,
            id=id_,
            folder=folder,
            scope=self._scope(trace_key(id_, folder), transcript),
            project=self._projects.get(folder) or (session.cwds[0] if session.cwds else None),
        )

    def _own_transcripts(self, transcript: Transcript | None, main: Path) -> tuple[str, ...] | None:
        """The transcripts whose charges are the session's; None if it is in no home.

        Raises:
            BadQuery: the transcript is an agent's, and the session exists.
        """
        if transcript is None:
            return None
        paths = self._spending.transcripts.get(transcript.path)
        if paths is None:
            spent = next((row for row in self._spending.unowned if transcript.path in row.transcripts), None)
            paths = spent.transcripts if spent is not None else ()
            if spent is None and transcript.is_agent:
                raise BadQuery(f"{str(main)!r} is an agent's transcript. Export its session: its agents are included.")
        return tuple(map(str, paths))

    def _unlisted_id(self, transcript: Transcript | None) -> str | None:
        """The session that a transcript without a main transcript is counted for."""
        if transcript is None or transcript.path in self._spending.transcripts:
            return None
        rows = self._spending.unowned
        return next((row.session for row in rows if transcript.path in row.transcripts and row.session), None)

    def _charges(
        self, session: Session, transcripts: Collection[str] | None
    ) -> tuple[Sequence[Charge], Sequence[Charge]]:
        """The charges that a session owns, and those of its messages that other sessions own."""
        if transcripts is None:
            charges = read_session_charges(session)
            return tuple(charges.own), tuple(charges.shared)
        own = tuple(self._ledger.where(transcripts=transcripts)) if transcripts else ()
        read_from = {entry.line.transcript for entry in session}
        contained = self._ledger.holding(None, read_from)
        return own, [charge for charge in contained if charge.origin.transcript not in transcripts]

    def _scope(self, key: str, transcript: Transcript | None) -> str:
        """What the ids of spans are made from: the session, and the file if it is not the first of that session."""
        if transcript is None:
            return key
        if not transcript.is_main:
            return f"{key}\0{transcript.path.relative_to(transcript.home.path)}"
        first = self._first_mains[key]
        return key if first == transcript else f"{key}\0{transcript.home.name}\0{transcript.folder}"

    @cached_property
    def _transcripts(self) -> dict[Path, Transcript]:
        return {transcript.path: transcript for home in self._archive.found for transcript in home.transcripts}

    @cached_property
    def _first_mains(self) -> dict[str, Transcript]:
        """The first main transcript of each session: copies of it may exist in other folders and homes."""
        mains = [transcript for transcript in self._transcripts.values() if transcript.is_main]
        mains.sort(key=lambda main: (main.home.is_kept, str(main.path)), reverse=True)
        return {trace_key(str(main.session or main.path.stem), main.folder): main for main in mains}

    @cached_property
    def _projects(self) -> dict[str, str]:
        return {project.folder: project.name for home in self._archive.found for project in home.projects}

    @cached_property
    def _ledger(self) -> Ledger:
        return self._archive.ledger()

    @cached_property
    def _spending(self) -> SpendingBySession:
        return self._archive.spending(self._mains)


def _content_lines(span: Span) -> str:
    """The content of a span as JSON lines, for the check."""
    values = (span.attributes.get(key) for key in _CONTENT_KEYS)
    return "\n".join(_as_json(value) for value in values if value)


def _as_json(text: str) -> str:
    """A text that is JSON as it is, and any other one as JSON."""
    return text if text[:1] in {"[", "{"} and "\n" not in text else encode_json(text).decode()
