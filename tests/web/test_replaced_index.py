"""Pages are shown even if the index is damaged or cannot be written."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.transcripts import SESSION
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.errors import BadQuery, Unreadable
from threadline.find import homes
from threadline.web import ArchivePool, archive_pool
from threadline.web import archive_pool as module

_PAGES = ("/", "/sessions", "/search?q=pixel", "/usage", "/calls", "/files", "/doctor", f"/session/{SESSION}")


def _fill_with_garbage(index: Path) -> None:
    index.write_bytes(b"this is no index " * 500)


def _damage_pages(index: Path) -> None:
    """Randomise all but the first page: the index opens and fails later."""
    content = index.read_bytes()
    index.write_bytes(content[:8192] + os.urandom(len(content) - 8192))
    for suffix in ("-wal", "-shm"):
        Path(f"{index}{suffix}").unlink(missing_ok=True)


def _replace_folder_with_file(index: Path) -> None:
    """Put a file where the folder of the index should be."""
    for path in index.parent.iterdir():
        path.unlink()
    index.parent.rmdir()
    index.parent.write_bytes(b"")


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchivePool:
    """A pool with a prepared index. Temporary folders are created below `tmp_path`."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(archive_pool, "mkdtemp", _mkdtemp_in(tmp_path / "temporary"))
    home = write_home(tmp_path / "home", session_rows())
    archives = ArchivePool(tuple(homes(home)), index=tmp_path / "cache" / "index.sqlite")
    archives.prepare()
    monkeypatch.setattr(module, "MAX_AGE_SECONDS", -1.0)
    return archives


def _mkdtemp_in(folder: Path) -> Callable[..., str]:
    return lambda prefix: mkdtemp(prefix=prefix, dir=folder)


def _client(pool: ArchivePool) -> Client:
    client = Client(pool.homes[0].path)
    client.use(pool)
    return client


@pytest.mark.sample(2)
@pytest.mark.parametrize("damage", [_fill_with_garbage, _damage_pages, _replace_folder_with_file])
@pytest.mark.parametrize("is_prepared", [True, False])
def test_pages_work_with_a_damaged_index(
    pool: ArchivePool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    damage: Callable[[Path], None],
    is_prepared: bool,
) -> None:
    """Damaged before the start or while pages are shown: pages are as with an index, and there is one warning."""
    damage(tmp_path / "cache" / "index.sqlite")
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


def test_refreshes_the_replacement_index(pool: ArchivePool, tmp_path: Path) -> None:
    """The replacement index is refreshed like the original."""
    _fill_with_garbage(tmp_path / "cache" / "index.sqlite")
    assert pool.run(lambda archive: [summary.turns for summary in archive.open_index().sessions()]) == [3]
    write_home(pool.homes[0].path, session_rows(turns=9))
    assert pool.run(lambda archive: [summary.turns for summary in archive.open_index().sessions()]) == [9]


def test_pages_report_that_no_index_can_be_created(
    pool: ArchivePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the temporary folder is full too, there is one attempt and a warning, and sessions can still be read."""
    _fill_with_garbage(tmp_path / "cache" / "index.sqlite")
    prefixes: list[str] = []

    def full(prefix: str) -> str:
        prefixes.append(prefix)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive_pool, "mkdtemp", full)
    client = _client(pool)
    assert client.get("/sessions").status_code == 503
    assert client.get("/usage").status_code == 503
    assert client.get(f"/session/{SESSION}").status_code == 200
    assert len(prefixes) == 1
    assert "No space left" in caplog.text


def test_other_errors_do_not_replace_the_index(pool: ArchivePool, tmp_path: Path) -> None:
    """Errors of a transcript or of a query are not the index's fault."""
    for error in (Unreadable("The transcript may not be read."), BadQuery("That is no query.")):

        def fail(_archive: object, error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)):
            pool.run(fail)
    assert not list((tmp_path / "temporary").iterdir())
