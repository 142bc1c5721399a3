"""The usage page: the ledger's figures in tables and charts."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.cli.runner import run_in_subprocess
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.pages.requests import ask, data, parse_page

import threadline
from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS
from threadline.archive import Archive
from threadline.cli.cost.usage import parse_keys
from threadline.web.pages.usage import choose_unit, unit_days

_DELETED = "0" * 8 + "-0000-4000-8000-000000000105"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS])
def test_rows_add_up_to_the_total(demo: Archive, name: str) -> None:
    """Whatever the grouping, every charge is in exactly one row."""
    answer = data(ask(demo, f"/usage?since=all&by={name}&limit=2000&tz=UTC"))
    total = demo.ledger().total
    assert Decimal(answer["total"]["amount"]) == total.amount
    assert sum(Decimal(row["amount"]) for row in answer["rows"] if row["amount"] is not None) == total.amount
    assert answer["by"] == (["session", "turn"] if name == "turn" else [name])


def test_the_page_has_the_keys_of_the_command(demo: Archive) -> None:
    """Every key of `usage --by` is a choice on the page."""
    chosen = [link for link in parse_page(demo, "/usage?since=all").links if link.startswith("/usage?")]
    offered = {value for link in chosen for value in parse_qs(urlsplit(link).query).get("by", [])}
    assert offered == set(parse_keys((*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["thread", "turn"])
def test_session_keys_agree_with_the_command(demo: Archive, demo_home: Path, name: str) -> None:
    """`/usage?by=thread` has the rows of `usage --by thread`, although every session must be read for it."""
    rows = data(ask(demo, f"/usage?since=all&by={name}&limit=2000&tz=UTC"))["rows"]
    assert len(rows) > 1
    assert rows == run_in_subprocess("usage", "--by", name, "--home", demo_home, "--json", "--tz", "UTC").json["rows"]


def test_the_chart_shows_days_without_charges(demo: Archive) -> None:
    """The chart includes days without charges, so that its width is time."""
    page = parse_page(demo, "/usage?since=30d&tz=UTC")
    assert "Amount by day and model" in page.words
    assert "2026-11-15" in page.words or "2026-11-14" in page.words


def test_shows_the_last_thirty_days_by_default(demo: Archive) -> None:
    """The default is the last thirty days if they have charges, and the figures are those of that time."""
    default, recent = data(ask(demo, "/usage?tz=UTC")), data(ask(demo, "/usage?since=30d&tz=UTC"))
    assert default["total"] == recent["total"]
    assert Decimal(data(ask(demo, "/usage?since=all"))["total"]["amount"]) >= Decimal(default["total"]["amount"])


def test_rows_link_to_their_subject(demo: Archive) -> None:
    """A day links to its sessions, a tool to its calls, a session to its page. Rows without a value have no link."""
    for name, start in (("day", "/sessions?since="), ("tool", "/calls?tool="), ("session", "/session/")):
        links = parse_page(demo, f"/usage?since=all&by={name}").links
        assert any(link.startswith(start) for link in links)
    assert not any("%28" in link for link in parse_page(demo, "/usage?since=all&by=tool").links)


def test_counts_the_rows_beyond_the_limit(demo: Archive) -> None:
    """Rows beyond the limit are counted and included in the total."""
    page = parse_page(demo, "/usage?since=all&by=session&limit=2")
    sessions = len(demo.ledger().by("session"))
    assert f"{sessions - 2:,} more rows, included in the total" in page.words


def test_chooses_the_unit_of_the_columns() -> None:
    """Days if they are few, then weeks, then months. A requested unit is always used."""
    today = date(2026, 11, 15)
    assert choose_unit("day", ["2026-11-01"], today) == "day"
    assert choose_unit("model", ["2026-01-01", "(no time)"], today) == "week"
    assert choose_unit("model", ["2021-01-01"], today) == "month"
    assert choose_unit("month", ["2026-11-01"], today) == "month"
    assert choose_unit("session", [], today) == "day"
    assert unit_days("2026-11-09", "week") == ("2026-11-09", "2026-11-15")
    assert unit_days("2026-11", "month") == ("2026-11", "2026-11")


def test_every_linked_session_can_be_opened(tmp_path: Path) -> None:
    """If only an agent of a session is left, its row leads to that agent."""
    folder = tmp_path / "home" / "projects" / "-work"
    write(folder / f"{SESSION}.jsonl", *transcript(prompt("Hello"), reply("Yes")))
    pen = Pen(_DELETED, agentId="a1b2c3d4e", isSidechain=True)
    rows = transcript(prompt("Count"), reply("Two", message={"id": "msg_of_the_agent"}), pen=pen)
    write(folder / _DELETED / "subagents" / "agent-a1b2c3d4e.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        links = [
            link for link in parse_page(archive, "/usage?since=all&by=session").links if link.startswith("/session/")
        ]
    assert [link for link in links if link.endswith(f"{_DELETED}/why")] == []
    pages = [link for link in links if not link.endswith("/why")]
    assert sorted(pages) == sorted(f"/session/{session}" for session in (SESSION, _DELETED))
    client = Client(tmp_path / "home")
    assert {client.get(link).status_code for link in links if _DELETED not in link} == {200}
    (answer,) = (client.get(link) for link in links if _DELETED in link)
    assert answer.headers["location"] == "/session/agent-a1b2c3d4e"
    assert "Count" in client.get(answer.headers["location"]).text


def test_a_project_of_windows_keeps_its_slashes(tmp_path: Path) -> None:
    """Its tile and the legend show the last two names of its path as they are written."""
    for session, cwd in ((SESSION, r"C:\Users\Mara\app"), (_DELETED, "/home/mara/other")):
        rows = transcript(prompt("Count"), reply("Two"), pen=Pen(session, cwd=cwd))
        write(tmp_path / "home" / "projects" / threadline.folder_name(cwd) / f"{session}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        html = parse_page(archive, "/usage?since=all&by=project").html
        assert r"Mara\app: $" in html
        assert "Mara/app" not in html


def test_charts_the_last_days_of_the_calendar(tmp_path: Path) -> None:
    """A charge in the year 9999 is in the table, and the chart ends with its day, week or month."""
    rows = transcript(prompt("Count"), reply("Two"))
    for row in rows:
        assert isinstance(row, dict)
        row["timestamp"] = "9999-12-31T12:00:00.000Z"
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        for key, name in (("day", "9999-12-31"), ("week", "9999-12-27"), ("month", "9999-12")):
            page = parse_page(archive, f"/usage?since=all&by={key}&tz=UTC")
            assert [row[key] for row in data(ask(archive, f"/usage?since=all&by={key}&tz=UTC"))["rows"]] == [name]
            assert name in page.words
    assert unit_days("9999-12-27", "week") == ("9999-12-27", "9999-12-31")


def test_former_words_in_addresses_still_work(demo: Archive) -> None:
    """`measure=cost`, `measure=replies` and `sort=cost` of bookmarks mean amount, charges and amount."""
    for former, name in (("cost", "amount"), ("replies", "charges")):
        pages = [parse_page(demo, f"/usage?since=all&measure={word}&tz=UTC").words for word in (former, name)]
        assert f"{name.capitalize()} by " in pages[0]
        assert f"{name.capitalize()} by " in pages[1]
    assert data(ask(demo, "/sessions?sort=cost"))["sort"] == "amount"
