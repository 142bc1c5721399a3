"""The session list, the home page and the palette agree with the archive."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.web.pages.requests import ask, data, parse_page

from threadline.archive import Archive
from threadline.summary import SessionFilter


def _rows(archive: Archive, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = data(ask(archive, f"/sessions?limit=500&tz=UTC{query}"))["sessions"]
    return rows


def test_the_index_and_the_archive_list_the_same_sessions(demo: Archive) -> None:
    """The index has every session in the same order and with the same figures as `archive.sessions`."""
    listed = demo.sessions(SessionFilter()).sessions
    indexed = demo.open_index().sessions()
    names = ("title", "project", "first", "last", "turns", "agents", "model", "size")
    assert [str(session.path) for session in listed] == [session.path for session in indexed]
    assert [[getattr(session, name) for name in names] for session in listed] == [
        [getattr(session, name) for name in names] for session in indexed
    ]


def test_pagination_shows_each_session_once(demo: Archive) -> None:
    """Paging through the list shows each session once, in the same order."""
    all_ids = [row["session"] for row in _rows(demo)]
    ids: list[str] = []
    after = 0
    while True:
        page = data(ask(demo, f"/sessions?limit=4&after={after}"))
        ids += [row["session"] for row in page["sessions"]]
        after += 4
        if not page["more"]:
            break
    assert ids == all_ids == [str(session.id) for session in demo.sessions(SessionFilter()).sessions]


@pytest.mark.parametrize(
    ("order", "key"),
    [("cost", "amount"), ("turns", "turns"), ("calls", "calls"), ("agents", "agents"), ("agents", "started_agents")],
)
def test_sorts_sessions_without_losing_any(demo: Archive, order: str, key: str) -> None:
    """The largest come first, and no session is lost."""
    rows = _rows(demo, f"&sort={order}")
    values = [Decimal(row[key] or 0) for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["session"] for row in rows} == {row["session"] for row in _rows(demo)}


def test_filters_return_all_matching_sessions(demo: Archive) -> None:
    """A project, a part of a title, a day and a model each give all matching sessions and no others."""
    rows = _rows(demo)
    sample = rows[len(rows) // 2]
    assert {row["session"] for row in _rows(demo, f"&project={sample['project']}")} == {
        row["session"] for row in rows if sample["project"].casefold() in row["project"].casefold()
    }
    word = sample["title"].split()[0]
    assert {row["session"] for row in _rows(demo, f"&grep={word}")} == {
        row["session"] for row in rows if word.casefold() in row["title"].casefold()
    }
    day = sample["last"][:10]
    assert {row["session"] for row in _rows(demo, f"&since={day}&until={day}")} == {
        row["session"] for row in rows if row["first"][:10] <= day <= row["last"][:10]
    }
    ledger = demo.ledger()
    model = ledger.by("model")[0].keys["model"]
    assert {row["session"] for row in _rows(demo, f"&model={model}")} == {
        row.keys["session"] for row in ledger.by("session", "model") if row.keys["model"] == model
    } & {row["session"] for row in rows}


def test_a_row_shows_its_cost_and_calls(demo: Archive) -> None:
    """Costs are the ledger's, and calls are those of the transcripts."""
    totals = {row.keys["session"]: row for row in demo.ledger().by("session")}
    counts = demo.open_index().call_counts()
    for row in _rows(demo):
        total = totals.get(row["session"])
        assert (Decimal(row["amount"]) if row["amount"] is not None else None) == (total.amount if total else None)
        assert row["calls"] == counts.get(row["session"], 0)


def test_call_counts_of_some_sessions_agree_with_all(demo: Archive) -> None:
    """Counting the calls of a few sessions gives the same as counting all."""
    counts = demo.open_index().call_counts()
    sessions = sorted(counts)[::2]
    assert demo.open_index().call_counts(sessions) == {session: counts[session] for session in sessions}


def test_the_home_page_shows_totals(demo: Archive) -> None:
    """Totals are the ledger's and the index's, days add up to them, and the most expensive session comes first."""
    page = data(ask(demo, "/?tz=UTC"))
    all_time = page["spans"][-1]
    total = demo.ledger().total
    assert Decimal(all_time["spent"]["amount"]) == total.amount
    assert all_time["done"]["sessions"] == len({session.id for session in demo.sessions(SessionFilter()).sessions})
    assert sum(day["charges"] for day in page["days"].values()) == total.charges
    assert sum(hour["charges"] for hour in page["hours"]) <= total.charges
    assert page["top"][0]["session"] == data(ask(demo, "/sessions?sort=amount&limit=1"))["sessions"][0]["session"]
    assert sum(project["sessions"] for project in page["projects"]) == len(demo.sessions(SessionFilter()).sessions)


def test_activity_since_the_beginning_is_all_activity(demo: Archive) -> None:
    """Activity since before the first session is all activity that has a time."""
    total, since = demo.open_index().activity(), demo.open_index().activity(datetime(2001, 1, 1, tzinfo=UTC))
    assert since.sessions <= total.sessions
    assert since.calls == total.calls
    assert since.prompts == total.prompts


def test_a_day_of_the_calendar_leads_to_its_sessions(demo: Archive) -> None:
    """Every day with activity is a link to a page with sessions."""
    links = [link for link in parse_page(demo, "/?tz=UTC").links if link.startswith("/sessions?since=2026-")]
    assert links
    assert all(data(ask(demo, f"{link}&tz=UTC"))["sessions"] for link in set(links))


def test_the_palette_finds_sessions_by_title_project_and_id(demo: Archive) -> None:
    """The palette matches part of a title, part of a project, the start of an id, and pages by name."""
    session = demo.sessions(SessionFilter()).sessions[1]
    for words in (session.title, session.project, str(session.id)[:8]):
        offers = data(ask(demo, f"/palette?q={words.replace('&', '%26').replace('#', '%23').replace('+', '%2B')}"))
        assert f"/session/{session.id}" in {offer["address"] for offer in offers}
    assert data(ask(demo, "/palette?q=usage by"))[0]["address"] == "/usage?by=model"
