"""Asked: what a request asks for, its values checked; whatever says nothing sensible is a sentence and 400."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.when import moment
from threadline.model.zone import zone as zone_of
from threadline.web.addresses import Queried, address

if TYPE_CHECKING:
    from threadline.archive import Standing
    from threadline.web.shelf import Shelf

_Choice = TypeVar("_Choice", bound=StrEnum)

_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})
_SHOWN = 80


class Asked(Struct, frozen=True):
    """A request: `path` without `.json`, the values in its query, those in its path, and what may answer it.

    An empty value counts as none: that is what a form sends for a field that was left alone. `wants_data`: it asks for
    the page's `.json` twin.
    """

    path: str
    query: Sequence[tuple[str, str]]
    archive: Standing
    shelf: Shelf
    named: Mapping[str, str] = {}
    now: datetime = datetime.min.replace(tzinfo=UTC)
    wants_data: bool = False

    def texts(self, name: str) -> tuple[str, ...]:
        """Every value of that name, in order; a comma parts several."""
        return tuple(part.strip() for text in self._all(name) for part in text.split(",") if part.strip())

    def text(self, name: str) -> str | None:
        """The value of that name; the last, where there are several."""
        values = self._all(name)
        return values[-1] if values else None

    def number(self, name: str, default: int, *, least: int = 0, most: int = 1_000_000_000) -> int:
        """A whole number."""
        found = self.maybe_number(name, least=least, most=most)
        return default if found is None else found

    def maybe_number(self, name: str, *, least: int = 0, most: int = 1_000_000_000) -> int | None:
        """A whole number, or None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None  # noqa: PLR2004 - digits
        if number is None or not least <= number <= most:
            raise BadQuery(f"{name}={_short(text)} is no whole number from {least:,} to {most:,}.")
        return number

    def flag(self, name: str) -> bool:
        """Yes or no."""
        word = (self.text(name) or "").lower()
        if word not in _YES | _NO:
            raise BadQuery(f"{name}={_short(word)} is neither 1 nor 0.")
        return word in _YES

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        word = self.text(name)
        if word is not None and word not in choices:
            raise BadQuery(f"{name}={_short(word)} is none of {', '.join(choices)}.")
        return word or default

    def one_of(self, name: str, kind: type[_Choice], default: _Choice) -> _Choice:
        """One of an enumeration."""
        return kind(self.choice(name, [str(one) for one in kind], str(default)))

    def moment(self, name: str, *, end: bool = False, zone: tzinfo | None = None) -> datetime | None:
        """A moment as people write it (`2026-11-03`, `7d`, `yesterday`); with `end`, a day means its last moment."""
        text = self.text(name)
        return moment(text[:_SHOWN], now=self.now, end=end, zone=zone) if text is not None else None

    def zone(self) -> tzinfo:
        """The zone that times are told in: `tz`, or this machine's."""
        return zone_of(self.text("tz"))

    def here(self, **changes: Queried) -> str:
        """This page's address with some values changed; None takes one away."""
        kept = [(name, value) for name, value in self.query if name not in changes and value]
        return address(self.path, kept, **changes)

    def _all(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name and value.strip()]


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
