"""The ledger of the real corpus: figures on which independent programs agree, and the amount by a reference."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from pathlib import Path

import pytest
from tests.account.reference_ledger import compute_reference

import threadline
from threadline.account import KEY_DESCRIPTIONS, Ledger
from threadline.model.ledger import Flag

HOME = Path(__file__).parents[3] / "shared/corpus/home"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not HOME.exists(), reason="there is no real corpus beside the project"),
]


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """The ledger of the real corpus."""
    return threadline.ledger(HOME)


def test_totals_equal_those_of_two_other_programs(ledger: Ledger) -> None:
    """Every token of the corpus is counted once."""
    total = ledger.total
    assert total.charges == 5_277
    assert total.input == 123_734
    assert total.output == 1_533_111
    assert total.cache_write == 24_585_905
    assert total.cache_write_1h == 14_895_417
    assert total.cache_read == 730_352_886


def test_the_amount_equals_the_reference(ledger: Ledger) -> None:
    """A program without any shared code finds the same figures, and the same amount to the last digit."""
    reference = compute_reference(sorted((HOME / "projects").rglob("*.jsonl")))
    total = ledger.total
    assert (total.charges, total.web_searches, total.unpriced) == (
        reference.charges,
        reference.web_searches,
        reference.unpriced,
    )
    assert (total.input, total.output, total.cache_read) == (reference.input, reference.output, reference.cache_read)
    assert (total.cache_write, total.cache_write_1h) == (reference.cache_write, reference.cache_write_1h)
    assert total.amount == reference.amount


def test_every_pair_of_keys_sums_to_the_total(ledger: Ledger) -> None:
    """No report loses or doubles a token or a digit of an amount."""
    total = ledger.total
    for keys in combinations(KEY_DESCRIPTIONS, 2):
        assert ledger.by(*keys).total == total


def test_amounts_of_charges_sum_to_the_total(ledger: Ledger) -> None:
    """The total is the sum of the receipts."""
    amounts = [charge.amount for charge in ledger if charge.amount is not None]
    assert sum(amounts, Decimal(0)) == ledger.total.amount


def test_two_workers_give_the_same_ledger(ledger: Ledger) -> None:
    """Two processes find what one finds."""
    other = threadline.ledger(HOME, jobs=2)
    assert other.total == ledger.total
    assert {charge.message for charge in other} == {charge.message for charge in ledger}
    assert other.by("session", "model") == ledger.by("session", "model")


def test_every_line_of_a_message_is_accounted_for(ledger: Ledger) -> None:
    """A line is counted or set aside, never both, and never twice for one message."""
    lines = set()
    for charge in ledger:
        if not charge.part:
            for place in (charge.place, *(sighting.place for sighting in charge.set_aside)):
                line = (charge.message, place.transcript, place.line)
                assert line not in lines
                lines.add(line)
    assert any(Flag.COPIED in charge.flags for charge in ledger)
