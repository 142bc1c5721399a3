"""`threadline index`: path, status, refresh and rebuild."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, control_characters
from tests.cli.test_cli_streams import start_on_terminal

from threadline.index.store import VERSION, write_lock


@pytest.fixture
def home(small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo home, and a new cache folder."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "home"
    shutil.copytree(small_home, copy)
    return copy


def index_file(home: Path) -> Path:
    """The index file of the home."""
    (path,) = (home.parent / "cache").glob("*.sqlite")
    return path


def test_path_prints_location_without_creating_it(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`path` prints where the index would be, in every format. It depends on the homes and `THREADLINE_CACHE`."""
    result = cli("index", "path", "--home", home)
    path = Path(result.out.rstrip("\n"))
    assert (result.code, result.err) == (0, "")
    assert path.parent == tmp_path / "cache"
    assert path.name.endswith(f"-v{VERSION}.sqlite")
    assert cli("index", "path", "--home", home, "--json").json == {"path": str(path)}
    assert not path.parent.exists()
    shutil.copytree(home, tmp_path / "other")
    assert cli("index", "path", "--home", tmp_path / "other").out != result.out


def test_status_without_an_index(cli: CliRunner, home: Path) -> None:
    """Exit code 1, and the message says how to build it. Nothing is written."""
    result = cli("index", "--home", home)
    assert (result.code, result.out) == (1, "")
    assert "`threadline index refresh` builds it" in result.err
    status = cli("index", "status", "--home", home, "--json")
    assert status.code == 1
    assert (status.json["exists"], status.json["changed"]) == (False, len(home_counts.transcripts(home)))
    assert not (home.parent / "cache").exists()


def test_refresh_reports_what_it_read(cli: CliRunner, home: Path) -> None:
    """Transcripts, bytes and entries; then nothing; then what was appended and deleted."""
    transcripts = home_counts.transcripts(home)
    first = cli("index", "refresh", "--home", home, "--json").json
    size = sum(path.stat().st_size for path in transcripts)
    assert (first["transcripts"], first["bytes"], first["gone"]) == (len(transcripts), size, 0)
    assert cli("index", "refresh", "--home", home).out.startswith("Nothing changed. Took ")
    main = home_counts.main_transcripts(home)[0]
    line = main.read_bytes().splitlines(keepends=True)[0]
    with main.open("ab") as file:
        file.write(line)
    home_counts.main_transcripts(home)[-1].unlink()
    result = cli("index", "refresh", "--home", home)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"1 transcript read ({len(line)} bytes); 1 entry; ")
    assert "; 1 transcript gone. Took " in result.out


def test_status_counts_rows_and_changes_without_writing(cli: CliRunner, home: Path) -> None:
    """The counts are those of the index, changes are counted by kind, and the file is not modified."""
    cli("index", "refresh", "--home", home)
    status = cli("index", "--home", home, "--json").json
    index = index_file(home)
    with closing(sqlite3.connect(index)) as connection:
        for table in ("transcripts", "entries", "charges", "problems"):
            assert status[table] == connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608
    assert (status["exists"], status["schema"], status["changed"], status["changes"], status["orphans"]) == (
        True,
        VERSION,
        0,
        {},
        0,
    )
    assert float(status["share"]) == pytest.approx(status["bytes"] / status["transcripts_bytes"], abs=0.001)
    home_counts.main_transcripts(home)[0].unlink()
    with home_counts.main_transcripts(home)[0].open("ab") as file:
        file.write(b'{"type":"user"}\n')
    before = index.read_bytes()
    changed = cli("index", "status", "--home", home)
    assert "2 transcripts (1 vanished, 1 grown)" in changed.out
    assert index.read_bytes() == before


def test_refresh_removes_orphans(cli: CliRunner, home: Path) -> None:
    """Deleted entries are counted as orphans until a refresh removes their words."""
    cli("index", "refresh", "--home", home)
    home_counts.main_transcripts(home)[0].unlink()
    with patch("threadline.index.refresh.purge", return_value=True):
        cli("index", "refresh", "--home", home)
    assert cli("index", "--home", home, "--json").json["orphans"] > 0
    assert "`threadline index refresh` removes them" in cli("index", "--home", home).out
    assert cli("index", "refresh", "--home", home).code == 0
    assert cli("index", "--home", home, "--json").json["orphans"] == 0


