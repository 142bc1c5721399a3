"""Reports in the shape that ccusage prints, for scripts that read it.

Rows have the keys of both its spellings: those of `ccusage daily` from version 20 on (`period`, `agent`, `metadata`)
and those of `ccusage claude daily` and of all versions before (`date`, `week`, `month`, `sessionId`). Sums are exact up
to here, and become JSON numbers last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from threadline.account.calendar import UNKNOWN, Calendar
from threadline.account.ledger import Ledger
from threadline.account.windows import total, windows
from threadline.errors import BadQuery
from threadline.model.charge import Charge
from threadline.model.sum import Sum
from threadline.model.window import Burn, Projection, UsageWindow, WindowLimit

Report = Literal["daily", "weekly", "monthly", "session", "blocks"]
REPORTS: tuple[Report, ...] = ("daily", "weekly", "monthly", "session", "blocks")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Json = dict[str, Any]
_Period = Callable[[Charge], str]
_NAMES = {"daily": "date", "weekly": "week", "monthly": "month"}
_NO_SESSION = "unknown"


def document(
    ledger: Ledger,
    report: Report,
    *,
    zone: tzinfo = UTC,
    order: Literal["asc", "desc"] = "asc",
    start_of_week: str = "monday",
    by_project: bool = False,
    now: datetime | None = None,
) -> Json:
    """What `ccusage REPORT --json` would print of this ledger.

    `start_of_week` is `monday` in `ccusage weekly` of version 20, and `sunday` in those before. `by_project` is what
    its `--instances` gives: the rows of each project apart. Sessions are in the order of what they cost, whatever
    `order` says.

    Raises:
        BadQuery: there is no such report or weekday.
    """
    if report == "blocks":
        return blocks_document(windows(ledger, now=now or datetime.now(UTC)), order=order)
    if report == "session":
        rows = _sessions(ledger)
        return {"session": rows, "sessions": rows, "totals": _totals(ledger)}
    if report not in _NAMES:
        raise BadQuery(f"There is no report {report!r} in ccusage's shape; take {', '.join(REPORTS)}.")
    period = _period(report, Calendar(zone), start_of_week)
    if by_project:
        parts = _parted(ledger, _folder)
        listed: Any = {
            name: [{**row, "project": name} for row in _periods(parts[name], report, period, order)]
            for name in sorted(parts)
        }
        return {"projects": listed, "totals": _totals(ledger)}
    return {report: _periods(ledger, report, period, order), "totals": _totals(ledger)}


def _period(report: str, calendar: Calendar, start_of_week: str) -> _Period:
    """Which row of a report a charge belongs to."""
    if report == "daily":
        return lambda charge: calendar.day(charge.owner.time)
    if report == "monthly":
        return lambda charge: calendar.month(charge.owner.time)
    if start_of_week not in WEEKDAYS:
        raise BadQuery(f"{start_of_week!r} is no day of the week; write {', '.join(WEEKDAYS)}.")
    start = WEEKDAYS.index(start_of_week)

    def week(charge: Charge) -> str:
        day = calendar.day(charge.owner.time)
        if day == UNKNOWN:
            return day
        date = datetime.fromisoformat(day).date()
        back = (date.weekday() - start) % len(WEEKDAYS)
        return date.fromordinal(max(1, date.toordinal() - back)).isoformat()

    return week


def _periods(charges: Iterable[Charge], report: str, period: _Period, order: str) -> list[Json]:
    parts = _parted(charges, period)
    names = sorted(parts, reverse=order == "desc")
    return [
        {
            _NAMES[report]: name,
            "period": name,
            "agent": "all",
            **_figures(parts[name]),
            "metadata": {"agents": ["claude"]},
        }
        for name in names
    ]


def _sessions(ledger: Iterable[Charge]) -> list[Json]:
    parts = _parted(ledger, lambda charge: charge.session or _NO_SESSION)
    rows = [_session(name, some) for name, some in parts.items()]
    return sorted(rows, key=lambda row: (-row["totalCost"], -row["totalTokens"], row["sessionId"]))


def _session(name: str, some: Sequence[Charge]) -> Json:
    times = sorted(when for one in some if (when := one.timestamp) is not None)
    first, last = (written(times[0]), written(times[-1])) if times else (None, None)
    return {
        "sessionId": name,
        "period": name,
        "agent": "claude",
        **_figures(some),
        "firstActivity": first,
        "lastActivity": last,
        "metadata": {"lastActivity": last},
        "projectPath": _folder(some[0]),
    }


def _folder(charge: Charge) -> str:
    """The folder of a charge's project, which is what ccusage knows a project by."""
    origin = charge.origin
    path = Path(origin.transcript)
    projects = Path(origin.home) / "projects"
    return path.relative_to(projects).parts[0] if path.is_relative_to(projects) else path.parent.name


