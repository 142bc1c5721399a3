"""Tests of budgets: how they are written and stored, and what is left of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.insight.spending import NOW, OTHER, REPLY_COST, spend
from tests.transcripts import START

import threadline
from threadline.account import budget_start, measure_budgets, read_budgets, remove_budgets, save_budget
from threadline.errors import BadQuery
from threadline.model.budgets import Budget, BudgetPeriod, BudgetUse
from threadline.reports import read_ledger

BERLIN = ZoneInfo("Europe/Berlin")


def measure(home: Path, *budgets: str, now: datetime = NOW, zone: Any = UTC) -> list[BudgetUse]:
    """What is left of budgets in a home."""
    return measure_budgets(map(Budget.parse_line, budgets), read_ledger(home), now=now, zone=zone)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50/day", "50/day"),
        ("$50 per day", "50/day"),
        ("12.50 a week", "12.5/week"),
        ("1,000 USD/month", "1000/month"),
        (".5 daily", "0.5/day"),
        ("10/window", "10/5h"),
        ("2M tokens/5h", "2M tokens/5h"),
        ("1500000tok per 5 hours", "1500k tokens/5h"),
        ("20/week --project my app", "20/week --project my app"),
    ],
)
def test_budget_is_parsed_and_written_back(text: str, expected: str) -> None:
    """What is written is read as the same budget."""
    budget = Budget.parse_line(text)
    assert str(budget) == expected
    assert Budget.parse_line(str(budget)) == budget


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("50", "no period"),
        ("50/dya", "Did you mean day?"),
        ("50/fortnight", "Periods: day, week, month, 5h"),
        ("2M/5h", "2M of what? Write '2M tokens/5h'"),
        ("12,50/day", "is not a budget"),
        ("0/day", "out of range"),
        ("-5/day", "is not a budget"),
        ("50€/day", "unknown unit"),
        ("1.5 tokens/day", "out of range"),
        ("5/day --project ", "is empty"),
    ],
)
def test_wrong_budget_says_what_is_right(text: str, message: str) -> None:
    """The message has an example, or what was probably meant."""
    with pytest.raises(BadQuery, match=message.replace("?", r"\?")):
        Budget.parse_line(text)


def test_file_keeps_comments_and_other_budgets(tmp_path: Path) -> None:
    """Setting and removing change one line."""
    path = tmp_path / "settings" / "budgets"
    assert read_budgets(path) == []
    assert save_budget(Budget.parse("50/day"), path) is None
    path.write_text(f"{path.read_text()}# for the team\n\n200/week --project app\n")
    assert str(save_budget(Budget.parse("60/day"), path)) == "50/day"
    save_budget(Budget.parse("1M tokens/day"), path)
    assert list(map(str, read_budgets(path))) == ["60/day", "200/week --project app", "1M tokens/day"]
    assert list(map(str, remove_budgets(lambda budget: budget.project == "app", path))) == ["200/week --project app"]
    assert path.read_text().splitlines()[-4:] == ["60/day", "# for the team", "", "1M tokens/day"]


def test_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    """The file may be in a folder of dotfiles."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("5/day\n")
    link.symlink_to(real)
    save_budget(Budget.parse("6/day"), link)
    assert link.is_symlink()
    assert real.read_text() == "6/day\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# ok\n50/day\nfifty/week\n", "line 3: 'fifty/week' is not a budget"),
        (b"50/day\n\n60/day\n", "line 3: there are two budgets for the same period"),
        (b"50/day\n\xff\n", "line 2: it is not UTF-8"),
    ],
)
def test_wrong_file_names_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    """Nothing is guessed, and nothing is overwritten."""
    path = tmp_path / "budgets"
    path.write_bytes(content)
    for action in (read_budgets, lambda path: save_budget(Budget.parse("1/day"), path)):
        with pytest.raises(BadQuery, match=message):
            action(path)
    assert path.read_bytes() == content


def test_what_is_left(tmp_path: Path) -> None:
    """Each budget counts its own period; the ledger's amounts are exact."""
    days = [START - timedelta(days=number) for number in (0, 1, 3, 20)]
    spend(tmp_path, *days)
    day, week, month, window, tokens = measure(tmp_path, "2/day", "1/week", "100/month", "10/5h", "200k tokens/5h")
    assert START.strftime("%A") == "Monday"
    assert (day.spent, day.left, day.share, day.is_over) == (REPLY_COST, Decimal("0.5"), Decimal("0.75"), False)
    assert (week.spent, week.left, week.is_over) == (REPLY_COST, Decimal("-0.5"), True)
    assert month.spent == 3 * REPLY_COST  # the 2nd, 4th and 5th of January
    assert (window.spent, window.since, window.is_certain) == (REPLY_COST, START, True)
    assert (tokens.spent, tokens.left) == (Decimal(100_000), Decimal(100_000))
    assert day.describe() == "$0.50 left today"
    assert week.describe() == "$0.50 over budget this week"
    assert tokens.describe() == "100.0k tokens left in this 5h window"


