"""A refresh reads only what changed, and the index then equals a rebuilt one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.index.content import content, rebuilt_content
from tests.transcripts import SESSION, prompt, reply, transcript, write

import threadline
from threadline.errors import IndexBusy, Unreadable
from threadline.files import cache_folder
from threadline.find import homes
from threadline.index import Index, RefreshResult, index_path, open_read_only, refresh_index
from threadline.index.rows import state
from threadline.index.store import open_for_writing
from threadline.parse import EntryRun, entry_runs


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    """A copy of a small home."""
    return Path(shutil.copytree(small_home, tmp_path / "home"))


def _refresh(home: Path, index: Path) -> RefreshResult:
    return refresh_index(index, homes(home))


def test_the_index_has_every_entry_at_its_place(home: Path, tmp_path: Path) -> None:
    """Each entry of each transcript is a row, and its offset and length give its bytes."""
    index = tmp_path / "index.sqlite"
    result = _refresh(home, index)
    listing = threadline.look(home)
    entries = [entry for transcript in listing.transcripts for entry in threadline.entries(transcript.path)]
    complete = [entry for entry in entries if entry.raw.endswith(b"\n") or not entry.problems]
    assert result.entries == len(complete)
    expected = {(e.place.transcript, e.line.number, e.line.offset, len(e.raw), e.kind) for e in complete}
    assert {row[1:6] for row in content(index)["said"]} == expected


def test_a_new_index_has_every_table_and_index(home: Path, tmp_path: Path) -> None:
    """Some indexes are created after the rows: in the end there are as many as in an index that was created empty."""
    _refresh(home, tmp_path / "index.sqlite")
    with (
        open_for_writing(tmp_path / "empty.sqlite") as empty,
        closing(sqlite3.connect(tmp_path / "index.sqlite")) as new,
    ):
        query = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        assert new.execute(query).fetchall() == empty.execute(query).fetchall()


def test_charges_equal_the_ledgers(home: Path, tmp_path: Path) -> None:
    """Every charge, with its exact amount."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    ledger = threadline.ledger(home)
    with closing(open_read_only(index)) as connection:
        rows = connection.execute("SELECT message, session, project, output, amount FROM charges").fetchall()
    assert sorted(rows) == sorted(
        (
            charge.message,
            charge.session,
            charge.project,
            charge.output,
            format(charge.amount, "f").rstrip("0").rstrip("."),
        )
        if charge.amount is not None
        else (charge.message, charge.session, charge.project, charge.output, None)
        for charge in ledger
    )


def test_a_refresh_without_changes_reads_nothing(home: Path, tmp_path: Path) -> None:
    """Even if files were just written: their ends are compared, and then they are known."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    before = content(index)
    assert _refresh(home, index) == RefreshResult()
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


def _sample_paths(home: Path) -> Iterator[Path]:
    """The largest main transcript, which others copy from, one of middle size, and the largest of an agent."""
    mains = sorted(home.glob("projects/*/*.jsonl"), key=lambda path: -path.stat().st_size)
    yield mains[0]
    yield mains[len(mains) // 2]
    yield max(home.glob("projects/*/*/subagents/*.jsonl"), key=lambda path: path.stat().st_size)


@pytest.mark.sample(5)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_equals_a_rebuilt_index_after_any_change(home: Path, tmp_path: Path, change: Any) -> None:
    """Appends, torn lines, truncation, replacement, deletion, renaming, rewriting."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    for path in list(_sample_paths(home)):
        change(path)
        _refresh(home, index)
        assert content(index) == rebuilt_content(home, tmp_path)


def test_reads_only_the_appended_line(home: Path, tmp_path: Path) -> None:
    """Only the appended line is read, however long the transcript."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    path = next(_sample_paths(home))
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[2])
    result = _refresh(home, index)
    assert (result.transcripts, result.entries, result.bytes) == (1, 1, len(lines[2]))


def test_a_second_refresh_is_told_that_the_index_is_busy(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second refresh at the same time raises IndexBusy, and readers continue."""
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.05)
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    with open_for_writing(index) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexBusy, match="Another threadline is refreshing"):
            _refresh(home, index)
        assert content(index)["said"]


def test_rejects_a_file_that_is_not_an_index(tmp_path: Path) -> None:
    """A file that is not a database is not taken for an index."""
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
def test_reports_an_incomplete_index(home: Path, tmp_path: Path, damage: str) -> None:
    """A refresh raises an error. A query that can do without the index reads the transcripts instead."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    with closing(sqlite3.connect(index)) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(Unreadable, match="index rebuild"):
        _refresh(home, index)
    with pytest.raises(Unreadable, match="index rebuild"):
        Index.open_fresh(index, homes(home))
    assert Index.open_fresh(index, homes(home), max_bytes=1 << 30) is None


def test_reports_table_definitions_that_are_not_utf_8(home: Path, tmp_path: Path) -> None:
    """SQLite quotes a damaged definition in its error, which cannot be decoded either."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    data = index.read_bytes()
    index.write_bytes(data.replace(b"CREATE TABLE meta(", b"CREATE TABLE \xba\xff((("))
    with pytest.raises(Unreadable, match="index rebuild"):
        open_read_only(index)
    with pytest.raises(Unreadable, match="index rebuild"):
        _refresh(home, index)


