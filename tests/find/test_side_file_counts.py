"""Tests of counting side files without listing them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from threadline.errors import NotFound
from threadline.find import count_side_files, look
from threadline.model.homes import Home


def test_counts_equal_the_listing(tmp_path: Path) -> None:
    """Numbers, order and problems equal those of a listing, including symlinks and secrets."""
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
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    (tmp_path / ".claude.json").write_text("{}")
    (home / "debug" / "latest").symlink_to(home / "debug" / "one.txt")
    (home / "debug" / "nowhere").symlink_to(home / "gone")
    (home / "plans").symlink_to(tmp_path)
    (folder / "again.txt").symlink_to(home / "todos" / "a.json")
    (folder / "outside.txt").symlink_to(tmp_path / ".claude.json")
    os.mkfifo(home / "todos" / "pipe")
    listing = look(home)
    counts = count_side_files(listing.home)
    assert list(counts.kinds.items()) == list(Counter(str(file.kind) for file in listing.side_files).items())
    assert sorted(map(str, counts.problems)) == sorted(map(str, listing.problems))
    assert counts.kinds["todos"] == 2
    assert len(counts.problems) >= 4


def test_missing_home_is_an_error(tmp_path: Path) -> None:
    """As for `look`."""
    with pytest.raises(NotFound):
        count_side_files(Home(tmp_path / "gone", "option"))


def test_unreadable_directory_has_the_same_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory that can be listed but not entered, every file is a problem."""
    home = tmp_path / "home"
    for name in ("projects/-a/x.jsonl", "todos/a.json", "todos/b.json", "plans/p.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    real_scandir = os.scandir

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
            self.path, self.entries = path, real_scandir(path)

        def __enter__(self) -> list[object]:
            is_closed = self.path.endswith("todos")
            return [Closed(entry) if is_closed else entry for entry in self.entries]

        def __exit__(self, *_error: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Listing)
    listing = look(Home(home, "option"))
    counts = count_side_files(listing.home)
    assert counts.kinds == {"plan": 1}
    assert sorted(map(str, counts.problems)) == sorted(map(str, listing.problems))
    assert len(counts.problems) == 2