def _parted(charges: Iterable[Charge], key: Callable[[Charge], str]) -> dict[str, list[Charge]]:
    parts: dict[str, list[Charge]] = {}
    for charge in charges:
        parts.setdefault(key(charge), []).append(charge)
    return parts


def _model(charge: Charge) -> str:
    name = charge.model or "unknown"
    return f"{name}-fast" if charge.counted.speed == "fast" else name


def _figures(some: Sequence[Charge]) -> Json:
    models = {name: total(those) for name, those in _parted(some, _model).items()}
    whole = Sum.of(models.values())
    by_cost = sorted(models, key=lambda name: ((models[name].amount or Decimal(0)).copy_negate(), name))
    return {
        **_tokens(whole),
        "totalTokens": whole.tokens,
        "totalCost": _number(whole.amount),
        "modelsUsed": sorted(models),
        "modelBreakdowns": [_breakdown(name, models[name]) for name in by_cost],
    }


def _breakdown(name: str, one: Sum) -> Json:
    row = {"modelName": name, **_tokens(one), "cost": _number(one.amount)}
    return {**row, "missingPricing": True} if one.unpriced else row


def _totals(ledger: Iterable[Charge]) -> Json:
    charges = list(ledger)
    whole = total(charges)
    row = {**_tokens(whole), "totalCost": _number(whole.amount), "totalTokens": whole.tokens}
    unpriced = sorted({_model(one) for one in charges if one.rate is None})
    return {**row, "unpricedModels": unpriced} if unpriced else row


def _tokens(one: Sum) -> Json:
    return {
        "inputTokens": one.input,
        "outputTokens": one.output,
        "cacheCreationTokens": one.cache_write,
        "cacheReadTokens": one.cache_read,
    }


def _number(amount: Decimal | None) -> float:
    return float(amount) if amount is not None else 0.0


def blocks_document(
    some: Sequence[UsageWindow], *, order: Literal["asc", "desc"] = "asc", limit: WindowLimit | None = None
) -> Json:
    """Windows as `ccusage blocks --json` prints them; with a limit of tokens, the active one's state towards it."""
    rows = [_block(one, limit) for one in some]
    return {"blocks": rows[::-1] if order == "desc" else rows}


def _block(one: UsageWindow, limit: WindowLimit | None) -> Json:
    begins = written(one.begins)
    row = {
        "id": f"gap-{begins}" if one.is_gap else begins,
        "startTime": begins,
        "endTime": written(one.ends),
        "actualEndTime": written(one.last) if one.last is not None else None,
        "isActive": one.is_active,
        "isGap": one.is_gap,
        "entries": one.sum.charges,
        "tokenCounts": {
            "inputTokens": one.sum.input,
            "outputTokens": one.sum.output,
            "cacheCreationInputTokens": one.sum.cache_write,
            "cacheReadInputTokens": one.sum.cache_read,
        },
        "totalTokens": one.sum.tokens,
        "costUSD": _number(one.sum.amount),
        "models": list(one.models),
        "burnRate": _burn_rate(one.burn) if one.burn is not None else None,
        "projection": _projection(one.projection) if one.projection is not None else None,
    }
    if limit is not None and one.projection is not None:
        row["tokenLimitStatus"] = _limit_status(one.projection.tokens, limit)
    return row


def _burn_rate(burn: Burn) -> Json:
    return {
        "tokensPerMinute": float(burn.tokens_per_minute),
        "tokensPerMinuteForIndicator": float(burn.new_tokens_per_minute),
        "costPerHour": _number(burn.amount_per_hour),
    }


def _projection(projection: Projection) -> Json:
    return {
        "totalTokens": projection.tokens,
        "totalCost": _number(projection.amount),
        "remainingMinutes": projection.remaining_minutes,
    }


def _limit_status(projected: int, limit: WindowLimit) -> Json:
    return {
        "limit": limit.tokens,
        "projectedUsage": projected,
        "percentUsed": projected / limit.tokens * 100,
        "status": limit.status(projected),
    }


def written(when: datetime) -> str:
    """A time as ccusage writes it: in UTC, with milliseconds.

    >>> written(datetime(2026, 3, 1, 10, tzinfo=UTC))
    '2026-03-01T10:00:00.000Z'
    """
    return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
