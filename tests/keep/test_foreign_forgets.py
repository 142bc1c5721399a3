"""What another keep has forgotten is forgotten here only after it was accepted; what a run leaves out is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.keep.stores import (
    HERE,
    THERE,
    all_bytes,
    is_clean,
    keep_home,
    kept_versions,
    lines,
    session_id,
    transcript_path,
    write_home,
)

from threadline.find import homes
from threadline.keep import Catalogue, Store, accept_forgotten, forget_session, merge_keeps, read_status
from threadline.keep.manifest import EndRow, FileRow, ForgetRow, RunRow

MEMORY = "projects/-work/memory/MEMORY.md"
MOMENT = "2026-01-05T09:00:00Z"


def fresh(store: Store) -> Catalogue:
    """A catalogue that reads everything."""
    return Catalogue(store, trust_cache=False)


def put_run(store: Store, *rows: ForgetRow | FileRow, held: tuple[str, ...] = (), number: int = 1) -> str:
    """Write a manifest as a hostile machine would, and return its hash."""
    run = RunRow(1, "evil_9", "evil", number, None, MOMENT, (), held)
    return store.put_run([run, *rows, EndRow(MOMENT, 0, 0)])[1].hash


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """A keep that has forgotten a session and a memory, which it once had."""
    home = write_home(
        tmp_path / "there", {transcript_path(1): lines(1, 50), transcript_path(2): lines(2, 50), MEMORY: b"# notes\n"}
    )
    other = Store.make(tmp_path / "other")
    keep_home(other, home, THERE)
    catalogue = fresh(other)
    memory = [version for version in catalogue.newest() if version.path == MEMORY]
    forget_session(catalogue, THERE, session_id(1), memory, "hostile")
    return other


@pytest.fixture
def store(tmp_path: Path, other: Store) -> Store:
    """A new keep into which the other one was merged."""
    store = Store.make(tmp_path / "keep")
    merged = merge_keeps(fresh(store), HERE, [other])
    assert (merged.forgotten, merged.refused, merged.pending) == ((), (), (session_id(1),))
    return store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the session and the memory that the other keep has forgotten."""
    return write_home(tmp_path / "home", {transcript_path(1): lines(1, 50), MEMORY: b"# notes\n"})


def test_forgotten_elsewhere_is_still_kept(store: Store, home: Path) -> None:
    """A session and a memory that only another keep has forgotten are kept, and the keep says what is pending."""
    result = keep_home(store, home)
    assert (result.new, result.left_out) == (2, ())
    status = read_status(fresh(store), homes(home), HERE.id)
    assert (status.at_risk, status.left_out, status.forgotten) == ((), (), 0)
    assert [(row.session, row.reason, MEMORY in row.paths) for row in status.pending] == [
        (session_id(1), "hostile", True)
    ]
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 50)]
    assert transcript_path(2) in kept_versions(store)
    assert is_clean(store)


def test_accepting_forgets(store: Store, home: Path) -> None:
    """After it is accepted, the session is deleted here, is not kept again, and both are reported."""
    keep_home(store, home)
    catalogue = fresh(store)
    accept_forgotten(catalogue, HERE, catalogue.pending)
    assert catalogue.pending == []
    assert set(kept_versions(store)) == {transcript_path(2)}
    assert lines(1, 50)[100:200] not in all_bytes(store)
    result = keep_home(store, home)
    assert [(os.path.basename(file.path), file.reason, file.session) for file in result.left_out] == [  # noqa: PTH119
        (f"{session_id(1)}.jsonl", "forgotten", session_id(1)),
        ("MEMORY.md", "forgotten", session_id(1)),
    ]
    assert read_status(fresh(store), homes(home), HERE.id).left_out == result.left_out
    assert is_clean(store)


def test_accepting_while_merging(tmp_path: Path, other: Store, home: Path) -> None:
    """`--accept-forgotten` forgets at once, whether the session is kept here or not."""
    store = Store.make(tmp_path / "keep")
    merged = merge_keeps(fresh(store), HERE, [other], forgets=True)
    assert merged.pending == ()
    assert keep_home(store, home).new == 0


