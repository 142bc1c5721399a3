"""Sessions that Claude Code deletes are still listed, searched, shown, counted and exported from the keep."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner

import threadline

DELETED_FOLDERS = ("projects", "todos", "tasks", "file-history", "plans", "image-cache", "paste-cache")
TIME = re.compile(rb'"timestamp":"([^"]+)"')
COMMANDS = (
    ("--json",),
    ("list", "--json"),
    ("list", "--project", "tide", "--limit", "3", "--json"),
    ("usage", "--json"),
    ("usage", "--by", "session", "--json"),
    ("usage", "--by", "project,model", "--json"),
    ("usage", "--by", "home,agent-type", "--json"),
    ("usage", "--by", "tool", "--json"),
    ("blocks", "--json"),
    ("search", "test", "--all", "--sort", "time", "--limit", "500", "--json"),
    ("search", "error kind:assistant", "--json"),
    ("calls", "--json"),
    ("files", "--json"),
    ("errors", "--json"),
    ("history", "--json"),
    ("sql", "SELECT session, title, project, turns, agents FROM sessions ORDER BY session", "--json"),
)


@pytest.fixture
def home(small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose files have the mtime of their last line, with its own keep and cache."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    copy = tmp_path / "home"
    shutil.copytree(small_home, copy)
    times = {path: last_timestamp(path) for path in copy.rglob("*.jsonl")}
    sessions = {path.stem: when for path, when in times.items() if when is not None}
    for path in (path for path in copy.rglob("*") if path.is_file()):
        last = times.get(path) or next((sessions[part] for part in path.parts if part in sessions), None)
        when = last or min(sessions.values())
        os.utime(path, (when.timestamp(), when.timestamp()))
    return copy


@pytest.mark.parametrize("index", ["on", pytest.param("off", marks=pytest.mark.slow)])
def test_results_are_the_same_after_deletion(
    cli: CliRunner, home: Path, tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept, then deleted: every result is the same as before, except for the mark and the paths."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    assert cli("keep", "--home", home).code == 0
    commands = [
        *COMMANDS,
        *(("show", session["session"], "--json") for session in cli("list", "--home", home, "--json").json),
    ]
    before = {command: normalized_output(cli, command, home, tmp_path) for command in commands}
    deleted = list(delete_old_files(home))
    assert deleted
    after = {command: normalized_output(cli, command, home, tmp_path) for command in commands}
    for command in commands:
        assert after[command] == before[command], command
    listed = cli("list", "--home", home, "--json").json
    assert {session["session"] for session in listed if session["kept"]} == {
        path.stem for path in deleted if is_main_transcript(path)
    }
    assert 0 < sum(session["kept"] for session in listed) < len(listed)


def test_kept_sessions_are_marked(cli: CliRunner, home: Path) -> None:
    """Lists, hits and `show` mark sessions that exist only in the keep. With --no-keep they are missing."""
    cli("keep", "--home", home)
    deleted = [path for path in delete_old_files(home) if is_main_transcript(path)]
    page = cli("list", "--home", home, "--limit", "1000").out
    for path in deleted:
        assert f"{path.stem[:8]}  kept  " in page
    name = deleted[0].stem
    assert "kept" in cli("show", name, "--home", home).out.split("\n\n")[0]
    assert cli("show", name, "--home", home, "--json").json["kept"] is True
    assert all(hit["kept"] for hit in cli("search", f"session:{name}", "--home", home, "--json").json)
    assert " · kept · " in cli("search", f"session:{name}", "--home", home).out
    assert f"{name[:8]}  kept · " in cli("usage", "--by", "session", "--home", home).out
    assert f"{len(deleted)} of them only in the keep" in cli("--home", home).out
    assert cli("show", name, "--home", home, "--no-keep").code == 2
    assert not any(session["kept"] for session in cli("list", "--home", home, "--no-keep", "--json").json)


@pytest.mark.slow
@pytest.mark.parametrize("export_format", ["md", "json", "jsonl", "html"])
def test_kept_sessions_are_exported(cli: CliRunner, home: Path, tmp_path: Path, export_format: str) -> None:
    """An export has every session from before, unchanged."""
    cli("keep", "--home", home)
    export = ("export", "--home", home, "--since", "2000-01-01", "--all", "--format", export_format, "--out")
    assert cli(*export, tmp_path / "before").code == 0
    assert list(delete_old_files(home))
    assert cli(*export, tmp_path / "after").code == 0
    before, after = (file_contents(tmp_path / name) for name in ("before", "after"))
    assert len(before) >= len(cli("list", "--home", home, "--json").json)
    assert after == before


@pytest.mark.parametrize(
    "command", ["list", *(pytest.param(command, marks=pytest.mark.slow) for command in ("usage", "search"))]
)
def test_reports_missing_keep(cli: CliRunner, home: Path, tmp_path: Path, command: str) -> None:
    """If the keep was moved, or its disk is not mounted, its sessions are left out, and a message says so."""
    arguments = [command, "test"] if command == "search" else [command]
    assert cli("keep", "--home", home).code == 0
    assert list(delete_old_files(home))
    assert "not there" not in cli(*arguments, "--home", home).err
    (tmp_path / "keep").rename(tmp_path / "away")
    assert "so sessions that only it has are left out. Is its disk mounted" in cli(*arguments, "--home", home).err
    assert "is left out" not in cli(*arguments, "--home", home, "--no-keep").err
    (tmp_path / "away").rename(tmp_path / "keep")
    assert "not there" not in cli(*arguments, "--home", home).err


def test_open_archive_reads_keep_created_later(cli: CliRunner, home: Path) -> None:
    """An open archive, such as the web page's, reads a keep that was created since."""
    with threadline.open(home) as archive:
        homes = len(archive.reload_kept_homes())
        assert cli("keep", "--home", home).code == 0
        assert list(delete_old_files(home))
        assert len(archive.reload_kept_homes()) == homes + 1


