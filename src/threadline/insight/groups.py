"""Add up the causes of a cost by kind, tool, file, server, turn or agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from msgspec import Struct

from threadline.model.attribution import CauseKind, CostCause
from threadline.model.ledger import sum_amounts

NONE = "(none)"
_TOOL_KINDS = frozenset((CauseKind.CALL, CauseKind.RESULT))
GROUP_KEYS: dict[str, Callable[[CostCause], str]] = {
    "kind": lambda row: str(row.kind),
    "tool": lambda row: (row.name if row.kind in _TOOL_KINDS else None) or NONE,
    "file": lambda row: row.file or NONE,
    "server": lambda row: row.server or NONE,
    "turn": lambda row: str(row.turn) if row.turn is not None else NONE,
    "agent": lambda row: row.agent or "main",
}
"""What causes can be grouped by, and the group of a cause."""


class CauseGroup(Struct, frozen=True):
    """The causes with one value of a key. `requests` is the largest number of requests that carried one of them."""

    key: str
    causes: int
    tokens: int
    requests: int
    amount: Decimal
    estimated: bool


def group_rows(rows: Iterable[CostCause], by: str) -> list[CauseGroup]:
    """Add up causes by a key of `GROUP_KEYS`, largest amount first."""
    key = GROUP_KEYS[by]
    groups: dict[str, list[CostCause]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    summed = [
        CauseGroup(
            name,
            len(group),
            sum(row.tokens for row in group),
            max(row.requests for row in group),
            sum_amounts(row.amount for row in group),
            any(row.estimated for row in group),
        )
        for name, group in groups.items()
    ]
    return sorted(summed, key=lambda group: (-group.amount, group.key))
