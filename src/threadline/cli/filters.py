"""Filters built from command-line options, and why nothing matched them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import Struct
from msgspec.structs import replace

from threadline.account import NONE, Ledger
from threadline.archive import Archive
from threadline.errors import Ambiguous, BadQuery
from threadline.model.text import join_some
from threadline.model.times import in_zone, parse_moment

if TYPE_CHECKING:
    from threadline.model.entries import Entry
    from threadline.model.places import Problem

DEFAULT_LIMIT = 50
"""How many are shown of all sessions, unless another number is asked for."""


class CrossSessionFilter(Struct, frozen=True):
    """Of which projects and times, and how much of it; no limit means all."""

    project: str | None
    since: datetime | None
    until: datetime | None
    limit: int | None

    @staticmethod
    def of(project: str | None, since: str | None, until: str | None, limit: int | None) -> CrossSessionFilter:
        """As it was asked for on the command line.

        Raises:
            BadQuery: a time is none, or nothing can lie between them.
        """
        from threadline.errors import BadQuery
        from threadline.model.times import parse_moment

        begin = parse_moment(since) if since is not None else None
        end = parse_moment(until, end=True) if until is not None else None
        if begin is not None and end is not None and begin > end:
            raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")
        return CrossSessionFilter(project, begin, end, limit)

    def wanted(self) -> dict[str, Any]:
        """The same, for the archive."""
        return {"project": self.project, "since": self.since, "until": self.until, "limit": self.limit}

    def for_single_session(self) -> CrossSessionFilter:
        """The same, where a session was named: a project is not asked for then."""
        if self.project is not None:
            raise click.UsageError("--project asks about all sessions; leave SESSION out.")
        return self

    def with_default_limit(self, output: str) -> CrossSessionFilter:
        """The same for all sessions: a page has an end, a program gets all unless it asks for less."""
        return replace(self, limit=self.limit or (DEFAULT_LIMIT if output == "table" else None))

    def holds(self, when: datetime | None) -> bool:
        """Whether a moment is in the time that is asked for; what has none is in no time."""
        if self.since is None and self.until is None:
            return True
        if when is None:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)


_MIN_AGENT_PREFIX = 4
_MAX_NAMES = 12
# Blocks that people take for kinds, and the kinds of entry that they stand in.
_ENTRY_KINDS_OF_BLOCK = {
    "text": ("assistant", "user"),
    "thinking": ("assistant",),
    "tool_use": ("assistant",),
    "tool_result": ("user",),
    "image": ("user",),
}


class AttributedEntry(NamedTuple):
    """An entry, and the agent whose own transcript it stands in."""

    entry: Entry
    transcript_agent: str | None = None

    @property
    def agent(self) -> str | None:
        """The subagent that wrote it; an agent's own transcript is all its own, whatever its rows leave out."""
        return getattr(self.entry, "agent_id", None) or self.transcript_agent

    @property
    def is_agent(self) -> bool:
        """Whether a subagent wrote it, named or not."""
        return bool(self.agent or getattr(self.entry, "is_agent", None))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with it, a timestamp that names no moment included, as the doctor has it."""
        return self.entry.all_problems


class EntryFilter:
    """Filters entries, and remembers what went by."""

    def __init__(
        self, kinds: tuple[str, ...], agent: str | None, since: str | None, until: str | None, *, problems: bool
    ) -> None:
        self._kinds = kinds
        self._agent = agent.removeprefix("agent-") if agent is not None else None
        self._start = parse_moment(since) if since is not None else None
        self._stop = parse_moment(until, end=True) if until is not None else None
        self._problems = problems
        self._seen: Counter[str] = Counter()
        self._agents: dict[str, None] = {}
        self._first: datetime | None = None
        self._last: datetime | None = None
        if self._start is not None and self._stop is not None and self._start > self._stop:
            raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")

    def of(self, written: Iterable[AttributedEntry]) -> Iterator[AttributedEntry]:
        """Those that are wanted."""
        for entry in written:
            self._seen[entry.entry.kind] += 1
            if entry.agent is not None:
                self._agents[entry.agent] = None
            if (
                self._within(entry.entry)
                and (not self._kinds or entry.entry.kind in self._kinds)
                and self._by(entry)
                and (not self._problems or entry.problems)
            ):
                yield entry

    def _by(self, entry: AttributedEntry) -> bool:
        """Whether the agent asked for wrote the entry. Entries outside the conversation are nobody's: main's."""
        if self._agent in {None, "main", "sub"}:
            return self._agent is None or entry.is_agent == (self._agent == "sub")
        return _matches_agent(entry.agent, self._agent or "")

    def _within(self, entry: Entry) -> bool:
        if self._start is None and self._stop is None:
            return True
        written = entry.timestamp
        if written is None:
            return False
        self._first = min(self._first or written, written)
        self._last = max(self._last or written, written)
        return (self._start is None or written >= self._start) and (self._stop is None or written <= self._stop)

    def explain_nothing(self) -> str:
        """A sentence that helps, after nothing was found."""
        if not self._seen:
            return "There is no entry: nothing has been written there yet."
        missing = [kind for kind in self._kinds if kind not in self._seen]
        if missing and len(missing) == len(self._kinds):
            return self._no_kind(missing[0])
        agents = self._no_agent()
        if agents:
            return agents
        if (self._start is not None or self._stop is not None) and not self._any_within():
            return f"No entry is from that time; {self._times()}."
        given = (
            ("--kind", self._kinds),
            ("--agent", self._agent),
            ("--since", self._start),
            ("--until", self._stop),
            ("--problems", self._problems),
        )
        names = [name for name, value in given if value]
        if names == ["--problems"]:
            return "Nothing is wrong with any entry."
        return f"None of {sum(self._seen.values()):,} entries passes {' and '.join(names)}."

    def _no_kind(self, kind: str) -> str:
        here = f"Kinds here: {_join_names([name for name, _count in self._seen.most_common()])}."
        if "," in kind:
            given = " ".join(f"--kind {one.strip()}" for one in kind.split(",") if one.strip())
            return f"No entry is of kind {kind!r}; give --kind twice: {given}."
        if kind in _ENTRY_KINDS_OF_BLOCK:
            holders = _ENTRY_KINDS_OF_BLOCK[kind]
            named = " or ".join(f"--kind {holder}" for holder in holders)
            return f"{kind!r} is a block inside {' and '.join(holders)} entries, not a kind of entry; try {named}."
        from threadline.model.entries import KINDS

        near = _closest_match(kind, [*self._seen, *KINDS]) if kind not in KINDS else None
        meant = f"; did you mean {near}?" if near is not None else "."
        return f"No entry is of kind {kind!r}{meant} {here}"

    def _no_agent(self) -> str | None:
        if self._agent in {None, "main"}:
            return None
        if self._agent == "sub":
            return None if self._agents else "No subagent wrote here; all is the main thread's."
        if any(_matches_agent(agent, self._agent or "") for agent in self._agents):
            return None
        here = f"agents here: {_join_names(list(self._agents))}" if self._agents else "there are no subagents here"
        return f"No agent {self._agent!r} wrote here; {here}. `main` is the main thread, `sub` all subagents."

    def _any_within(self) -> bool:
        if self._first is None or self._last is None:
            return False
        return (self._start is None or self._last >= self._start) and (self._stop is None or self._first <= self._stop)

    def _times(self) -> str:
        if self._first is None or self._last is None:
            return "no entry here says when it was written"
        first, last = (f"{one:%Y-%m-%d %H:%M}" for one in (self._first, self._last))
        return f"the entries here are from {first} to {last} (UTC)"


def _matches_agent(agent: str | None, wanted: str) -> bool:
    """Whether an agent's id is this one, or starts so."""
    if agent is None:
        return False
    return agent == wanted or (len(wanted) >= _MIN_AGENT_PREFIX and agent.startswith(wanted))


