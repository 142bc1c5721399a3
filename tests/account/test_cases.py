"""Every case of the ledger matches its `out.json`."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import combinations

import pytest
from tests.account.ledger_cases import CASES, CORPUS, charge_fields, expected, ledger, sorted_charges, sum_values
from tests.subtests import Subtests

from threadline.account import KEY_DESCRIPTIONS, Ledger
from threadline.model.ledger import sum_amounts


def check_total(case: str, ledger_: Ledger) -> None:
    """The total has the figures that were computed by hand."""
    figures = expected(case)["total"]
    assert sum_values(ledger_.total, figures) == figures


def check_charges(case: str, ledger_: Ledger) -> None:
    """There is exactly one charge for each that the case states, with the stated fields."""
    if (rows := expected(case).get("charges")) is not None:
        assert len(sorted_charges(ledger_)) == len(rows)
        assert [charge_fields(charge, row) for charge, row in zip(sorted_charges(ledger_), rows, strict=True)] == rows


def check_days(case: str, ledger_: Ledger) -> None:
    """Each day has as many charges as the case states."""
    if (days := expected(case).get("days")) is not None:
        assert {row.keys["day"]: row.charges for row in ledger_.by("day")} == days


def check_sums(_case: str, ledger_: Ledger) -> None:
    """Grouped by any two keys, rows and subtotals add up to the total in every figure."""
    total = ledger_.total
    assert total.amount == (
        sum_amounts(charge.amount or Decimal(0) for charge in ledger_) if total.amount is not None else None
    )
    for keys in combinations(KEY_DESCRIPTIONS, 2):
        rows = ledger_.by(*keys)
        assert rows.total == total
        assert sum(row.charges for row in rows.subtotals()) == total.charges


def check_lines_are_used_once(_case: str, ledger_: Ledger) -> None:
    """A line is counted, or set aside with a reason, exactly once for each message that it reports."""
    places = Counter(
        (charge.message, place.transcript, place.line)
        for charge in ledger_
        if not charge.part
        for place in (charge.place, *(aside.place for aside in charge.set_aside))
    )
    assert set(places.values()) <= {1}


def check_explanation(case: str, _ledger: Ledger) -> None:
    """A case says why it exists, where it was seen and what the evidence is, and states a total."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert expected(case)["total"]


CHECKS = (
    check_total,
    check_charges,
    check_days,
    check_sums,
    check_lines_are_used_once,
    check_explanation,
)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    """All checks of the case pass on one ledger."""
    ledger_ = ledger(case)
    with Subtests() as subtests:
        for check in CHECKS:
            with subtests.test(check.__name__):
                check(case, ledger_)


def test_there_are_enough_cases() -> None:
    """There are at least 75 cases."""
    assert len(CASES) >= 75
