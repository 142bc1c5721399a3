"""A home that disappears while it is served is reported as missing, not shown as empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.web import archive_pool as module

_PAGES = ("/", "/sessions", "/search?q=pixel", "/usage", "/calls", "/files")
_OTHER = "0" * 8 + "-0000-4000-8000-000000000002"


@pytest.fixture(autouse=True)
def _always_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", ["", "projects"])
def test_pages_report_a_missing_home(tmp_path: Path, part: str) -> None:
    """If no home is left, pages and their JSON are errors that name it. Once the home is back, they are as before."""
    home = write_home(tmp_path / "home", session_rows())
    client = Client(home)
    before = client.get("/sessions.json").json()
    moved = home / part
    moved.rename(tmp_path / "aside")
    for page in _PAGES:
        answer = client.get(page)
        assert answer.status_code == 503
        assert "no longer exists" in answer.text
        assert "home" in answer.text
    assert "no longer exists" in client.get("/usage.json").json()["error"]
    assert client.get(f"/session/{SESSION}").status_code == 404
    assert client.get("/keys").status_code == 200
    (tmp_path / "aside").rename(moved)
    assert client.get("/sessions.json").json() == before
    assert "no longer exists" not in client.get("/").text


def test_reports_the_missing_home_and_shows_the_other(tmp_path: Path) -> None:
    """The remaining home is shown, below a sentence about the missing one."""
    first = write_home(tmp_path / "first", session_rows())
    second = write_home(tmp_path / "second", session_rows(), _OTHER)
    client = Client(first, second)
    assert client.get("/sessions.json").json()["total"] == 2
    second.rename(tmp_path / "aside")
    answer = client.get("/sessions")
    assert answer.status_code == 200
    assert SESSION in answer.text
    assert _OTHER not in answer.text
    assert f"{second}&#39; no longer exists. None of its sessions are shown." in answer.text
