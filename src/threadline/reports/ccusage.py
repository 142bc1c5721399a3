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

from threadline.account import Calendar, Ledger, sum_of
from threadline.errors import BadQuery
from threadline.model.ledger import BurnRate, Charge, Projection, Sum, UsageWindow, WindowLimit

ReportName = Literal["daily", "weekly", "monthly", "session", "blocks"]
REPORT_NAMES: tuple[ReportName, ...] = ("daily", "weekly", "monthly", "session", "blocks")
Json = dict[str, Any]
_PERIOD_FIELDS = {"daily": "date", "weekly": "week", "monthly": "month"}
_NO_SESSION = "unknown"


def ccusage_report(ledger: Ledger, report: ReportName, *, zone: tzinfo = UTC, now: datetime | None = None) -> Json:
    """Return what `ccusage REPORT --json` would print for this ledger. Weeks begin on Monday, as in its version 20.

    Raises:
        BadQuery: there is no such report.
    """
    if report == "blocks":
        return ccusage_blocks(ledger.windows(now=now or datetime.now(UTC)))
    if report == "session":
        rows = _session_rows(ledger)
        return {"session": rows, "sessions": rows, "totals": _totals(ledger)}
    if report not in _PERIOD_FIELDS:
        raise BadQuery(f"Unknown ccusage report {report!r}. Use {', '.join(REPORT_NAMES)}.")
    calendar = Calendar(zone)
    period = {"daily": calendar.day, "weekly": calendar.week, "monthly": calendar.month}[report]
    by_period = _group_by(ledger, lambda charge: period(charge.owner.time))
    rows = [_period_row(report, name, by_period[name]) for name in sorted(by_period)]
    return {report: rows, "totals": _totals(ledger)}


def _period_row(report: str, name: str, charges: Sequence[Charge]) -> Json:
    return {
        _PERIOD_FIELDS[report]: name,
        "period": name,
        "agent": "all",
        **_usage_fields(charges),
        "metadata": {"agents": ["claude"]},
    }


def _session_rows(ledger: Iterable[Charge]) -> list[Json]:
    by_session = _group_by(ledger, lambda charge: charge.session or _NO_SESSION)
    rows = [_session_row(name, charges) for name, charges in by_session.items()]
    return sorted(rows, key=lambda row: (-row["totalCost"], -row["totalTokens"], row["sessionId"]))


def _session_row(name: str, charges: Sequence[Charge]) -> Json:
    times = sorted(when for charge in charges if (when := charge.timestamp) is not None)
    first, last = (format_time(times[0]), format_time(times[-1])) if times else (None, None)
    return {
        "sessionId": name,
        "period": name,
        "agent": "claude",
        **_usage_fields(charges),
        "firstActivity": first,
        "lastActivity": last,
        "metadata": {"lastActivity": last},
        "projectPath": _project_folder(charges[0]),
    }


def _project_folder(charge: Charge) -> str:
    """Return the folder of a charge's project, by which ccusage names projects."""
    origin = charge.origin
    path = Path(origin.transcript)
    projects = Path(origin.home) / "projects"
    return path.relative_to(projects).parts[0] if path.is_relative_to(projects) else path.parent.name


def _group_by(charges: Iterable[Charge], key: Callable[[Charge], str]) -> dict[str, list[Charge]]:
    groups: dict[str, list[Charge]] = {}
    for charge in charges:
        groups.setdefault(key(charge), []).append(charge)
    return groups


def _model_name(charge: Charge) -> str:
    name = charge.model or "unknown"
    return f"{name}-fast" if charge.counted.speed == "fast" else name


def _usage_fields(charges: Sequence[Charge]) -> Json:
    models = {name: sum_of(group) for name, group in _group_by(charges, _model_name).items()}
    total = Sum.of(models.values())
    by_cost = sorted(models, key=lambda name: ((models[name].amount or Decimal(0)).copy_negate(), name))
    return {
        **_token_fields(total),
        "totalTokens": total.tokens,
        "totalCost": _as_float(total.amount),
        "modelsUsed": sorted(models),
        "modelBreakdowns": [_breakdown(name, models[name]) for name in by_cost],
    }


def _breakdown(name: str, total: Sum) -> Json:
    row = {"modelName": name, **_token_fields(total), "cost": _as_float(total.amount)}
    return {**row, "missingPricing": True} if total.unpriced else row


def _totals(ledger: Iterable[Charge]) -> Json:
    charges = list(ledger)
    total = sum_of(charges)
    row = {**_token_fields(total), "totalCost": _as_float(total.amount), "totalTokens": total.tokens}
    unpriced = sorted({_model_name(charge) for charge in charges if charge.rate is None})
    return {**row, "unpricedModels": unpriced} if unpriced else row


def _token_fields(total: Sum) -> Json:
    return {
        "inputTokens": total.input,
        "outputTokens": total.output,
        "cacheCreationTokens": total.cache_write,
        "cacheReadTokens": total.cache_read,
    }


def _as_float(amount: Decimal | None) -> float:
    return float(amount) if amount is not None else 0.0


def ccusage_blocks(windows: Sequence[UsageWindow], *, limit: WindowLimit | None = None) -> Json:
    """Return windows as `ccusage blocks --json` prints them; with a limit, the active one's status towards it."""
    return {"blocks": [_block_row(window, limit) for window in windows]}


def _block_row(window: UsageWindow, limit: WindowLimit | None) -> Json:
    begins = format_time(window.begins)
    row = {
        "id": f"gap-{begins}" if window.is_gap else begins,
        "startTime": begins,
        "endTime": format_time(window.ends),
        "actualEndTime": format_time(window.last) if window.last is not None else None,
        "isActive": window.is_active,
        "isGap": window.is_gap,
        "entries": window.sum.charges,
        "tokenCounts": {
            "inputTokens": window.sum.input,
            "outputTokens": window.sum.output,
            "cacheCreationInputTokens": window.sum.cache_write,
            "cacheReadInputTokens": window.sum.cache_read,
        },
        "totalTokens": window.sum.tokens,
        "costUSD": _as_float(window.sum.amount),
        "models": list(window.models),
        "burnRate": _burn_rate(window.burn) if window.burn is not None else None,
        "projection": _projection(window.projection) if window.projection is not None else None,
    }
    if limit is not None and window.projection is not None:
        row["tokenLimitStatus"] = _limit_status(window.projection.tokens, limit)
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
    """Format a time as ccusage does: in UTC, with milliseconds.

    >>> format_time(datetime(2026, 3, 1, 10, tzinfo=UTC))
    '2026-03-01T10:00:00.000Z'
    """
    return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
