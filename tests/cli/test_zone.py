"""Time zones by name, and this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.errors import BadQuery
from threadline.model.times import LocalZone, in_zone, parse_zone, utc_offset, zone_name

pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="a process cannot change its zone here")
SINCE_1971 = st.integers(366 * 86400, 68 * 365 * 86400)


@pytest.fixture
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A machine in that zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["utc", "UTC", " Z "])
def test_utc_needs_no_database(name: str) -> None:
    """UTC is UTC, however it is written."""
    assert parse_zone(name) is UTC
    assert zone_name(parse_zone(name)) == "UTC"


@pytest.mark.parametrize(
    ("name", "is_"), [("Asia/Kolkata", "Asia/Kolkata"), ("europe/berlin", "Europe/Berlin"), ("America/New York",) * 2]
)
def test_a_zone_is_known_by_its_name_in_any_case(name: str, is_: str) -> None:
    """An IANA name, in capitals or not, with a space or an underscore."""
    assert zone_name(parse_zone(name)) == is_.replace(" ", "_")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Berlin", "Did you mean Europe/Berlin?"),
        ("Europe/Berln", "Did you mean Europe/Berlin?"),
        ("Kolkatta", "Did you mean Asia/Kolkata?"),
        ("../../etc/passwd", "Examples: Europe"),
        ("", "Examples: Europe"),
        ("Europe", "Examples: Europe"),
        ("x" * 100_000, "Examples: Europe"),
        ("\x1b[31m", "Examples: Europe"),
    ],
)
def test_an_unknown_zone_says_what_was_meant(name: str, meant: str) -> None:
    """A city alone, a slip, or a name that nothing is near to; a path opens no file."""
    with pytest.raises(BadQuery, match=r"Unknown time zone") as refused:
        parse_zone(name)
    assert meant in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "here", ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kolkata"], indirect=True
)
@given(SINCE_1971)
def test_this_machines_zone_is_the_one_of_its_name(here: str, seconds: int) -> None:
    """Every moment is the same time here as in the zone of the same name, and comes back as the same moment."""
    when = datetime.fromtimestamp(seconds, UTC)
    local, named = when.astimezone(parse_zone()), when.astimezone(ZoneInfo(here))
    assert local.replace(tzinfo=None) == named.replace(tzinfo=None)
    assert (local.utcoffset(), local.fold) == (named.utcoffset(), named.fold)
    assert local.astimezone(UTC) == when


@pytest.mark.parametrize("here", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"], indirect=True)
@pytest.mark.parametrize("when", [datetime.min, datetime.max, datetime(1, 1, 2), datetime(9999, 12, 31)])  # noqa: DTZ001, DTZ901
def test_the_first_and_last_day_of_all_time_are_shown_somehow(here: str, when: datetime) -> None:
    """Where the clocks here cannot show a moment, it is shown as it is: one line's time ends no report."""
    del here
    shown = in_zone(when.replace(tzinfo=UTC), parse_zone())
    assert abs(shown.replace(tzinfo=None) - when) <= timedelta(hours=15)


@pytest.mark.parametrize("here", ["Europe/Berlin"], indirect=True)
def test_the_hour_that_comes_twice_is_told_apart(here: str) -> None:
    """When clocks are set back, both hours of the same name are known, first and second."""
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    shown = [(first + timedelta(hours=more)).astimezone(parse_zone("local")) for more in (0, 1)]
    assert [f"{one:%H:%M}" for one in shown] == ["02:30", "02:30"]
    assert [one.fold for one in shown] == [0, 1]
    assert zone_name(parse_zone()) == here


@pytest.mark.parametrize(
    ("here", "name"),
    [
        (":America/New_York", "America/New_York"),
        ("", "UTC"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "local"),
    ],
    indirect=["here"],
)
def test_this_machines_zone_has_a_name_where_it_can_be_known(here: str, name: str) -> None:
    """TZ may hold a name, a path or a rule; a rule has no name, and its days are right all the same."""
    assert isinstance(parse_zone(), LocalZone)
    assert zone_name(parse_zone()) == name
    if "," in here:
        assert datetime(2026, 7, 1, 22, 30, tzinfo=UTC).astimezone(parse_zone()).day == 2
        assert datetime(2026, 1, 1, 22, 30, tzinfo=UTC).astimezone(parse_zone()).day == 1


def test_this_machines_zone_loads_no_database() -> None:
    """The local zone and UTC are known without `zoneinfo`."""
    code = (
        "import sys; from threadline.model.times import parse_zone as zone; "
        "zone(); zone('UTC'); print('zoneinfo' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "TZ": "Europe/Berlin"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True, timeout=60)  # noqa: S603 - our own code
    assert done.stdout == "False\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC"])
def test_the_short_way_tells_the_same_offset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far ahead the clocks here are is the same asked of a moment, and of the time that they show then."""
    monkeypatch.setenv("TZ", name)
    time.tzset()
    try:
        here = parse_zone()
        for hours in range(0, 24 * 366 * 3, 5):
            moment = datetime(2010, 12, 1, tzinfo=UTC) + timedelta(hours=hours, minutes=15)
            assert utc_offset(here, moment) == moment.astimezone(here).utcoffset(), moment
    finally:
        monkeypatch.undo()
        time.tzset()
