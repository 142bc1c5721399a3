"""Time zones by name, and the zone of this machine."""

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
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Sets the zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["utc", "UTC", " Z "])
def test_utc_needs_no_database(name: str) -> None:
    """UTC is UTC in any spelling."""
    assert parse_zone(name) is UTC
    assert zone_name(parse_zone(name)) == "UTC"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Asia/Kolkata", "Asia/Kolkata"), ("europe/berlin", "Europe/Berlin"), ("America/New York",) * 2],
)
def test_finds_zone_by_name_in_any_case(name: str, expected: str) -> None:
    """An IANA name in any case, with a space or an underscore."""
    assert zone_name(parse_zone(name)) == expected.replace(" ", "_")


@pytest.mark.parametrize(
    ("name", "suggestion"),
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
def test_unknown_zone_is_an_error_with_suggestion(name: str, suggestion: str) -> None:
    """A city alone, a typo, or a name that nothing resembles. A path opens no file."""
    with pytest.raises(BadQuery, match=r"Unknown time zone") as refused:
        parse_zone(name)
    assert suggestion in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "local_zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kolkata"], indirect=True
)
@given(SINCE_1971)
def test_local_zone_equals_zone_of_the_same_name(local_zone: str, seconds: int) -> None:
    """Every moment has the same local time as in the zone of that name, and converts back."""
    when = datetime.fromtimestamp(seconds, UTC)
    local, named = when.astimezone(parse_zone()), when.astimezone(ZoneInfo(local_zone))
    assert local.replace(tzinfo=None) == named.replace(tzinfo=None)
    assert (local.utcoffset(), local.fold) == (named.utcoffset(), named.fold)
    assert local.astimezone(UTC) == when


@pytest.mark.parametrize(
    "local_zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"], indirect=True
)
@pytest.mark.parametrize("when", [datetime.min, datetime.max, datetime(1, 1, 2), datetime(9999, 12, 31)])  # noqa: DTZ001, DTZ901
def test_extreme_times_are_shown(local_zone: str, when: datetime) -> None:
    """If the local clock cannot show a moment, it is shown in UTC, so that one line's time ends no report."""
    del local_zone
    shown = in_zone(when.replace(tzinfo=UTC), parse_zone())
    assert abs(shown.replace(tzinfo=None) - when) <= timedelta(hours=15)


@pytest.mark.parametrize("local_zone", ["Europe/Berlin"], indirect=True)
def test_repeated_hour_has_fold(local_zone: str) -> None:
    """When clocks are set back, the two hours with the same name differ in `fold`."""
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    times = [(first + timedelta(hours=more)).astimezone(parse_zone("local")) for more in (0, 1)]
    assert [f"{moment:%H:%M}" for moment in times] == ["02:30", "02:30"]
    assert [moment.fold for moment in times] == [0, 1]
    assert zone_name(parse_zone()) == local_zone


@pytest.mark.parametrize(
    ("local_zone", "name"),
    [
        (":America/New_York", "America/New_York"),
        ("", "UTC"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "local"),
    ],
    indirect=["local_zone"],
)
def test_local_zone_name_from_tz_variable(local_zone: str, name: str) -> None:
    """TZ may be a name, a path or a rule. A rule has no name, but its days are right."""
    assert parse_zone() is UTC if name == "UTC" else isinstance(parse_zone(), LocalZone)
    assert zone_name(parse_zone()) == name
    if "," in local_zone:
        assert datetime(2026, 7, 1, 22, 30, tzinfo=UTC).astimezone(parse_zone()).day == 2
        assert datetime(2026, 1, 1, 22, 30, tzinfo=UTC).astimezone(parse_zone()).day == 1


def test_local_zone_loads_no_database() -> None:
    """The local zone and UTC work without `zoneinfo`."""
    code = (
        "import sys; from threadline.model.times import parse_zone as zone; "
        "zone(); zone('UTC'); print('zoneinfo' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "TZ": "Europe/Berlin"}
    process = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True, timeout=60
    )
    assert process.stdout == "False\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC"])
def test_utc_offset_equals_datetime(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`utc_offset` equals the offset that `datetime` computes."""
    monkeypatch.setenv("TZ", name)
    time.tzset()
    try:
        local_zone = parse_zone()
        for hours in range(0, 24 * 366 * 3, 5):
            moment = datetime(2010, 12, 1, tzinfo=UTC) + timedelta(hours=hours, minutes=15)
            assert utc_offset(local_zone, moment) == moment.astimezone(local_zone).utcoffset(), moment
    finally:
        monkeypatch.undo()
        time.tzset()