def test_merging_again_and_onwards(tmp_path: Path, store: Store, other: Store, home: Path) -> None:
    """Merging again changes nothing. A third keep gets the session, and has to accept the forgetting itself."""
    keep_home(store, home)
    before = kept_versions(store)
    assert merge_keeps(fresh(store), HERE, [other]).runs == 0
    assert kept_versions(store) == before
    third = Store.make(tmp_path / "third")
    merge_keeps(fresh(third), THERE, [store])
    assert kept_versions(third) == before
    assert [row.session for row in fresh(third).pending] == [session_id(1)]
    assert is_clean(third)


def test_late_run_of_the_other_keep(store: Store, other: Store, tmp_path: Path) -> None:
    """A run that another machine wrote before it learnt of the forgetting is imported later, and nothing is damaged."""
    put_run(other, FileRow("/h", transcript_path(1), 0o600, 0, 5, ("1" * 64,)), number=1)
    home = write_home(tmp_path / "third", {transcript_path(3): lines(3, 20)})
    keep_home(other, home, THERE)
    merged = merge_keeps(fresh(store), HERE, [other])
    assert merged.refused == ()
    assert set(kept_versions(store)) == {transcript_path(2), transcript_path(3)}
    assert is_clean(store)


def test_other_keep_cannot_undo_a_forgetting(tmp_path: Path, home: Path) -> None:
    """A merged manifest that claims to hold ours is held itself, in any order of merges."""
    store, other = Store.make(tmp_path / "keep"), Store.make(tmp_path / "other")
    keep_home(store, home)
    forget_session(fresh(store), HERE, session_id(1), [], "a wish")
    (ours,) = [m.hash for m in fresh(store).manifests if any(isinstance(row, ForgetRow) for row in m.rows)]
    first = put_run(other, held=(ours,))
    put_run(other, held=(first, ours), number=2)
    merge_keeps(fresh(store), HERE, [other])
    assert [row.session for row in fresh(store).forgotten.rows] == [session_id(1)]
    assert fresh(store).pending == []
    assert keep_home(store, home).left_out[0].reason == "forgotten"


def test_pending_rows_hide_nothing_of_a_third_keep(tmp_path: Path, store: Store) -> None:
    """A session that one keep has forgotten and another one has is imported from that one."""
    third = Store.make(tmp_path / "third")
    keep_home(third, write_home(tmp_path / "h3", {transcript_path(1): lines(1, 50), transcript_path(4): lines(4, 9)}))
    forget_session(fresh(third), HERE, session_id(4), [], "another")
    merge_keeps(fresh(store), THERE, [third])
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 50)]
    assert sorted(row.session for row in fresh(store).pending) == [session_id(1), session_id(4)]
    assert is_clean(store)


def test_older_stores_stay_as_they_are(tmp_path: Path, home: Path) -> None:
    """What was merged before origins were recorded still applies, and every run reports it."""
    store = Store.make(tmp_path / "keep")
    put_run(store, ForgetRow(session_id(1), "merged long ago", ()))
    result = keep_home(store, home)
    assert [(file.reason, file.message) for file in result.left_out] == [("forgotten", "forgotten: merged long ago")]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_links_and_special_files_are_left_out(tmp_path: Path, home: Path) -> None:
    """A link out of the home and a pipe are not stored, and both the run and the status say so."""
    (home / "projects/-work" / f"{session_id(5)}.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "elsewhere.jsonl").write_bytes(lines(5, 5))
    os.mkfifo(home / "projects/-work" / f"{session_id(6)}.jsonl")
    store = Store.make(tmp_path / "keep")
    result = keep_home(store, home)
    assert {(Path(file.path).stem, file.reason) for file in result.left_out} == {
        (session_id(5), "skipped"),
        (session_id(6), "skipped"),
    }
    assert {file.path for file in read_status(fresh(store), homes(home), HERE.id).left_out} == {
        file.path for file in result.left_out
    }


def test_status_sees_an_edit_that_keeps_size_and_mtime(tmp_path: Path, home: Path) -> None:
    """Another ctime alone is not at risk, but other content is."""
    store = Store.make(tmp_path / "keep")
    keep_home(store, home)
    path = home / transcript_path(1)
    path.chmod(0o600 if path.stat().st_mode & 0o077 else 0o640)
    assert read_status(fresh(store), homes(home), HERE.id).at_risk == ()
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"user", b"xxxx"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [risk.state for risk in read_status(fresh(store), homes(home), HERE.id).at_risk] == ["changed"]
    assert keep_home(store, home).changed == 1
