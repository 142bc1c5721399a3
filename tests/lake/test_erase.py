"""Erasure from a lake: whatever has a copy, runs at the same time or is interrupted, no object keeps anything."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.lake.machines import FORK, push, session_id, write_fork, write_session
from tests.lake.test_build import assert_equal_usage, rows_of
from tests.transcripts import START

from threadline.errors import BadQuery, NotFound, Unreadable

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import (
    Catalogue,
    build_lake,
    compact_lake,
    forget_sources,
    read_batch,
    read_machines,
    select_sources,
)
from threadline.storage import Bucket

pytestmark = pytest.mark.slow
WORDS = "forgetmeplease"


@pytest.fixture
def lake(tmp_path: Path) -> Bucket:
    """An empty lake in a folder."""
    return Bucket(str(tmp_path / "lake"))


def objects_with(bucket: Bucket, text: str) -> list[str]:
    """The objects that contain a text, whatever they are compressed with."""
    return [entry.path for entry in bucket.list("") if text.encode() in _plain(entry.path, bucket.get(entry.path))]


def _plain(path: str, data: bytes) -> bytes:
    if path.endswith(".zst"):
        return zstandard.ZstdDecompressor().decompress(data)
    if path.endswith(".parquet"):
        parquet, arrow = (pytest.importorskip(name) for name in ("pyarrow.parquet", "pyarrow"))
        file = parquet.ParquetFile(arrow.BufferReader(data))
        return repr((file.read().to_pylist(), file.metadata.to_dict())).encode()
    return b"".join(_avro_blocks(data)) if path.endswith(".avro") else data


def _avro_blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of an Avro file: two numbers, then compressed bytes, then the same 16 bytes after each."""
    marker = data[-16:]
    header, *blocks = data[:-16].split(marker)
    yield header
    for block in blocks:
        at = 0
        for _ in range(2):
            while block[at] & 0x80:
                at += 1
            at += 1
        yield zlib.decompress(block[at:], -15)


def write_and_build(lake: Bucket, home: Path) -> None:
    """Push two sessions and build; the first one has the words to forget."""
    write_session(home, 1, text=WORDS)
    write_session(home, 2)
    push(lake, [home])
    build_lake(lake, jobs=1)


def test_no_metadata_describes_forgotten_rows(tmp_path: Path, lake: Bucket) -> None:
    """Not even the statistics in the manifests of tables have a word of a forgotten session."""
    write_session(tmp_path / "home", 1, text=WORDS, project=f"-{WORDS}")
    write_session(tmp_path / "home", 2)
    push(lake, [tmp_path / "home"])
    build_lake(lake, jobs=1)
    kinds = {path.rpartition(".")[2] for path in objects_with(lake, WORDS)}
    assert kinds == {"zst", "parquet", "avro"}
    forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    assert objects_with(lake, WORDS) == []
    assert objects_with(lake, session_id(1)) == []
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(2)}


@pytest.mark.parametrize("step", ["_rewrite_tables", "Bucket.delete", "_rewrite_batches", "prove_forgotten"])
def test_an_interrupted_forget_continues(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """If `forget` dies at any step, running it again erases everything; a build in between restores nothing."""
    write_and_build(lake, tmp_path / "home")
    with monkeypatch.context() as patch:
        patch.setattr(f"threadline.lake.erase.{step}", _fail)
        with pytest.raises(Unreadable, match="the network is gone"):
            forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    if step != "prove_forgotten":  # then nothing was left to do
        build_lake(lake, jobs=1)
        forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    assert objects_with(lake, WORDS) == []
    assert [row["session"] for row in rows_of(lake, "sessions")] == [session_id(2)]
    build_lake(lake, jobs=1, rebuild=True)
    assert [row["session"] for row in rows_of(lake, "sessions")] == [session_id(2)]


def _fail(*_arguments: Any) -> Any:
    raise Unreadable("the network is gone")


def test_a_session_of_two_machines(tmp_path: Path, lake: Bucket) -> None:
    """A person's sessions are not forgotten while somebody else has a copy; the error has the command that works."""
    homes = [tmp_path / "a", tmp_path / "b"]
    for number, home in enumerate(homes, 1):
        write_session(home, 1, text=WORDS)
        write_session(home, number + 1)
        push(lake, [home], number)
    build_lake(lake, jobs=1)
    with pytest.raises(BadQuery, match=rf"\(person2\) contains copies.* --session {session_id(1)}$"):
        forget_sources(lake, select_sources(lake, person="person1"))
    assert len(rows_of(lake, "sessions")) == 4
    assert forget_sources(lake, select_sources(lake, sessions=[session_id(1)])).sources == 2
    forget_sources(lake, select_sources(lake, person="person1"))
    assert objects_with(lake, WORDS) == objects_with(lake, "person1") == []
    assert [row["session"] for row in rows_of(lake, "sessions")] == [session_id(3)]


def test_messages_that_a_session_copied_under_new_ids(tmp_path: Path, lake: Bucket) -> None:
    """A copy whose entries have ids of their own, but the same messages, is a copy."""
    homes = [tmp_path / "a", tmp_path / "b"]
    fork = write_fork(homes[1], write_session(homes[0], 1))
    fork.write_bytes(fork.read_bytes().replace(b'"uuid":"', b'"uuid":"n'))
    for number, home in enumerate(homes, 1):
        push(lake, [home], number)
    build_lake(lake, jobs=1)
    with pytest.raises(BadQuery, match=f"--session {FORK}"):
        forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))