def test_budget_of_a_project(tmp_path: Path) -> None:
    """Only what the project spent; the window is that of everything."""
    spend(tmp_path, START)
    spend(tmp_path, START + timedelta(minutes=2), START + timedelta(minutes=3), session=OTHER, cwd="/work/site")
    every, site, window, none = measure(
        tmp_path, "9/day", "9/day --project SITE", "9/5h --project site", "9/day --project x"
    )
    assert [use.spent for use in (every, site, window, none)] == [
        3 * REPLY_COST,
        2 * REPLY_COST,
        2 * REPLY_COST,
        0,
    ]


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        (datetime(2026, 3, 29, 12, tzinfo=UTC), 23),
        (datetime(2026, 3, 30, 12, tzinfo=UTC), 24),
        (datetime(2026, 10, 25, 12, tzinfo=UTC), 25),
    ],
)
def test_day_in_which_clocks_change(tmp_path: Path, now: datetime, hours: int) -> None:
    """A day is from midnight to midnight in the user's zone, however long it is."""
    midnight = now.astimezone(BERLIN).replace(hour=0)
    begins = midnight.astimezone(UTC)
    ends = begins + timedelta(hours=hours)
    spend(tmp_path, begins - timedelta(seconds=3), begins, ends - timedelta(seconds=3), ends)
    (use,) = measure(tmp_path, "9/day", now=now, zone=BERLIN)
    assert (use.since, use.until) == (begins, ends - timedelta(microseconds=1))
    assert use.spent == 2 * REPLY_COST


def test_week_begins_on_monday(tmp_path: Path) -> None:
    """In the user's zone, where it is Monday earlier than in UTC."""
    now = datetime(2026, 1, 11, 23, 30, tzinfo=UTC)  # Monday in Berlin
    spend(tmp_path, now - timedelta(minutes=40), now - timedelta(minutes=20))
    assert [use.spent for use in measure(tmp_path, "9/week", now=now, zone=BERLIN)] == [REPLY_COST]
    assert [use.spent for use in measure(tmp_path, "9/week", now=now)] == [2 * REPLY_COST]


def test_window_is_the_one_of_blocks(tmp_path: Path) -> None:
    """Its start depends on days without a pause of five hours; it is looked up as far back as needed."""
    hours = [START - timedelta(hours=4 * number) for number in range(12)]
    spend(tmp_path, *reversed(hours))
    ledger = read_ledger(tmp_path)
    (active,) = (window for window in ledger.windows(now=NOW) if window.is_active)
    (use,) = measure(tmp_path, "9/5h")
    assert (use.since, use.spent, use.is_certain) == (active.begins, active.sum.amount, True)
    # If only the last day was read, its start is a guess.
    limited = measure_budgets([Budget.parse("9/5h")], ledger, now=NOW, zone=UTC, complete_since=NOW - timedelta(days=1))
    assert not limited[0].is_certain


def test_unread_period_is_unknown(tmp_path: Path) -> None:
    """What was not read is not claimed to be left."""
    ledger = read_ledger(spend(tmp_path, START))
    budgets = [Budget.parse("9/day"), Budget.parse("9/month")]
    assert budget_start(budgets, now=NOW, zone=UTC) == datetime(2026, 1, 1, tzinfo=UTC)
    day, month = measure_budgets(budgets, ledger, now=NOW, zone=UTC, complete_since=NOW - timedelta(days=1))
    assert (day.spent, month.spent, month.left, month.is_over) == (REPLY_COST, None, None, False)
    assert month.describe() == "unknown this month"


def test_library(tmp_path: Path) -> None:
    """`Archive.budgets` takes text, and gives the same with and without an index."""
    home = spend(tmp_path, START)
    with threadline.open(home, index=False, tz="UTC") as archive, threadline.open(home, tz="UTC") as indexed:
        for uses in (archive.budgets(["2/day"], now=NOW), indexed.budgets(["2/day"], now=NOW, seconds=9)):
            assert [(str(use.budget), use.left) for use in uses] == [("2/day", Decimal("0.5"))]
        (use,) = archive.budgets(["2/day"], now=NOW, seconds=9)
        assert use.left == Decimal("0.5")
        assert archive.budgets() == []


def test_periods_are_distinct() -> None:
    """Every period has words for what is left in it."""
    assert len({period.now for period in BudgetPeriod}) == len(BudgetPeriod)
