"""The ranking puts the intended results first, as judged by a set of queries."""

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
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """The outcome of each judged query on the written sessions and the noise around them."""
    return list(outcomes(Home(tmp_path_factory.mktemp("relevance") / "home")))


def test_intended_results_come_first(results: list[Outcome]) -> None:
    """95 % of the intended results are among the first ten hits, and the first of them is the first or second hit."""
    measures = figures(results)
    missed = "; ".join(
        f"{outcome.query.text} ({outcome.recall:.2f}, {outcome.reciprocal:.2f})" for outcome in worst(results)[:20]
    )
    measured = f"recall at ten {measures['all']['recall_at_10']}, MRR {measures['all']['mrr']}; worst: {missed}"
    assert measures["all"]["recall_at_10"] >= RECALL, measured
    assert measures["all"]["mrr"] >= MRR, measured


def test_every_kind_of_query_has_good_recall(results: list[Outcome]) -> None:
    """Each kind of query finds nine tenths of the intended results."""
    measures = figures(results)
    assert set(measures) == {*KINDS, "all"}
    assert {kind: measure for kind, measure in measures.items() if measure["recall_at_10"] < 0.9} == {}


def test_the_judged_queries_are_complete() -> None:
    """There are at least 120 distinct queries, and every session that one of them means exists."""
    judged = list(queries())
    assert len(judged) >= 120
    assert len({query.text for query in judged}) == len(judged)
    names = {name.partition(":")[0] for query in judged for choice in query.expected for name in choice.split("|")}
    assert names - {"task"} <= scripts().keys()
    assert all(query.expected and query.reason for query in judged)


def test_hits_that_lack_words_say_so(results: list[Outcome]) -> None:
    """If not all hits have all words in one entry, there is a note."""
    notes = {outcome.query.text: outcome.note for outcome in results}
    assert notes["newsletter queue password reset"] is not None
    assert notes["reply:race"] is None


def test_the_measure_penalises_bad_results(tmp_path: Path) -> None:
    """A query that finds nothing intended counts as zero and lowers the mean."""
    measured = list(outcomes(Home(tmp_path / "home", noise=0)))
    bad = [outcome._replace(recall=0.0, reciprocal=0.0) for outcome in measured[:10]]
    assert figures(bad)["all"] == {"queries": 10, "recall_at_10": 0.0, "mrr": 0.0}
    assert figures([*bad, *measured[:10]])["all"]["mrr"] == pytest.approx(figures(measured[:10])["all"]["mrr"] / 2)
