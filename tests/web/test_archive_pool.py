"""Archives are lent to one request at a time, used again for a moment, and ask an index that another one writes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.index import index
from threadline.web import ArchivePool
from threadline.web import archive_pool as module


@pytest.fixture
def pool(tmp_path: Path) -> ArchivePool:
    """Holds the archive of a home with one session."""
    return ArchivePool(tuple(homes(write_home(tmp_path / "home", session_rows()))), index=tmp_path / "index.sqlite")


def test_an_archive_is_used_again_from_any_thread(pool: ArchivePool) -> None:
    """One request after the other gets the same; its index may be asked from another thread."""
    with pool.archive() as first:
        assert len(first.sessions().sessions) == 1

    def again() -> bool:
        with pool.archive() as second:
            return second is first and len(second.calls()) > 0

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(again).result()


def test_two_requests_at_once_have_one_each(pool: ArchivePool) -> None:
    """Nobody shares."""
    with pool.archive() as one, pool.archive() as other:
        assert one is not other


def test_an_old_one_is_compared_with_the_homes_anew(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second, what was written meanwhile is known."""
    with pool.archive() as first:
        assert first.is_indexed
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    with pool.archive() as second:
        assert second is not first


def test_one_that_failed_is_not_used_again(pool: ArchivePool) -> None:
    """Whatever went wrong may have been its fault."""
    with pytest.raises(ZeroDivisionError), pool.archive() as first:
        raise ZeroDivisionError
    with pool.archive() as second:
        assert second is not first


def test_an_index_that_is_being_written_is_asked_as_it_is(pool: ArchivePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process is at it, pages do not read every transcript: what the index had is told."""
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


def test_what_came_a_moment_ago_is_found(tmp_path: Path) -> None:
    """A session that began after the archive was last compared with the homes is found at once; what is none is not."""
    home = write_home(tmp_path / "home", session_rows())
    client = Client(home)
    assert client.get(f"/session/{SESSION}").status_code == 200
    other = f"{SESSION[:-1]}2"
    write(home / f"projects/-work-app/{other}.jsonl", *transcript(prompt("begin"), reply("so"), pen=Pen(other)))
    assert client.get(f"/session/{other}").status_code == 200
    assert client.get(f"/session/{SESSION[:-1]}3").status_code == 404


def test_a_figure_is_computed_once_for_each_state_of_the_index(
    pool: ArchivePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests share it until something is written; another key is another figure."""
    computed: list[str] = []
    for path in pool.homes[0].path.rglob("*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # files that were just written are compared again

    def figure(name: str) -> int:
        def compute() -> int:
            computed.append(name)
            return len(computed)

        with pool.archive() as archive:
            return pool.cached(archive, name, compute)

    assert [figure("turns"), figure("turns"), figure("calls")] == [1, 1, 2]
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    assert figure("turns") == 1
    write_home(pool.homes[0].path, session_rows(turns=9))
    assert figure("turns") == 3
