"""Counting side files, which lists none of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from threadline.errors import NotFound
from threadline.find import count_side_files, look
from threadline.model.homes import Home


def test_side_files_are_counted_as_they_are_listed(tmp_path: Path) -> None:
    """Counting side files gives the numbers, the order and the problems of listing them, links and secrets included."""
    home = tmp_path / ".claude"
    folder = home / "projects" / "-a"
    for name in (
        "todos/a.json",
        "todos/b.json",
        "debug/one.txt",
        "tasks/s/.lock",
        "tasks/s/1.json",
        "backups/.claude.json.backup",
        "statsig/security_warnings_state",
        "session-env/security_x/one",
        "projects/-a/00000000-0000-4000-8000-000000000001.jsonl",
        "projects/-a/00000000-0000-4000-8000-000000000001/tool-results/x.jsonl",
        "projects/-a/00000000-0000-4000-8000-000000000001/subagents/agent-1.jsonl",
        "projects/-a/00000000-0000-4000-8000-000000000001/subagents/agent-1.meta.json",
        "projects/-a/memory/notes.jsonl",
        "projects/-a/.env.jsonl",
        "projects/-a/SHOUTED.JSONL",
        "projects/-a/sessions-index.json",
        "settings.json",
        "my-settings.local.json",
        "history.jsonl",
        "stats-cache.json",
        ".credentials.json",
    ):
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}\n")
    (tmp_path / ".claude.json").write_text("{}")
    (home / "debug" / "latest").symlink_to(home / "debug" / "one.txt")
    (home / "debug" / "nowhere").symlink_to(home / "gone")
    (home / "plans").symlink_to(tmp_path)
    (folder / "again.txt").symlink_to(home / "todos" / "a.json")
    (folder / "outside.txt").symlink_to(tmp_path / ".claude.json")
    os.mkfifo(home / "todos" / "pipe")
    found = look(home)
    counted = count_side_files(found.home)
    assert list(counted.kinds.items()) == list(Counter(str(file.kind) for file in found.side_files).items())
    assert sorted(map(str, counted.problems)) == sorted(map(str, found.problems))
    assert counted.kinds["todos"] == 2
    assert len(counted.problems) >= 4


def test_a_home_that_is_gone_is_not_counted(tmp_path: Path) -> None:
    """It is an error, as a look at it is."""
    with pytest.raises(NotFound):
        count_side_files(Home(tmp_path / "gone", "option"))


def test_where_the_machine_refuses_all_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that may be listed and not entered: the same problems, file by file, and the same numbers."""
    home = tmp_path / "home"
    for name in ("projects/-a/x.jsonl", "todos/a.json", "todos/b.json", "plans/p.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    plain = os.scandir

    class Closed:
        """An entry of a directory that may not be entered."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path = entry.name, entry.path
            self.is_file, self.is_dir, self.is_symlink = entry.is_file, entry.is_dir, entry.is_symlink

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            del follow_symlinks
            raise PermissionError(13, "Permission denied", self.path)

    class Listing:
        """A listing in which the todos are closed."""

        def __init__(self, path: str) -> None:
            self.path, self.entries = path, plain(path)

        def __enter__(self) -> list[object]:
            is_closed = self.path.endswith("todos")
            return [Closed(entry) if is_closed else entry for entry in self.entries]

        def __exit__(self, *_error: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Listing)
    found = look(Home(home, "option"))
    counted = count_side_files(found.home)
    assert counted.kinds == {"plan": 1}
    assert sorted(map(str, counted.problems)) == sorted(map(str, found.problems))
    assert len(counted.problems) == 2
