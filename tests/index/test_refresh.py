"""A refresh reads what changed and nothing else, and the index is then the one that would be made anew."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.index.content import anew, content

import threadline
from threadline.errors import IndexBusy, Unreadable
from threadline.find import homes
from threadline.index import Index, RefreshResult, cache_folder, index_path, open_read_only, refresh_index
from threadline.index.store import open_for_writing


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    """A copy of a small home."""
    return Path(shutil.copytree(small_home, tmp_path / "home"))


def _refreshed(home: Path, index: Path) -> RefreshResult:
    return refresh_index(index, homes(home))


def test_the_index_has_every_entry_at_its_place(home: Path, tmp_path: Path) -> None:
    """Each entry of each transcript is a row, and its offset and length give its bytes."""
    index = tmp_path / "index.sqlite"
    done = _refreshed(home, index)
    found = threadline.look(home)
    told = [entry for transcript in found.transcripts for entry in threadline.entries(transcript.path)]
    whole = [entry for entry in told if entry.raw.endswith(b"\n") or not entry.problems]
    assert done.entries == len(whole)
    told_of = {(e.place.transcript, e.line.number, e.line.offset, len(e.raw), e.kind) for e in whole}
    assert {row[1:6] for row in content(index)["said"]} == told_of


def test_the_indexs_charges_are_the_ledgers(home: Path, tmp_path: Path) -> None:
    """Every charge, with its exact amount."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    ledger = threadline.ledger(home)
    with closing(open_read_only(index)) as connection:
        told = connection.execute("SELECT message, session, project, output, amount FROM charges").fetchall()
    assert sorted(told) == sorted(
        (one.message, one.session, one.project, one.output, format(one.amount, "f").rstrip("0").rstrip("."))
        if one.amount is not None
        else (one.message, one.session, one.project, one.output, None)
        for one in ledger
    )


def test_a_refresh_with_nothing_changed_reads_nothing(home: Path, tmp_path: Path) -> None:
    """Not even when files were written to just before: their ends are compared, and then they are known."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    before = content(index)
    assert _refreshed(home, index) == RefreshResult()
    assert content(index) == before


def _append(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[-1] if lines[-1].endswith(b"\n") else b"\n" + lines[0])


def _tear(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"type":"user","uuid":"torn')


def _truncate(path: Path) -> None:
    data = path.read_bytes()
    os.truncate(path, data.rfind(b"\n", 0, len(data) - 1) + 1)


def _replace(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    other = path.with_name("new.tmp")
    other.write_bytes(b"".join(lines[: len(lines) // 2]))
    other.replace(path)


def _delete(path: Path) -> None:
    path.unlink()


def _rename(path: Path) -> None:
    path.rename(path.with_name(f"99{path.name[2:]}"))


def _rewrite(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"the", b"teh"))


CHANGES = [_append, _tear, _truncate, _replace, _delete, _rename, _rewrite]


def _some(home: Path) -> Iterator[Path]:
    """A main transcript that others copy from, the biggest one, and an agent's."""
    mains = sorted(home.glob("projects/*/*.jsonl"), key=lambda path: -path.stat().st_size)
    yield mains[0]
    yield mains[len(mains) // 2]
    yield max(home.glob("projects/*/*/subagents/*.jsonl"), key=lambda path: path.stat().st_size)


@pytest.mark.sample(3)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_after_any_change_the_index_is_as_if_made_anew(home: Path, tmp_path: Path, change: Any) -> None:
    """Appends, torn lines, truncation, replacement, deletion, renaming, rewriting."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    for path in list(_some(home)):
        change(path)
        _refreshed(home, index)
        assert content(index) == anew(home, tmp_path)


def test_an_appended_line_costs_that_line(home: Path, tmp_path: Path) -> None:
    """Only what was appended is read, however long the transcript."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    path = next(_some(home))
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[2])
    done = _refreshed(home, index)
    assert (done.transcripts, done.entries, done.bytes) == (1, 1, len(lines[2]))