def _closest_match(word: str, words: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    folded = {one.lower(): one for one in words}
    near = get_close_matches(word.lower(), folded, n=1)
    return folded[near[0]] if near else None


def _join_names(words: list[str]) -> str:
    more = f" and {len(words) - _MAX_NAMES:,} more" if len(words) > _MAX_NAMES else ""
    return ", ".join(words[:_MAX_NAMES]) + more


_ID_LENGTH = 8


class ChargeFilter(Struct, frozen=True):
    """Which charges to sum: all that fit every one of these. `session` is the start of an id, or `last`."""

    project: str | None = None
    model: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def of(self, ledger: Ledger, archive: Archive) -> Ledger:
        """The ledger of the charges that are wanted."""
        return self._in_time(self._of_session(self._of_model(self._of_project(ledger)), ledger, archive))

    def why(self, ledger: Ledger, archive: Archive, zone: tzinfo) -> str:
        """Why there is no charge, and what there would be."""
        if not ledger.charges:
            return f"Nothing was spent: no model replied in {join_some(str(home.path) for home in archive.homes)}."
        told = f"No charge of {ledger.total.charges:,} fits {' and '.join(self._said())}"
        project = self._of_project(ledger)
        if not project.charges:
            return f"{told}; projects are {join_some(_key_values(ledger, 'project'))}."
        model = self._of_model(project)
        if not model.charges:
            return f"{told}; models are {join_some(_key_values(project, 'model'))}."
        session = self._of_session(model, ledger, archive)
        if not session.charges:
            return f"{told}; sessions are {join_some(value[:_ID_LENGTH] for value in _key_values(model, 'session'))}."
        days = [in_zone(when, zone).date() for one in session if (when := one.timestamp) is not None]
        return f"{told}; what else fits is from {min(days)} to {max(days)}." if days else f"{told}."

    def _said(self) -> list[str]:
        own = {"project": self.project, "model": self.model, "session": self.session}
        times = {"since": self.since, "until": self.until}
        given = [f"--{name} {value!r}" for name, value in own.items() if value is not None]
        return given + [f"--{name}" for name, value in times.items() if value is not None]

    def _of_project(self, ledger: Ledger) -> Ledger:
        return ledger if self.project is None else ledger.where(project=self.project)

    def _of_model(self, ledger: Ledger) -> Ledger:
        return ledger if self.model is None else ledger.where(model=self.model)

    def _of_session(self, ledger: Ledger, whole: Ledger, archive: Archive) -> Ledger:
        return (
            ledger if self.session is None else ledger.where(session=_resolve_session_id(self.session, whole, archive))
        )

    def _in_time(self, ledger: Ledger) -> Ledger:
        timed = self.since is not None or self.until is not None
        return ledger.where(since=self.since, until=self.until) if timed else ledger


def _key_values(ledger: Ledger, name: str) -> list[str]:
    return [row.keys[name] for row in ledger.by(name)]


def _resolve_session_id(wanted: str, ledger: Ledger, archive: Archive) -> str:
    """The id of the session that was named; what was named where there is none, so that nothing is found."""
    if wanted == "last":
        from threadline.summary import SessionFilter as WantedSessions

        newest = archive.sessions(WantedSessions(limit=1)).sessions
        return str(newest[0].id) if newest else wanted
    start = wanted.lower()
    ids = [value for value in _key_values(ledger, "session") if value != NONE]
    fitting = sorted(id_ for id_ in ids if id_.lower().startswith(start))
    exact = [one for one in fitting if one.lower() == start]
    if len(fitting) > 1 and not exact:
        raise Ambiguous(
            f"{wanted!r} is the start of {len(fitting)} sessions' ids; write more of it: {join_some(fitting)}."
        )
    return (exact or fitting or [wanted])[0]
