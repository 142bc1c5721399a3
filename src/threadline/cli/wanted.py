"""Which entries are wanted, and why there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from threadline.cli.when import moment
from threadline.errors import BadQuery

if TYPE_CHECKING:
    from datetime import datetime

    from threadline.model.entries import Entry
    from threadline.model.problem import Problem

_LEAST = 4
_SHOWN = 12
# Blocks that people take for kinds, and the kinds of entry that they stand in.
_BLOCKS = {
    "text": ("assistant", "user"),
    "thinking": ("assistant",),
    "tool_use": ("assistant",),
    "tool_result": ("user",),
    "image": ("user",),
}


class Written(NamedTuple):
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
        from threadline.survey.doctor import problems_of

        return problems_of(self.entry)


class Wanted:
    """Filters entries, and remembers what went by."""

    def __init__(
        self, kinds: tuple[str, ...], agent: str | None, since: str | None, until: str | None, *, problems: bool
    ) -> None:
        self._kinds = kinds
        self._agent = agent.removeprefix("agent-") if agent is not None else None
        self._start = moment(since) if since is not None else None
        self._stop = moment(until, end=True) if until is not None else None
        self._problems = problems
        self._seen: Counter[str] = Counter()
        self._agents: dict[str, None] = {}
        self._first: datetime | None = None
        self._last: datetime | None = None
        if self._start is not None and self._stop is not None and self._start > self._stop:
            raise BadQuery(f"--since {since} is after --until {until}: nothing can lie between them.")

    def of(self, written: Iterable[Written]) -> Iterator[Written]:
        """Those that are wanted."""
        for one in written:
            self._seen[one.entry.kind] += 1
            if one.agent is not None:
                self._agents[one.agent] = None
            if (
                self._within(one.entry)
                and (not self._kinds or one.entry.kind in self._kinds)
                and self._by(one)
                and (not self._problems or one.problems)
            ):
                yield one

    def _by(self, one: Written) -> bool:
        """Whether the agent asked for wrote the entry. Entries outside the conversation are nobody's: main's."""
        if self._agent in {None, "main", "sub"}:
            return self._agent is None or one.is_agent == (self._agent == "sub")
        return _is_named(one.agent, self._agent or "")

    def _within(self, entry: Entry) -> bool:
        if self._start is None and self._stop is None:
            return True
        written = entry.timestamp
        if written is None:
            return False
        self._first = min(self._first or written, written)
        self._last = max(self._last or written, written)
        return (self._start is None or written >= self._start) and (self._stop is None or written <= self._stop)

    def why_nothing(self) -> str:
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
        here = f"Kinds here: {_listed([name for name, _count in self._seen.most_common()])}."
        if "," in kind:
            given = " ".join(f"--kind {one.strip()}" for one in kind.split(",") if one.strip())
            return f"No entry is of kind {kind!r}; give --kind twice: {given}."
        if kind in _BLOCKS:
            holders = _BLOCKS[kind]
            named = " or ".join(f"--kind {one}" for one in holders)
            return f"{kind!r} is a block inside {' and '.join(holders)} entries, not a kind of entry; try {named}."
        from threadline.model.entries import KINDS

        near = _nearest(kind, [*self._seen, *KINDS]) if kind not in KINDS else None
        meant = f"; did you mean {near}?" if near is not None else "."
        return f"No entry is of kind {kind!r}{meant} {here}"

    def _no_agent(self) -> str | None:
        if self._agent in {None, "main"}:
            return None
        if self._agent == "sub":
            return None if self._agents else "No subagent wrote here; all is the main thread's."
        if any(_is_named(agent, self._agent or "") for agent in self._agents):
            return None
        here = f"agents here: {_listed(list(self._agents))}" if self._agents else "there are no subagents here"
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


def _is_named(agent: str | None, wanted: str) -> bool:
    """Whether an agent's id is this one, or starts so."""
    if agent is None:
        return False
    return agent == wanted or (len(wanted) >= _LEAST and agent.startswith(wanted))


def _nearest(word: str, words: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    folded = {one.lower(): one for one in words}
    near = get_close_matches(word.lower(), folded, n=1)
    return folded[near[0]] if near else None


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
