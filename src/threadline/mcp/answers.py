"""Answers to questions of agents, as text: what was said, tried, changed and spent in old sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from threadline.archive import Archive
from threadline.errors import Ambiguous, BadQuery, Error, NotFound
from threadline.home_files import opened_in_home
from threadline.mcp.quoting import Answer
from threadline.model.blame import BlamedLine
from threadline.model.ledger import sum_amounts
from threadline.model.places import Place
from threadline.model.tables import Hit
from threadline.model.text import count, format_amount, format_time
from threadline.redact import SessionRedactor, Settings
from threadline.render import TextOptions, one_line, session_to_text
from threadline.thread import find_notifications

if TYPE_CHECKING:
    from threadline.load import Session
    from threadline.summary import SessionSummary

_MAX_LEARNED_BYTES = 4_000_000
"""Of larger transcripts, only the lines that are quoted are searched for secrets, with the lines before them."""
_MAX_HITS = 50
_MAX_AGE_SECONDS = 10.0
_LINES_BEFORE = 3
_PROMPT_LENGTH = 200
_SNIPPET_LENGTH = 400
_WIDTH = 120
_CACHED_SESSIONS = 4
_SQL_SECONDS = 5.0
_SQL_ROWS = 200
_RECALL_KINDS = (("prompt", "Prompts"), ("reply", "Replies"), ("error", "Failures"))


class Answers:
    """Answers questions about the sessions of a project, or of all.

    `open_archive` opens what to answer from. `project` is a directory: sessions that were started in it or below it
    count. With None, all sessions do. `redact` are the settings of redaction, as in exports; None switches it off.
    """

    def __init__(self, open_archive: Callable[[], Archive], project: Path | None, redact: Settings | None) -> None:
        self._open_archive = open_archive
        self._archive: Archive | None = None
        self._opened = 0.0
        self._project = os.path.normpath(project) if project is not None else None
        self._redactor = SessionRedactor(redact) if redact is not None else None
        self._learned: dict[str, int] = {}
        self._sessions: dict[Path, tuple[tuple[int, int], Session]] = {}

    @property
    def archive(self) -> Archive:
        """The archive. It is opened again after a while, to read what was written since."""
        if self._archive is None or monotonic() - self._opened > _MAX_AGE_SECONDS:
            self.close()
            self._archive, self._opened = self._open_archive(), monotonic()
        return self._archive

    def close(self) -> None:
        """Close the archive."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None

    def search(self, query: str, limit: int = 10, max_tokens: int = 2000) -> str:
        """Sessions that contain all words of a query, with the best place of each."""
        hits = self._find(query, limit=limit)
        answer = self._answer(max_tokens)
        if not hits:
            return self._nothing(answer, query)
        answer.say(f"{count(len(hits), 'session')} for this query, best first. Read on with `session`.")
        answer.quote_all(map(self._hit_text, self._learn_hits(hits)))
        return str(answer)

    def session(
        self,
        session: str,
        turn: int | None = None,
        place: str | None = None,
        files: bool = False,
        max_tokens: int = 3000,
    ) -> str:
        """The outline of a session; one of its turns; one entry; or the files that it changed."""
        loaded = self._load(session)
        answer = self._answer(max_tokens)
        if place is not None:
            self._add_entry(answer, loaded, place)
        elif turn is not None:
            self._add_turn(answer, loaded, turn)
        elif files:
            changes = self.archive.files(session=str(loaded.id))
            answer.say(f"{count(len(changes), 'file')} of session {str(loaded.id)[:8]}.")
            answer.quote_all(f"{change.path}  {change.reads} reads, {change.writes} writes" for change in changes)
        else:
            self._add_outline(answer, loaded)
        return str(answer)

    def recall(self, topic: str, limit: int = 8, max_tokens: int = 3000) -> str:
        """What was asked, answered, tried and committed about a topic or a file, newest first."""
        answer = self._answer(max_tokens)
        sections: list[tuple[str, list[Hit]]] = []
        for field, heading in _RECALL_KINDS:
            query = " ".join(f"{field}:{_quote_word(word)}" for word in topic.split())
            hits = self._find(query, limit=limit, sort="time", every=True)
            if hits:
                sections.append((heading, hits))
        commits = self._find_commits(topic, limit)
        if not sections and not commits:
            return self._nothing(answer, topic)
        answer.say("What earlier sessions say about this, newest first. Read on with `session`.")
        for heading, hits in sections:
            answer.quote(f"## {heading}")
            answer.quote_all(map(self._hit_text, self._learn_hits(hits)))
        if commits:
            answer.quote("## Commits")
            answer.quote_all(commits)
        return str(answer)

    def file_history(self, path: str, limit: int = 10, max_tokens: int = 3000) -> str:
        """The edits of a file by any session, newest first, as diffs."""
        log = [edit for edit in self.archive.file_log(path, limit=_MAX_HITS) if self._is_in_scope(edit.project)]
        answer = self._answer(max_tokens)
        if not log:
            answer.say("No session in scope edited this file.")
            return str(answer)
        answer.say(f"{count(len(log[:limit]), 'edit')}, newest first.")
        for edit in log[:limit]:
            self._learn_place(edit.place)
            head = f"{self._time(edit.timestamp)} session {str(edit.session)[:8]} turn {edit.turn} {edit.path}"
            proof = "" if edit.proven else " (not proven)"
            prompt = f"\nPrompt: {one_line(edit.prompt, _PROMPT_LENGTH)}" if edit.prompt else ""
            if not answer.quote(f"{head}{proof}{prompt}\n{edit.diff}"):
                break
        return str(answer)

    def usage(
        self, by: str = "project", since: str | None = None, until: str | None = None, max_tokens: int = 1500
    ) -> str:
        """Tokens and cost by project, model, day, week, month or session."""
        ledger = self.archive.ledger(since=since, until=until)
        if self._project is not None:
            ledger = ledger.where(lambda charge: self._is_in_scope(charge.project))
        rows = ledger.by(by)
        answer = self._answer(max_tokens)
        total = ledger.total
        answer.say(f"Total: {_amount(total.amount)}, {total.tokens:,} tokens, {count(total.charges, 'request')}.")
        largest = sorted(rows, key=lambda row: -(row.amount or 0))
        lines = (f"{' '.join(row.keys.values())}  {_amount(row.amount)}  {row.tokens:,} tokens" for row in largest)
        left = answer.quote_all(lines)
        if left:
            answer.say(f"{left:,} more rows.", after=True)
        return str(answer)

    def why(self, session: str | None = None, since: str | None = None, limit: int = 15, max_tokens: int = 2000) -> str:
        """What made a session expensive, or all sessions of a period: the largest causes, with what they cost."""
        answer = self._answer(max_tokens)
        if session is not None:
            loaded = self._load(session)
            attribution = self.archive.attribution(str(loaded.id))
            amount, causes = attribution.amount, list(attribution.rows[:limit])
        else:
            found = self.archive.causes(since=since, project=self._project)
            if self._project is None:
                amount, causes = found.amount, found.largest(limit)
            else:  # a part of a path is also a part of others
                own = [cause for cause in found if self._is_in_scope(cause.project)]
                amount, causes = sum_amounts(cause.amount for cause in own), own[:limit]
        answer.say(f"{_amount(amount)} in total. The largest causes (~ means estimated):")
        for cause in causes:
            place = f"  {_short_place(cause.place)}" if cause.place is not None else ""
            mark = "~" if cause.estimated else ""
            figures = f"{_amount(cause.amount)}  {mark}{cause.tokens:,} tokens, carried by {cause.requests:,} requests"
            if not answer.quote(f"{figures}  {cause.label}{place}"):
                break
        return str(answer)

    def sql(self, query: str, max_tokens: int = 2000) -> str:
        """The rows of a SELECT on the index of all sessions."""
        if self._project is not None:
            raise BadQuery(
                "sql reads the sessions of all projects. Start the server with `threadline mcp --project all`."
            )
        rows = self.archive.sql(query, seconds=_SQL_SECONDS)
        answer = self._answer(max_tokens)
        answer.say(f"{count(len(rows), 'row')}.")
        lines = (json.dumps(row, default=str, ensure_ascii=False) for row in rows[:_SQL_ROWS])
        left = answer.quote_all(lines) + max(0, len(rows) - _SQL_ROWS)
        if left:
            answer.say(f"{left:,} more rows.", after=True)
        return str(answer)

    def blame(self, path: str, first: int | None = None, last: int | None = None, max_tokens: int = 3000) -> str:
        """Which session, turn and prompt wrote each line of a file."""
        file = Path(self._project or ".", path)
        if self._project is not None and not self._is_in_scope(os.path.normpath(file)):
            raise BadQuery("This file is in another directory. Start the server with `threadline mcp --project all`.")
        result = self.archive.blame(file, first=first, last=last)
        if self._redactor is not None:
            self._redactor.learn("\n".join(line.text for line in result.lines))
        answer = self._answer(max_tokens)
        answer.say(f"{count(len(result.lines), 'line')}: number, writer, text. ? means that the writer is not known.")
        for line in result.lines:
            if not answer.quote(f"{line.line}  {_writer_of(line)}  {line.text}"):
                break
        prompts = {(line.session, line.turn): line.prompt for line in result.lines if line.session and line.prompt}
        for (session, turn), prompt in prompts.items():
            text = one_line(str(prompt), _PROMPT_LENGTH)
            if not answer.quote(f"Prompt of {str(session)[:8]} turn {turn}: {text}"):
                break
        answer.quote_all(result.statements)
        return str(answer)

    # --- parts of answers

    def _add_outline(self, answer: Answer, session: Session) -> None:
        turns = [(turn, turn.act) for turn in session.turns if turn.act is not None]
        spent = session.costs.total
        answer.say(
            f"Session {session.id}: {count(len(turns), 'turn')}, {count(len(session.calls), 'call')}, "
            f"{count(len(session.agents), 'agent')}, {_amount(spent.amount)}, {self._time(session.started)} to "
            f"{self._time(session.ended)}. Ask for `turn` to read a turn."
        )
        answer.quote(f"{session.title.text}\n{session.path}")
        for turn, act in turns:
            text = one_line(act.text, _PROMPT_LENGTH)
            if not answer.quote(f"turn {turn.number}  {self._time(turn.started)}  {act.kind}: {text}"):
                break

    def _add_turn(self, answer: Answer, session: Session, number: int) -> None:
        numbers = [turn.number for turn in session.turns]
        if number not in numbers:
            raise NotFound(f"The session has turns {numbers[0]} to {numbers[-1]}." if numbers else "It has no turns.")
        options = TextOptions(width=_WIDTH, colour=False, turn=number, zone=self.archive.zone)
        answer.say(f"Turn {number} of session {session.id}.")
        for turn in session.turns:
            if turn.number == number:
                self._learn_lines(entry.raw for entry in turn.entries)
        lines = session_to_text(session, options, find_notifications(session), [], session.costs)
        answer.quote("\n".join(lines))

    def _add_entry(self, answer: Answer, session: Session, text: str) -> None:
        name, _, line = text.rpartition(":")
        for agent in (session.main, *session.agents):
            for entry in agent.entries:
                place = entry.place
                if str(place.line) == line and place.transcript.endswith(name):
                    self._learn_lines([entry.raw])
                    answer.say(f"Line {place.line}, a {entry.kind} entry, {self._time(entry.timestamp)}.")
                    answer.quote(entry.raw.decode(errors="replace"))
                    return
        raise NotFound(f"There is no entry at {text!r} in this session. Places look like FILE:LINE.")

    def _time(self, moment: datetime | None) -> str:
        return format_time(moment, self.archive.zone) or "unknown time"

    def _nothing(self, answer: Answer, query: str) -> str:
        answer.say("Nothing found.")
        try:
            reason = self.archive.why(query)
        except Error:
            reason = ""
        if reason:
            answer.quote(reason)
        return str(answer)

    def _hit_text(self, hit: Hit) -> str:
        title = f" “{one_line(hit.title, 80)}”" if hit.title else ""
        more = f", {hit.more} more in this session" if hit.more else ""
        return (
            f"{self._time(hit.timestamp)} session {str(hit.session)[:8]}{title} {_short_place(hit.place)} "
            f"({hit.field or hit.kind}{more})\n  {one_line(hit.snippet, _SNIPPET_LENGTH)}"
        )

    def _find_commits(self, topic: str, limit: int) -> list[str]:
        """Commits whose message contains all words of a topic, newest first."""
        words = topic.casefold().split()
        commits = [
            commit
            for commit in self.archive.outcomes(kinds="commit", project=self._project)
            if self._is_in_scope(commit.project) and all(word in commit.label.casefold() for word in words)
        ]
        return [
            f"{self._time(commit.timestamp)} session {str(commit.session)[:8]} {commit.ref} {commit.label}"
            for commit in commits[: -limit - 1 : -1]
        ]

    # --- scope

    def _find(self, query: str, limit: int, sort: Any = "rank", *, every: bool = False) -> list[Hit]:
        chosen = max(1, min(limit, _MAX_HITS))
        hits = self.archive.search(
            query, project=self._project, limit=chosen * 2 if self._project else chosen, sort=sort, every=every
        )
        return [hit for hit in hits if self._is_in_scope(hit.project)][:chosen]

    def _load(self, name: str) -> Session:
        """A session in scope, which stays in memory until its transcript changes."""
        summary = self._find_summary(name)
        if not self._is_in_scope(summary.project):
            raise BadQuery(
                "This session belongs to another project. Start the server with `threadline mcp --project all`."
            )
        status = summary.path.stat()
        state = status.st_size, status.st_mtime_ns
        cached = self._sessions.pop(summary.path, None)
        session = cached[1] if cached is not None and cached[0] == state else self.archive.session_at(summary.path)
        self._sessions[summary.path] = state, session
        if len(self._sessions) > _CACHED_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._learn_session(session)
        return session

    def _find_summary(self, name: str) -> SessionSummary:
        """The session whose id starts with a name; `last` is the newest in scope."""
        matches = [
            summary
            for summary in self.archive.sessions()
            if (name == "last" and self._is_in_scope(summary.project)) or str(summary.id).startswith(name.lower())
        ]
        if not matches:
            raise NotFound(f"There is no session {name!r}. Use `search` to find one.")
        if name != "last" and len({summary.id for summary in matches}) > 1:
            ids = ", ".join(str(summary.id) for summary in matches[:5])
            raise Ambiguous(f"{count(len(matches), 'session')} start with {name!r}: {ids}.")
        return matches[0]

    def _is_in_scope(self, project: str | None) -> bool:
        own = self._project
        return own is None or (
            project is not None and (project == own or project.startswith(own.rstrip(os.sep) + os.sep))
        )

    # --- redaction

    def _answer(self, max_tokens: int) -> Answer:
        redactor = self._redactor
        return Answer(max_tokens, redactor.redactor.redact if redactor is not None else str)

    def _learn_session(self, session: Session) -> None:
        """Search all transcripts of a session for secrets, so that each is removed wherever it occurs."""
        if self._redactor is None:
            return
        for agent in (session.main, *session.agents):
            path = str(agent.transcript)
            size = sum(len(entry.raw) for entry in agent.entries)
            if self._learned.get(path) != size and size <= _MAX_LEARNED_BYTES:
                self._learned[path] = size
                self._redactor.learn_all(_decode(entry.raw for entry in agent.entries))

    def _learn_lines(self, lines: Iterable[bytes]) -> None:
        if self._redactor is not None:
            self._redactor.learn_all(_decode(lines))

    def _learn_hits(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Search the lines of hits for secrets before they are quoted."""
        for hit in hits:
            if not hit.gone:
                self._learn_place(hit.place)
            yield hit

    def _learn_place(self, place: Place) -> None:
        if self._redactor is not None and place.length and place.transcript not in self._learned:
            start = max(0, place.offset - _MAX_LEARNED_BYTES // 100)
            with opened_in_home(place.transcript) as descriptor:
                data = os.pread(descriptor, place.offset + place.length - start, start)
            lines = data[: place.offset - start].split(b"\n")[1:][-_LINES_BEFORE - 1 :]
            self._redactor.learn_all(_decode([*lines, data[place.offset - start :]]))


def _decode(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            if line.strip():
                yield line.decode(errors="replace")


def _writer_of(line: BlamedLine) -> str:
    if not line.known:
        return "?"
    if line.session is None:
        return f"commit {str(line.commit)[:8]}"
    return f"{str(line.session)[:8]} turn {line.turn}" if line.turn is not None else str(line.session)[:8]


def _quote_word(word: str) -> str:
    return '"' + word.replace('"', " ") + '"'


def _amount(amount: Any) -> str:
    return format_amount(amount) if amount is not None else "no price"


def _short_place(place: Place) -> str:
    return f"{Path(place.transcript).name}:{place.line}"
