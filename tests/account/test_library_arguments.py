"""Arguments that the library's ledger accepts, and the errors for invalid ones."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tools.demo import write

import threadline
from threadline.errors import BadQuery


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo home."""
    path = tmp_path_factory.mktemp("library") / "home"
    write(path)
    return path


def test_time_may_be_text_a_date_or_a_datetime(home: Path) -> None:
    """A date means the whole day, and a time without a zone is UTC."""
    ledger = threadline.ledger(home)
    day = ledger.by("day")[3].keys["day"]
    charges = next(row.charges for row in ledger.by("day") if row.keys["day"] == day)
    date_ = date.fromisoformat(day)
    moments = (
        datetime(date_.year, date_.month, date_.day, tzinfo=UTC),
        datetime(date_.year, date_.month, date_.day, 23, 59, 59),  # noqa: DTZ001 - as people write it
    )
    for since, until in ((day, day), (date_, date_), (moments[0], moments[1])):
        assert ledger.where(since=since, until=until).total.charges == charges
    with pytest.raises(BadQuery, match="'soon' is not a time"):
        ledger.where(since="soon")


def test_zone_may_be_a_name(home: Path) -> None:
    """An unknown name is an error."""
    ledger = threadline.ledger(home)
    assert ledger.by("day", zone="Asia/Tokyo").total == ledger.by("day").total
    with pytest.raises(BadQuery, match="Unknown time zone 'Nowhere'"):
        ledger.by("day", zone="Nowhere")


def test_session_may_be_a_prefix_of_its_id(home: Path) -> None:
    """As on the command line."""
    ledger = threadline.ledger(home)
    row = ledger.by("session")[0]
    assert ledger.where(session=row.keys["session"][:8]).total.amount == row.amount


@pytest.mark.parametrize("name", ["missing", "missing.jsonl", "missing/a.jsonl"])
def test_missing_files_are_not_found(tmp_path: Path, name: str) -> None:
    """Whatever the name looks like."""
    with pytest.raises(threadline.NotFound, match="There is no file"):
        threadline.read(tmp_path / name)
    with pytest.raises(threadline.NotFound, match="There is no file"):
        list(threadline.entries(tmp_path / name))
    with pytest.raises(threadline.NotFound, match="There is no directory"):
        threadline.open(tmp_path / name)


def test_prices_may_be_a_file_or_rates(home: Path, tmp_path: Path) -> None:
    """A single file need not be in a list."""
    price_file = tmp_path / "own.json"
    price_file.write_text('{"schema": 1, "models": {}}')
    rates = threadline.rates()
    assert threadline.ledger(home, prices=rates).rates is rates
    assert threadline.ledger(home, prices=str(price_file)).total == threadline.ledger(home).total


def test_groups_by_agent_type(home: Path) -> None:
    """The library's sums by agent type equal those of the command."""
    types = {row.keys["agent-type"] for row in threadline.ledger(home).by("agent-type")}
    assert len(types - {"main", "(none)"}) >= 2


def test_context_at_a_line(home: Path) -> None:
    """A number is a line of the main transcript, as in `session.at`."""
    path = max(home.glob("projects/*/*.jsonl"), key=lambda path_: path_.stat().st_size)
    session = threadline.read(path)
    line = session.conversation[-1].line.number
    assert session.context(at=line).window == session.context().window
