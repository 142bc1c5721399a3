"""Add up the causes of costs by kind, part, tool, file, server, turn, agent, session or project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from msgspec import Struct

from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.ledger import EXACT, NONE
from threadline.model.places import SessionId

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
        """Return the group."""
        return CauseGroup(
            key, self.causes, self.tokens, self.requests, self.write, self.read, self.output, self.estimated, session
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
