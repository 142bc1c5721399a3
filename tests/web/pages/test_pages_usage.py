"""Usage: the figures of the ledger, drawn and told."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.pages.requests import ask, data, seen

import threadline
from threadline.account import KEY_DESCRIPTIONS
from threadline.archive import Archive
from threadline.web.pages.usage import choose_unit, unit_days

_LOST = "0" * 8 + "-0000-4000-8000-000000000105"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", KEY_DESCRIPTIONS)
def test_rows_sum_up_to_the_total(demo: Archive, name: str) -> None:
    """By whatever it is summed, every charge is in exactly one row."""
    told = data(ask(demo, f"/usage?since=all&by={name}&limit=2000&tz=UTC"))
    total = demo.ledger().total
    assert Decimal(told["total"]["amount"]) == total.amount
    assert sum(Decimal(row["amount"]) for row in told["rows"] if row["amount"] is not None) == total.amount
    assert told["by"] == [name]


def test_a_chart_shows_every_day_between(demo: Archive) -> None:
    """Days on which nothing was spent are in it, so that its width is time."""
    page = seen(demo, "/usage?since=30d&tz=UTC")
    assert "Cost by day and model" in page.words
    assert "2026-11-15" in page.words or "2026-11-14" in page.words


def test_what_is_shown_of_late_is_all_where_there_is_nothing_of_late(demo: Archive) -> None:
    """The usual thirty days are shown where they have something; the figures are those of that time."""
    usual, late = data(ask(demo, "/usage?tz=UTC")), data(ask(demo, "/usage?since=30d&tz=UTC"))
    assert usual["total"] == late["total"]
    assert Decimal(data(ask(demo, "/usage?since=all"))["total"]["amount"]) >= Decimal(usual["total"]["amount"])


def test_rows_lead_to_what_they_are_of(demo: Archive) -> None:
    """A day leads to its sessions, a tool to its calls, a session to its page; what has no value leads nowhere."""
    for name, start in (("day", "/sessions?since="), ("tool", "/calls?tool="), ("session", "/session/")):
        links = seen(demo, f"/usage?since=all&by={name}").links
        assert any(link.startswith(start) for link in links)
    assert not any("%28" in link for link in seen(demo, "/usage?since=all&by=tool").links)


def test_what_is_not_shown_is_said(demo: Archive) -> None:
    """Beyond the limit, rows are counted, and the total still has them."""
    page = seen(demo, "/usage?since=all&by=session&limit=2")
    sessions = len(demo.ledger().by("session"))
    assert f"{sessions - 2:,} more rows, included in the total" in page.words


def test_columns_are_as_long_as_there_is_room() -> None:
    """Days while they are few, then weeks, then months; what was asked for in any case."""
    today = date(2026, 11, 15)
    assert choose_unit("day", ["2026-11-01"], today) == "day"
    assert choose_unit("model", ["2026-01-01", "(no time)"], today) == "week"
    assert choose_unit("model", ["2021-01-01"], today) == "month"
    assert choose_unit("month", ["2026-11-01"], today) == "month"
    assert choose_unit("session", [], today) == "day"
    assert unit_days("2026-11-09", "week") == ("2026-11-09", "2026-11-15")
    assert unit_days("2026-11", "month") == ("2026-11", "2026-11")


def test_every_session_that_is_a_link_can_be_opened(tmp_path: Path) -> None:
    """Where only an agent of a session is left, its row leads to that agent."""
    folder = tmp_path / "home" / "projects" / "-work"
    write(folder / f"{SESSION}.jsonl", *transcript(prompt("Hello"), reply("Yes")))
    pen = Pen(_LOST, agentId="a1b2c3d4e", isSidechain=True)
    rows = transcript(prompt("Count"), reply("Two", message={"id": "msg_of_the_agent"}), pen=pen)
    write(folder / _LOST / "subagents" / "agent-a1b2c3d4e.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        links = [link for link in seen(archive, "/usage?since=all&by=session").links if link.startswith("/session/")]
    assert sorted(links) == sorted(f"/session/{one}" for one in (SESSION, _LOST))
    client = Client(tmp_path / "home")
    assert [client.get(link).status_code for link in links if _LOST not in link] == [200]
    (answer,) = (client.get(link) for link in links if _LOST in link)
    assert answer.headers["location"] == "/session/agent-a1b2c3d4e"
    assert "Count" in client.get(answer.headers["location"]).text


def test_the_last_days_of_the_calendar_are_drawn(tmp_path: Path) -> None:
    """A charge in the year 9999 is in the table, and the chart ends with its day, week or month."""
    rows = transcript(prompt("Count"), reply("Two"))
    for row in rows:
        assert isinstance(row, dict)
        row["timestamp"] = "9999-12-31T12:00:00.000Z"
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        for key, name in (("day", "9999-12-31"), ("week", "9999-12-27"), ("month", "9999-12")):
            page = seen(archive, f"/usage?since=all&by={key}&tz=UTC")
            assert [row[key] for row in data(ask(archive, f"/usage?since=all&by={key}&tz=UTC"))["rows"]] == [name]
            assert name in page.words
    assert unit_days("9999-12-27", "week") == ("9999-12-27", "9999-12-31")
