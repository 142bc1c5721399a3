"""Budgets: what may be spent in a day, a week, a month or a five-hour window, and how much of it is left."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery, did_you_mean
from threadline.model.ledger import EXACT, share_of
from threadline.model.text import format_amount, format_decimal, format_tokens, plain_decimal

NEARLY_USED = Decimal("0.8")
"""The share of a budget from which it is marked as nearly used up."""
_SHARE_DIGITS = 4
_MAX_DIGITS = 15
_EXAMPLES = "Write it as 50/day, 200/week, 500/month, 10/5h or '2M tokens/5h'."
_NUMBER = re.compile(r"(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?|\.\d+", re.ASCII)
_LIMIT = re.compile(
    r"\$?\s*(?P<number>[\d.,]+)(?:\s*(?P<scale>[kmgb])(?![a-su-z]))?(?:\s*(?P<unit>\$|(?:usd|dollars?|tokens?|tok)\b))?",
    re.ASCII | re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*/\s*|\s+(?:per|a|an|each|every|in)\s+|\s+", re.IGNORECASE)
_SCALES = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9}
_TOKEN_WORDS = frozenset({"tok", "token", "tokens"})


class BudgetPeriod(StrEnum):
    """How long a budget lasts. Weeks begin on Monday; `5h` is the five-hour window that is running."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    WINDOW = "5h"

    @property
    def now(self) -> str:
        """The period in a sentence about what is left."""
        return _NOW[self]


_NOW = {
    BudgetPeriod.DAY: "today",
    BudgetPeriod.WEEK: "this week",
    BudgetPeriod.MONTH: "this month",
    BudgetPeriod.WINDOW: "in this 5h window",
}
_PERIOD_WORDS = {
    **{str(period): period for period in BudgetPeriod},
    **dict.fromkeys(("d", "days", "daily", "today", "24h"), BudgetPeriod.DAY),
    **dict.fromkeys(("w", "wk", "weeks", "weekly", "7d"), BudgetPeriod.WEEK),
    **dict.fromkeys(("mo", "mon", "months", "monthly"), BudgetPeriod.MONTH),
    **dict.fromkeys(("5 h", "5hours", "5 hours", "five-hour", "window", "block"), BudgetPeriod.WINDOW),
}


class Budget(Struct, frozen=True):
    """What may be spent in a period: USD, or tokens. With a project, only what projects whose path contains it spend.

    >>> Budget.parse("50/day"), Budget.parse("2M tokens/5h"), Budget.parse("20 per week", project="app")
    (Budget('50/day'), Budget('2M tokens/5h'), Budget('20/week --project app'))
    """

    limit: Decimal
    period: BudgetPeriod
    is_tokens: bool = False
    project: str | None = None

    def __str__(self) -> str:
        """The budget as `Budget.parse_line` reads it."""
        return f"{self._limit_text}/{self.period}" + (f" --project {self.project}" if self.project else "")

    def __repr__(self) -> str:
        return f"Budget({str(self)!r})"

    @property
    def _limit_text(self) -> str:
        if not self.is_tokens:
            return format_decimal(self.limit)
        scale = next((name for name, power in (("M", 6), ("k", 3)) if not self.limit % 10**power), "")
        return f"{format_decimal(self.limit / 10 ** _SCALES[scale.lower()])}{scale} tokens"

    @property
    def key(self) -> tuple[BudgetPeriod, bool, str | None]:
        """What two budgets have in common if one replaces the other."""
        return self.period, self.is_tokens, self.project

    @classmethod
    def parse(cls, text: str, *, project: str | None = None) -> Budget:
        """Parse a limit and a period: `50/day`, `$50 per day`, `2M tokens/5h`.

        Raises:
            BadQuery: it is not a budget; the message says what is.
        """
        words = text.strip()
        limit = _LIMIT.match(words)
        if limit is None or _NUMBER.fullmatch(limit["number"]) is None:
            raise BadQuery(f"{text!r} is not a budget. {_EXAMPLES}")
        rest = words[limit.end() :]
        separator = _SEPARATOR.match(rest)
        if separator is None:
            raise BadQuery(f"{text!r} has no period, or an unknown unit. {_EXAMPLES}")
        period = parse_period(rest[separator.end() :])
        is_tokens = (limit["unit"] or "").lower() in _TOKEN_WORDS
        scale = (limit["scale"] or "").lower()
        if scale and not is_tokens:
            number = f"{limit['number']}{limit['scale']}"
            raise BadQuery(f"{number} of what? Write '{number} tokens/{period}', or the amount in USD without {scale}.")
        value = EXACT.scaleb(Decimal(limit["number"].replace(",", "")), _SCALES[scale])
        if not value or value.adjusted() >= _MAX_DIGITS or (is_tokens and value % 1):
            raise BadQuery(f"{text!r} is not a budget: the limit is out of range. {_EXAMPLES}")
        return cls(plain_decimal(value), period, is_tokens, _check_project(project))

    @classmethod
    def parse_line(cls, line: str) -> Budget:
        """Parse a line of the file of budgets: a budget, and after it `--project TEXT`.

        Raises:
            BadQuery: it is not a budget.
        """
        text, marker, project = line.partition("--project")
        return cls.parse(text, project=project.strip(" \t=") if marker else None)

    def applies_to(self, directory: str | None) -> bool:
        """Whether it includes what is spent in a directory; True if the directory is unknown."""
        return self.project is None or directory is None or self.project.casefold() in directory.casefold()


