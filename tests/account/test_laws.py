"""What is true of any transcripts: how they are cut, named, ordered and copied changes nothing that was spent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.account.by_hand import by_hand, is_low
from tests.account.ledger_cases import CASES, homes
from tests.account.made_homes import Made, copied, cut, home, ledger, spent, transcripts, word

import threadline
from threadline.account import KEY_DESCRIPTIONS, load_rates, with_origin
from threadline.account.charges import compute_charges
from threadline.find import look
from threadline.model.homes import Transcript
from threadline.model.ledger import sum_fields
from threadline.parse import LineNumbers, read_sightings


def _transcripts(case: str) -> list[Transcript]:
    return [transcript for path in homes(case) for transcript in look(path).transcripts]


@given(transcripts(), st.randoms(use_true_random=False))
def test_names_and_order_change_nothing(made: list[Made], random: object) -> None:
    """Transcripts may lie in any folder, and be found in any order."""
    folders = [f"-work-{word(random, at, length=6)}" for at in range(len(made))]
    moved = [replace(one, folder=folder) for one, folder in zip(made, folders, strict=True)]
    assert sum_fields(ledger(moved).total) == sum_fields(ledger(made).total)


@given(transcripts(), st.data())
def test_transcripts_twice_change_nothing(made: list[Made], data: st.DataObject) -> None:
    """A transcript that lies elsewhere once more adds nothing."""
    again = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
    more = [replace(one, folder=f"-copy-{at}") for at, one in enumerate(again)]
    assert sum_fields(ledger([*made, *more]).total) == sum_fields(ledger(made).total)


@given(transcripts(), st.data())
def test_cutting_transcripts_changes_nothing(made: list[Made], data: st.DataObject) -> None:
    """The rows of a transcript may lie in several files, cut anywhere."""
    places = st.lists(st.integers(0, 12), max_size=3)
    pieces = [piece for one in made for piece in cut(one, data.draw(places))]
    assert spent(pieces) == spent(made)


@given(transcripts(), st.data())
def test_copies_under_another_session_change_nothing(made: list[Made], data: st.DataObject) -> None:
    """What resuming and forking copy is the same spending: the uuids prove it."""
    chosen = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
    more = [copied(one, at, forked=data.draw(st.booleans())) for at, one in enumerate(chosen)]
    assert spent([*made, *more]) == spent(made)


@given(transcripts(), st.data())
def test_copies_with_other_uuids_change_nothing_where_ids_are_random(made: list[Made], data: st.DataObject) -> None:
    """A random id proves as much as a uuid does."""
    sure = [replace(one, rows=tuple(row for row in one.rows if not is_low(row["message"]["id"]))) for one in made]
    chosen = data.draw(st.lists(st.sampled_from(sure), min_size=1, max_size=3))
    more = [copied(one, at, forked=data.draw(st.booleans()), new_uuids=True) for at, one in enumerate(chosen)]
    assert spent([*sure, *more]) == spent(sure)


@given(transcripts(), st.data())
def test_cut_copies_of_cut_copies_change_nothing(made: list[Made], data: st.DataObject) -> None:
    """All of it at once."""
    places = st.lists(st.integers(0, 12), max_size=2)
    chosen = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
    more = [copied(one, at, forked=False) for at, one in enumerate(chosen)]
    assert spent(piece for one in [*made, *more] for piece in cut(one, data.draw(places))) == spent(made)


@given(transcripts())
def test_more_transcripts_are_never_fewer_charges(made: list[Made]) -> None:
    """A transcript that is added may add charges, and takes none away."""
    numbers = [ledger(made[:size]).total.charges for size in range(1, len(made) + 1)]
    assert numbers == sorted(numbers)


@given(transcripts(), st.data())
def test_every_report_sums_to_the_total(made: list[Made], data: st.DataObject) -> None:
    """By any keys, in any order, the rows add up to the total, and the total to the charges."""
    found = ledger(made)
    keys = data.draw(st.lists(st.sampled_from(sorted(KEY_DESCRIPTIONS)), unique=True, max_size=4))
    rows = found.by(*keys)
    assert rows.total == found.total
    assert sum((charge.amount or Decimal(0) for charge in found), Decimal(0)) == (found.total.amount or 0)
    for depth in range(1, len(keys)):
        assert sum(row.charges for row in rows.subtotals(depth)) == found.total.charges


@given(transcripts(), st.data())
def test_every_row_is_in_one_charge(made: list[Made], data: st.DataObject) -> None:
    """Each line that tells of a message is counted or set aside, exactly once, by exactly one charge."""
    chosen = data.draw(st.lists(st.sampled_from(made), max_size=2))
    more = [copied(one, at, forked=False) for at, one in enumerate(chosen)]
    every = {one.name: one for one in [*made, *more]}.values()
    with home(every) as path:
        places = Counter(
            (place.transcript, place.line)
            for charge in threadline.ledger(path, jobs=1)
            if not charge.part
            for place in (charge.place, *(one.place for one in charge.set_aside))
        )
        lines = ((f"{path.resolve()}/projects/{one.name}", at) for one in every for at in range(1, len(one.rows) + 1))
        written = Counter(lines)
    assert places == written


@given(transcripts(at_odds=False))
def test_the_rule_by_hand_finds_the_same(made: list[Made]) -> None:
    """A plain program that compares every row with every other agrees in every figure."""
    with home(made) as path:
        hand = by_hand(sorted(path.rglob("*.jsonl")))
    total = ledger(made).total
    assert (total.charges, total.input, total.output) == (hand.charges, hand.input, hand.output)
    assert (total.cache_write, total.cache_write_1h) == (hand.cache_write, hand.cache_write_1h)
    assert (total.cache_read, total.web_searches) == (hand.cache_read, hand.web_searches)
    assert (total.amount or 0) == hand.amount


@pytest.mark.parametrize("case", [case for case in CASES if 1 < len(_transcripts(case)) < 5])
def test_every_order_of_reading_gives_one_answer(case: str) -> None:
    """The rule sees sightings in whatever order workers hand them over."""
    answers = set()
    for order in permutations(_transcripts(case)):
        told = ((read_sightings(one), one, "p", LineNumbers(str(one.path))) for one in order)
        seen = [one for parts in told for one in with_origin(*parts)]
        answers.add(
            frozenset(
                (charge.place, charge.session, charge.output, charge.amount)
                for charge in compute_charges(seen, load_rates())
            )
        )
    assert len(answers) == 1
