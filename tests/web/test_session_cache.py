"""Sessions are read once, cached while they are viewed, and read again when they change."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.transcripts import SESSION, Pen, line, prompt, transcript
from tests.web.conftest import session_rows, write_home

from threadline import load
from threadline.archive import Archive
from threadline.errors import Ambiguous, NotFound
from threadline.find import homes
from threadline.model.ledger import Sum
from threadline.render import View
from threadline.web import SessionCache
from threadline.web import session_cache as module
from threadline.web.session_cache import SessionSpending


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """The archive of a home with one session."""
    return Archive(homes(write_home(tmp_path / "home", session_rows())), index=False)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The path of every read. A read takes a moment, and the garbage collector is off meanwhile."""
    paths: list[Path] = []

    def read(path: Path, **options: Any) -> load.Session:
        paths.append(path)
        assert not gc.isenabled()
        sleep(0.05)
        return load.read(path, **options)

    monkeypatch.setattr(module, "read", read)
    return paths


def test_garbage_of_a_read_is_collected(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is frozen, so that the collector skips it; garbage is not frozen, or it would stay for good."""

    class Node:
        own: Node

    nodes: list[weakref.ref[Node]] = []

    def read(path: Path, **options: Any) -> load.Session:
        node = Node()
        node.own = node
        nodes.append(weakref.ref(node))
        return load.read(path, **options)

    monkeypatch.setattr(module, "read", read)
    SessionCache().get(SESSION, archive)
    assert [node() for node in nodes] == [None]


def _append(archive: Archive) -> None:
    path = archive.path(SESSION)
    row = transcript(prompt("more"), pen=Pen())[0]
    assert isinstance(row, dict)
    with path.open("ab") as file:
        file.write(line(row))


def test_concurrent_requests_share_one_read(archive: Archive, reads: list[Path]) -> None:
    """Eight concurrent requests for an uncached session read it once, and get the same object."""
    cache = SessionCache()
    _ = archive.found
    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(lambda _: cache.get(SESSION, archive), range(8)))
    assert len(reads) == 1
    assert len({id(session) for session in sessions}) == 1
    assert gc.isenabled()


def test_reads_a_session_again_only_if_it_changed(archive: Archive, reads: list[Path]) -> None:
    """The version tells, and it covers the transcripts of agents."""
    cache = SessionCache()
    first = cache.get(SESSION, archive)
    assert cache.get(SESSION, archive) is first
    _append(archive)
    second = cache.get(SESSION, archive)
    assert second.version != first.version
    agent = next(archive.homes[0].path.glob("projects/*/*/subagents/*.jsonl"))
    agent.write_bytes(agent.read_bytes() * 2)
    assert cache.get(SESSION, archive).version not in {first.version, second.version}
    assert len(reads) == 3


@pytest.mark.parametrize("pattern", [f"projects/*/{SESSION}.jsonl", "projects/*/*/subagents/*.jsonl"])
def test_reads_a_scrubbed_session_again(archive: Archive, pattern: str) -> None:
    """Text that was overwritten in place is not shown, even if size and mtime are as before."""
    cache = SessionCache()
    first = cache.get(SESSION, archive)
    path = next(archive.homes[0].path.glob(pattern))
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"the", b"xxx"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert cache.get(SESSION, archive).version != first.version


def test_serves_a_slow_session_as_it_was_and_reads_it_later(
    archive: Archive, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow session is not read again on each write. Listeners are notified once it was read again."""
    monkeypatch.setattr(module, "_SLOW_SECONDS", 0.0)
    reread = threading.Event()
    cache = SessionCache(on_reread=lambda session: reread.set() if session == SESSION else None)
    first = cache.get(SESSION, archive)
    _append(archive)
    assert cache.get(SESSION, archive) is first
    assert len(reads) == 1
    assert reread.wait(20)
    assert len(cache.get(SESSION, archive).session) == len(first.session) + 1
    assert len(reads) == 2


def test_evicts_the_least_recently_used_session(archive: Archive, reads: list[Path]) -> None:
    """The cache holds no more than fits, but always the last session."""
    other = "0" * 8 + "-0000-4000-8000-000000000002"
    write_home(archive.homes[0].path, transcript(prompt("another"), pen=Pen(other)), other)
    cache = SessionCache(max_bytes=1)
    for name in (SESSION, other, other, SESSION):
        cache.get(name, archive)
    assert [path.stem for path in reads] == [SESSION, other, SESSION]


def test_finds_a_moved_session_but_not_a_deleted_one(archive: Archive, reads: list[Path]) -> None:
    """A home may change while it is viewed."""
    cache = SessionCache()
    path = cache.get(SESSION, archive).path
    new_path = path.parent.parent / "-elsewhere" / path.name
    new_path.parent.mkdir()
    path.rename(new_path)
    fresh_archive = Archive(archive.homes, index=False)
    assert cache.get(SESSION, fresh_archive).path == new_path
    new_path.unlink()
    with pytest.raises(NotFound):
        cache.get(SESSION, Archive(archive.homes, index=False))
    assert len(reads) == 2


def test_a_prefix_is_resolved_each_time(archive: Archive, reads: list[Path]) -> None:
    """The prefix of an id leads to the cached session until another session starts with it."""
    cache = SessionCache()
    session = cache.get(SESSION, archive)
    assert cache.get(SESSION[:8], archive) is session
    other = f"{SESSION[:-1]}2"
    write_home(archive.homes[0].path, transcript(prompt("another"), pen=Pen(other)), other)
    with pytest.raises(Ambiguous):
        cache.get(SESSION[:8], Archive(archive.homes, index=False))
    assert len(reads) == 1


def test_drawings_are_dropped_when_costs_change(tmp_path: Path) -> None:
    """Entries show the same costs as the header, even if the index had none when they were rendered."""
    home = homes(write_home(tmp_path / "home", session_rows()))
    with Archive(home, index=False) as without, Archive(home, index=tmp_path / "index.sqlite") as indexed:
        session = SessionCache().get(SESSION, without)
        first = session.drawing(None, View(), session.links, without, UTC)
        assert session.drawing(None, View(), session.links, without, UTC) is first
        indexed.open_index()
        session.spending(indexed)  # the same costs, from another source
        assert session.drawing(None, View(), session.links, indexed, UTC) is first
        session._spending = SessionSpending(Sum(), {})  # as from an index that is behind
        session._spending_generation = "older"
        session.spending(indexed)
        assert session.drawing(None, View(), session.links, indexed, UTC) is not first
