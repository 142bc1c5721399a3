"""The ranking puts what a person meant first, as far as the judged queries say."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.relevance import Home, Outcome, figures, outcomes, queries, worst
from bench.relevance_sessions import scripts

pytestmark = pytest.mark.slow

RECALL = 0.95
MRR = 0.80
KINDS = {"phrase", "words", "identifier", "error", "path", "cjk", "misspelling", "question", "filter"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """What the judged queries find in the written sessions and the noise around them."""
    return list(outcomes(Home(tmp_path_factory.mktemp("relevance") / "home")))


def test_what_is_meant_is_found_and_comes_first(found: list[Outcome]) -> None:
    """Of what is meant, 95 % is among the first ten hits, and the first hit that is meant is the first or second."""
    told = figures(found)
    missed = "; ".join(f"{one.judged.text} ({one.recall:.2f}, {one.reciprocal:.2f})" for one in worst(found)[:20])
    measured = f"recall at ten {told['all']['recall_at_10']}, MRR {told['all']['mrr']}; worst: {missed}"
    assert told["all"]["recall_at_10"] >= RECALL, measured
    assert told["all"]["mrr"] >= MRR, measured


def test_no_kind_of_query_is_bad(found: list[Outcome]) -> None:
    """Each kind by itself finds nine tenths of what is meant."""
    told = figures(found)
    assert set(told) == {*KINDS, "all"}
    assert {kind: one for kind, one in told.items() if one["recall_at_10"] < 0.9} == {}


def test_the_set_is_large_and_each_judgment_names_what_there_is() -> None:
    """At least 120 queries, no query twice, and every session that one means is written down."""
    judged = list(queries())
    assert len(judged) >= 120
    assert len({one.text for one in judged}) == len(judged)
    names = {name.partition(":")[0] for one in judged for meant in one.meant for name in meant.split("|")}
    assert names - {"task"} <= scripts().keys()
    assert all(one.meant and one.why for one in judged)


def test_hits_that_lack_words_say_so(found: list[Outcome]) -> None:
    """Where not all hits have all words in one entry, a note tells it."""
    notes = {outcome.judged.text: outcome.note for outcome in found}
    assert notes["newsletter queue password reset"] is not None
    assert notes["reply:race"] is None


def test_a_perfect_answer_is_told_from_a_bad_one(tmp_path: Path) -> None:
    """The measure itself: a query that finds nothing that is meant counts nothing, and lowers the mean."""
    told = list(outcomes(Home(tmp_path / "home", noise=0)))
    bad = [one._replace(recall=0.0, reciprocal=0.0) for one in told[:10]]
    assert figures(bad)["all"] == {"queries": 10, "recall_at_10": 0.0, "mrr": 0.0}
    assert figures([*bad, *told[:10]])["all"]["mrr"] == pytest.approx(figures(told[:10])["all"]["mrr"] / 2)
