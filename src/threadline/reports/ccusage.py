"""Usage reports in the JSON format of ccusage, for scripts that read it.

Rows have the keys of both its spellings: those of `ccusage daily` from version 20 on (`period`, `agent`, `metadata`)
and those of `ccusage claude daily` and all earlier versions (`date`, `week`, `month`, `sessionId`). Sums are exact
decimals and are converted to JSON numbers last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from threadline.account import NO_TIME, Calendar, Ledger, sum_of, usage_windows
from threadline.errors import BadQuery
from threadline.model.charges import Charge
from threadline.model.totals import BurnRate, Projection, Sum, UsageWindow, WindowLimit

ReportName = Literal["daily", "weekly", "monthly", "session", "blocks"]
REPORT_NAMES: tuple[ReportName, ...] = ("daily", "weekly", "monthly", "session", "blocks")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Json = dict[str, Any]
_PeriodFunction = Callable[[Charge], str]
_PERIOD_FIELDS = {"daily": "date", "weekly": "week", "monthly": "month"}
_NO_SESSION = "unknown"


def ccusage_report(
    ledger: Ledger,
    report: ReportName,
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
        return ccusage_blocks(usage_windows(ledger, now=now or datetime.now(UTC)), order=order)
    if report == "session":
        rows = _session_rows(ledger)
        return {"session": rows, "sessions": rows, "totals": _totals(ledger)}
    if report not in _PERIOD_FIELDS:
        raise BadQuery(f"There is no report {report!r} in ccusage's shape; take {', '.join(REPORT_NAMES)}.")
    period = _period_function(report, Calendar(zone), start_of_week)
    if by_project:
        parts = _group_by(ledger, _project_folder)
        listed: Any = {
            name: [{**row, "project": name} for row in _period_rows(parts[name], report, period, order)]
            for name in sorted(parts)
        }
        return {"projects": listed, "totals": _totals(ledger)}
    return {report: _period_rows(ledger, report, period, order), "totals": _totals(ledger)}


def _period_function(report: str, calendar: Calendar, start_of_week: str) -> _PeriodFunction:
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
        if day == NO_TIME:
            return day
        date = datetime.fromisoformat(day).date()
        back = (date.weekday() - start) % len(WEEKDAYS)
        return date.fromordinal(max(1, date.toordinal() - back)).isoformat()

    return week


def _period_rows(charges: Iterable[Charge], report: str, period: _PeriodFunction, order: str) -> list[Json]:
    parts = _group_by(charges, period)
    names = sorted(parts, reverse=order == "desc")
    return [
        {
            _PERIOD_FIELDS[report]: name,
            "period": name,
            "agent": "all",
            **_usage_fields(parts[name]),
            "metadata": {"agents": ["claude"]},
        }
        for name in names
    ]


def _session_rows(ledger: Iterable[Charge]) -> list[Json]:
    parts = _group_by(ledger, lambda charge: charge.session or _NO_SESSION)
    rows = [_session_row(name, some) for name, some in parts.items()]
    return sorted(rows, key=lambda row: (-row["totalCost"], -row["totalTokens"], row["sessionId"]))


def _session_row(name: str, some: Sequence[Charge]) -> Json:
    times = sorted(when for charge in some if (when := charge.timestamp) is not None)
    first, last = (format_time(times[0]), format_time(times[-1])) if times else (None, None)
    return {
        "sessionId": name,
        "period": name,
        "agent": "claude",
        **_usage_fields(some),
        "firstActivity": first,
        "lastActivity": last,
        "metadata": {"lastActivity": last},
        "projectPath": _project_folder(some[0]),
    }


def _project_folder(charge: Charge) -> str:
    """The folder of a charge's project, which is what ccusage knows a project by."""
    origin = charge.origin
    path = Path(origin.transcript)
    projects = Path(origin.home) / "projects"
    return path.relative_to(projects).parts[0] if path.is_relative_to(projects) else path.parent.name


def _group_by(charges: Iterable[Charge], key: Callable[[Charge], str]) -> dict[str, list[Charge]]:
    parts: dict[str, list[Charge]] = {}
    for charge in charges:
        parts.setdefault(key(charge), []).append(charge)
    return parts