def test_one_writes_and_others_are_told(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second refresh at the same time says that it must wait; readers go on."""
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.05)
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    with open_for_writing(index) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexBusy, match="Another threadline is refreshing"):
            _refreshed(home, index)
        assert content(index)["said"]


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    """What is no index is not taken for one."""
    index = tmp_path / "index.sqlite"
    index.write_bytes(b"no database at all, but some text" * 300)
    with pytest.raises(Unreadable, match="index rebuild"):
        open_read_only(index)
    with pytest.raises(Unreadable, match="index rebuild"):
        refresh_index(index, [])


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE transcripts",
        "DROP TABLE stale",
        "DROP TABLE meta",
        "DELETE FROM meta",
        "UPDATE meta SET value = 'x' WHERE name = 'next_entry'",
    ],
)
def test_an_index_that_lacks_something_is_left_alone(home: Path, tmp_path: Path, damage: str) -> None:
    """Whoever needs it is told; whoever only wants to be quick reads the transcripts instead."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    with closing(sqlite3.connect(index)) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(Unreadable, match="index rebuild"):
        _refreshed(home, index)
    with pytest.raises(Unreadable, match="index rebuild"):
        Index.open_fresh(index, homes(home))
    assert Index.open_fresh(index, homes(home), max_bytes=1 << 30) is None


def test_tables_that_are_no_text_are_told(home: Path, tmp_path: Path) -> None:
    """SQLite quotes a damaged definition in its error, and that cannot be read either."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    written = index.read_bytes()
    index.write_bytes(written.replace(b"CREATE TABLE meta(", b"CREATE TABLE \xba\xff((("))
    with pytest.raises(Unreadable, match="index rebuild"):
        open_read_only(index)
    with pytest.raises(Unreadable, match="index rebuild"):
        _refreshed(home, index)


def test_an_index_that_could_not_be_made_leaves_nothing(home: Path, tmp_path: Path) -> None:
    """Neither a full disk nor Ctrl-C leaves half an index behind."""
    index = tmp_path / "cache" / "index.sqlite"

    def stopped(_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refresh_index(index, homes(home), progress=stopped)
    assert [one.name for one in index.parent.iterdir()] == ["index.sqlite.lock"]


def test_an_index_of_another_owner_is_told(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its mode may not be changed, it is not written; whoever only wants to be quick does without."""
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    with next(home.glob("projects/*/*.jsonl")).open("ab") as file:
        file.write(b'{"type": "user"}\n')

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(Unreadable, match="Operation not permitted"):
        _refreshed(home, index)
    assert Index.open_fresh(index, homes(home), max_bytes=1 << 30) is None


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="other folders are the platform's there")
def test_a_relative_folder_for_caches_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME is to be absolute; else it is as if it were not set."""
    monkeypatch.delenv("THREADLINE_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for said, meant in (("x/y", tmp_path / ".cache"), ("", tmp_path / ".cache"), (str(tmp_path / "z"), tmp_path / "z")):
        monkeypatch.setenv("XDG_CACHE_HOME", said)
        assert cache_folder() == meant / "threadline"


def test_an_index_is_private_and_has_its_homes_name(home: Path, tmp_path: Path) -> None:
    """Nobody else may read it; the same homes have the same index, in whatever order."""
    index = index_path([home, "/other"], tmp_path / "cache")
    assert index == index_path(["/other", home], tmp_path / "cache")
    _refreshed(home, index)
    assert index.stat().st_mode & 0o777 == 0o600
    assert index.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(sqlite3.OperationalError, match="readonly"), closing(open_read_only(index)) as connection:
        connection.execute("DELETE FROM entries")


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_transcript_whose_name_is_no_text_is_indexed(home: Path, tmp_path: Path) -> None:
    """A name keeps its bytes, and the file is found by it."""
    source = next(home.glob("projects/*/*.jsonl"))
    odd = source.with_name(os.fsdecode(b"odd-\xff.jsonl"))
    odd.write_bytes(source.read_bytes())
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    assert _refreshed(home, index) == RefreshResult()
    with closing(open_read_only(index)) as connection:
        paths = [os.fsdecode(path) for (path,) in connection.execute("SELECT path FROM transcripts")]
    assert str(odd) in paths


def test_an_index_of_an_older_schema_goes_when_its_successor_is_whole(home: Path, tmp_path: Path) -> None:
    """The file of an older version is removed with what lies beside it; other homes' and newer ones stay."""
    index = tmp_path / "index-0123456789ab-v12.sqlite"
    others = {"index-0123456789ab-v13.sqlite", "index-ba9876543210-v1.sqlite", "index-0123456789ab-v2.txt"}
    older = {"index-0123456789ab-v2.sqlite", "index-0123456789ab-v2.sqlite-wal", "index-0123456789ab-v11.sqlite.lock"}
    for name in others | older:
        (tmp_path / name).touch()
    _refreshed(home, index)
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith("index-")}
    assert left == others | {index.name, f"{index.name}.lock"}


def test_a_whole_line_without_an_end_is_read_and_goes_on_when_there_is_more(home: Path, tmp_path: Path) -> None:
    """It is found at once; an end that comes later adds nothing, and another ending makes it be read anew."""
    path = max(home.rglob("*.jsonl"), key=lambda one: one.stat().st_size)
    whole = b"".join(line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n"))
    index = tmp_path / "index.sqlite"
    begun = whole.rfind(b"\n", 0, len(whole) - 1) + 1
    for end in (len(whole) - 1, len(whole), len(whole) - 1, begun, begun + 40, len(whole) - 1):
        path.write_bytes(whole[:end])
        _refreshed(home, index)
        assert content(index) == anew(home, tmp_path)
    with path.open("ab") as file:
        file.write(whole[begun:])  # glued to the line that had no end
    _refreshed(home, index)
    assert content(index) == anew(home, tmp_path)
