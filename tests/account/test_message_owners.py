"""Tests of who owns a shared message: a fork and its original never own each other's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tools.demo import write

import threadline
from threadline.model.places import SessionId


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_original_session_owns_shared_messages(tmp_path: Path, seed: int) -> None:
    """Of two sessions with the same messages, the one that the other continues owns all of them."""
    home = tmp_path / "home"
    write(home, seed=seed)
    owners: Counter[tuple[str, str]] = Counter()
    for charge in threadline.ledger(home):
        for sighting in charge.sightings:
            if sighting.origin.session != charge.session:
                owners[str(charge.session), str(sighting.origin.session)] += 1
    assert owners
    assert not {(copy, owner) for owner, copy in owners} & set(owners)
    paths = {path.stem: path for path in home.glob("projects/*/*.jsonl")}
    for owner, copy in owners:
        continued = {
            continuation.session: continuation.forward for continuation in threadline.read(paths[owner]).continuations
        }
        assert continued[SessionId(copy)]


def test_first_of_equal_homes_owns_all_messages(tmp_path: Path) -> None:
    """A copy of a home owns nothing, whatever the order of their paths."""
    write(tmp_path / "b", seed=1, megabytes=1)
    (tmp_path / "b").joinpath("projects").rename(tmp_path / "kept")
    for name in ("b", "a"):
        target = tmp_path / name / "projects"
        for path in (tmp_path / "kept").rglob("*.jsonl"):
            copy = target / path.relative_to(tmp_path / "kept")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    rows = threadline.ledger([tmp_path / "b", tmp_path / "a"]).by("home")
    assert [Path(row.keys["home"]).name for row in rows] == ["b"]
