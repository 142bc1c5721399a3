"""Answer agents' questions about earlier sessions as text: what was said, tried, changed and spent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path, PureWindowsPath
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from threadline.archive import Archive, InsightPreparation
from threadline.errors import Ambiguous, BadQuery, Error, NotFound
from threadline.home_files import is_secret_name
from threadline.insight import GROUP_KEYS, CauseGroup, group_rows
from threadline.mcp.quoting import ERROR_NOTICE, MIN_TOKENS, Answer
from threadline.mcp.secret_search import FileStatus, SecretSearch, read_status
from threadline.model.call_summary import summarize_input
from threadline.model.calls import ListedCall
from threadline.model.hits import Hit, Hits
from threadline.model.insight.attribution import CostCause
from threadline.model.insight.blame import BlamedLine
from threadline.model.insight.outcomes import SessionOutcome
from threadline.model.ledger import sum_amounts
from threadline.model.places import Place, is_uuid, match_ids
from threadline.model.state import FileEdit
from threadline.model.text import count, count_agents, format_amount, format_time
from threadline.model.times import FIRST_MOMENT
from threadline.redact import Settings, compile_patterns
from threadline.render import TextOptions, agents_without_transcript, one_line, session_to_text
from threadline.thread import find_notifications

if TYPE_CHECKING:
    from threadline.load import Session
    from threadline.summary import SessionSummary

_MAX_HITS = 50
_MAX_AGE_SECONDS = 10.0
_MAX_TURN_BYTES = 200_000
"""How much of a turn is searched for secrets, and may be quoted: four times the largest answer."""
_PROMPT_LENGTH = 200
_SNIPPET_LENGTH = 400
_WIDTH = 120
_CACHED_SESSIONS = 4
_SQL_SECONDS = 5.0
_MAX_SQL_LENGTH = 20_000
_ERROR_TOKENS = 500
_RECALLED_FIELDS = ("prompt", "reply", "error")

SessionPart = Literal["outline", "calls", "files"]


class _HasProject(Protocol):
    @property
    def project(self) -> str | None: ...


_Causes = tuple[Decimal | None, Sequence[CostCause], Sequence[CauseGroup]]
"""A total, the largest causes, and groups of causes."""
_Item = TypeVar("_Item")
_Text = TypeVar("_Text", str, bytes)
_Row = TypeVar("_Row", bound=_HasProject)


class _Selection(NamedTuple, Generic[_Row]):
    """The rows of a listing that are in scope, and what the listing says about itself."""

    rows: list[_Row]
    notes: list[str]


class _RecallResult(NamedTuple):
    """Something that was asked, answered, tried or committed, and its place if that has to be searched for secrets."""

    timestamp: datetime | None
    place: Place | None
    describe: Callable[[], str]


class Answers:
    """Answers questions about the sessions of a project, or of all.

    `open_archive` opens what to answer from. `project` is a directory: sessions that were started in it or below it
    count. With None, all sessions do. `redact` are the settings of redaction, as in exports; None switches it off.

    Some secrets are recognisable only from another line, and are removed once that line has been searched. The first
    `learn_at_once` bytes of a session are searched before an answer about it; `learn_more` searches the rest.
    """

    def __init__(
        self,
        open_archive: Callable[[], Archive],
        project: Path | None,
        redact: Settings | None,
        *,
        learn_at_once: int = 4_000_000,
    ) -> None:
        self._open_archive = open_archive
        self._archive: Archive | None = None
        self._opened = 0.0
        self._project = os.path.normpath(project) if project is not None else None
        self._secrets = SecretSearch(redact, learn_at_once)
        self._sessions: dict[Path, tuple[FileStatus, Session]] = {}
        self._preparation = InsightPreparation(lambda _display: open_archive())

    @property
    def archive(self) -> Archive:
        """The archive. It is opened again after a while, to read what was written since."""
        if self._archive is None or monotonic() - self._opened > _MAX_AGE_SECONDS:
            self.close()
            self._archive, self._opened = self._open_archive(), monotonic()
        return self._archive

    def preparations(self) -> list[Callable[[], object]]:
        """Questions about a small session. To answer them loads what first answers need: modules, and the index.

        The newest session is loaded last: nothing else waits for it if it is large.
        """
        return [
            compile_patterns,
            partial(self.search, "error", 1),
            self.usage,
            partial(self.recall, "error", 1),
            lambda: self.session(self._small_session(), turn=1),
            lambda: self.session(self._small_session(), show="calls", max_tokens=MIN_TOKENS),
            lambda: self.why(self._small_session()),
            self.why,
            self._ask_about_file,
            partial(self.sql, "SELECT 1"),
            partial(self._load, "last"),
        ]

    def _small_session(self) -> str:
        """The id of a session in scope that takes little time to read."""
        sessions = self._smallest_sessions()
        return str(sessions[0].id) if sessions else "last"

    def _smallest_sessions(self) -> list[SessionSummary]:
        in_scope = (summary for summary in self.archive.sessions() if self._is_in_scope(summary.project))
        return sorted(in_scope, key=lambda summary: summary.size)

    def _ask_about_file(self) -> None:
        """Ask for the history of a file that a small session edited."""
        for summary in self._smallest_sessions():
            qualified_id = self.archive.open_index().qualified_id(str(summary.id), summary.path)
            for file in self.archive.files(session=qualified_id):
                if file.writes:
                    self.file_history(file.path, 1)
                    self.blame(file.path)
                    return

    def recent_sessions(self, limit: int = 50) -> list[SessionSummary]:
        """The newest sessions in scope whose ids are UUIDs: other names may be any text."""
        rows = (row for row in self.archive.sessions() if self._is_in_scope(row.project) and is_uuid(str(row.id)))
        return list(islice(rows, limit))

    def close(self) -> None:
        """Close the archive."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None

    def search(self, query: str, limit: int = 10, max_tokens: int = 2000) -> str:
        """Sessions that contain all words of a query, with the best place of each."""
        hits = self._find(query, limit=limit)
        answer = self._answer(max_tokens)
        if not hits.rows:
            return self._nothing(answer, query)
        answer.say(f"{count(len(hits.rows), 'session')} for this query, best first. Read on with `session`.")
        for note in hits.notes:
            answer.quote(note)
        self._quote_rows(answer, hits.rows, self._describe_hit, _place_of_hit)
        return str(answer)

    def session(
        self,
        session: str,
        turn: int | None = None,
        place: str | None = None,
        show: SessionPart = "outline",
        max_tokens: int = 3000,
    ) -> str:
        """A turn of a session, an entry, or a part of all of it: its outline, its calls, the files that it touched."""
        loaded = self._load(session)
        answer = self._answer(max_tokens)
        if place is not None:
            self._add_entry(answer, loaded, place)
        elif turn is not None:
            self._add_turn(answer, loaded, turn)
        elif show == "files":
            files = self.archive.files(session=self._qualified_id(loaded))
            answer.say(f"{count(len(files), 'file')}.")
            self._add_rows(
                answer, files, lambda file: f"{file.path}  {count(file.reads, 'read')}, {count(file.writes, 'write')}"
            )
        elif show == "calls":
            calls = self.archive.calls(session=self._qualified_id(loaded))
            answer.say(f"{count(len(calls), 'call')}: time, tool, outcome, place, input. Read one with its `place`.")
            self._add_rows(answer, calls, self._describe_call, lambda call: call.place)
        else:
            self._add_outline(answer, loaded)
        return str(answer)

    def recall(self, topic: str, limit: int = 8, max_tokens: int = 3000) -> str:
        """What was asked, answered, tried and committed about a topic or a file, newest first.

        `limit` is that of each kind: prompts, replies, failures and commits.
        """
        words = [word for word in topic.split() if any(map(str.isalnum, word))]
        if not words:
            raise BadQuery("Name a topic: a few words, or the path of a file.")
        answer = self._answer(max_tokens)
        results: list[_RecallResult] = []
        for field in _RECALLED_FIELDS:
            query = " ".join(f"{field}:{_quote_word(word)}" for word in words)
            hits = self._find(query, limit=limit, sort="time", every=True)
            results += [
                _RecallResult(hit.timestamp, _place_of_hit(hit), partial(self._describe_hit, hit)) for hit in hits.rows
            ]
        results += [
            _RecallResult(commit.timestamp, None, partial(self._describe_commit, commit))
            for commit in self._find_commits(words, limit)
        ]
        if not results:
            return self._nothing(answer, topic)
        results.sort(key=lambda result: result.timestamp or FIRST_MOMENT, reverse=True)
        answer.say("What earlier sessions say about this, newest first. Read on with `session`.")
        left = self._quote_rows(answer, results, lambda result: result.describe(), lambda result: result.place)
        if left:
            answer.say(f"{left:,} older results.", after=True)
        return str(answer)

    def file_history(self, path: str, limit: int = 5, max_tokens: int = 3000) -> str:
        """The edits of a file by any session, newest first, as diffs."""
        log = self._in_scope(lambda most: self.archive.file_log(path, limit=most), limit).rows
        answer = self._answer(max_tokens)
        if not log:
            answer.say("No session in scope edited this file.")
            return str(answer)
        answer.say(f"{count(len(log), 'edit')}, newest first.")
        self._quote_rows(answer, log, self._describe_edit, lambda edit: edit.place)
        return str(answer)

    def usage(
        self, by: str = "project", since: str | None = None, until: str | None = None, max_tokens: int = 1500
    ) -> str:
        """Tokens and cost by project, model, day, week, month or session."""
        ledger = self.archive.ledger(since=since, until=until)
        if self._project is not None:
            ledger = ledger.where(lambda charge: self._is_in_scope(charge.project))
        answer = self._answer(max_tokens)
        total = ledger.total
        if not total.charges:
            answer.say("Nothing was spent in this period.")
            return str(answer)
        answer.say(f"Total: {_amount(total.amount)}, {total.tokens:,} tokens, {count(total.charges, 'request')}.")
        largest = sorted(ledger.by(by), key=lambda row: -(row.amount or 0))
        self._add_rows(
            answer,
            largest,
            lambda row: f"{' '.join(row.keys.values())}  {_amount(row.amount)}  {row.tokens:,} tokens",
        )
        return str(answer)

    def why(
        self,
        session: str | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        by: str | None = None,
        limit: int = 15,
        max_tokens: int = 2000,
    ) -> str:
        """What made a session expensive, or all sessions of a period: the largest causes, or groups of them."""
        if by is not None and by not in GROUP_KEYS:
            raise BadQuery(f"Unknown key {by!r}. Keys: {', '.join(GROUP_KEYS)}.")
        answer = self._answer(max_tokens)
        if session is None and self.archive.is_indexed and self._preparation.pending(self.archive) is not None:
            answer.say("The costs of all sessions are being attributed. Ask again in a minute, or about one `session`.")
            return str(answer)
        amount, largest, groups = (
            self._session_causes(session, by, limit)
            if session is not None
            else self._select_causes(since, until, by, limit)
        )
        if not amount and not largest:
            answer.say("Nothing was spent in this period.")
        elif by is not None:
            answer.say(f"{_amount(amount)} in total, by {by}:")
            self._add_rows(
                answer,
                groups[:limit],
                lambda group: f"{_amount(group.amount)}  {group.tokens:,} tokens  {group.key}",
            )
        else:
            answer.say(f"{_amount(amount)} in total. The largest causes (~ means estimated):")
            self._add_rows(answer, largest, _describe_cause)
        return str(answer)

    def _session_causes(self, session: str, by: str | None, limit: int) -> _Causes:
        attribution = self.archive.attribution(self._load(session))
        groups = group_rows(attribution.rows, by) if by is not None else []
        return attribution.amount, attribution.rows[:limit], groups

    def _select_causes(self, since: str | None, until: str | None, by: str | None, limit: int) -> _Causes:
        causes = self.archive.causes(since=since, until=until, project=self._project)
        if all(self._is_in_scope(group.key) for group in causes.by("project")):
            return causes.amount, causes.largest(limit), causes.by(by) if by is not None else []
        # A part of a path is also a part of others.
        in_scope = [cause for cause in causes if self._is_in_scope(cause.project)]
        groups = group_rows(in_scope, by) if by is not None else []
        return sum_amounts(cause.amount for cause in in_scope), in_scope[:limit], groups

    def sql(self, query: str, max_tokens: int = 2000) -> str:
        """The rows of a SELECT on the index of all sessions."""
        if self._project is not None:
            raise BadQuery(
                "sql reads the sessions of all projects. Start the server with `threadline mcp --project all`."
            )
        if len(query) > _MAX_SQL_LENGTH:
            raise BadQuery(f"The query has {len(query):,} characters. At most {_MAX_SQL_LENGTH:,} are allowed.")
        answer = self._answer(max_tokens)
        self.archive.fill_tables(query)
        result = self.archive.sql_in_process(query, _SQL_SECONDS, answer.room)
        left = answer.quote_all(result.rows, partial(json.dumps, ensure_ascii=False))
        is_part = result.has_more or left > 0
        answer.say(f"{count(len(result.rows) - left, 'row')}{' and more' if is_part else ''}.")
        if result.has_cut:
            answer.say("Long values were cut. Use length() and substr() to read all of a value.")
        return str(answer)

    def explain_error(self, error: Error) -> str:
        """What to say instead of an answer.

        The message is quoted and redacted like transcripts, because it may repeat them: SQLite's names values of the
        rows, and others the paths of files.
        """
        answer = Answer(_ERROR_TOKENS, self._secrets.redact, ERROR_NOTICE)
        answer.quote(str(error))
        return str(answer)

    def blame(self, path: str, first: int | None = None, last: int | None = None, max_tokens: int = 3000) -> str:
        """Which session, turn and prompt wrote each line of a file."""
        if "\0" in path:
            raise BadQuery("A path cannot contain a NUL character.")
        file = Path(self._project or ".", path)
        self._check_readable(file)
        result = self.archive.blame(file, first=first, last=last)
        own = {str(row.id) for row in self.archive.sessions() if self._is_in_scope(row.project)}
        self._secrets.learn_text("\n".join(line.text for line in result.lines))
        answer = self._answer(max_tokens)
        answer.say(f"{count(len(result.lines), 'line')}: number, writer, text. ? means that the writer is not known.")
        answer.quote_all(result.lines, lambda line: f"{line.line}  {_writer_of(line)}  {line.text}")
        prompts = {
            (line.session, line.turn): line.prompt
            for line in result.lines
            if line.prompt and line.session is not None and str(line.session) in own
        }
        for (session, turn), prompt in prompts.items():
            answer.quote(f"Prompt of {str(session)[:8]} turn {turn}: {one_line(str(prompt), _PROMPT_LENGTH)}")
        answer.quote_all(result.statements, str)
        return str(answer)

    def _check_readable(self, file: Path) -> None:
        """Refuse files that are none of the sessions' business: a tool must not read what the agent may not.

        A path of Windows names no file on other systems, but sessions from there may have recorded its text.

        Raises:
            BadQuery: the file is not in the directory of a session in scope, or may contain credentials.
        """
        real = file.resolve()
        is_foreign = PureWindowsPath(file).is_absolute() and not file.is_absolute()
        if is_secret_name(PureWindowsPath(file).name if is_foreign else real.name):
            raise BadQuery("Files of this name contain credentials. They are not read.")
        if self._project is not None:
            if not real.is_relative_to(Path(self._project).resolve()):
                raise BadQuery(
                    "This file is in another directory. Start the server with `threadline mcp --project all`."
                )
            return
        projects = {row.project for row in self.archive.sessions() if row.project}
        is_known = any(str(parent) in projects for parent in real.parents) or any(
            row.writes for row in self.archive.files(path=str(file if is_foreign else file.absolute()))
        )
        if not is_known:
            raise BadQuery("No session was started in a directory of this file, or edited it.")

    # --- parts of answers

    def _add_rows(
        self,
        answer: Answer,
        rows: Sequence[_Item],
        describe: Callable[[_Item], str],
        place_of: Callable[[_Item], Place | None] | None = None,
    ) -> None:
        left = self._quote_rows(answer, rows, describe, place_of)
        if left:
            answer.say(f"{left:,} more rows.", after=True)

    def _quote_rows(
        self,
        answer: Answer,
        rows: Sequence[_Item],
        describe: Callable[[_Item], str],
        place_of: Callable[[_Item], Place | None] | None = None,
    ) -> int:
        """Quote the description of each row until one does not fit; return how many were cut or left out.

        The lines at the places of the rows are searched for secrets first, those of as many rows as may fit at once.
        """
        start = 0
        while start < len(rows):
            texts: list[str] = []
            for text in map(describe, rows[start:]):
                texts.append(text)
                if sum(map(len, texts)) > answer.room * 5 // 4:  # redaction may shorten them
                    break
            if place_of is not None:
                places = [place_of(row) for row in rows[start : start + len(texts)]]
                self._secrets.learn_places(filter(None, places))
                by_transcript: dict[str, list[str]] = {}
                for place, text in zip(places, texts, strict=True):
                    if place is not None:
                        by_transcript.setdefault(place.transcript, []).append(text)
                self._secrets.learn_words(by_transcript)
            left = answer.quote_all(texts, str)
            start += len(texts)
            if left:
                return left + len(rows) - start
        return 0

    def _add_outline(self, answer: Answer, session: Session) -> None:
        turns = [(turn, turn.act) for turn in session.turns if turn.act is not None]
        spent = session.costs.total
        with_transcript = sum(agent.side is None for agent in session.agents)
        started = with_transcript + len(agents_without_transcript(session))
        agents = count_agents(with_transcript, started) or count(0, "agent")
        answer.say(
            f"Outline of {_session_name(session)}: {count(len(turns), 'turn')}, {count(len(session.calls), 'call')}, "
            f"{agents}, {_amount(spent.amount)}, {self._time(session.started)} to "
            f"{self._time(session.ended)}. Ask for `turn` to read a turn."
        )
        lines = [f"{session.title.text}\n{session.path}"]
        for turn, act in turns:
            self._secrets.learn_lines(entry.raw for entry in turn.entries[:1])
            text = one_line(act.text, _PROMPT_LENGTH)
            place = f" line {turn.entries[0].place.line}" if turn.entries else ""
            lines.append(f"turn {turn.number}{place}  {self._time(turn.started)}  {act.kind}: {text}")
            if sum(map(len, lines)) > 2 * answer.room:
                break
        self._quote_from(answer, session, "\n".join(lines))

    def _add_turn(self, answer: Answer, session: Session, number: int) -> None:
        numbers = [turn.number for turn in session.turns]
        if number not in numbers:
            raise NotFound(f"The session has turns {numbers[0]} to {numbers[-1]}." if numbers else "It has no turns.")
        options = TextOptions(width=_WIDTH, colour=False, turn=number, zone=self.archive.zone)
        answer.say(f"Turn {number} of {_session_name(session)}.")
        for turn in session.turns:
            if turn.number == number:
                self._secrets.learn_lines(_first_bytes((entry.raw for entry in turn.entries), _MAX_TURN_BYTES))
                if turn.entries:
                    first, last = turn.entries[0].place, turn.entries[-1].place
                    answer.quote(f"{_short_place(first)} to line {last.line}")
        text = session_to_text(session, options, find_notifications(session), [], session.costs)
        self._quote_from(answer, session, "\n".join(_first_bytes(text, _MAX_TURN_BYTES)))

    def _add_entry(self, answer: Answer, session: Session, text: str) -> None:
        name, _, line = text.rpartition(":")
        for agent in (session.main, *session.agents):
            for entry in agent.entries:
                place = entry.place
                if str(place.line) == line and place.transcript.endswith(name):
                    self._secrets.learn_lines([entry.raw])
                    answer.say(f"Line {place.line}, {self._time(entry.timestamp)}.")
                    self._quote_from(answer, session, entry.raw.decode(errors="replace"))
                    return
        raise NotFound(f"There is no entry at {text!r} in this session. Places look like FILE:LINE.")

    def _describe_call(self, call: ListedCall) -> str:
        text = one_line(summarize_input(call.tool, self.archive.call_input(call)), _PROMPT_LENGTH)
        return f"{self._time(call.timestamp)} {call.tool} {call.outcome} {_short_place(call.place)}  {text}"

    def _describe_edit(self, edit: FileEdit) -> str:
        proof = "" if edit.proven else " (not proven)"
        prompt = f"\nPrompt: {one_line(edit.prompt, _PROMPT_LENGTH)}" if edit.prompt else ""
        return (
            f"{self._time(edit.timestamp)} session {str(edit.session)[:8]} turn {edit.turn} {_short_place(edit.place)} "
            f"{edit.path}{proof}{prompt}\n{edit.diff}"
        )

    def _describe_commit(self, commit: SessionOutcome) -> str:
        session, place = str(commit.session)[:8], _short_place(commit.place)
        return f"{self._time(commit.timestamp)} session {session} {place} (commit)\n  {commit.ref} {commit.label}"

    def _time(self, moment: datetime | None) -> str:
        return format_time(moment, self.archive.zone) or "unknown time"

    def _nothing(self, answer: Answer, query: str) -> str:
        if self._project is not None:
            answer.say(
                "Nothing found in the sessions of this project. The server answers about sessions that were started in "
                "its directory; with `threadline mcp --project all`, about all of them."
            )
            return str(answer)
        answer.say("Nothing found.")
        try:
            reason = self.archive.explain_no_hits(query)
        except Error:
            reason = ""
        if reason:
            answer.quote(reason)
        return str(answer)

    def _describe_hit(self, hit: Hit) -> str:
        title = f" “{one_line(hit.title, 80)}”" if hit.title else ""
        more = f", {hit.more} more in this session" if hit.more else ""
        when = hit.timestamp
        if when is None and hit.session is not None:  # a title has no time of its own
            when = self.archive.session_facts(hit.session).last
        return (
            f"{self._time(when)} session {str(hit.session)[:8]}{title} {_short_place(hit.place)} "
            f"({hit.field or hit.kind}{more})\n  {one_line(hit.snippet, _SNIPPET_LENGTH)}"
        )

    def _find_commits(self, words: Sequence[str], limit: int) -> list[SessionOutcome]:
        """The newest commits whose message contains all words."""
        folded = [word.casefold() for word in words]
        commits = [
            commit
            for commit in self.archive.outcomes(kinds="commit", project=self._project)
            if self._is_in_scope(commit.project) and all(word in commit.label.casefold() for word in folded)
        ]
        return commits[-limit:]

    # --- scope

    def _find(self, query: str, limit: int, sort: Any = "rank", *, every: bool = False) -> _Selection[Hit]:
        def search(most: int) -> Hits:
            return self.archive.search(query, project=self._project, limit=most, sort=sort, every=every)

        return self._in_scope(search, limit)

    def _in_scope(self, find: Callable[[int], Iterable[_Row]], limit: int) -> _Selection[_Row]:
        """The first rows of a listing that are in scope. More rows are asked for until there are enough, or no more."""
        needed = max(1, min(limit, _MAX_HITS))
        most = needed
        while True:
            listing = find(most)
            rows = list(listing)
            matches = [row for row in rows if self._is_in_scope(row.project)]
            if len(matches) >= needed or len(rows) < most:
                note = getattr(listing, "note", None)
                return _Selection(matches[:needed], [note] if note else [])
            most *= 4

    def _load(self, name: str) -> Session:
        """A session in scope, which stays in memory until its transcript changes."""
        summary = self._find_summary(name)
        if not self._is_in_scope(summary.project):
            raise BadQuery(
                "This session belongs to another project. Start the server with `threadline mcp --project all`."
            )
        status = read_status(summary.path)
        cached = self._sessions.pop(summary.path, None)
        if cached is None or cached[0] != status:
            cached = None  # before the transcript is read again: a session may take much memory
            cached = status, self.archive.session_at(summary.path)
        session = cached[1]
        self._sessions[summary.path] = cached
        if len(self._sessions) > _CACHED_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._secrets.learn_session(_transcripts_of(session))
        return session

    def _qualified_id(self, session: Session) -> str:
        """What names only this session: others, which may be out of scope, may have the same id."""
        return self.archive.open_index().qualified_id(str(session.id), session.path or Path())

    def _find_summary(self, name: str) -> SessionSummary:
        """The session whose id starts with a name; `last` is the newest in scope."""
        sessions = list(self.archive.sessions())
        in_scope = [summary for summary in sessions if self._is_in_scope(summary.project)]
        if name == "last":
            matches = in_scope or sessions[:1]
        else:
            matches = _match_sessions(name, in_scope) or _match_sessions(name, sessions)[:1]
        if not matches:
            raise NotFound(f"There is no session {name!r}. Use `search` to find one.")
        if name != "last" and len({summary.id for summary in matches}) > 1:
            ids = ", ".join(str(summary.id) for summary in matches[:5] if is_uuid(str(summary.id)))
            raise Ambiguous(f"{count(len(matches), 'session')} start with {name!r}. Use more of the id: {ids}.")
        return matches[0]

    def _is_in_scope(self, project: str | None) -> bool:
        own = self._project
        return own is None or (
            project is not None and (project == own or project.startswith(own.rstrip(os.sep) + os.sep))
        )

    # --- redaction

    def learn_more(self, seconds: float = 0.02) -> bool:
        """Search more of the sessions that were quoted for secrets; return whether there is more."""
        return self._secrets.learn_more(seconds)

    def _answer(self, max_tokens: int) -> Answer:
        return Answer(max_tokens, self._secrets.redact)

    def _quote_from(self, answer: Answer, session: Session, text: str) -> bool:
        """Quote a text of a session, after a search for what makes one of its words a secret."""
        quoted = [text[: 2 * answer.room]]
        self._secrets.learn_words(dict.fromkeys(_transcripts_of(session), quoted))
        return answer.quote(text)


