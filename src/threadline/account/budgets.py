"""Budgets: stored in a file of the user's settings, and compared with what a ledger says was spent.

The file has one budget per line, as on the command line. A line that begins with `#` is a comment. Changing the file
keeps the other lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path

from msgspec.structs import replace

from threadline import files
from threadline.account.ledger import Ledger
from threadline.errors import BadQuery, Unreadable
from threadline.model.budgets import Budget, BudgetPeriod, BudgetUse
from threadline.model.ledger import Sum, UsageWindow
from threadline.model.times import TimeRange, parse_moment

_HEADING = """\
# Budgets of threadline, one per line: 50/day, 200/week --project app, 2M tokens/5h.
# `threadline budget` shows what is left of each.
"""
_COMMENT = "#"


def read_budgets(path: Path | None = None) -> list[Budget]:
    """Return the budgets in a file, by default the user's; none if there is no file.

    Raises:
        BadQuery: a line is not a budget; the message names it.
        Unreadable: the file cannot be read.
    """
    path = path or files.settings_file(files.BUDGETS)
    budgets: dict[object, Budget] = {}
    for number, line in enumerate(_read_lines(path), 1):
        budget = _parse_line(line, path, number)
        if budget is None:
            continue
        if budget.key in budgets:
            raise BadQuery(
                f"{str(path)!r}, line {number}: there are two budgets for the same period: {budgets[budget.key]} and"
                f" {budget}. Remove one of them."
            )
        budgets[budget.key] = budget
    return list(budgets.values())


def save_budget(budget: Budget, path: Path | None = None) -> Budget | None:
    """Add a budget to the file; return the one that it replaces.

    Raises:
        BadQuery: a line of the file is not a budget.
        Unreadable: the file cannot be read or written.
    """
    path = path or files.settings_file(files.BUDGETS)
    replaced = next((other for other in read_budgets(path) if other.key == budget.key), None)
    lines = _read_lines(path) or _HEADING.splitlines()
    if replaced is None:
        lines.append(str(budget))
    else:
        lines = [str(budget) if _is_budget(line, {replaced.key}) else line for line in lines]
    _write_lines(path, lines)
    return replaced


def remove_budgets(is_removed: Callable[[Budget], bool], path: Path | None = None) -> list[Budget]:
    """Remove the budgets for which a function returns True; return them.

    Raises:
        BadQuery: a line of the file is not a budget.
        Unreadable: the file cannot be read or written.
    """
    path = path or files.settings_file(files.BUDGETS)
    removed = [budget for budget in read_budgets(path) if is_removed(budget)]
    if removed:
        keys: set[object] = {budget.key for budget in removed}
        _write_lines(path, [line for line in _read_lines(path) if not _is_budget(line, keys)])
    return removed


def _read_lines(path: Path) -> list[str]:
    try:
        return files.read_file(path, follow_symlinks=True).decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadQuery(f"{str(path)!r}, line {line}: it is not UTF-8. Correct or delete the line.") from None
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def _parse_line(line: str, path: Path, number: int) -> Budget | None:
    text = line.strip()
    if not text or text.startswith(_COMMENT):
        return None
    try:
        return Budget.parse_line(text)
    except BadQuery as error:
        raise BadQuery(f"{str(path)!r}, line {number}: {error}") from None


def _is_budget(line: str, keys: set[object]) -> bool:
    budget = _parse_line(line, Path(), 0)
    return budget is not None and budget.key in keys


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A file that is a link, as in a folder of dotfiles, stays one.
        target = Path(path.resolve()) if path.is_symlink() else path
        files.write_file(target, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None


_CALENDAR_WORDS = {BudgetPeriod.DAY: "today", BudgetPeriod.WEEK: "this week", BudgetPeriod.MONTH: "this month"}
_FIRST_LOOK = timedelta(days=1)
_LOOK_FACTOR = 8
_MAX_LOOK = timedelta(days=600)
_RESOLUTION = timedelta(microseconds=1)


def budget_range(period: BudgetPeriod, *, now: datetime, zone: tzinfo) -> TimeRange:
    """Return the current day, week or month in a time zone; for a window, the day in which it may have begun."""
    word = _CALENDAR_WORDS.get(period)
    if word is None:
        return TimeRange(now - _FIRST_LOOK, now)
    return TimeRange.parse(word, word, now=now, tz=zone)


def measure_budgets(
    budgets: Iterable[Budget],
    ledger: Ledger,
    *,
    now: datetime,
    zone: tzinfo,
    complete_since: datetime | None = None,
    is_whole: bool = True,
) -> list[BudgetUse]:
    """Return what has been spent of each budget.

    `complete_since` is the time from which on the ledger has every charge; None if it has all. `is_whole` says whether
    every transcript of that time was read.
    """
    meter = _Meter(ledger, now, zone, complete_since, is_whole=is_whole)
    return [meter.measure(budget) for budget in budgets]


class _Meter:
    """Measures budgets; the five-hour window is looked up once."""

    def __init__(
        self, ledger: Ledger, now: datetime, zone: tzinfo, complete_since: datetime | None, *, is_whole: bool
    ) -> None:
        self._ledger = ledger
        self._now = now
        self._zone = zone
        self._complete_since = complete_since
        self._is_whole = is_whole
        self._window: tuple[UsageWindow | None, bool] | None = None

    def measure(self, budget: Budget) -> BudgetUse:
        if budget.period is BudgetPeriod.WINDOW:
            return self._measure_window(budget)
        time = budget_range(budget.period, now=self._now, zone=self._zone)
        if self._complete_since is not None and time.since is not None and time.since < self._complete_since:
            return BudgetUse(budget, None, time.since, time.until)
        return self._compare(budget, time, self._sum(budget, time))

    def _measure_window(self, budget: Budget) -> BudgetUse:
        if self._window is None:
            self._window = self._find_window()
        window, is_certain = self._window
        if window is None:
            return BudgetUse(budget, Decimal(0), is_lower_bound=not self._is_whole, is_certain=is_certain)
        time = TimeRange(window.begins, window.ends - _RESOLUTION)
        total = window.sum if budget.project is None else self._sum(budget, time)
        return replace(self._compare(budget, time, total), is_certain=is_certain)

    def _sum(self, budget: Budget, time: TimeRange) -> Sum:
        return self._ledger.where(since=time.since, until=time.until, project=budget.project).total

    def _compare(self, budget: Budget, time: TimeRange, total: Sum) -> BudgetUse:
        return BudgetUse(
            budget,
            Decimal(total.tokens) if budget.is_tokens else total.amount or Decimal(0),
            time.since,
            time.until,
            is_lower_bound=not self._is_whole or bool(total.unpriced and not budget.is_tokens),
        )

    def _find_window(self) -> tuple[UsageWindow | None, bool]:
        """Return the five-hour window that is running, and whether that is certain.

        Where a window begins depends on the charges before it, so look further back until a pause settles it.
        """
        look = _FIRST_LOOK
        while True:
            since = max(self._now - look, self._complete_since) if self._complete_since else self._now - look
            window, is_certain = self._ledger.current_window(since=since, now=self._now)
            if is_certain or since == self._complete_since or look > _MAX_LOOK:
                return window, is_certain
            look *= _LOOK_FACTOR


def budget_start(budgets: Iterable[Budget], *, now: datetime, zone: tzinfo) -> datetime:
    """Return the time from which on charges are needed to measure budgets."""
    starts = (budget_range(budget.period, now=now, zone=zone).since for budget in budgets)
    return min((start for start in starts if start is not None), default=parse_moment("today", now=now, tz=zone))
