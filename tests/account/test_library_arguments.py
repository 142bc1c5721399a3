"""What a program may give to the ledger, and what it is told when that is nothing sensible."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tools.demo import write

import threadline
from threadline.errors import BadQuery


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up home."""
    place = tmp_path_factory.mktemp("library") / "home"
    write(place)
    return place


def test_a_time_may_be_text_a_day_or_a_moment(home: Path) -> None:
    """A day means all of it, and a time without a zone is UTC."""
    ledger = threadline.ledger(home)
    day = ledger.by("day")[3].keys["day"]
    whole = next(row.charges for row in ledger.by("day") if row.keys["day"] == day)
    one = date.fromisoformat(day)
    moments = datetime(one.year, one.month, one.day, tzinfo=UTC), datetime(one.year, one.month, one.day, 23, 59, 59)  # noqa: DTZ001 - as people write it
    for since, until in ((day, day), (one, one), (moments[0], moments[1])):
        assert ledger.where(since=since, until=until).total.charges == whole
    with pytest.raises(BadQuery, match="'soon' is not a time"):
        ledger.where(since="soon")


def test_a_zone_may_be_named(home: Path) -> None:
    """A zone's name is as good as the zone, and one that is none is told."""
    ledger = threadline.ledger(home)
    assert ledger.by("day", zone="Asia/Tokyo").total == ledger.by("day").total
    with pytest.raises(BadQuery, match="Unknown time zone 'Nowhere'"):
        ledger.by("day", zone="Nowhere")


def test_a_session_may_be_named_by_the_start_of_its_id(home: Path) -> None:
    """As on the command line."""
    ledger = threadline.ledger(home)
    row = ledger.by("session")[0]
    assert ledger.where(session=row.keys["session"][:8]).total.amount == row.amount


def test_prices_may_be_a_file_or_rates(home: Path, tmp_path: Path) -> None:
    """One file need not be a list, and rates that are at hand may be given."""
    own = tmp_path / "own.json"
    own.write_text('{"schema": 1, "models": {}}')
    rates = threadline.rates()
    assert threadline.ledger(home, prices=rates).rates is rates
    assert threadline.ledger(home, prices=str(own)).total == threadline.ledger(home).total


def test_agents_have_their_types(home: Path) -> None:
    """The library's sums by agent type are those of the command."""
    types = {row.keys["agent-type"] for row in threadline.ledger(home).by("agent-type")}
    assert len(types - {"main", "(none)"}) >= 2


def test_a_context_may_be_asked_for_at_a_line(home: Path) -> None:
    """A number is a line of the main transcript, as for `session.at`."""
    path = max(home.glob("projects/*/*.jsonl"), key=lambda one: one.stat().st_size)
    session = threadline.read(path)
    line = session.conversation[-1].line.number
    assert session.context(at=line).window == session.context().window
