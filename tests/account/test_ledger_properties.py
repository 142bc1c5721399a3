"""Properties of the ledger: splitting, renaming, reordering and copying transcripts does not change what was spent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.account.generated_transcripts import (
    GeneratedTranscript,
    copy_transcript,
    ledger_of,
    pseudo_random_text,
    spent_figures,
    split_transcript,
    temporary_home,
    transcripts,
)
from tests.account.ledger_cases import CASES, homes
from tests.account.reference_ledger import compute_reference, is_low_entropy

import threadline
from threadline.account import KEY_DESCRIPTIONS, load_rates, with_origin
from threadline.account.charges import compute_charges
from threadline.find import look
from threadline.model.homes import Transcript
from threadline.model.ledger import sum_fields
from threadline.parse import LineNumbers, read_sightings


def _transcripts(case: str) -> list[Transcript]:
    return [transcript for path in homes(case) for transcript in look(path).transcripts]


@pytest.mark.slow
@given(transcripts(), st.randoms(use_true_random=False))
def test_folder_names_and_order_change_nothing(originals: list[GeneratedTranscript], random: object) -> None:
    """Transcripts may be in any folder and listed in any order."""
    folders = [f"-work-{pseudo_random_text(random, at, length=6)}" for at in range(len(originals))]
    moved = [replace(transcript, folder=folder) for transcript, folder in zip(originals, folders, strict=True)]
    assert sum_fields(ledger_of(moved).total) == sum_fields(ledger_of(originals).total)


@given(transcripts(), st.data())
def test_duplicate_transcripts_change_nothing(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """A second copy of a transcript in another folder adds nothing."""
    chosen = data.draw(st.lists(st.sampled_from(originals), min_size=1, max_size=3))
    copies = [replace(transcript, folder=f"-copy-{at}") for at, transcript in enumerate(chosen)]
    assert sum_fields(ledger_of([*originals, *copies]).total) == sum_fields(ledger_of(originals).total)


@given(transcripts(), st.data())
def test_splitting_transcripts_changes_nothing(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """The rows of a transcript may be in several files, split anywhere."""
    places = st.lists(st.integers(0, 12), max_size=3)
    pieces = [piece for transcript in originals for piece in split_transcript(transcript, data.draw(places))]
    assert spent_figures(pieces) == spent_figures(originals)


@pytest.mark.slow
@given(transcripts(), st.data())
def test_copies_in_another_session_change_nothing(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """Rows that resuming and forking copy are recognised by their uuids."""
    chosen = data.draw(st.lists(st.sampled_from(originals), min_size=1, max_size=3))
    copies = [copy_transcript(transcript, at, forked=data.draw(st.booleans())) for at, transcript in enumerate(chosen)]
    assert spent_figures([*originals, *copies]) == spent_figures(originals)


@given(transcripts(), st.data())
def test_copies_with_new_uuids_change_nothing_if_ids_are_unique(
    originals: list[GeneratedTranscript], data: st.DataObject
) -> None:
    """A unique id identifies a message as well as a uuid does."""
    unique = [
        replace(transcript, rows=tuple(row for row in transcript.rows if not is_low_entropy(row["message"]["id"])))
        for transcript in originals
    ]
    chosen = data.draw(st.lists(st.sampled_from(unique), min_size=1, max_size=3))
    copies = [
        copy_transcript(transcript, at, forked=data.draw(st.booleans()), new_uuids=True)
        for at, transcript in enumerate(chosen)
    ]
    assert spent_figures([*unique, *copies]) == spent_figures(unique)


@pytest.mark.slow
@given(transcripts(), st.data())
def test_split_copies_change_nothing(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """Splitting and copying can be combined."""
    places = st.lists(st.integers(0, 12), max_size=2)
    chosen = data.draw(st.lists(st.sampled_from(originals), min_size=1, max_size=3))
    copies = [copy_transcript(transcript, at, forked=False) for at, transcript in enumerate(chosen)]
    assert spent_figures(
        piece for transcript in [*originals, *copies] for piece in split_transcript(transcript, data.draw(places))
    ) == spent_figures(originals)


@given(transcripts())
def test_adding_a_transcript_removes_no_charge(originals: list[GeneratedTranscript]) -> None:
    """It may only add charges."""
    numbers = [ledger_of(originals[:size]).total.charges for size in range(1, len(originals) + 1)]
    assert numbers == sorted(numbers)


@given(transcripts(), st.data())
def test_every_report_sums_to_the_total(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """Grouped by any keys in any order, the rows add up to the total, and so do the charges."""
    ledger = ledger_of(originals)
    keys = data.draw(st.lists(st.sampled_from(sorted(KEY_DESCRIPTIONS)), unique=True, max_size=4))
    rows = ledger.by(*keys)
    assert rows.total == ledger.total
    assert sum((charge.amount or Decimal(0) for charge in ledger), Decimal(0)) == (ledger.total.amount or 0)
    for depth in range(1, len(keys)):
        assert sum(row.charges for row in rows.subtotals(depth)) == ledger.total.charges


@given(transcripts(), st.data())
def test_every_row_belongs_to_one_charge(originals: list[GeneratedTranscript], data: st.DataObject) -> None:
    """Each line that reports a message is counted or set aside exactly once, by exactly one charge."""
    chosen = data.draw(st.lists(st.sampled_from(originals), max_size=2))
    copies = [copy_transcript(transcript, at, forked=False) for at, transcript in enumerate(chosen)]
    all_transcripts = {transcript.name: transcript for transcript in [*originals, *copies]}.values()
    with temporary_home(all_transcripts) as path:
        places = Counter(
            (place.transcript, place.line)
            for charge in threadline.ledger(path, jobs=1)
            if not charge.part
            for place in (charge.place, *(uncounted.place for uncounted in charge.set_aside))
        )
        lines = (
            (f"{path.resolve()}/projects/{transcript.name}", at)
            for transcript in all_transcripts
            for at in range(1, len(transcript.rows) + 1)
        )
        expected = Counter(lines)
    assert places == expected


@given(transcripts(at_odds=False))
def test_matches_the_reference_implementation(originals: list[GeneratedTranscript]) -> None:
    """A plain program that compares every row with every other has the same figures."""
    with temporary_home(originals) as path:
        reference = compute_reference(sorted(path.rglob("*.jsonl")))
    total = ledger_of(originals).total
    assert (total.charges, total.input, total.output) == (reference.charges, reference.input, reference.output)
    assert (total.cache_write, total.cache_write_1h) == (reference.cache_write, reference.cache_write_1h)
    assert (total.cache_read, total.web_searches) == (reference.cache_read, reference.web_searches)
    assert (total.amount or 0) == reference.amount


@pytest.mark.parametrize("case", [case for case in CASES if 1 < len(_transcripts(case)) < 5])
def test_order_of_reading_changes_nothing(case: str) -> None:
    """Workers may return sightings in any order."""
    answers = set()
    for order in permutations(_transcripts(case)):
        readings = (
            (read_sightings(transcript), transcript, "p", LineNumbers(str(transcript.path))) for transcript in order
        )
        sightings = [sighting for parts in readings for sighting in with_origin(*parts)]
        answers.add(
            frozenset(
                (charge.place, charge.session, charge.output, charge.amount)
                for charge in compute_charges(sightings, load_rates())
            )
        )
    assert len(answers) == 1
