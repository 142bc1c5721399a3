"""Add up the causes of costs by kind, part, tool, file, server, turn, agent, session or project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from msgspec import Struct

from threadline.model.attribution import CauseKind, CostCause
from threadline.model.ledger import EXACT, sum_amounts
from threadline.model.places import SessionId

NONE = "(none)"
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
    groups: dict[tuple[str, SessionId | None], list[CostCause]] = {}
    for row in rows:
        groups.setdefault((key(row), row.session if has_session else None), []).append(row)
    return sort_groups(
        CauseGroup(
            name,
            len(group),
            sum(row.tokens for row in group),
            max(row.requests for row in group),
            sum_amounts(row.write for row in group),
            sum_amounts(row.read for row in group),
            sum_amounts(row.output for row in group),
            any(row.estimated for row in group),
            session,
        )
        for (name, session), group in groups.items()
    )


def merge_groups(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    """Add up groups of several sessions that have the same key, largest amount first."""
    same: dict[tuple[str, SessionId | None], list[CauseGroup]] = {}
    for group in groups:
        same.setdefault((group.key, group.session), []).append(group)
    return sort_groups(
        parts[0]
        if len(parts) == 1
        else CauseGroup(
            key,
            sum(part.causes for part in parts),
            sum(part.tokens for part in parts),
            max(part.requests for part in parts),
            sum_amounts(part.write for part in parts),
            sum_amounts(part.read for part in parts),
            sum_amounts(part.output for part in parts),
            any(part.estimated for part in parts),
            session,
        )
        for (key, session), parts in same.items()
    )


def sort_groups(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    """Sort groups, largest amount first."""
    return sorted(groups, key=lambda group: (-group.amount, group.key, group.session or ""))
