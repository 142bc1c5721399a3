"""What the costs of many sessions were caused by, added up by kind, part, tool, file, server, turn, agent and more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from heapq import merge, nsmallest
from itertools import chain, islice
from typing import Protocol

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.insight.attribution import Attribution, CauseKind, CostCause, sort_key
from threadline.model.ledger import EXACT, NONE, sum_amounts
from threadline.model.places import SessionId
from threadline.model.tables import Columns, Listing, Record, Table
from threadline.model.text import plain_decimal

_TOOL_KINDS = frozenset((CauseKind.CALL, CauseKind.RESULT))
GROUP_KEYS: dict[str, Callable[[CostCause], str]] = {
    "kind": lambda row: str(row.kind),
    "part": lambda row: f"{row.kind} {row.name}" if row.name else str(row.kind),
    "tool": lambda row: (row.name if row.kind in _TOOL_KINDS else None) or NONE,
    "file": lambda row: row.file or NONE,
    "server": lambda row: row.server or NONE,
    "turn": lambda row: str(row.turn) if row.turn is not None else NONE,
    "agent": lambda row: row.agent or "main",
    "session": lambda row: row.session or NONE,
    "project": lambda row: row.project or NONE,
}
"""What causes can be grouped by, and the group of a cause.

A `part` is a kind and a name, such as `result Read` or `injected skill_listing`. Turns are those of one session.
"""


class CauseGroup(Struct, frozen=True):
    """The causes with one value of a key. `requests` is the largest number of requests that carried one of them.

    `session` is set if the causes were grouped by turn or session.
    """

    key: str
    causes: int
    tokens: int
    requests: int
    write: Decimal
    read: Decimal
    output: Decimal
    estimated: bool
    session: SessionId | None = None

    @property
    def amount(self) -> Decimal:
        """What they cost in USD, exact."""
        return EXACT.add(EXACT.add(self.write, self.read), self.output)


def group_rows(rows: Iterable[CostCause], by: str) -> list[CauseGroup]:
    """Add up causes by a key of `GROUP_KEYS`, largest amount first."""
    key = GROUP_KEYS[by]
    has_session = by in {"turn", "session"}
    groups: dict[tuple[str, SessionId | None], _Sums] = {}
    for row in rows:
        identity = key(row), row.session if has_session else None
        sums = groups.get(identity)
        if sums is None:
            sums = groups[identity] = _Sums()
        sums.add(row)
    return sort_groups(sums.group(name, session) for (name, session), sums in groups.items())


class _Sums:
    """The sums of a group while its causes are added up."""

    __slots__ = ("causes", "estimated", "output", "read", "requests", "tokens", "write")

    def __init__(self) -> None:
        self.causes = self.tokens = self.requests = 0
        self.write = self.read = self.output = Decimal(0)
        self.estimated = False

    def add(self, part: CostCause | CauseGroup) -> None:
        """Add a cause, or a group of them."""
        self.causes += part.causes if isinstance(part, CauseGroup) else 1
        self.tokens += part.tokens
        self.requests = max(self.requests, part.requests)
        self.write = EXACT.add(self.write, part.write)
        self.read = EXACT.add(self.read, part.read)
        self.output = EXACT.add(self.output, part.output)
        self.estimated = self.estimated or part.estimated

    def group(self, key: str, session: SessionId | None) -> CauseGroup:
        """Return the group, with the same digits whether its causes were in memory or in an index."""
        return CauseGroup(
            key,
            self.causes,
            self.tokens,
            self.requests,
            plain_decimal(self.write),
            plain_decimal(self.read),
            plain_decimal(self.output),
            self.estimated,
            session,
        )


def merge_groups(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    """Add up groups of several sessions that have the same key, largest amount first."""
    same: dict[tuple[str, SessionId | None], _Sums] = {}
    for group in groups:
        identity = group.key, group.session
        sums = same.get(identity)
        if sums is None:
            sums = same[identity] = _Sums()
        sums.add(group)
    return sort_groups(sums.group(key, session) for (key, session), sums in same.items())


def sort_groups(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    """Sort groups, largest amount first."""
    return sorted(groups, key=lambda group: (-group.amount, group.key, group.session or ""))


class CauseTotals(Struct, frozen=True):
    """The sums of some sessions: their cost, how many spent something, and what an `Attribution` says of each."""

    amount: Decimal = Decimal(0)
    sessions: int = 0
    unpriced: int = 0
    measured: int = 0
    missed: float = 0.0

    @property
    def error(self) -> float | None:
        """The share by which estimated sizes miss the measured growth of windows, on average."""
        return self.missed / self.measured if self.measured else None


class CauseSource(Protocol):
    """The causes of some sessions, in memory or in an index."""

    def totals(self) -> CauseTotals:
        """Return the sums."""

    def groups(self, by: str) -> Iterable[CauseGroup]:
        """Return the causes of each session added up by a key. Several groups may have the same value."""

    def rows(self, limit: int | None) -> Iterable[CostCause]:
        """Return the causes, largest amount first: all, or as many as the limit."""


class AttributedSessions:
    """Causes in memory."""

    def __init__(self, attributions: Iterable[Attribution]) -> None:
        self._attributions = tuple(attributions)

    def totals(self) -> CauseTotals:
        """Return the sums."""
        return CauseTotals(
            sum_amounts(attribution.amount for attribution in self._attributions),
            sum(bool(attribution.rows) for attribution in self._attributions),
            sum(attribution.unpriced for attribution in self._attributions),
            sum(attribution.measured for attribution in self._attributions),
            sum((attribution.error or 0.0) * attribution.measured for attribution in self._attributions),
        )

    def groups(self, by: str) -> Iterable[CauseGroup]:
        """Return the causes added up by a key."""
        return group_rows(chain.from_iterable(attribution.rows for attribution in self._attributions), by)

    def rows(self, limit: int | None) -> Iterable[CostCause]:
        """Return the causes, largest amount first."""
        rows = chain.from_iterable(attribution.rows for attribution in self._attributions)
        return sorted(rows, key=sort_key) if limit is None else nsmallest(limit, rows, key=sort_key)


class _CauseRows(Listing[CostCause]):
    """The columns of causes."""

    row_type = CostCause
    added = {"amount": Decimal}  # noqa: RUF012 - annotated in the base class


class CauseList(Table[CostCause]):
    """The causes of what many sessions cost, largest first. As a table, each is a row.

    The rows sum to `amount` exactly, and so do the groups of each key. `sessions` counts the sessions that spent
    something, `unpriced` the requests whose model has no price; those are not part of the amount. `error` is the share
    by which the estimated sizes miss the measured growth of windows.
    """

    noun = "cause"
    html_columns = ("amount", "tokens", "requests", "kind", "label", "session")

    def __init__(self, sources: Sequence[CauseSource]) -> None:
        self._sources = sources
        totals = [source.totals() for source in sources]
        self._totals = CauseTotals(
            plain_decimal(sum_amounts(part.amount for part in totals)),
            sum(part.sessions for part in totals),
            sum(part.unpriced for part in totals),
            sum(part.measured for part in totals),
            sum(part.missed for part in totals),
        )

    @property
    def amount(self) -> Decimal:
        """What everything cost in USD, exact."""
        return self._totals.amount

    @property
    def sessions(self) -> int:
        """How many sessions spent something."""
        return self._totals.sessions

    @property
    def unpriced(self) -> int:
        """How many requests have no known price."""
        return self._totals.unpriced

    @property
    def error(self) -> float | None:
        """The share by which the estimated sizes miss the measured growth of windows, on average."""
        return self._totals.error

    @property
    def columns(self) -> Columns:
        """The names and types of the columns."""
        return _CauseRows().columns

    def to_record(self, row: CostCause) -> Record:
        """Return a cause as a dictionary with a value for each column."""
        return _CauseRows().to_record(row)

    def __iter__(self) -> Iterator[CostCause]:
        return merge(*(source.rows(None) for source in self._sources), key=sort_key)

    def __repr__(self) -> str:
        return f"CauseList({self._describe()})"

    def _describe(self) -> str:
        return f"{self.sessions:,} sessions, {self.amount:.2f} USD"

    def largest(self, limit: int) -> list[CostCause]:
        """Return the causes that cost most, at most `limit` of them."""
        return list(islice(merge(*(source.rows(limit) for source in self._sources), key=sort_key), limit))

    def by(self, key: str) -> list[CauseGroup]:
        """Add up the causes by a key of `GROUP_KEYS`, largest amount first.

        Raises:
            BadQuery: there is no such key.
        """
        if key not in GROUP_KEYS:
            raise BadQuery(f"Unknown key {key!r}. Group by {', '.join(GROUP_KEYS)}.")
        return merge_groups(chain.from_iterable(source.groups(key) for source in self._sources))