def test_an_interrupted_first_refresh_leaves_nothing(home: Path, tmp_path: Path) -> None:
    """Neither a full disk nor Ctrl-C leaves half an index behind."""
    index = tmp_path / "cache" / "index.sqlite"

    def interrupt(_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refresh_index(index, homes(home), progress=interrupt)
    assert [path.name for path in index.parent.iterdir()] == ["index.sqlite.lock"]


def test_reports_an_index_of_another_owner(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If its mode cannot be changed, it is not written. A query that can do without the index does."""
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    with next(home.glob("projects/*/*.jsonl")).open("ab") as file:
        file.write(b'{"type": "user"}\n')

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(Unreadable, match="Operation not permitted"):
        _refresh(home, index)
    assert Index.open_fresh(index, homes(home), max_bytes=1 << 30) is None


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="other folders are the platform's there")
def test_ignores_a_relative_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME must be absolute. Otherwise it is ignored."""
    monkeypatch.delenv("THREADLINE_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, expected in (
        ("x/y", tmp_path / ".cache"),
        ("", tmp_path / ".cache"),
        (str(tmp_path / "z"), tmp_path / "z"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_folder() == expected / "threadline"


def test_the_index_is_private_and_named_after_its_homes(home: Path, tmp_path: Path) -> None:
    """Nobody else may read it. The same homes have the same index, in any order."""
    index = index_path([home, "/other"], tmp_path / "cache")
    assert index == index_path(["/other", home], tmp_path / "cache")
    _refresh(home, index)
    assert index.stat().st_mode & 0o777 == 0o600
    assert index.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(sqlite3.OperationalError, match="readonly"), closing(open_read_only(index)) as connection:
        connection.execute("DELETE FROM entries")


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_indexes_a_transcript_whose_name_is_not_utf_8(home: Path, tmp_path: Path) -> None:
    """The name keeps its bytes, and the file is found by it."""
    source = next(home.glob("projects/*/*.jsonl"))
    odd = source.with_name(os.fsdecode(b"odd-\xff.jsonl"))
    odd.write_bytes(source.read_bytes())
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    assert _refresh(home, index) == RefreshResult()
    with closing(open_read_only(index)) as connection:
        paths = [os.fsdecode(path) for (path,) in connection.execute("SELECT path FROM transcripts")]
    assert str(odd) in paths


def test_removes_indexes_of_older_schemas(home: Path, tmp_path: Path) -> None:
    """The files of older versions are removed. Those of other homes and newer versions stay."""
    index = tmp_path / "index-0123456789ab-v12.sqlite"
    others = {"index-0123456789ab-v13.sqlite", "index-ba9876543210-v1.sqlite", "index-0123456789ab-v2.txt"}
    older = {"index-0123456789ab-v2.sqlite", "index-0123456789ab-v2.sqlite-wal", "index-0123456789ab-v11.sqlite.lock"}
    for name in others | older:
        (tmp_path / name).touch()
    _refresh(home, index)
    remaining = {path.name for path in tmp_path.iterdir() if path.name.startswith("index-")}
    assert remaining == others | {index.name, f"{index.name}.lock"}


@pytest.mark.parametrize("is_known", [False, True])
def test_reads_a_transcript_again_that_could_not_be_read_to_its_end(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """After a read error nothing is missing: neither the rest, nor what is made of the lines before."""
    index = tmp_path / "index.sqlite"
    path = next(_sample_paths(home))
    if is_known:
        _refresh(home, index)
        _append(path)

    def fail_in_the_middle(*arguments: Any, **options: Any) -> Iterator[EntryRun]:
        yield next(entry_runs(*arguments, **options))
        raise Unreadable("input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(state, "entry_runs", fail_in_the_middle)
        _refresh(home, index)
    _refresh(home, index)
    assert content(index) == rebuilt_content(home, tmp_path)


@pytest.mark.slow
def test_reads_a_complete_line_without_a_newline(home: Path, tmp_path: Path) -> None:
    """It is found at once. A newline that comes later adds nothing, and other text makes the line be read again."""
    others = sorted(home.rglob("*.jsonl"), key=lambda candidate: candidate.stat().st_size)
    path = others.pop()
    for other in others:
        other.unlink()
    data = b"".join(line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n"))
    index = tmp_path / "index.sqlite"
    line_start = data.rfind(b"\n", 0, len(data) - 1) + 1
    for end in (len(data) - 1, len(data), len(data) - 1, line_start, line_start + 40, len(data) - 1):
        path.write_bytes(data[:end])
        _refresh(home, index)
        assert content(index) == rebuilt_content(home, tmp_path)
    with path.open("ab") as file:
        file.write(data[line_start:])  # directly after the line without a newline
    _refresh(home, index)
    assert content(index) == rebuilt_content(home, tmp_path)


def test_a_failed_read_of_new_lines_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If new lines cannot be read, nothing that was read before is lost, and the next refresh reads everything."""
    path, index = tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl", tmp_path / "index.sqlite"
    rows = transcript(prompt("go"), reply("done", output=500), reply("more", output=700))
    tokens: list[int] = []
    for lines in (rows[:2], rows, rows):
        with monkeypatch.context() as patch:
            if tokens == [504]:
                patch.setattr(state, "entry_runs", _raise_unreadable)
            write(path, *lines)
            refresh_index(index, homes(tmp_path / "home"), jobs=1)
        with Index.open(index) as opened:
            tokens.append(opened.ledger().total.tokens)
    assert tokens == [504, 504, 1208]


def _raise_unreadable(*_arguments: object, **_keywords: object) -> NoReturn:
    raise Unreadable("it cannot be read")
