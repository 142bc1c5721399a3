"""The page still shows a session after Claude Code has deleted it, and marks it as kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

import threadline
from threadline.find import homes
from threadline.keep import Catalogue, Store, run_keep, this_machine
from threadline.web import ArchivePool
from threadline.web import archive_pool as module

OTHER = "bbbbbbbb-2222-4222-8222-222222222222"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two sessions, both in the keep."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", 0)
    path = write_home(tmp_path / "home", session_rows())
    rows = (path / "projects/-work-app" / f"{SESSION}.jsonl").read_bytes()
    (path / "projects/-work-app" / f"{OTHER}.jsonl").write_bytes(rows.replace(SESSION.encode(), OTHER.encode()))
    run_keep(Catalogue(Store.make(tmp_path / "keep")), homes(path), this_machine())
    return path


def _client(home: Path) -> Client:
    archive = threadline.open(home)
    client = Client(home)
    client.use(ArchivePool(archive.homes, reload_homes=archive.reload_kept_homes, without_keep=archive.without_keep))
    return client


def test_marks_a_deleted_session_as_kept(home: Path) -> None:
    """Lists, hits and its own page mark it, and its resume command restores it first. Other sessions are unchanged."""
    client = _client(home)
    mark = 'class="kept"'
    assert mark not in client.get("/sessions").text
    for path in (home / "projects/-work-app").rglob("*"):
        if path.is_file() and SESSION in str(path):
            path.unlink()
    listed = client.get("/sessions").text
    assert listed.count(mark) == 1
    assert OTHER in listed
    page = client.get(f"/session/{SESSION}").text
    assert f"threadline keep restore {SESSION} &amp;&amp; claude --resume {SESSION}" in page
    assert ">kept<" in page
    assert ">kept<" not in client.get(f"/session/{OTHER}").text
    assert ">kept<" in client.get("/search?q=shelf").text


def test_shows_the_kept_sessions_of_a_missing_home(home: Path, tmp_path: Path) -> None:
    """The sessions of a missing home are listed as kept, below a sentence that says why."""
    client = _client(home)
    assert client.get("/sessions.json").json()["total"] == 2
    home.rename(tmp_path / "aside")
    answer = client.get("/sessions")
    assert answer.status_code == 200
    assert "no longer exists. Only its sessions in the keep are shown." in answer.text
    assert answer.text.count('class="kept"') == 2
    assert client.get(f"/session/{SESSION}").status_code == 200
