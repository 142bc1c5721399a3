"""Time zones as people name them: days are days where the reader is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from threadline.errors import BadQuery

_HERE = "local"
_DATABASE = "zoneinfo/"
_NEAR = 5
_LONGEST = 64


class Local(tzinfo):
    """This machine's own zone, by its own rules: no zone database is needed, and every past change is known."""

    def __init__(self) -> None:
        self.key = _name_here()

    def fromutc(self, dt: datetime) -> datetime:
        """A moment as the clocks here show it."""
        try:
            local = dt.replace(tzinfo=UTC).astimezone()
        except (OSError, OverflowError, ValueError):  # beyond what the system's clock can tell
            return dt
        return local.replace(tzinfo=self, fold=self._fold(local))

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """How far ahead of UTC the clocks here are at a time that they show."""
        if dt is None:
            return None
        try:
            return dt.replace(tzinfo=None).astimezone().utcoffset()
        except (OSError, OverflowError, ValueError):
            return timedelta(0)

    def ahead(self, moment: datetime) -> timedelta | None:
        """How far ahead of UTC the clocks here are at a moment: what `utcoffset` says of it when they show it."""
        try:
            return moment.astimezone().utcoffset()
        except (OSError, OverflowError, ValueError):
            return moment.astimezone(self).utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        """Not told apart from the offset."""
        del dt
        return None

    def tzname(self, dt: datetime | None) -> str:
        """Its name."""
        del dt
        return self.key

    def __repr__(self) -> str:
        return f"Local({self.key!r})"

    @staticmethod
    def _fold(local: datetime) -> int:
        """Whether a time is the second of two that the clocks show, when they are set back."""
        try:
            shown = local.replace(tzinfo=None).astimezone()
        except (OSError, OverflowError, ValueError):  # the first and last day of all time
            return 0
        return int(shown.utcoffset() != local.utcoffset())


def zone(name: str | None = None) -> tzinfo:
    """The time zone of that name; this machine's own for `local`, or when none is given.

    Raises:
        BadQuery: there is no such zone; the sentence says which were near.
    """
    word = (name if name is not None else _HERE).strip()
    if word.lower() == _HERE:
        return Local()
    if word.upper() in {"UTC", "Z"}:
        return UTC
    return _named(word)


def zone_name(one: tzinfo) -> str:
    """What a zone is called: `Europe/Berlin`; `local` where this machine does not say its own zone's name."""
    return "UTC" if one is UTC else str(getattr(one, "key", one))


def in_zone(moment: datetime, one: tzinfo) -> datetime:
    """A moment as the clocks of a zone show it; as it is where they cannot, on the first and last day of all time."""
    try:
        return moment.astimezone(one)
    except OverflowError:
        return moment


def _named(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - most never name a zone

    known = available_timezones()
    if name in known:
        return ZoneInfo(name)
    folded = {one.casefold(): one for one in known}
    spelt = name.casefold().replace(" ", "_")
    if spelt in folded:
        return ZoneInfo(folded[spelt])
    if not known:
        raise BadQuery("This machine has no time zones by name; write UTC or local, or run: pip install tzdata")
    near = list(_near(spelt, folded))
    meant = f"did you mean {' or '.join(near)}?" if near else "write one such as Europe/Berlin, UTC or local."
    raise BadQuery(f"There is no time zone {name[:_LONGEST]!r}; {meant}")


def _near(spelt: str, folded: dict[str, str]) -> Iterator[str]:
    """Zones that may have been meant: a city's, or one that is spelt nearly so."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    cities = {one: one.rpartition("/")[2] for one in sorted(folded) if not one.startswith(("posix/", "right/"))}
    word = spelt.rpartition("/")[2][:_LONGEST]
    exact = [one for one, city in cities.items() if city == word]
    # A word in common with many is cheap to look for; likeness is not, so that is asked of cities alone.
    like = set(get_close_matches(word, set(cities.values()), n=3, cutoff=0.75)) if not exact else set()
    found = exact or [one for one, city in cities.items() if city in like]
    yield from (folded[one] for one in found[:_NEAR])


def _name_here() -> str:
    """The IANA name of this machine's zone: by TZ, or by where /etc/localtime leads."""
    said = os.environ.get("TZ")
    if said is not None:
        return "UTC" if said in {"", "UTC", "UTC0"} else _tail(said.removeprefix(":"))
    try:
        return _tail(os.path.realpath("/etc/localtime"), leads=True)
    except OSError:
        return _HERE


def _tail(path: str, *, leads: bool = False) -> str:
    """The name at the end of a path into the zone database. TZ may be such a name itself, or a rule, which is none."""
    _, inside, name = path.rpartition(_DATABASE)
    if not inside and (leads or "," in path or any(map(str.isdigit, path))):
        return _HERE
    return {"Etc/UTC": "UTC", "Universal": "UTC", "Etc/Universal": "UTC"}.get(name, name) or _HERE
