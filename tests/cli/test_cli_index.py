"""`threadline index`: where the index lies, how it stands, bringing it up to date, making it anew."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, control_characters
from tests.cli.test_cli_streams import on_a_terminal

from threadline.index.store import VERSION, write_lock


@pytest.fixture
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a cache of its own."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "home"
    shutil.copytree(demo_home, copy)
    return copy


def _index(home: Path) -> Path:
    (found,) = (home.parent / "cache").glob("*.sqlite")
    return found


def test_the_path_is_told_and_nothing_is_made(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`path` prints where the index would lie, in every format; it is by the homes, and by `THREADLINE_CACHE`."""
    result = cli("index", "path", "--home", home)
    told = Path(result.out.rstrip("\n"))
    assert (result.code, result.err) == (0, "")
    assert told.parent == tmp_path / "cache"
    assert told.name.endswith(f"-v{VERSION}.sqlite")
    assert cli("index", "path", "--home", home, "--json").json == {"path": str(told)}
    assert not told.parent.exists()
    shutil.copytree(home, tmp_path / "other")
    assert cli("index", "path", "--home", tmp_path / "other").out != result.out


def test_the_status_before_there_is_an_index(cli: CliRunner, home: Path) -> None:
    """Exit code 1, and how it is made; a program is told the same, and nothing is written."""
    result = cli("index", "--home", home)
    assert (result.code, result.out) == (1, "")
    assert "`threadline index refresh` builds it" in result.err
    told = cli("index", "status", "--home", home, "--json")
    assert told.code == 1
    assert (told.json["exists"], told.json["changed"]) == (False, len(home_counts.transcripts(home)))
    assert not (home.parent / "cache").exists()


def test_a_refresh_says_what_it_read(cli: CliRunner, home: Path) -> None:
    """How many transcripts, bytes and entries; the second time nothing; then what was appended, and what is gone."""
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
    shown = cli("index", "refresh", "--home", home)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"1 transcript read ({len(line)} bytes); 1 entry; ")
    assert "; 1 transcript gone. Took " in shown.out


def test_the_status_counts_without_writing(cli: CliRunner, home: Path) -> None:
    """Figures are those of the index; what changed since is told by kind; the file stays as it is."""
    cli("index", "refresh", "--home", home)
    told = cli("index", "--home", home, "--json").json
    index = _index(home)
    with closing(sqlite3.connect(index)) as connection:
        for table in ("transcripts", "entries", "charges", "problems"):
            assert told[table] == connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608
    assert (told["exists"], told["schema"], told["changed"], told["changes"], told["orphans"]) == (
        True,
        VERSION,
        0,
        {},
        0,
    )
    assert told["share"] == pytest.approx(told["bytes"] / told["transcripts_bytes"], abs=0.001)
    home_counts.main_transcripts(home)[0].unlink()
    with home_counts.main_transcripts(home)[0].open("ab") as file:
        file.write(b'{"type":"user"}\n')
    before = index.read_bytes()
    changed = cli("index", "status", "--home", home)
    assert "2 transcripts (1 vanished, 1 grown)" in changed.out
    assert index.read_bytes() == before


def test_orphans_are_counted_and_freed(cli: CliRunner, home: Path) -> None:
    """Entries that are gone are counted as orphans; a rebuild leaves none."""
    cli("index", "refresh", "--home", home)
    gone = home_counts.main_transcripts(home)[0]
    lines = gone.read_bytes().count(b"\n")
    gone.unlink()
    cli("index", "refresh", "--home", home)
    assert cli("index", "--home", home, "--json").json["orphans"] == lines
    assert "`threadline index rebuild` removes those" in cli("index", "--home", home).out
    assert cli("index", "rebuild", "--home", home).code == 0
    assert cli("index", "--home", home, "--json").json["orphans"] == 0