def delete_old_files(home: Path, days: int = 30) -> Iterator[Path]:
    """Delete what Claude Code deletes that many days after it was last written, counted from the newest."""
    files = [path for name in DELETED_FOLDERS for path in sorted((home / name).rglob("*")) if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    for path in files:
        if path.stat().st_mtime < newest - timedelta(days=days).total_seconds():
            path.unlink()
            yield path


def last_timestamp(path: Path) -> datetime | None:
    """The newest timestamp in a transcript."""
    times = [datetime.fromisoformat(time.decode()).astimezone(UTC) for time in TIME.findall(path.read_bytes())]
    return max(times, default=None)


def is_main_transcript(path: Path) -> bool:
    """Whether the path is a main transcript."""
    return path.suffix == ".jsonl" and path.parent.parent.name == "projects" and not path.name.startswith("agent-")


def normalized_output(cli: CliRunner, arguments: tuple[str, ...], home: Path, tmp_path: Path) -> Any:
    """The output as if everything were in the home, without the mark of kept sessions."""
    result = cli(*arguments, "--home", home)
    assert result.code == 0, (arguments, result.err)
    kept = "|".join(map(re.escape, map(str, (tmp_path / "cache" / "kept").glob("*/*"))))
    text = re.sub(kept, str(home), result.out) if kept else result.out
    return drop_varying_keys(json.loads(text))


def drop_varying_keys(value: Any) -> Any:
    """The value without the keys that may differ, at any depth."""
    if isinstance(value, list):
        return [drop_varying_keys(item) for item in value]
    if isinstance(value, dict):
        return {
            key: drop_varying_keys(item) for key, item in value.items() if key not in {"kept", "homes", "now", "score"}
        }
    return value


def file_contents(folder: Path) -> dict[str, bytes]:
    """The contents of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
