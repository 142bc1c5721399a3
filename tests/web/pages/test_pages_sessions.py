"""The list of sessions, home and the palette: they tell what the archive tells."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.web.pages.requests import ask, data, seen

from threadline.archive import Archive
from threadline.summary import SessionFilter


def _rows(archive: Archive, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = data(ask(archive, f"/sessions?limit=500&tz=UTC{query}"))["sessions"]
    return rows


def test_the_index_lists_what_the_archive_lists(demo: Archive) -> None:
    """Every session in a line, in the same order and with the same figures as `archive.sessions`."""
    listed = demo.sessions(SessionFilter()).sessions
    told = demo.open_index().sessions()
    names = ("title", "project", "first", "last", "turns", "agents", "model", "size")
    assert [str(one.path) for one in listed] == [one.path for one in told]
    assert [[getattr(one, name) for name in names] for one in listed] == [
        [getattr(one, name) for name in names] for one in told
    ]


def test_all_parts_are_the_whole(demo: Archive) -> None:
    """Going through the list in parts shows each session once, in the order of all."""
    whole = [row["id"] for row in _rows(demo)]
    parts: list[str] = []
    after = 0
    while True:
        part = data(ask(demo, f"/sessions?limit=4&after={after}"))
        parts += [one["id"] for one in part["sessions"]]
        after += 4
        if not part["more"]:
            break
    assert parts == whole == [str(session.id) for session in demo.sessions(SessionFilter()).sessions]


@pytest.mark.parametrize(
    ("order", "key"), [("cost", "amount"), ("turns", "turns"), ("calls", "calls"), ("agents", "agents")]
)
def test_an_order_is_one(demo: Archive, order: str, key: str) -> None:
    """What is asked for comes first, and none is lost on the way."""
    rows = _rows(demo, f"&sort={order}")
    values = [Decimal(row[key] or 0) for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["id"] for row in rows} == {row["id"] for row in _rows(demo)}


def test_filters_choose(demo: Archive) -> None:
    """A project, a part of a title, a day, a model and a branch each give the sessions that fit, and all of them."""
    every = _rows(demo)
    one = every[len(every) // 2]
    assert {row["id"] for row in _rows(demo, f"&project={one['project']}")} == {
        row["id"] for row in every if one["project"].casefold() in row["project"].casefold()
    }
    word = one["title"].split()[0]
    assert {row["id"] for row in _rows(demo, f"&grep={word}")} == {
        row["id"] for row in every if word.casefold() in row["title"].casefold()
    }
    day = one["last"][:10]
    assert {row["id"] for row in _rows(demo, f"&since={day}&until={day}")} == {
        row["id"] for row in every if row["first"][:10] <= day <= row["last"][:10]
    }
    spent = demo.ledger()
    model = spent.by("model")[0].keys["model"]
    assert {row["id"] for row in _rows(demo, f"&model={model}")} == {
        row.keys["session"] for row in spent.by("session", "model") if row.keys["model"] == model
    } & {row["id"] for row in every}


def test_a_row_says_what_it_cost(demo: Archive) -> None:
    """Costs are the ledger's, calls those of its transcripts; both are on the page."""
    spent = {row.keys["session"]: row for row in demo.ledger().by("session")}
    counted = demo.open_index().call_counts()
    for row in _rows(demo):
        sum_ = spent.get(row["id"])
        assert (Decimal(row["amount"]) if row["amount"] is not None else None) == (sum_.amount if sum_ else None)
        assert row["calls"] == counted.get(row["id"], 0)


def test_calls_of_some_are_those_of_all(demo: Archive) -> None:
    """Counting the calls of a few sessions gives what counting all of them gives."""
    every = demo.open_index().call_counts()
    some = sorted(every)[::2]
    assert demo.open_index().call_counts(some) == {session: every[session] for session in some}


def test_home_tells_what_there_is(demo: Archive) -> None:
    """Totals are the ledger's and the index's, days and hours sum up to them, and the dearest are the dearest."""
    told = data(ask(demo, "/?tz=UTC"))
    whole = told["spans"][-1]
    total = demo.ledger().total
    assert Decimal(whole["spent"]["amount"]) == total.amount
    assert whole["done"]["sessions"] == len({session.id for session in demo.sessions(SessionFilter()).sessions})
    assert sum(day["replies"] for day in told["days"].values()) == total.charges
    assert sum(hour["replies"] for hour in told["hours"]) <= total.charges
    assert told["top"][0]["id"] == data(ask(demo, "/sessions?sort=cost&limit=1"))["sessions"][0]["id"]
    assert sum(one["sessions"] for one in told["projects"]) == len(demo.sessions(SessionFilter()).sessions)


def test_since_the_beginning_is_ever(demo: Archive) -> None:
    """What was done since before the first session is all that has a time."""
    ever, since = demo.open_index().activity(), demo.open_index().activity(datetime(2001, 1, 1, tzinfo=UTC))
    assert since.sessions <= ever.sessions
    assert since.calls == ever.calls
    assert since.prompts == ever.prompts


def test_a_day_of_the_calendar_leads_to_its_sessions(demo: Archive) -> None:
    """Every day that has something is a link, and the page behind it has sessions."""
    links = [link for link in seen(demo, "/?tz=UTC").links if link.startswith("/sessions?since=2026-")]
    assert links
    assert all(data(ask(demo, f"{link}&tz=UTC"))["sessions"] for link in set(links))


def test_the_palette_finds_sessions_by_title_project_and_id(demo: Archive) -> None:
    """Part of a title, part of a project, the start of an id; and pages by their names."""
    one = demo.sessions(SessionFilter()).sessions[1]
    for words in (one.title, one.project, str(one.id)[:8]):
        offers = data(ask(demo, f"/palette?q={words.replace('&', '%26').replace('#', '%23').replace('+', '%2B')}"))
        assert f"/session/{one.id}" in {offer["address"] for offer in offers}
    assert data(ask(demo, "/palette?q=usage by"))[0]["address"] == "/usage?by=model"
