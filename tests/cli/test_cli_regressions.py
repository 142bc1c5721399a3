"""Regression tests for problems found by trying to break the command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import line, prompt, reply, transcript, write
from tools.demo import write as demo

import threadline
from threadline.model.entries import Entry
from threadline.parse import TranscriptReader

_SESSION = "00000000-0000-4000-8000-000000000001"


def write_home(place: Path) -> Path:
    """A home with one session. Returns its transcript."""
    path = place / "projects" / "-tmp-p" / f"{_SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    write(path, *transcript(prompt("hi"), reply("ok")))
    return path


@pytest.mark.parametrize("command", ["", "doctor", "list", f"show {_SESSION}", f"tree {_SESSION}", "errors"])
def test_accepts_version_with_thousands_of_digits(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """No number in a transcript is too long for any command."""
    path = write_home(tmp_path / "home")
    row = {"type": "user", "uuid": "a", "version": "9" * 5000 + ".1", "message": {"role": "user", "content": "hi"}}
    path.write_bytes(line(row) + line({**row, "uuid": "b", "parentUuid": "a"}))
    assert "Traceback" not in cli(*command.split(), "--home", str(tmp_path / "home")).err


def test_session_does_not_follow_links_to_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links next to a session that lead to secrets are not followed."""
    path = write_home(tmp_path / "home")
    for name in (".credentials.json", "x.key", "settings.json"):
        (tmp_path / "home" / name).write_text('{"type":"user","uuid":"secret"}\n')
    (path.parent / "00000000-0000-4000-8000-000000000003.jsonl").symlink_to("../../.credentials.json")
    (path.parent / "00000000-0000-4000-8000-000000000004.jsonl").symlink_to("../../x.key")
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    write(agents / "agent-a1.jsonl", *transcript(prompt("go")))
    (agents / "agent-a1.meta.json").symlink_to("../../../../settings.json")
    opened: list[str] = []
    real_open = os.open

    def recording_open(file: str | Path, *arguments: int, **keywords: int) -> int:
        opened.append(os.path.realpath(file))
        return real_open(file, *arguments, **keywords)

    monkeypatch.setattr(os, "open", recording_open)
    threadline.read(path)
    assert not [name for name in opened if name.endswith((".credentials.json", ".key", "settings.json"))]


def test_refuses_transcript_that_links_to_a_secret(tmp_path: Path) -> None:
    """A link with the name of a transcript that leads to a secret is not opened."""
    (tmp_path / ".credentials.json").write_text("{}")
    (tmp_path / "a.jsonl").symlink_to(".credentials.json")
    with pytest.raises(threadline.Unreadable, match="never opens"):
        list(threadline.entries(tmp_path / "a.jsonl"))


@pytest.mark.slow
def test_homes_that_share_transcripts_are_counted_once(cli: CliRunner, tmp_path: Path) -> None:
    """Two homes whose `projects` is the same directory are counted once."""
    demo(tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "projects").symlink_to("../one/projects")
    single = cli("--home", str(tmp_path / "one"), "--json").json
    both = cli("--home", str(tmp_path / "one"), "--home", str(tmp_path / "two"), "--json").json
    for key in ("transcripts", "entries", "sessions", "bytes"):
        assert both[key] == single[key]
    assert len(both["projects"]) == len(single["projects"])


def test_check_allows_file_that_grows_meanwhile(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a live session appends during the check do not make the round trip fail. Lost bytes do."""
    path = write_home(tmp_path / "home")
    real_entries = TranscriptReader.entries

    def append_while_reading(self: TranscriptReader, transcript_path: Path) -> Iterator[Entry]:
        yield from real_entries(self, transcript_path)
        with path.open("ab") as file:
            file.write(b'{"type":"mode"}\n')

    monkeypatch.setattr(TranscriptReader, "entries", append_while_reading)
    assert cli("doctor", "--check", str(path), "--json").json["round_trip"] is True

    def lose_last_entry(self: TranscriptReader, transcript_path: Path) -> Iterator[Entry]:
        yield from list(real_entries(self, transcript_path))[:-1]

    monkeypatch.setattr(TranscriptReader, "entries", lose_last_entry)
    assert cli("doctor", "--check", str(path), "--json").code == 2


def test_invalid_timestamp_does_not_affect_date_range(cli: CliRunner, tmp_path: Path) -> None:
    """The date range comes from the valid timestamps."""
    path = write_home(tmp_path / "home")
    times = ("2026-01-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z", "2x")
    path.write_bytes(
        b"".join(line({"type": "user", "uuid": str(number), "timestamp": time}) for number, time in enumerate(times))
    )
    report = cli("--home", str(tmp_path / "home"), "--json").json
    assert (report["first"][:10], report["last"][:10]) == ("2026-01-01", "2026-06-01")