def _model_name(charge: Charge) -> str:
    name = charge.model or "unknown"
    return f"{name}-fast" if charge.counted.speed == "fast" else name


def _usage_fields(some: Sequence[Charge]) -> Json:
    models = {name: sum_of(those) for name, those in _group_by(some, _model_name).items()}
    whole = Sum.of(models.values())
    by_cost = sorted(models, key=lambda name: ((models[name].amount or Decimal(0)).copy_negate(), name))
    return {
        **_token_fields(whole),
        "totalTokens": whole.tokens,
        "totalCost": _as_float(whole.amount),
        "modelsUsed": sorted(models),
        "modelBreakdowns": [_breakdown(name, models[name]) for name in by_cost],
    }


def _breakdown(name: str, one: Sum) -> Json:
    row = {"modelName": name, **_token_fields(one), "cost": _as_float(one.amount)}
    return {**row, "missingPricing": True} if one.unpriced else row


def _totals(ledger: Iterable[Charge]) -> Json:
    charges = list(ledger)
    whole = sum_of(charges)
    row = {**_token_fields(whole), "totalCost": _as_float(whole.amount), "totalTokens": whole.tokens}
    unpriced = sorted({_model_name(charge) for charge in charges if charge.rate is None})
    return {**row, "unpricedModels": unpriced} if unpriced else row


def _token_fields(one: Sum) -> Json:
    return {
        "inputTokens": one.input,
        "outputTokens": one.output,
        "cacheCreationTokens": one.cache_write,
        "cacheReadTokens": one.cache_read,
    }


def _as_float(amount: Decimal | None) -> float:
    return float(amount) if amount is not None else 0.0


def ccusage_blocks(
    some: Sequence[UsageWindow], *, order: Literal["asc", "desc"] = "asc", limit: WindowLimit | None = None
) -> Json:
    """Windows as `ccusage blocks --json` prints them; with a limit of tokens, the active one's state towards it."""
    rows = [_block_row(usage_window, limit) for usage_window in some]
    return {"blocks": rows[::-1] if order == "desc" else rows}


def _block_row(usage_window: UsageWindow, limit: WindowLimit | None) -> Json:
    begins = format_time(usage_window.begins)
    row = {
        "id": f"gap-{begins}" if usage_window.is_gap else begins,
        "startTime": begins,
        "endTime": format_time(usage_window.ends),
        "actualEndTime": format_time(usage_window.last) if usage_window.last is not None else None,
        "isActive": usage_window.is_active,
        "isGap": usage_window.is_gap,
        "entries": usage_window.sum.charges,
        "tokenCounts": {
            "inputTokens": usage_window.sum.input,
            "outputTokens": usage_window.sum.output,
            "cacheCreationInputTokens": usage_window.sum.cache_write,
            "cacheReadInputTokens": usage_window.sum.cache_read,
        },
        "totalTokens": usage_window.sum.tokens,
        "costUSD": _as_float(usage_window.sum.amount),
        "models": list(usage_window.models),
        "burnRate": _burn_rate(usage_window.burn) if usage_window.burn is not None else None,
        "projection": _projection(usage_window.projection) if usage_window.projection is not None else None,
    }
    if limit is not None and usage_window.projection is not None:
        row["tokenLimitStatus"] = _limit_status(usage_window.projection.tokens, limit)
    return row


def _burn_rate(burn: BurnRate) -> Json:
    return {
        "tokensPerMinute": float(burn.tokens_per_minute),
        "tokensPerMinuteForIndicator": float(burn.new_tokens_per_minute),
        "costPerHour": _as_float(burn.amount_per_hour),
    }


def _projection(projection: Projection) -> Json:
    return {
        "totalTokens": projection.tokens,
        "totalCost": _as_float(projection.amount),
        "remainingMinutes": projection.remaining_minutes,
    }


def _limit_status(projected: int, limit: WindowLimit) -> Json:
    return {
        "limit": limit.tokens,
        "projectedUsage": projected,
        "percentUsed": projected / limit.tokens * 100,
        "status": limit.status(projected),
    }


def format_time(when: datetime) -> str:
    """A time as ccusage writes it: in UTC, with milliseconds.

    >>> format_time(datetime(2026, 3, 1, 10, tzinfo=UTC))
    '2026-03-01T10:00:00.000Z'
    """
    return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
