"""Differences between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.stores import HERE, THERE, keep_home, lines, session_id, transcript_path, write_home

from threadline.errors import NotFound
from threadline.keep import Catalogue, Store, list_differences, list_runs, select_runs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep with four runs, each of which found something."""
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {transcript_path(number): lines(number, 4) for number in (1, 2, 3)})
    keep_home(store, home)
    write_home(
        home,
        {
            transcript_path(1): lines(1, 4) + lines(8, 2),
            f"todos/{session_id(2)}-agent-x.json": b"[]",
            "history.jsonl": b"a\n",
        },
    )
    keep_home(store, home)
    (home / transcript_path(3)).unlink()
    write_home(home, {transcript_path(2): lines(9, 2), transcript_path(4): lines(4, 1)})
    keep_home(store, home)
    (home / transcript_path(4)).unlink()
    write_home(home, {transcript_path(3): lines(3, 4)})
    keep_home(store, home)
    return store


def differences(store: Store, after: int, until: int) -> list[tuple[str, str, int]]:
    """The change, session or path, and bytes of each difference."""
    rows = list_differences(Catalogue(store), HERE.id, after, until)
    return [(row.change, row.session or row.path, row.bytes) for row in rows]


def test_differences_between_consecutive_runs(store: Store) -> None:
    """New, grown, changed and gone, also if only a file next to the transcript changed."""
    grown = len(lines(8, 2))
    assert differences(store, 0, 1) == [("new", session_id(number), len(lines(number, 4))) for number in (1, 2, 3)]
    assert differences(store, 1, 2) == [
        ("new", "history.jsonl", 2),
        ("grown", session_id(1), grown),
        ("changed", session_id(2), 2),
    ]
    assert differences(store, 2, 3) == [
        ("new", session_id(4), len(lines(4, 1))),
        ("changed", session_id(2), len(lines(9, 2))),
        ("gone", session_id(3), 0),
    ]


def test_differences_over_several_runs(store: Store) -> None:
    """What came and went is gone. What went and came back unchanged is listed as changed."""
    changes = {name: change for change, name, _size in differences(store, 1, 4)}
    assert changes == {
        "history.jsonl": "new",
        session_id(1): "grown",
        session_id(2): "changed",
        session_id(3): "changed",
        session_id(4): "gone",
    }


def test_selects_the_runs_to_compare(store: Store) -> None:
    """By default the last two. One run is compared with the last, and two with each other in any order."""
    catalogue = Catalogue(store)
    assert [run.number for run in list_runs(catalogue, HERE.id)] == [1, 2, 3, 4]
    assert [run.files for run in list_runs(catalogue, HERE.id)] == [3, 5, 5, 5]
    for numbers, expected in (((), (3, 4)), ((2,), (2, 4)), ((0,), (0, 4)), ((3, 1), (1, 3)), ((1, 3), (1, 3))):
        assert select_runs(catalogue, HERE.id, numbers) == expected
    with pytest.raises(NotFound, match=r"There is no run 9\. The runs are 1 to 4"):
        select_runs(catalogue, HERE.id, (9,))
    with pytest.raises(NotFound, match="no run of this machine"):
        select_runs(catalogue, THERE.id, ())