def _transcripts_of(session: Session) -> list[str]:
    return [str(agent.transcript) for agent in (session.main, *session.agents)]


def _match_sessions(name: str, sessions: Sequence[SessionSummary]) -> list[SessionSummary]:
    """The sessions with this id, or else all whose ids start with it."""
    ids = frozenset(match_ids(name, (str(summary.id) for summary in sessions))) if name else frozenset[str]()
    return [summary for summary in sessions if str(summary.id) in ids]


def _first_bytes(lines: Iterable[_Text], size: int) -> Iterator[_Text]:
    """Yield the first lines, up to the one that exceeds a size."""
    for line in lines:
        yield line
        size -= len(line)
        if size < 0:
            return


def _place_of_hit(hit: Hit) -> Place | None:
    """Where a hit is, if its transcript still exists."""
    return hit.place if not hit.gone else None


def _describe_cause(cause: CostCause) -> str:
    mark = "~" if cause.estimated else ""
    figures = f"{_amount(cause.amount)}  {mark}{cause.tokens:,} tokens, carried by {count(cause.requests, 'request')}"
    return f"{figures}  {cause.label}" + (f"  {_short_place(cause.place)}" if cause.place is not None else "")


def _writer_of(line: BlamedLine) -> str:
    if not line.known:
        return "?"
    if line.session is None:
        return f"commit {str(line.commit)[:8]}"
    return f"{str(line.session)[:8]} turn {line.turn}" if line.turn is not None else str(line.session)[:8]


def _session_name(session: Session) -> str:
    """What the tool calls a session. The name of a file may be any text, so only ids are part of its own words."""
    return f"session {session.id}" if is_uuid(str(session.id)) else "this session"


def _quote_word(word: str) -> str:
    return '"' + word.replace('"', " ") + '"'


def _amount(amount: Any) -> str:
    return format_amount(amount) if amount is not None else "no price"


def _short_place(place: Place) -> str:
    return f"{Path(place.transcript).name}:{place.line}"
