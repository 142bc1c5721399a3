"""The figures of a statusline: what Claude Code told, and what the transcripts tell."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from msgspec import Struct

from threadline.account.ledger import Ledger
from threadline.account.rates import Rates, rates
from threadline.cli.opening import archive_of
from threadline.cli.statusline_input import Told
from threadline.cli.when import moment
from threadline.model.rate import EXACT
from threadline.model.sum import Sum
from threadline.model.window import UsageWindow
from threadline.survey.today import Named, Recent, homes_with, named

_LITTLE = 8 * 1024 * 1024
_A_DAY = timedelta(hours=24)


class Figures(Struct, frozen=True):
    """All that a statusline may show. `day` is today in the reader's zone."""

    told: Told
    recent: Recent
    now: datetime
    day: str | None
    session: Sum | None
    today: Sum | None
    window: UsageWindow | None
    is_certain: bool
    tokens: int | None
    limit: int | None
    share: float | None
    digest: str

    @property
    def left(self) -> timedelta | None:
        """How long the window goes on."""
        return self.window.ends - self.now if self.window is not None else None

    def record(self) -> dict[str, Any]:
        """The figures for a program."""
        found = self.recent
        return {
            "model": self.told.model,
            "session": {
                "id": found.named.session,
                **_sum(self.session),
                "reported": self.told.reported,
                "difference": _difference(self.session, self.told.reported),
            },
            "today": {"day": self.day, **_sum(self.today), "is_whole": found.is_whole},
            "window": self._window(),
            "context": {"tokens": self.tokens, "limit": self.limit, "share": self.share},
            "not_read": {"transcripts": found.not_read, "is_listed": found.is_listed},
            "problems": [f"{one.place}: {one.message}" for one in found.ledger.problems],
            "prices": {"digest": self.digest},
        }

    def _window(self) -> dict[str, Any] | None:
        if self.window is None:
            return None
        return {**self.window.record(), "is_certain": self.is_certain}


def figures(
    told: Told, given: tuple[str, ...], files: tuple[str, ...], *, tz: str | None, seconds: float, now: datetime
) -> Figures:
    """The figures at a moment.

    Raises:
        Error: a home, a price file or a time zone that was named is not there.
    """
    from threadline.model.zone import zone

    here = zone(tz)
    begins, ends = moment("today", now=now, zone=here), moment("today", now=now, zone=here, end=True)
    table = rates(*files)
    homes = archive_of(given).homes
    asked = named(told.transcript, told.session, homes)
    since = min(begins, now - _A_DAY)
    with archive_of((), found=homes_with(asked, homes), most=_LITTLE) as archive:
        found = archive.recent(asked, table, since=since, seconds=seconds)
        return _figures(told, found, table, begins, ends, now, here)


def _figures(  # noqa: PLR0917 - all that is known by now
    told: Told, found: Recent, table: Rates, begins: datetime, ends: datetime, now: datetime, here: tzinfo
) -> Figures:
    window, is_certain = found.window(now)
    tokens, limit, share = _context(told, found)
    return Figures(
        told=told,
        recent=found,
        now=now,
        day=f"{now.astimezone(here):%Y-%m-%d}",
        session=found.of_session(),
        today=found.within(begins, ends),
        window=window,
        is_certain=is_certain,
        tokens=tokens,
        limit=limit,
        share=share,
        digest=table.digest,
    )


def only_told(told: Told, now: datetime) -> Figures:
    """What Claude Code told alone."""
    table = rates()
    nothing = Recent(Named(told.session), now, Ledger((), table), None, is_listed=False)
    tokens, limit, share = _context(told, nothing)
    return Figures(
        told=told,
        recent=nothing,
        now=now,
        day=None,
        session=None,
        today=None,
        window=None,
        is_certain=True,
        tokens=tokens,
        limit=limit,
        share=share,
        digest=table.digest,
    )


def _context(told: Told, found: Recent) -> tuple[int | None, int | None, float | None]:
    """Tokens in the window, its limit, and the share. What Claude Code tells is newer than what it has written."""
    last = found.last
    tokens = told.tokens or (last.prompt_tokens if last is not None else None)
    if tokens is None:
        return None, told.limit, told.share
    limit = told.limit_for(tokens)
    return tokens, limit, tokens / limit


def _sum(one: Sum | None) -> dict[str, Any]:
    if one is None:
        return {"amount": None, "charges": None, "unpriced": None}
    amount = one.amount if one.amount is not None or one.unpriced else Decimal(0)
    return {"amount": amount, "charges": one.charges, "unpriced": one.unpriced}


def _difference(computed: Sum | None, reported: Decimal | None) -> Decimal | None:
    amount = _sum(computed)["amount"]
    return None if amount is None or reported is None else EXACT.subtract(reported, amount)
