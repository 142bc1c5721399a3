"""The thirty days: what Claude Code deletes is still listed, searched, shown, counted and exported once it was kept."""

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

SWEPT = ("projects", "todos", "tasks", "file-history", "plans", "image-cache", "paste-cache")
TIME = re.compile(rb'"timestamp":"([^"]+)"')
ASKED = (
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
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose files were written when their last line says, with a keep and a cache of its own."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = tmp_path / "home"
    shutil.copytree(demo_home, made)
    times = {path: _last(path) for path in made.rglob("*.jsonl")}
    sessions = {path.stem: when for path, when in times.items() if when is not None}
    for path in (path for path in made.rglob("*") if path.is_file()):
        own = times.get(path) or next((sessions[part] for part in path.parts if part in sessions), None)
        when = own or min(sessions.values())
        os.utime(path, (when.timestamp(), when.timestamp()))
    return made


@pytest.mark.parametrize("index", ["on", pytest.param("off", marks=pytest.mark.slow)])
def test_nothing_is_lost(
    cli: CliRunner, home: Path, tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept, then swept: every answer is the one from before, but for the mark and where the transcripts lie."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    assert cli("keep", "--home", home).code == 0
    asked = [*ASKED, *(("show", one["id"], "--json") for one in cli("list", "--home", home, "--json").json)]
    before = {one: _told(cli, one, home, tmp_path) for one in asked}
    swept = list(sweep(home))
    assert swept
    after = {one: _told(cli, one, home, tmp_path) for one in asked}
    for one in asked:
        assert after[one] == before[one], one
    listed = cli("list", "--home", home, "--json").json
    assert {one["id"] for one in listed if one["kept"]} == {path.stem for path in swept if _is_main(path)}
    assert 0 < sum(one["kept"] for one in listed) < len(listed)


def test_what_is_kept_is_marked(cli: CliRunner, home: Path) -> None:
    """Lists, hits and what is shown say that a session is only in the keep; without the keep it is not there."""
    cli("keep", "--home", home)
    swept = [path for path in sweep(home) if _is_main(path)]
    page = cli("list", "--home", home, "--limit", "1000").out
    for path in swept:
        assert f"{path.stem[:8]}  kept  " in page
    name = swept[0].stem
    assert "kept" in cli("show", name, "--home", home).out.split("\n\n")[0]
    assert cli("show", name, "--home", home, "--json").json["kept"] is True
    assert all(hit["kept"] for hit in cli("search", f"session:{name}", "--home", home, "--json").json)
    assert " · kept · " in cli("search", f"session:{name}", "--home", home).out
    assert f"{name[:8]}  kept · " in cli("usage", "--by", "session", "--home", home).out
    assert f"{len(swept)} of them only in the keep" in cli("--home", home).out
    assert cli("show", name, "--home", home, "--no-keep").code == 2
    assert not any(one["kept"] for one in cli("list", "--home", home, "--no-keep", "--json").json)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["md", "json", "jsonl", "html"])
def test_what_is_kept_is_exported(cli: CliRunner, home: Path, tmp_path: Path, form: str) -> None:
    """An export has every session from before, word for word."""
    cli("keep", "--home", home)
    everything = ("export", "--home", home, "--since", "2000-01-01", "--all", "--format", form, "--out")
    assert cli(*everything, tmp_path / "before").code == 0
    assert list(sweep(home))
    assert cli(*everything, tmp_path / "after").code == 0
    before, after = (_contents(tmp_path / name) for name in ("before", "after"))
    assert len(before) >= len(cli("list", "--home", home, "--json").json)
    assert after == before


@pytest.mark.parametrize(
    "command", ["list", *(pytest.param(command, marks=pytest.mark.slow) for command in ("usage", "search"))]
)
def test_a_keep_that_is_away_is_missed(cli: CliRunner, home: Path, tmp_path: Path, command: str) -> None:
    """Where the keep was moved, or its disk is not mounted, what only it had is left out, and that is said."""
    asked = [command, "test"] if command == "search" else [command]
    assert cli("keep", "--home", home).code == 0
    assert list(sweep(home))
    assert "not there" not in cli(*asked, "--home", home).err
    (tmp_path / "keep").rename(tmp_path / "away")
    assert "so sessions that only it has are left out. Is its disk mounted" in cli(*asked, "--home", home).err
    assert "is left out" not in cli(*asked, "--home", home, "--no-keep").err
    (tmp_path / "away").rename(tmp_path / "keep")
    assert "not there" not in cli(*asked, "--home", home).err


def test_a_keep_that_is_begun_later_is_read(cli: CliRunner, home: Path) -> None:
    """An archive that stays open, as the page's does, has what a keep has that was begun since."""
    with threadline.open(home) as archive:
        many = len(archive.reload_kept_homes())
        assert cli("keep", "--home", home).code == 0
        assert list(sweep(home))
        assert len(archive.reload_kept_homes()) == many + 1


def sweep(home: Path, days: int = 30) -> Iterator[Path]:
    """Delete what Claude Code deletes that many days after it was last written, counted from the newest."""
    files = [path for name in SWEPT for path in sorted((home / name).rglob("*")) if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    for path in files:
        if path.stat().st_mtime < newest - timedelta(days=days).total_seconds():
            path.unlink()
            yield path


def _last(path: Path) -> datetime | None:
    times = [datetime.fromisoformat(one.decode()).astimezone(UTC) for one in TIME.findall(path.read_bytes())]
    return max(times, default=None)


def _is_main(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.parent.parent.name == "projects" and not path.name.startswith("agent-")


def _told(cli: CliRunner, asked: tuple[str, ...], home: Path, tmp_path: Path) -> Any:
    """An answer as if all of it were in the home, and without the mark."""
    result = cli(*asked, "--home", home)
    assert result.code == 0, (asked, result.err)
    kept = "|".join(map(re.escape, map(str, (tmp_path / "cache" / "kept").glob("*/*"))))
    text = re.sub(kept, str(home), result.out) if kept else result.out
    return _plain(json.loads(text))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in {"kept", "homes", "now", "score"}}
    return value


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
