"""Amounts on the rows of messages (`costUSD`, up to about 1.0.8), held against the charges."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from threadline.account.reconcile import count_of, list_of, no_fee
from threadline.account.runs import amount_of, hours_as_minutes
from threadline.model.charge import Charge
from threadline.model.rate import EXACT
from threadline.model.reported import TOLERANCE, Cause, Why
from threadline.model.sum import added


def rows_reported(charges: Sequence[Charge]) -> list[Why]:
    """Why amounts on rows (`costUSD`) come to another sum than the charges; `agrees` where they do not."""
    found: list[Why] = []
    silent = [one for one in charges if one.reported is None]
    if amount_of(silent):
        words = f"{count_of(len(silent), 'message')} without an amount on a row"
        found.append(Why(Cause.SILENT, EXACT.minus(amount_of(silent)), words, proven=True))
    differing = [one for one in charges if one.reported is not None and EXACT.abs(_off(one)) > TOLERANCE]
    groups: dict[Cause, list[Charge]] = {}
    for one in differing:
        groups.setdefault(_cause(one), []).append(one)
    for cause, some in groups.items():
        off = added(map(_off, some))
        found.append(Why(cause, off, _rows_words(cause, some, off), proven=cause is not Cause.LOWER_BOUND))
    return found or [Why(Cause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _cause(charge: Charge) -> Cause:
    """Why a row's amount is another than its charge's."""
    if charge.rate is None:
        return Cause.UNPRICED
    without_fee = EXACT.add(_off(charge), EXACT.multiply(charge.rate.web_search, charge.web_searches))
    if EXACT.abs(without_fee) <= TOLERANCE:
        return Cause.WEB
    return Cause.LOWER_BOUND if charge.is_lower_bound and without_fee > 0 else Cause.PRICES


def _rows_words(cause: Cause, some: Sequence[Charge], off: Decimal) -> str:
    many = count_of(len(some), "message")
    if cause is Cause.UNPRICED:
        return f"no price is known for {list_of(sorted({one.model or '' for one in some}))}"
    if cause is Cause.WEB:
        return no_fee(sum(one.web_searches for one in some))
    if cause is Cause.LOWER_BOUND:
        return f"the final output of {many} is in no transcript"
    if EXACT.abs(EXACT.subtract(off, EXACT.subtract(hours_as_minutes(some), amount_of(some)))) <= TOLERANCE:
        return f"Claude Code priced an hour in the cache as five minutes, in {many}"
    return f"Claude Code took other prices for {many}"


def _off(charge: Charge) -> Decimal:
    return EXACT.subtract(charge.reported or Decimal(0), charge.amount or Decimal(0))