def parse_period(text: str) -> BudgetPeriod:
    """Parse the period of a budget: `day`, `week`, `month` or `5h`, or a similar word.

    Raises:
        BadQuery: it is none; the message suggests one.
    """
    word = " ".join(text.lower().split())
    period = _PERIOD_WORDS.get(word)
    if period is None:
        match = did_you_mean(word, _PERIOD_WORDS)
        suggestion = f" Did you mean {_PERIOD_WORDS[match]}?" if match else ""
        raise BadQuery(f"Unknown period {text!r}.{suggestion} Periods: {', '.join(BudgetPeriod)}.")
    return period


def _check_project(project: str | None) -> str | None:
    if project is None:
        return None
    name = " ".join(project.split())
    if not name:
        raise BadQuery("The project of a budget is empty. Write a part of its path: --project app.")
    return name


class BudgetUse(Struct, frozen=True):
    """A budget and what has been spent of it.

    `since` and `until` are the period, both inclusive; None if no five-hour window is running. `spent` is in USD or
    tokens; None if it is unknown, because the transcripts of the period were not read. `is_lower_bound` says that more
    may have been spent: a model has no price, or there was no time to read every transcript. `is_certain` is false if
    it is a guess when the five-hour window began, and so whether it is still running.
    """

    budget: Budget
    spent: Decimal | None
    since: datetime | None = None
    until: datetime | None = None
    is_lower_bound: bool = False
    is_certain: bool = True

    @property
    def left(self) -> Decimal | None:
        """What is left; negative if more was spent than the budget allows."""
        return EXACT.subtract(self.budget.limit, self.spent) if self.spent is not None else None

    @property
    def share(self) -> Decimal | None:
        """The share that was spent; more than 1 if the budget is exceeded."""
        return share_of(self.spent, self.budget.limit) if self.spent is not None else None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.spent is not None and self.spent >= self.budget.limit

    def is_near(self, share: Decimal) -> bool:
        """Whether at least this share was spent."""
        return self.share is not None and self.share >= share

    def record(self) -> dict[str, Any]:
        """Return it as a flat record. The share is rounded to four places."""
        return {
            "budget": str(self.budget),
            "period": str(self.budget.period),
            "project": self.budget.project,
            "unit": "tokens" if self.budget.is_tokens else "usd",
            "limit": self._number(self.budget.limit),
            "spent": self._number(self.spent),
            "left": self._number(self.left),
            "share": round(float(self.share), _SHARE_DIGITS) if self.share is not None else None,
            "is_over": self.is_over,
            "is_lower_bound": self.is_lower_bound,
            "is_certain": self.is_certain,
            "since": self.since,
            "until": self.until,
        }

    def _number(self, number: Decimal | None) -> Decimal | int | None:
        if number is None:
            return None
        return int(number) if self.budget.is_tokens else plain_decimal(number)

    def describe(self) -> str:
        """Say what is left, as a part of a sentence: `$30.46 left today`, `$3.20 over budget this week`."""
        if self.left is None:
            return f"unknown {self.budget.period.now}"
        about = f" ({self.budget.project})" if self.budget.project else ""
        at_most = "at most " if self.is_lower_bound and not self.is_over else ""
        number = format_quantity(abs(self.left), is_tokens=self.budget.is_tokens)
        state = "over budget" if self.left < 0 else "left"
        return f"{at_most}{number} {state} {self.budget.period.now}{about}"

    def resets_in(self, now: datetime) -> timedelta | None:
        """How long until the period ends; None if there is none."""
        return self.until - now if self.until is not None else None


def format_quantity(number: Decimal | None, *, is_tokens: bool) -> str:
    """Format USD or tokens: `$30.46`, `1.2M tokens`; empty if unknown."""
    if number is None:
        return ""
    return f"{format_tokens(int(number))} tokens" if is_tokens else format_amount(number)