def test_reports_damaged_index_and_rebuilds_it(cli: CliRunner, home: Path) -> None:
    """A damaged index is an error that says what to do, and a rebuild fixes it."""
    cli("index", "refresh", "--home", home)
    before = cli("index", "--home", home, "--json").json
    index = index_file(home)
    for damage in (b"no database at all " * 1000, index.read_bytes()[:20_000], b""):
        index.write_bytes(damage)
        for command in (["index"], ["sql", "SELECT 1", "--no-refresh"]):
            result = cli(*command, "--home", home)
            assert (result.code, result.out) == (2, "")
            assert "run `threadline index rebuild`" in result.err.replace("Run", "run")
        assert cli("index", "rebuild", "--home", home).code == 0
        after = cli("index", "--home", home, "--json").json
        assert {**after, "bytes": 0, "share": 0} == {**before, "bytes": 0, "share": 0}
    assert {path.name.split(".sqlite")[1] for path in index.parent.iterdir()} <= {"", "-wal", "-shm", ".lock"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("table", "command"), [("spent", "usage"), ("session_rows", "search the")])
def test_damage_found_during_a_query_is_an_error(cli: CliRunner, home: Path, table: str, command: str) -> None:
    """If a table is missing, the message says what to do, without a traceback."""
    assert cli("index", "refresh", "--home", home).code == 0
    with closing(sqlite3.connect(index_file(home))) as connection:
        connection.execute(f"DROP TABLE {table}")
    result = cli(*command.split(), "--home", home)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "run `threadline index rebuild`" in result.err.replace("Run", "run")


def test_busy_index(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process refreshes, refresh and rebuild say so. Status still works."""
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.02)
    cli("index", "refresh", "--home", home)
    with write_lock(index_file(home)):
        for action in ("refresh", "rebuild"):
            result = cli("index", action, "--home", home)
            assert (result.code, result.out) == (2, "")
            assert result.err.startswith("threadline: Another threadline is refreshing ")
        assert cli("index", "--home", home).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_cache_is_an_error(cli: CliRunner, home: Path) -> None:
    """Exit code 2, and a sentence."""
    (home.parent / "cache").mkdir(mode=0o500)
    result = cli("index", "refresh", "--home", home)
    assert result.code == 2
    assert "cannot be written" in result.err


def test_cache_that_is_a_file_is_an_error(cli: CliRunner, home: Path) -> None:
    """Exit code 2, and a sentence, for refresh and rebuild."""
    (home.parent / "cache").write_text("mine")
    for action in ("refresh", "rebuild"):
        result = cli("index", action, "--home", home)
        assert (result.code, result.out) == (2, "")
        assert "cannot be written" in result.err
    assert (home.parent / "cache").read_text() == "mine"


def test_missing_home_and_unknown_action(cli: CliRunner, home: Path) -> None:
    """Without a home the exit code is 1. A missing home or an unknown action exits with 2."""
    assert cli("index").code == 1
    assert cli("index", "--home", home / "nowhere").code == 2
    result = cli("index", "frobnicate", "--home", home)
    assert result.code == 2
    assert "'status', 'refresh', 'rebuild', 'path'" in result.err


def test_escapes_hostile_cache_name(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the cache folder is escaped, in results and in errors."""
    monkeypatch.setenv("THREADLINE_CACHE", f"{home.parent}/cache\x1b[31m")
    for arguments in (["path"], ["status"], ["refresh"], ["status"], ["status", "--json"]):
        result = cli("index", *arguments, "--home", home)
        assert control_characters(result.out + result.err) == set()


def test_first_build_shows_progress(home: Path) -> None:
    """A terminal shows a bar with the rate, which is removed before the result."""
    with start_on_terminal("index", "refresh", "--home", home, THREADLINE_CACHE=str(home.parent / "cache")) as (
        process,
        terminal,
    ):
        out, _ = process.communicate(timeout=60)
        screen = terminal.read()
    assert process.returncode == 0
    assert out.startswith(f"{len(home_counts.transcripts(home))} transcripts read (".encode())
    assert b"Indexing" in screen
    assert re.search(rb"\d MB/s", screen)
    assert screen.endswith(b"\x1b[1A\x1b[2K")
