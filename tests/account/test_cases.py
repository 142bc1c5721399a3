"""Every case of the ledger comes out as it says."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import combinations

import pytest
from tests.account.ledger_cases import CASES, CORPUS, charges, expected, ledger, shown, summed

from threadline.account import KEY_DESCRIPTIONS
from threadline.model.totals import sum_amounts


@pytest.mark.parametrize("case", CASES)
def test_the_total_comes_out_as_stated(case: str) -> None:
    """The figures of the total are those that were worked out by hand."""
    stated = expected(case)["total"]
    assert summed(ledger(case).total, stated) == stated


@pytest.mark.parametrize("case", [case for case in CASES if "charges" in expected(case)])
def test_each_charge_comes_out_as_stated(case: str) -> None:
    """There is a charge for each that is stated and no other, and what is stated of it is so."""
    stated = expected(case)["charges"]
    found = charges(ledger(case))
    assert len(found) == len(stated)
    assert [shown(one, told) for one, told in zip(found, stated, strict=True)] == stated


@pytest.mark.parametrize("case", [case for case in CASES if "days" in expected(case)])
def test_the_days_come_out_as_stated(case: str) -> None:
    """Each day has as many charges as stated."""
    assert {row.keys["day"]: row.charges for row in ledger(case).by("day")} == expected(case)["days"]


@pytest.mark.parametrize("case", CASES)
def test_every_report_sums_to_the_total(case: str) -> None:
    """By any two keys, rows and subtotals add up to the total, in every figure."""
    found = ledger(case)
    total = found.total
    assert total.amount == (
        sum_amounts(one.amount or Decimal(0) for one in found) if total.amount is not None else None
    )
    for keys in combinations(KEY_DESCRIPTIONS, 2):
        rows = found.by(*keys)
        assert rows.total == total
        assert sum(row.charges for row in rows.subtotals()) == total.charges


@pytest.mark.parametrize("case", CASES)
def test_no_line_tells_of_two_messages(case: str) -> None:
    """A line is counted, or set aside with a reason, exactly once for each message that it tells of."""
    places = Counter(
        (one.message, where.transcript, where.line)
        for one in ledger(case)
        if not one.part
        for where in (one.place, *(aside.place for aside in one.set_aside))
    )
    assert set(places.values()) <= {1}


@pytest.mark.parametrize("case", CASES)
def test_a_case_explains_itself(case: str) -> None:
    """A case says why it is there, where it was seen and what the evidence is, and states something."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert expected(case)["total"]


def test_there_are_enough_cases() -> None:
    """There are 75 cases or more."""
    assert len(CASES) >= 75
