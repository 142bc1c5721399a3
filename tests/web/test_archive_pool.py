"""Archives are lent to one request at a time and reused briefly. A busy index is used as it is."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.archive import Archive
from threadline.errors import BadQuery, IndexBusy
from threadline.find import homes
from threadline.index import index
from threadline.web import ArchivePool
from threadline.web import archive_pool as module


@pytest.fixture
def pool(tmp_path: Path) -> ArchivePool:
    """A pool for a home with one session."""
    return ArchivePool(tuple(homes(write_home(tmp_path / "home", session_rows()))), index=tmp_path / "index.sqlite")


def test_reuses_an_archive_in_any_thread(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Consecutive requests get the same archive, and its index can be used from another thread."""
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", 60.0)  # more than a busy machine needs
    with pool.archive() as first:
        assert len(first.sessions().sessions) == 1

    def is_reused() -> bool:
        with pool.archive() as second:
            return second is first and len(second.calls()) > 0

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(is_reused).result()


def test_concurrent_requests_get_different_archives(pool: ArchivePool) -> None:
    """Two requests at the same time do not share an archive."""
    with pool.archive() as first, pool.archive() as second:
        assert first is not second


def test_replaces_an_archive_after_a_second(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive older than a second is replaced, so that new lines are noticed."""
    with pool.archive() as first:
        assert first.is_indexed
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    with pool.archive() as second:
        assert second is not first


def test_replaces_archives_when_homes_have_changed(pool: ArchivePool) -> None:
    """A page that is told about a change asks at once, and must not get an answer from before it."""
    with pool.archive() as first, pool.archive() as second:
        pool.expire()
    with pool.archive() as third:
        assert third not in (first, second)
    with pool.archive() as fourth:
        assert fourth is third


def test_does_not_reuse_an_archive_that_failed(pool: ArchivePool) -> None:
    """The archive itself may have caused the error."""
    with pytest.raises(ZeroDivisionError), pool.archive() as first:
        raise ZeroDivisionError
    with pool.archive() as second:
        assert second is not first


def test_uses_a_stale_index_while_another_process_writes_it(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process refreshes the index, pages show its previous content and do not read every transcript."""
    with pool.archive() as archive:
        assert archive.connection is not None
    write_home(pool.homes[0].path, session_rows(turns=9))

    def busy(*_: object, **__: object) -> None:
        raise IndexBusy("Another process is at it.")

    monkeypatch.setattr(index, "_run_refresh", busy)
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    with pool.archive() as archive:
        assert archive.is_indexed
        assert [session.turns for session in archive.sessions().sessions] == [3]
        assert archive.path(SESSION).stem == SESSION


def test_finds_a_session_created_a_moment_ago(tmp_path: Path) -> None:
    """A session is found even if it was created after the last comparison with the homes. Unknown ids are still 404."""
    home = write_home(tmp_path / "home", session_rows())
    client = Client(home)
    assert client.get(f"/session/{SESSION}").status_code == 200
    other = f"{SESSION[:-1]}2"
    write(home / f"projects/-work-app/{other}.jsonl", *transcript(prompt("begin"), reply("so"), pen=Pen(other)))
    assert client.get(f"/session/{other}").status_code == 200
    assert client.get(f"/session/{SESSION[:-1]}3").status_code == 404


def test_a_value_is_computed_once_for_requests_at_the_same_time(pool: ArchivePool) -> None:
    """The second request waits for the first. After an error it computes the value itself."""
    started, finish = Event(), Event()
    computed: list[str] = []
    for path in pool.homes[0].path.rglob("*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # files that were just written are compared again

    def request(name: str, *, fails: bool = False) -> str:
        def compute() -> str:
            computed.append(name)
            started.set()
            assert finish.wait(10)
            if fails:
                raise BadQuery(name)
            return name

        with pool.archive() as archive:
            return pool.cached(archive, "figure", compute, fails)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(request, "first")
        assert started.wait(10)
        second = threads.submit(request, "second")
        finish.set()
        assert (first.result(10), second.result(10)) == ("first", "first")
    assert computed == ["first"]
    with pytest.raises(BadQuery):
        request("third", fails=True)
    with pytest.raises(BadQuery):
        request("fourth", fails=True)
    assert computed == ["first", "third", "fourth"]


@pytest.mark.parametrize("is_computed", [True, False])
def test_a_request_waits_for_a_reserved_value(pool: ArchivePool, *, is_computed: bool) -> None:
    """Nobody computes it meanwhile. If there is no value in the end, the request computes it."""

    def request() -> str:
        with pool.archive() as archive:
            return pool.cached(archive, "figure", lambda: "own", "key", state="state")

    with ThreadPoolExecutor(1) as threads:
        reserved = pool.reserve("figure", "key", state="state")
        assert reserved is not None
        assert pool.reserve("figure", "key", state="state") is None
        with reserved:
            assert not reserved.is_awaited
            waiting = threads.submit(request)
            until = monotonic() + 10
            while not reserved.is_awaited:
                assert monotonic() < until
                sleep(0.01)
            assert not waiting.done()
            if is_computed:
                reserved.set("prepared")
        assert waiting.result(10) == ("prepared" if is_computed else "own")
        assert not reserved.is_awaited
    assert (pool.reserve("figure", "key", state="state") is None) == is_computed


def test_a_request_does_not_wait_long_for_a_reserved_value(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, the other process may take very long."""
    monkeypatch.setattr(module, "_MAX_WAIT_SECONDS", 0.01)
    reserved = pool.reserve("figure", "key", state="state")
    assert reserved is not None
    with reserved, pool.archive() as archive:
        assert pool.cached(archive, "figure", lambda: "own", "key", state="state") == "own"


def test_limits_the_values_of_a_name(pool: ArchivePool) -> None:
    """Large values are evicted before the others, the oldest first."""
    computed: list[tuple[str, int]] = []

    def cached_value(name: str, key: int, most: int = 32) -> None:
        with pool.archive() as archive:
            pool.cached(archive, name, lambda: computed.append((name, key)), key, most=most)

    cached_value("small", 0)
    for key in (1, 2, 3, 2, 1):
        cached_value("large", key, most=2)
    cached_value("small", 0)
    assert computed == [("small", 0), ("large", 1), ("large", 2), ("large", 3), ("large", 1)]


def test_computes_one_value_ahead(pool: ArchivePool) -> None:
    """Only one at a time, in the background; an error of it is not an error of anybody else."""
    started, finish = Event(), Event()
    computed: list[str] = []

    def ahead(name: str) -> None:
        def compute(_archive: Archive) -> None:
            computed.append(name)
            started.set()
            assert finish.wait(10)
            raise BadQuery(name)

        pool.compute_ahead(compute)

    ahead("first")
    assert started.wait(10)
    ahead("second")
    finish.set()
    for thread in threading.enumerate():
        if thread.name == "threadline-ahead":
            thread.join(10)
    started.clear()
    ahead("third")
    assert started.wait(10)
    assert computed == ["first", "third"]


def test_caches_a_value_for_each_state_of_the_index(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests share a cached value until something is written. Another key is another value."""
    computed: list[str] = []
    for path in pool.homes[0].path.rglob("*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # files that were just written are compared again

    def cached_value(name: str) -> int:
        def compute() -> int:
            computed.append(name)
            return len(computed)

        with pool.archive() as archive:
            return pool.cached(archive, name, compute)

    assert [cached_value("turns"), cached_value("turns"), cached_value("calls")] == [1, 1, 2]
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    assert cached_value("turns") == 1
    write_home(pool.homes[0].path, session_rows(turns=9))
    assert cached_value("turns") == 3
