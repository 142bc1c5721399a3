"""Add up calls by tool, server, program, model, version, project or time: failures, durations, sizes and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from threadline.account import Calendar
from threadline.model.calls import ToolGroup
from threadline.model.ledger import NO_TIME

TOOL_KEYS = ("tool", "server", "command", "model", "version", "day", "week", "project")
"""What calls can be added up by."""
TIME_KEYS = frozenset(("day", "week"))
_SORT_VALUES: dict[str, Callable[[ToolGroup], float]] = {
    "calls": lambda group: group.calls,
    "failed": lambda group: group.failure_rate,
    "errors": lambda group: group.errors - group.exit_codes,
    "exit": lambda group: group.exit_codes,
    "denied": lambda group: group.denied,
    "stopped": lambda group: group.interrupted + group.lost,
    "median": lambda group: group.median or 0,
    "p95": lambda group: group.p95 or 0,
    "output": lambda group: group.output_tokens or 0,
    "amount": lambda group: float(group.carried or 0),
}
TOOL_SORTS = tuple(_SORT_VALUES)
"""What groups of calls can be sorted by, largest first."""
COST_SORTS = frozenset(("output", "amount"))
"""Those of them that need costs."""
_PENDING = "pending"
_ENDED = frozenset(("ok", "error"))
_MICRO = Decimal("0.000001")
_PERCENTILE = 0.95
_QUARTER_HOUR = 900  # seconds


class ResultCost(NamedTuple):
    """The size of a call's result, what it cost to send and carry it, and whether that depends on an estimate."""

    tokens: int
    amount: float
    is_estimated: bool


def add_costs(first: ResultCost, second: ResultCost) -> ResultCost:
    """The costs of two parts of a result."""
    return ResultCost(
        first.tokens + second.tokens, first.amount + second.amount, first.is_estimated or second.is_estimated
    )


ToolCall = tuple[Iterable[str], str, str | None, int | None, int | None]
"""A call, as far as it is added up: its groups, its id, outcome, exit code, and duration in milliseconds."""


class _Sum:
    """The calls of one group, added up."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.exit_codes = 0
        self.durations: list[int] = []
        self.tokens = 0
        self.amount = 0.0
        self.is_estimated = False

    def group(self, key: str, *, has_costs: bool) -> ToolGroup:
        outcomes = self.outcomes
        durations = sorted(self.durations)
        return ToolGroup(
            key=key,
            calls=outcomes.total(),
            ok=outcomes["ok"],
            errors=outcomes["error"],
            exit_codes=self.exit_codes,
            denied=outcomes["denied"],
            interrupted=outcomes["interrupted"],
            lost=outcomes["lost"],
            pending=outcomes[_PENDING],
            median=_quantile(durations, 0.5),
            p95=_quantile(durations, _PERCENTILE),
            output_tokens=self.tokens if has_costs else None,
            carried=Decimal(self.amount).quantize(_MICRO) if has_costs else None,
            estimated=self.is_estimated,
        )


def add_up_calls(calls: Iterable[ToolCall], costs: Mapping[str, ResultCost] | None, by: str) -> list[ToolGroup]:
    """Add up calls by their keys: in order of time, or the most frequent first. `costs` is None to leave them out.

    A shell command that runs several programs counts for each of them.
    """
    sums: dict[str, _Sum] = {}
    known = costs or {}
    for keys, call, outcome, exit_code, duration in calls:
        for key in keys:
            group = sums.get(key)
            if group is None:
                group = sums[key] = _Sum()
            group.outcomes[outcome or _PENDING] += 1
            if outcome == "error" and exit_code:
                group.exit_codes += 1
            if duration is not None and outcome in _ENDED:
                group.durations.append(duration)
            cost = known.get(call)
            if cost is not None:
                group.tokens += cost.tokens
                group.amount += cost.amount
                group.is_estimated = group.is_estimated or cost.is_estimated
    groups = [group.group(key, has_costs=costs is not None) for key, group in sums.items()]
    if by in TIME_KEYS:
        return sorted(groups, key=lambda group: group.key)
    return sorted(groups, key=lambda group: (-group.calls, group.key))


def select_tool_groups(
    groups: Sequence[ToolGroup], by: str, sort: str | None, limit: int | None
) -> Sequence[ToolGroup]:
    """The first groups by a key of `TOOL_SORTS`; without one, the newest if they are days or weeks."""
    if sort is not None:
        groups = sorted(groups, key=_SORT_VALUES[sort], reverse=True)
    elif by in TIME_KEYS and limit is not None:
        return groups[max(0, len(groups) - limit) :]
    return groups[:limit]


def _quantile(sorted_values: list[int], share: float) -> float | None:
    """The smallest value that at least this share of the values does not exceed, in seconds."""
    if not sorted_values:
        return None
    at = max(0, -(-len(sorted_values) * int(share * 100) // 100) - 1)
    return sorted_values[at] / 1000


def time_key(by: str, zone: tzinfo) -> Callable[[int | None], str]:
    """A function from seconds since 1970 to the day in a time zone, or to the Monday of its week."""
    calendar = Calendar(zone)
    name = calendar.week if by == "week" else calendar.day

    @cache
    def name_time(seconds: int) -> str:
        return name(f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}Z")

    # Days begin at a whole quarter of an hour in every time zone.
    return lambda moment: name_time(moment - moment % _QUARTER_HOUR) if moment is not None else NO_TIME


def tool_group_record(group: ToolGroup, by: str) -> dict[str, Any]:
    """Calls added up, as a JSON value."""
    return {
        by: group.key,
        "calls": group.calls,
        "ok": group.ok,
        "errors": group.errors,
        "exit_codes": group.exit_codes,
        "denied": group.denied,
        "interrupted": group.interrupted,
        "lost": group.lost,
        "pending": group.pending,
        "failure_rate": round(group.failure_rate, 4),
        "median": group.median,
        "p95": group.p95,
        "output_tokens": group.output_tokens,
        "carried": group.carried,
        "estimated": group.estimated,
    }
