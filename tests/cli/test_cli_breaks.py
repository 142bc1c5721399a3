"""What somebody who tried to break the command broke, and what must happen instead."""

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


def a_home(place: Path) -> Path:
    """A home with one session, whose transcript is returned."""
    path = place / "projects" / "-tmp-p" / f"{_SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    write(path, *transcript(prompt("hi"), reply("ok")))
    return path


@pytest.mark.parametrize("command", ["", "doctor", "list", f"show {_SESSION}", f"tree {_SESSION}", "errors"])
def test_a_version_of_thousands_of_digits_is_a_version(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """No number in a transcript is too long for any command."""
    path = a_home(tmp_path / "home")
    row = {"type": "user", "uuid": "a", "version": "9" * 5000 + ".1", "message": {"role": "user", "content": "hi"}}
    path.write_bytes(line(row) + line({**row, "uuid": "b", "parentUuid": "a"}))
    assert "Traceback" not in cli(*command.split(), "--home", str(tmp_path / "home")).err


def test_a_session_opens_no_secret_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links beside a session that lead to secrets are not followed."""
    path = a_home(tmp_path / "home")
    for name in (".credentials.json", "x.key", "settings.json"):
        (tmp_path / "home" / name).write_text('{"type":"user","uuid":"secret"}\n')
    (path.parent / "00000000-0000-4000-8000-000000000003.jsonl").symlink_to("../../.credentials.json")
    (path.parent / "00000000-0000-4000-8000-000000000004.jsonl").symlink_to("../../x.key")
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    write(agents / "agent-a1.jsonl", *transcript(prompt("go")))
    (agents / "agent-a1.meta.json").symlink_to("../../../../settings.json")
    opened: list[str] = []
    real = os.open

    def watched(file: str | Path, *arguments: int, **named: int) -> int:
        opened.append(os.path.realpath(file))
        return real(file, *arguments, **named)

    monkeypatch.setattr(os, "open", watched)
    threadline.read(path)
    assert not [name for name in opened if name.endswith((".credentials.json", ".key", "settings.json"))]


def test_a_link_to_a_secret_is_refused_by_name(tmp_path: Path) -> None:
    """A transcript's name on a link does not make a transcript of a secret."""
    (tmp_path / ".credentials.json").write_text("{}")
    (tmp_path / "a.jsonl").symlink_to(".credentials.json")
    with pytest.raises(threadline.Unreadable, match="never opens"):
        list(threadline.entries(tmp_path / "a.jsonl"))


def test_homes_that_share_their_transcripts_count_them_once(cli: CliRunner, tmp_path: Path) -> None:
    """Two homes whose `projects` is one directory are not twice as much."""
    demo(tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "projects").symlink_to("../one/projects")
    alone = cli("--home", str(tmp_path / "one"), "--json").json
    both = cli("--home", str(tmp_path / "one"), "--home", str(tmp_path / "two"), "--json").json
    for key in ("transcripts", "entries", "sessions", "bytes"):
        assert both[key] == alone[key]
    assert len(both["projects"]) == len(alone["projects"])


def test_a_file_that_grows_while_it_is_checked_is_no_failure(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a live session appends after the reading do not make the round trip fail; lost bytes do."""
    path = a_home(tmp_path / "home")
    real = TranscriptReader.entries

    def growing(self: TranscriptReader, place: Path) -> Iterator[Entry]:
        yield from real(self, place)
        with path.open("ab") as file:
            file.write(b'{"type":"mode"}\n')

    monkeypatch.setattr(TranscriptReader, "entries", growing)
    assert cli("doctor", "--check", str(path), "--json").json["round_trip"] is True

    def losing(self: TranscriptReader, place: Path) -> Iterator[Entry]:
        yield from list(real(self, place))[:-1]

    monkeypatch.setattr(TranscriptReader, "entries", losing)
    assert cli("doctor", "--check", str(path), "--json").code == 2


def test_one_odd_timestamp_does_not_hide_the_others(cli: CliRunner, tmp_path: Path) -> None:
    """The range of dates is that of the times that are times."""
    path = a_home(tmp_path / "home")
    times = ("2026-01-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z", "2x")
    path.write_bytes(
        b"".join(line({"type": "user", "uuid": str(at), "timestamp": one}) for at, one in enumerate(times))
    )
    seen = cli("--home", str(tmp_path / "home"), "--json").json
    assert (seen["first"][:10], seen["last"][:10]) == ("2026-01-01", "2026-06-01")
