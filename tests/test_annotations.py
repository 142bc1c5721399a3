"""Stars, tags, notes and saved searches: stored privately and atomically, outside the Claude homes, and kept."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests import transcripts

from threadline.annotations import (
    annotate_session,
    annotations_file,
    read_annotations,
    remove_search,
    save_search,
)
from threadline.errors import BadQuery, NotFound, Unreadable


@pytest.fixture(autouse=True)
def _data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder for each test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_parts_change_independently() -> None:
    """A star, tags and a note are set one by one; an empty annotation is not stored."""
    annotate_session("a", starred=True)
    annotate_session("a", tags=["bug, to review", "bug"])
    annotate_session("a", note="See <b>turn 3</b>\x07")
    stored = read_annotations().sessions["a"]
    assert (stored.starred, stored.tags, stored.note) == (True, ("bug", "to review"), "See <b>turn 3</b>")
    annotate_session("a", starred=False, tags=(), note="")
    assert read_annotations().sessions == {}


def test_tags_are_compared_without_control_characters() -> None:
    """A tag that consists of them is no tag."""
    annotate_session("a", tags=["\x07", "bug", "bug\x01", "\x02 bug,review"])
    assert read_annotations().sessions["a"].tags == ("bug", "review")


def test_the_file_is_private_and_outside_homes() -> None:
    """Only its owner may read it, and it is in the data folder."""
    annotate_session("a", starred=True)
    assert stat.S_IMODE(annotations_file().stat().st_mode) == 0o600
    assert annotations_file().parent.name == "threadline"


def test_changes_of_several_processes_are_all_stored() -> None:
    """Processes that write at the same time lose nothing."""
    code = (
        "import sys; from threadline.annotations import annotate_session\n"
        "for number in range(8): annotate_session(f'{sys.argv[1]}-{number}', starred=True)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]  # noqa: S603 - our own
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(read_annotations().sessions) == 16


def test_a_damaged_file_is_reported_and_left_alone() -> None:
    """Nothing is overwritten."""
    annotate_session("a", starred=True)
    annotations_file().write_bytes(b'{"sessions": [')
    with pytest.raises(Unreadable, match="damaged"):
        annotate_session("b", starred=True)
    assert annotations_file().read_bytes() == b'{"sessions": ['


def test_searches_are_saved_by_name() -> None:
    """A search with the same name is replaced; addresses of other pages and hosts are refused."""
    save_search("retries", "/search?q=retry")
    save_search("retries", "/search?q=retry+limit")
    assert [(search.name, search.address) for search in read_annotations().searches] == [
        ("retries", "/search?q=retry+limit")
    ]
    for address in ("//example.org/search", "http://example.org/search?q=x", "javascript:alert(1)", "/access"):
        with pytest.raises(BadQuery):
            save_search("x", address)
    remove_search("retries")
    with pytest.raises(NotFound):
        remove_search("retries")


def test_keep_stores_and_restores_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of `keep` stores the file, and `restore` brings it back."""
    home = tmp_path / "home"
    transcripts.write(
        home / "projects" / "-work" / f"{transcripts.SESSION}.jsonl",
        *transcripts.transcript(transcripts.prompt("Sort the shelf")),
    )
    annotate_session("a", note="worth keeping")
    keep = str(tmp_path / "keep")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    assert _run("keep", "--keep", keep) == 0
    annotations_file().unlink()
    assert _run("keep", "restore", "--keep", keep, "--all", "--to", str(tmp_path / "other")) == 0
    assert not (tmp_path / "other" / annotations_file().name).exists()
    assert _run("keep", "restore", "--keep", keep, "--all") == 0
    assert read_annotations().sessions["a"].note == "worth keeping"


def _run(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "threadline", *arguments], check=False).returncode  # noqa: S603 - our own