def test_a_person_with_sessions_in_several_batches(tmp_path: Path, lake: Bucket) -> None:
    """All batches of a person are erased, also of sessions that grew, and their lists no longer name the person."""
    home = tmp_path / "home"
    for turns in (1, 2, 3):
        write_session(home, 1, turns=turns, text=WORDS)
        write_session(home, 10 + turns, text=WORDS)
        push(lake, [home], 1)
        build_lake(lake, jobs=1)
    write_session(tmp_path / "other", 2)
    push(lake, [tmp_path / "other"], 2)
    build_lake(lake, jobs=1)
    assert len(forget_sources(lake, select_sources(lake, person="person1")).sessions) == 4
    assert objects_with(lake, WORDS) == objects_with(lake, "person1") == []
    assert "person1" not in {row.person for row in read_machines(lake, {})}
    assert {read_batch(lake, "laptop1_00000001", number).files for number in (1, 2, 3)} == {()}
    assert_equal_usage(lake, [tmp_path / "other"])


def test_before_counts_the_last_entry(tmp_path: Path, lake: Bucket) -> None:
    """`--before` goes by what a session contains: a home that was copied later has new mtimes."""
    home = tmp_path / "home"
    paths = [write_session(home, number) for number in (1, 20)]
    for path in paths:
        os.utime(path)
    push(lake, [home])
    build_lake(lake, jobs=1)
    selected = select_sources(lake, before=START + timedelta(days=10))
    assert [source.session for source in selected] == [session_id(1)]
    with pytest.raises(NotFound):
        select_sources(lake, before=datetime(2000, 1, 1, tzinfo=UTC))


