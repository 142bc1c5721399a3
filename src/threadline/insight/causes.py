"""What the costs of many sessions were caused by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from heapq import merge, nsmallest
from itertools import chain, islice
from typing import Protocol

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.insight.groups import GROUP_KEYS, CauseGroup, group_rows, merge_groups
from threadline.model.insight.attribution import Attribution, CostCause, sort_key
from threadline.model.ledger import sum_amounts
from threadline.model.tables import Columns, Listing, Record, Table


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
            sum_amounts(part.amount for part in totals),
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
