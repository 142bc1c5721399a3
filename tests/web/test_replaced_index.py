"""An index that is damaged or cannot be written does not keep the pages from being shown."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.transcripts import SESSION
from tests.web.client import PORT, TOKEN, Client
from tests.web.conftest import session_rows, write_home

from threadline.errors import BadQuery, Unreadable
from threadline.find import homes
from threadline.web import App, ArchivePool, archive_pool
from threadline.web import archive_pool as module

_PAGES = ("/", "/sessions", "/search?q=pixel", "/usage", "/calls", "/files", "/doctor", f"/session/{SESSION}")


def _garbage(index: Path) -> None:
    index.write_bytes(b"this is no index " * 500)


def _flipped(index: Path) -> None:
    """All but the first page is nonsense: it opens, and fails later."""
    held = index.read_bytes()
    index.write_bytes(held[:8192] + os.urandom(len(held) - 8192))
    for beside in ("-wal", "-shm"):
        Path(f"{index}{beside}").unlink(missing_ok=True)


def _no_folder(index: Path) -> None:
    """Where the folder of the index should be, there is a file."""
    for one in index.parent.iterdir():
        one.unlink()
    index.parent.rmdir()
    index.parent.write_bytes(b"")


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchivePool:
    """Holds a home with an index that was made; the temporary folder is the test's."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(archive_pool, "mkdtemp", _in(tmp_path / "temporary"))
    home = write_home(tmp_path / "home", session_rows())
    made = ArchivePool(tuple(homes(home)), index=tmp_path / "cache" / "index.sqlite")
    made.prepare()
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    return made


def _in(folder: Path) -> Callable[..., str]:
    return lambda prefix: mkdtemp(prefix=prefix, dir=folder)


def _client(pool: ArchivePool) -> Client:
    client = Client(pool.homes[0].path)
    client.app = App(pool, token=TOKEN, port=PORT)
    return client


@pytest.mark.sample(3)
@pytest.mark.parametrize("harm", [_garbage, _flipped, _no_folder])
@pytest.mark.parametrize("is_prepared", [True, False])
def test_pages_answer_whatever_became_of_the_index(
    pool: ArchivePool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    harm: Callable[[Path], None],
    is_prepared: bool,
) -> None:
    """Damaged before the start or while pages are shown: each page is as with an index, and one sentence tells."""
    harm(tmp_path / "cache" / "index.sqlite")
    with caplog.at_level(logging.WARNING, "threadline"):
        if is_prepared:
            pool.prepare()
        client = _client(pool)
        answers = {page: client.get(page) for page in _PAGES}
        assert {page: answer.status_code for page, answer in answers.items()} == dict.fromkeys(_PAGES, 200)
        assert client.get("/sessions.json").json()["total"] == 1
    assert SESSION in answers["/sessions"].text
    assert [record.getMessage().count("temporary folder") for record in caplog.records] == [1]
    folder = next((tmp_path / "temporary").iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "index.sqlite").stat().st_mode & 0o777 == 0o600
    pool.close()
    assert not list((tmp_path / "temporary").iterdir())


def test_what_is_written_later_is_known_to_the_other_index(pool: ArchivePool, tmp_path: Path) -> None:
    """The index that took its place is brought up to date like the one before."""
    _garbage(tmp_path / "cache" / "index.sqlite")
    assert pool.run(lambda archive: [brief.turns for brief in archive.open_index().sessions()]) == [3]
    write_home(pool.homes[0].path, session_rows(turns=9))
    assert pool.run(lambda archive: [brief.turns for brief in archive.open_index().sessions()]) == [9]


def test_where_no_index_can_be_made_pages_say_so(
    pool: ArchivePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With no room in the temporary folder either, it is tried once, said, and sessions can still be read."""
    _garbage(tmp_path / "cache" / "index.sqlite")
    asked: list[str] = []

    def full(prefix: str) -> str:
        asked.append(prefix)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive_pool, "mkdtemp", full)
    client = _client(pool)
    assert client.get("/sessions").status_code == 503
    assert client.get("/usage").status_code == 503
    assert client.get(f"/session/{SESSION}").status_code == 200
    assert len(asked) == 1
    assert "No space left" in caplog.text


def test_a_transcript_or_a_question_at_fault_leaves_the_index_alone(pool: ArchivePool, tmp_path: Path) -> None:
    """Only an index that is of no use is replaced."""
    for error in (Unreadable("The transcript may not be read."), BadQuery("That is no query.")):

        def fail(_archive: object, error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)):
            pool.run(fail)
    assert not list((tmp_path / "temporary").iterdir())