def test_a_push_that_runs_meanwhile_brings_nothing_back(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is forgotten while it is pushed is withdrawn from the batch, with its objects."""
    home = tmp_path / "home"
    write_and_build(lake, home)
    write_session(home, 1, turns=5, text=WORDS)
    write_session(home, 3)
    forget = _run_once(lambda: forget_sources(lake, select_sources(lake, sessions=[session_id(1)])))
    create = Bucket.create

    def create_late(self: Bucket, path: str, data: bytes) -> bool:
        if path.endswith(".json.zst"):
            forget()
        return create(self, path, data)

    monkeypatch.setattr(Bucket, "create", create_late)
    result = push(Bucket(lake.uri), [home])
    assert (result.forgotten, result.sessions) == (1, 1)
    assert objects_with(lake, WORDS) == []
    build_lake(lake, jobs=1)
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(2), session_id(3)}


@pytest.mark.parametrize("rebuild", [False, True])
def test_builds_that_run_meanwhile_bring_nothing_back(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch, *, rebuild: bool
) -> None:
    """A session is forgotten after a task wrote its rows, or before the commit: no file of that build keeps them."""
    home = tmp_path / "home"
    write_and_build(lake, home)
    forget = _run_once(lambda: forget_sources(lake, select_sources(lake, sessions=[session_id(1)])))
    builder = import_module("threadline.lake.rows").RowBuilder
    take_tables = builder.take_tables

    def read_slowly(self: Any) -> Any:
        tables = take_tables(self)
        forget()
        return tables

    with monkeypatch.context() as patch:
        patch.setattr(builder, "take_tables", read_slowly)
        with pytest.raises(Unreadable, match=f"{session_id(1)} was forgotten while it was built"):
            build_lake(lake, jobs=1, rebuild=True)
    assert objects_with(lake, WORDS) == []
    write_session(home, 3, text="othersecret")
    push(lake, [home])
    publish = Catalogue.publish
    forget = _run_once(lambda: forget_sources(lake, [_source(lake, 2)]))

    def publish_late(self: Catalogue, *arguments: Any, **options: Any) -> Any:
        forget()
        return publish(self, *arguments, **options)

    build_lake(lake, jobs=1)
    write_session(home, 4)
    push(lake, [home])
    with monkeypatch.context() as patch:
        patch.setattr(
            "threadline.lake.erase._require_built", lambda _bucket: import_module("threadline.lake").read_commit(lake)
        )
        patch.setattr(Catalogue, "publish", publish_late)
        build_lake(lake, jobs=1, rebuild=rebuild)
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(3), session_id(4)}
    assert objects_with(lake, session_id(2)) == []


@pytest.mark.parametrize("action", ["build", "forget"])
def test_what_began_before_a_forget_starts_again(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """`forget` deletes the files that a running build, or another `forget`, is about to read: it reads the new ones."""
    home = tmp_path / "home"
    write_and_build(lake, home)
    write_session(home, 3)
    push(lake, [home])
    monkeypatch.setattr(
        "threadline.lake.erase._require_built", lambda _bucket: import_module("threadline.lake").read_commit(lake)
    )
    forget = _run_once(lambda: forget_sources(lake, [_source(lake, 1)]))
    replace_sources = import_module("threadline.lake.updates").replace_sources

    def replace_late(*arguments: Any) -> Any:
        forget()
        return replace_sources(*arguments)

    if action == "forget":
        build_lake(lake, jobs=1)
        monkeypatch.setattr("threadline.lake.erase.replace_sources", replace_late)
        forget_sources(lake, [_source(lake, 2)])
    else:
        monkeypatch.setattr("threadline.lake.build.replace_sources", replace_late)
        assert build_lake(lake, jobs=1).sessions == 1
    remaining = {3} if action == "forget" else {2, 3}
    assert {row["session"] for row in rows_of(lake, "sessions")} == set(map(session_id, remaining))
    assert objects_with(lake, WORDS) == []


@pytest.mark.parametrize("compact", [False, True])
def test_several_forgets_during_a_build_bring_nothing_back(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch, *, compact: bool
) -> None:
    """Each `forget` deletes earlier commits, also that with the number that a running build will publish."""
    home = tmp_path / "home"
    for number in range(1, 10):
        write_session(home, number)
        push(lake, [home])
        build_lake(lake, jobs=1)
    forgets = _run_once(
        lambda: [forget_sources(lake, select_sources(lake, sessions=[session_id(number)])) for number in (1, 2)]
    )
    publish = Catalogue.publish

    def publish_late(self: Catalogue, *arguments: Any, **options: Any) -> Any:
        forgets()
        return publish(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "publish", publish_late)
        if compact:
            patch.setattr("threadline.lake.iceberg._MAX_SMALL_FILES", 1)
            assert compact_lake(lake) == 0
        else:
            assert build_lake(lake, jobs=1, rebuild=True).sessions == 7
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(number) for number in range(3, 10)}
    for number in (1, 2):
        assert objects_with(lake, session_id(number)) == []


def test_the_proof_includes_the_lists_of_batches(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """`forget` fails if the list of a batch still names the session, its project and its person."""
    write_and_build(lake, tmp_path / "home")
    monkeypatch.setattr("threadline.lake.erase._rewrite_batches", lambda *_arguments: None)
    with pytest.raises(Unreadable, match=r"'.*/000001[.]json[.]zst' still contains something"):
        forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))


def _source(lake: Bucket, number: int) -> Any:
    (source,) = select_sources(lake, sessions=[session_id(number)])
    return source


def _run_once(action: Callable[[], object]) -> Callable[[], None]:
    """A function that runs the action the first time only."""
    waiting = [action]

    def run() -> None:
        if waiting:
            waiting.pop()()

    return run
