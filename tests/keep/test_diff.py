"""Differences between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.stores import HERE, THERE, home_with, kept, lines, session_id, transcript

from threadline.errors import NotFound
from threadline.keep import Catalogue, Store, list_differences, list_runs, select_runs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep that four runs have written, each of which found something."""
    store = Store.make(tmp_path / "keep")
    home = home_with(tmp_path / "home", {transcript(number): lines(number, 4) for number in (1, 2, 3)})
    kept(store, home)
    home_with(
        home,
        {
            transcript(1): lines(1, 4) + lines(8, 2),
            f"todos/{session_id(2)}-agent-x.json": b"[]",
            "history.jsonl": b"a\n",
        },
    )
    kept(store, home)
    (home / transcript(3)).unlink()
    home_with(home, {transcript(2): lines(9, 2), transcript(4): lines(4, 1)})
    kept(store, home)
    (home / transcript(4)).unlink()
    home_with(home, {transcript(3): lines(3, 4)})
    kept(store, home)
    return store


def _found(store: Store, after: int, until: int) -> list[tuple[str, str, int]]:
    found = list_differences(Catalogue(store), HERE.id, after, until)
    return [(one.change, one.session or one.path, one.bytes) for one in found]


def test_each_run_tells_what_it_found(store: Store) -> None:
    """New, grown by how much, changed, gone; of a session whose transcript is as it was, something beside it."""
    grown = len(lines(8, 2))
    assert _found(store, 0, 1) == [("new", session_id(number), len(lines(number, 4))) for number in (1, 2, 3)]
    assert _found(store, 1, 2) == [
        ("new", "history.jsonl", 2),
        ("grown", session_id(1), grown),
        ("changed", session_id(2), 2),
    ]
    assert _found(store, 2, 3) == [
        ("new", session_id(4), len(lines(4, 1))),
        ("changed", session_id(2), len(lines(9, 2))),
        ("gone", session_id(3), 0),
    ]


def test_over_several_runs_it_is_what_came_of_it_in_all(store: Store) -> None:
    """What came and went again is gone; what went and came back the same is no news but that it is there."""
    found = {name: change for change, name, _size in _found(store, 1, 4)}
    assert found == {
        "history.jsonl": "new",
        session_id(1): "grown",
        session_id(2): "changed",
        session_id(3): "changed",
        session_id(4): "gone",
    }


def test_which_runs_are_compared(store: Store) -> None:
    """Of none the last and the one before, of one that and the last, of two both, however they are ordered."""
    catalogue = Catalogue(store)
    assert [run.number for run in list_runs(catalogue, HERE.id)] == [1, 2, 3, 4]
    assert [run.files for run in list_runs(catalogue, HERE.id)] == [3, 5, 5, 5]
    for said, meant in (((), (3, 4)), ((2,), (2, 4)), ((0,), (0, 4)), ((3, 1), (1, 3)), ((1, 3), (1, 3))):
        assert select_runs(catalogue, HERE.id, said) == meant
    with pytest.raises(NotFound, match=r"There is no run 9\. The runs are 1 to 4"):
        select_runs(catalogue, HERE.id, (9,))
    with pytest.raises(NotFound, match="no run of this machine"):
        select_runs(catalogue, THERE.id, ())
