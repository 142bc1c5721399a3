"""The digest of a day, week or month: what was done, what it cost, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from markupsafe import Markup

from threadline.account import last_day_with_usage
from threadline.model.insight.digest import Digest, DigestPeriod, PeriodUnit
from threadline.model.times import in_zone, zone_name
from threadline.render import digest_title
from threadline.render.html import Child, chip_row, choice_chip, el, join, render_digest
from threadline.web import urls
from threadline.web.insight.frame import insight_head, period_fields, prepare_first
from threadline.web.pages.forms import ALL, FormField, filter_form, form_on_error
from threadline.web.request import Page, check_time_range

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_UNITS = (PeriodUnit.DAY, PeriodUnit.WEEK, PeriodUnit.MONTH)
_MAX_SESSIONS = 1000
_DEFAULT_SESSIONS = 25
_ONE_DAY = timedelta(days=1)


def _fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("when", "When", "last, 2026-W45")
    yield from period_fields(request)


@form_on_error("Digest", "insight", _fields, "unit")
@prepare_first
def digest_page(request: PageRequest) -> Page:
    """What was done in a period, and what it cost."""
    zone = request.zone()
    period = parse_digest_period(request)
    limit = request.number("sessions", _DEFAULT_SESSIONS, least=1, most=_MAX_SESSIONS)
    digest = compute_digest(request, period)
    body: Child = render_digest(
        digest,
        zone,
        max_sessions=limit,
        with_title=False,
        session_address=urls.session_url,
        day_address=lambda day: _day_url(request, day),
    )
    if not digest.sum.charges:
        body = el("p", "Nothing was spent in this period. Choose another one.", class_="nothing")
    title = digest_title(digest, zone)
    main = join(
        (
            insight_head(request, title, f"days in {zone_name(zone)}"),
            el("div", _unit_chips(request, period), _step_links(request, period), class_="links"),
            filter_form(request, list(_fields(request)), preserve=("unit",)),
            body,
        )
    )
    return Page(title, "insight", main, digest.record())


def compute_digest(request: PageRequest, period: DigestPeriod) -> Digest:
    """The digest of a period, computed once for each hour and each state of the index."""
    hour = period.is_running(request.now) and request.now.replace(minute=0, second=0, microsecond=0)
    key = (period, request.text("project"), hour, zone_name(request.zone()))
    return request.cached("digest", lambda: _compute(request, period), *key)


def _compute(request: PageRequest, period: DigestPeriod) -> Digest:
    archive = request.archive
    name = period.name if period.unit is not PeriodUnit.RANGE else ""
    return archive.digest(
        str(period.unit) if name else None,
        name,
        project=request.text("project"),
        since=period.since if not name else None,
        until=period.until if not name else None,
        now=request.now,
        tz=request.zone(),
    )


def parse_digest_period(request: PageRequest) -> DigestPeriod:
    """The period that the parameters name; by default this week, or the newest one in which something was spent.

    Raises:
        BadQuery: a parameter makes no sense.
    """
    zone = request.zone()
    since = request.moment("since") if request.text("since") != ALL else None
    until = request.moment("until", end=True)
    if since is not None:
        check_time_range(since, until)
        return DigestPeriod.between(since, until, now=request.now, zone=zone)
    unit = PeriodUnit(request.choice("unit", [str(unit) for unit in _UNITS], str(PeriodUnit.WEEK)))
    when = request.text("when")
    for named in _UNITS:  # as the options of the command: week=2026-W45
        if (value := request.text(str(named))) is not None:
            unit, when = named, value
    period = DigestPeriod.parse(unit, (when or "")[:80], now=request.now, zone=zone)
    return latest_with_usage(request, period) if when is None else period


def latest_with_usage(request: PageRequest, period: DigestPeriod) -> DigestPeriod:
    """The current day, week or month; if nothing was spent since it began, the newest one in which something was."""
    newest = _newest_usage(request)
    if newest is None or newest >= period.since:
        return period
    return DigestPeriod.containing(period.unit, in_zone(newest, request.zone()).date(), request.zone())


def _newest_usage(request: PageRequest) -> datetime | None:
    """The start of the newest day with usage."""
    ledger = request.archive.ledger(calls=False, project=request.text("project"))
    day = last_day_with_usage(ledger, request.now, request.zone())
    if day is None:
        return None
    return DigestPeriod.parse(PeriodUnit.DAY, day, now=request.now, zone=request.zone()).since


def _unit_chips(request: PageRequest, period: DigestPeriod) -> Markup:
    chips = [
        choice_chip(
            _period_url(request, unit, _name_at(unit, period, request)),
            str(unit),
            is_chosen=unit is period.unit,
        )
        for unit in _UNITS
    ]
    return chip_row("Period", chips)


def _name_at(unit: PeriodUnit, period: DigestPeriod, request: PageRequest) -> str:
    """The name of the day, week or month in which the period ends."""
    end = min(period.until, max(request.now, period.since))
    return DigestPeriod.containing(unit, in_zone(end, request.zone()).date(), request.zone()).name


def _step_links(request: PageRequest, period: DigestPeriod) -> Markup | None:
    """Links to the period before and the one after, unless that is in the future."""
    if period.unit is PeriodUnit.RANGE:
        return None
    zone = request.zone()
    before = period.previous(zone)
    names = [before.name, period.name, *([after.name] if (after := _following(period, request)) is not None else [])]
    chips = [
        choice_chip(_period_url(request, period.unit, name), name, is_chosen=name == period.name) for name in names
    ]
    return el("p", chips, class_="chips")


def _following(period: DigestPeriod, request: PageRequest) -> DigestPeriod | None:
    zone = request.zone()
    if period.until >= request.now:
        return None
    return DigestPeriod.containing(period.unit, in_zone(period.until, zone).date() + _ONE_DAY, zone)


def _day_url(request: PageRequest, day: str) -> str | None:
    return _period_url(request, PeriodUnit.DAY, day) if day[:1].isdecimal() else None


def _period_url(request: PageRequest, unit: PeriodUnit, name: str) -> str:
    """The page of another period, without the parameters that name this one."""
    names = ("since", "until", *map(str, _UNITS))
    return request.url_with(unit=str(unit), when=name, **dict.fromkeys(names))
