"""Many small pushes: small files are merged, metadata stays bounded, and a build reads what changed, not the lake."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.lake.machines import push, session_id, write_fork, write_session
from tests.lake.test_build import assert_equal_usage, rows_of, snapshot

from threadline.storage import Bucket

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import TABLES, Catalogue, build_lake, compact_lake, read_commit, read_usage, remove_orphans


@pytest.fixture
def lake(tmp_path: Path) -> Bucket:
    """An empty lake in a folder."""
    return Bucket(str(tmp_path / "lake"))


def count_objects(bucket: Bucket, prefix: str) -> int:
    """How many objects there are below a path."""
    return sum(1 for _ in bucket.list(prefix))


@pytest.mark.slow
def test_objects_stay_bounded_after_many_pushes(tmp_path: Path, lake: Bucket) -> None:
    """After fifty pushes of a session that grows, tables have few files, few snapshots and the rows of one build."""
    home, once = tmp_path / "home", Bucket(str(tmp_path / "once"))
    write_session(home, 2)
    counts = []
    for turns in range(1, 51):
        write_session(home, 1, turns=turns)
        write_session(home, 100 + turns, turns=1, text=f"day {turns}")
        push(lake, [home])
        build_lake(lake, jobs=1)
        if turns in {25, 50}:
            remove_orphans(lake, older_than=0)
            counts.append(count_objects(lake, "silver"))
    days = 52
    assert counts[1] < counts[0] + 25 * (len(TABLES) + 2), "objects grow with days, not with builds"
    catalogue = Catalogue(lake, read_commit(lake))
    assert all(len(catalogue.table(table).snapshots()) <= 42 for table in TABLES)
    assert all(len(catalogue.data_paths(table)) <= days + 8 for table in TABLES)
    push(once, [home])
    build_lake(once, jobs=1)
    assert_equal_usage(lake, [home])
    for table in ("entries", "calls", "prompts", "sessions", "charges", "texts"):
        grown, fresh = ([{**row, "batch": 0} for row in rows_of(bucket, table)] for bucket in (lake, once))
        assert Counter(map(repr, grown)) == Counter(map(repr, fresh)), table


@pytest.mark.slow
def test_compaction_changes_files_but_no_rows(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of one day are merged and rows stay; a second compaction does nothing."""
    home = tmp_path / "home"
    monkeypatch.setattr("threadline.lake.build.compact_lake", lambda _bucket, _days: 0)
    for number in range(1, 10):
        # All on one day: the text differs, and so do the ids.
        path = write_session(home, number)
        text = path.read_text()
        path.write_text(text.replace(text.partition('"timestamp":"')[2][:10], "2026-05-05"))
        push(lake, [home])
        build_lake(lake, jobs=1)
    monkeypatch.undo()
    before = snapshot(lake)
    assert len(Catalogue(lake, read_commit(lake)).data_paths("entries")) == 9
    assert compact_lake(lake) >= 5
    assert len(Catalogue(lake, read_commit(lake)).data_paths("entries")) == 1
    assert snapshot(lake) == before
    assert compact_lake(lake) == 0
    assert remove_orphans(lake, older_than=0) > 0
    assert snapshot(lake) == before
    assert_equal_usage(lake, [home])


@pytest.mark.slow
def test_compaction_gives_way_to_a_build(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a build publishes while files are merged, the build counts, and the merged files are deleted."""
    home = tmp_path / "home"
    monkeypatch.setattr("threadline.lake.iceberg._MAX_SMALL_FILES", 100)
    for turns in range(1, 4):
        write_session(home, turns, text="same day")
        push(lake, [home])
        build_lake(lake, jobs=1)
    monkeypatch.setattr("threadline.lake.iceberg._MAX_SMALL_FILES", 1)
    publish = Catalogue.publish

    def publish_late(catalogue: Catalogue, *arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        write_session(home, 9)
        push(lake, [home])
        build_lake(lake, jobs=1)
        return publish(catalogue, *arguments, **options)

    monkeypatch.setattr(Catalogue, "publish", publish_late)
    assert compact_lake(lake) == 0
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(number) for number in (1, 2, 3, 9)}
    paths = {path for table in TABLES for path in Catalogue(lake, read_commit(lake)).data_paths(table)}
    assert {entry.path for entry in lake.list("silver") if entry.path.endswith(".parquet")} == paths


class Work:
    """Counts what a build and a push read and write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read_files: Counter[str] = Counter()
        self.objects: Counter[str] = Counter()
        read_file, get, put, create = Catalogue._read_file, Bucket.get, Bucket.put, Bucket.create

        def count_file(catalogue: Catalogue, name: str, *arguments: Any) -> Any:
            self.read_files[name] += 1
            return read_file(catalogue, name, *arguments)

        def count_get(bucket: Bucket, path: str) -> bytes:
            self.objects["get"] += 1
            self.objects["bytes"] += len(data := get(bucket, path))
            return data

        def count_put(bucket: Bucket, path: str, data: bytes) -> None:
            self.objects["put"] += 1
            put(bucket, path, data)

        def count_create(bucket: Bucket, path: str, data: bytes) -> bool:
            self.objects["put"] += 1
            return create(bucket, path, data)

        monkeypatch.setattr(Catalogue, "_read_file", count_file)
        monkeypatch.setattr(Bucket, "get", count_get)
        monkeypatch.setattr(Bucket, "put", count_put)
        monkeypatch.setattr(Bucket, "create", count_create)


@pytest.mark.slow
@pytest.mark.parametrize("grows", [False, True], ids=["new session", "session that grew"])
def test_a_session_costs_the_same_in_any_lake(tmp_path: Path, grows: bool) -> None:
    """One session is pushed and built with the same work in a lake of 3 days as in one of 30: only keys are read."""
    works = []
    for days in (3, 30):
        home, lake = tmp_path / f"home-{days}", Bucket(str(tmp_path / f"lake-{days}"))
        for number in range(1, days + 1):
            write_session(home, number)
        push(lake, [home])
        build_lake(lake, jobs=1)
        write_session(home, 2 if grows else 200, turns=4)
        with pytest.MonkeyPatch.context() as patch:
            work = Work(patch)
            push(lake, [home])
            assert build_lake(lake, jobs=1).sessions == 1
        works.append(work)
        assert_equal_usage(lake, [home], ["session", "day"])
    small, large = works
    keys = {work.read_files.pop("sightings") for work in works}
    assert max(keys) <= 30 + 8
    assert large.read_files == small.read_files
    assert {name: large.objects[name] for name in ("get", "put")} == {
        name: small.objects[name] for name in ("get", "put")
    }
    assert large.objects["bytes"] < small.objects["bytes"] + 27 * 400  # the list of the first batch is longer


@pytest.mark.slow
def test_a_fork_of_an_old_session_is_found_by_its_keys(tmp_path: Path, lake: Bucket) -> None:
    """A fork that is pushed weeks later changes the charges of the days of its original, and of no other."""
    home, other = tmp_path / "home", tmp_path / "other"
    originals = [write_session(home, number) for number in range(1, 12)]
    push(lake, [home], 1)
    build_lake(lake, jobs=1)
    write_fork(other, originals[4])
    push(lake, [other], 2)
    with pytest.MonkeyPatch.context() as patch:
        work = Work(patch)
        build_lake(lake, jobs=1)
    assert work.read_files["charges"] <= 4, "to remove and to compare those of two days out of twelve"
    assert work.read_files["entries"] == 0
    assert_equal_usage(lake, [home, other])
    usage = read_usage(lake)
    assert len(usage.ledger.charges) == len(rows_of(lake, "charges"))