def test_a_damaged_index_is_told_and_rebuilt(cli: CliRunner, home: Path) -> None:
    """What is no index, or half of one, is an error that says what to do, and doing so helps."""
    cli("index", "refresh", "--home", home)
    before = cli("index", "--home", home, "--json").json
    index = _index(home)
    for damage in (b"no database at all " * 1000, index.read_bytes()[:20_000], b""):
        index.write_bytes(damage)
        for question in (["index"], ["sql", "SELECT 1", "--no-refresh"]):
            result = cli(*question, "--home", home)
            assert (result.code, result.out) == (2, "")
            assert "run `threadline index rebuild`" in result.err.replace("Run", "run")
        assert cli("index", "rebuild", "--home", home).code == 0
        after = cli("index", "--home", home, "--json").json
        assert {**after, "bytes": 0, "share": 0} == {**before, "bytes": 0, "share": 0}
    assert {path.name.split(".sqlite")[1] for path in index.parent.iterdir()} <= {"", "-wal", "-shm", ".lock"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("table", "command"), [("spent", "usage"), ("session_rows", "search the")])
def test_damage_that_shows_while_it_is_asked_is_one_sentence(
    cli: CliRunner, home: Path, table: str, command: str
) -> None:
    """A table that only an answer needs is gone: no traceback, and what to do."""
    assert cli("index", "refresh", "--home", home).code == 0
    with closing(sqlite3.connect(_index(home))) as connection:
        connection.execute(f"DROP TABLE {table}")
    result = cli(*command.split(), "--home", home)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "run `threadline index rebuild`" in result.err.replace("Run", "run")


def test_an_index_that_is_busy(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another refreshes, refresh and rebuild say so; status and path answer."""
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.02)
    cli("index", "refresh", "--home", home)
    with write_lock(_index(home)):
        for action in ("refresh", "rebuild"):
            result = cli("index", action, "--home", home)
            assert (result.code, result.out) == (2, "")
            assert result.err.startswith("threadline: Another threadline is refreshing ")
        assert cli("index", "--home", home).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_may_not_be_written(cli: CliRunner, home: Path) -> None:
    """A sentence, and exit code 2."""
    (home.parent / "cache").mkdir(mode=0o500)
    result = cli("index", "refresh", "--home", home)
    assert result.code == 2
    assert "cannot be written" in result.err


def test_a_cache_that_is_a_file(cli: CliRunner, home: Path) -> None:
    """A sentence, and exit code 2, for refresh and rebuild alike."""
    (home.parent / "cache").write_text("mine")
    for action in ("refresh", "rebuild"):
        result = cli("index", action, "--home", home)
        assert (result.code, result.out) == (2, "")
        assert "cannot be written" in result.err
    assert (home.parent / "cache").read_text() == "mine"


def test_no_home_and_wrong_words(cli: CliRunner, home: Path) -> None:
    """Without a home: exit code 1. A home that is not there, or an action that there is not: 2."""
    assert cli("index").code == 1
    assert cli("index", "--home", home / "nowhere").code == 2
    result = cli("index", "frobnicate", "--home", home)
    assert result.code == 2
    assert "'status', 'refresh', 'rebuild', 'path'" in result.err


def test_a_hostile_name_of_the_cache_is_shown_harmlessly(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's name is shown as escapes, in answers and in errors."""
    monkeypatch.setenv("THREADLINE_CACHE", f"{home.parent}/cache\x1b[31m")
    for question in (["path"], ["status"], ["refresh"], ["status"], ["status", "--json"]):
        result = cli("index", *question, "--home", home)
        assert control_characters(result.out + result.err) == set()


def test_a_first_build_shows_how_far_it_has_come(home: Path) -> None:
    """On a terminal: a bar with time left and the rate, which is gone when the answer comes."""
    with on_a_terminal("index", "refresh", "--home", home, THREADLINE_CACHE=str(home.parent / "cache")) as (
        asking,
        terminal,
    ):
        out, _ = asking.communicate(timeout=60)
        seen = terminal.read()
    assert asking.returncode == 0
    assert out.startswith(f"{len(home_counts.transcripts(home))} transcripts read (".encode())
    assert b"Indexing" in seen
    assert re.search(rb"\d MB/s", seen)
    assert seen.endswith(b"\x1b[1A\x1b[2K")
