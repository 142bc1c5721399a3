"""Every case of the ledger comes out as it says."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import combinations

import pytest
from tests.account.ledger_cases import CASES, CORPUS, charges, expected, ledger, shown, summed
from tests.subtests import Subtests

from threadline.account import KEY_DESCRIPTIONS, Ledger
from threadline.model.ledger import sum_amounts


def the_total_comes_out_as_stated(case: str, found: Ledger) -> None:
    """The figures of the total are those that were worked out by hand."""
    stated = expected(case)["total"]
    assert summed(found.total, stated) == stated


def each_charge_comes_out_as_stated(case: str, found: Ledger) -> None:
    """There is a charge for each that is stated and no other, and what is stated of it is so."""
    if (stated := expected(case).get("charges")) is not None:
        assert len(charges(found)) == len(stated)
        assert [shown(one, told) for one, told in zip(charges(found), stated, strict=True)] == stated


def the_days_come_out_as_stated(case: str, found: Ledger) -> None:
    """Each day has as many charges as stated."""
    if (stated := expected(case).get("days")) is not None:
        assert {row.keys["day"]: row.charges for row in found.by("day")} == stated


def every_report_sums_to_the_total(_case: str, found: Ledger) -> None:
    """By any two keys, rows and subtotals add up to the total, in every figure."""
    total = found.total
    assert total.amount == (
        sum_amounts(one.amount or Decimal(0) for one in found) if total.amount is not None else None
    )
    for keys in combinations(KEY_DESCRIPTIONS, 2):
        rows = found.by(*keys)
        assert rows.total == total
        assert sum(row.charges for row in rows.subtotals()) == total.charges


def no_line_tells_of_two_messages(_case: str, found: Ledger) -> None:
    """A line is counted, or set aside with a reason, exactly once for each message that it tells of."""
    places = Counter(
        (one.message, where.transcript, where.line)
        for one in found
        if not one.part
        for where in (one.place, *(aside.place for aside in one.set_aside))
    )
    assert set(places.values()) <= {1}


def a_case_explains_itself(case: str, _found: Ledger) -> None:
    """A case says why it is there, where it was seen and what the evidence is, and states something."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert expected(case)["total"]


CLAIMS = (
    the_total_comes_out_as_stated,
    each_charge_comes_out_as_stated,
    the_days_come_out_as_stated,
    every_report_sums_to_the_total,
    no_line_tells_of_two_messages,
    a_case_explains_itself,
)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    """Every claim about the case holds, on one ledger of it."""
    found = ledger(case)
    with Subtests() as subtests:
        for claim in CLAIMS:
            with subtests.test(claim.__name__):
                claim(case, found)


def test_there_are_enough_cases() -> None:
    """There are 75 cases or more."""
    assert len(CASES) >= 75
