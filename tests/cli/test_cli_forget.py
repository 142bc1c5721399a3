"""What is forgotten or scrubbed is gone from every answer and every cache; what is left out of the keep is reported."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, call, prompt, reply, transcript, write

KEPT = "5e551011-0000-4000-8000-000000000001"
GONE = "0ddba11e-0000-4000-8000-000000000002"
MEMORY = "projects/-work/memory/MEMORY.md"
SECRET = re.compile(rb"(?i)0ddba11e|platypus\w*")


def write_session(home: Path, session: str, word: str) -> Path:
    """Write a session about a word. It was last written long ago."""
    path = write(
        home / f"projects/-work/{session}.jsonl",
        *transcript(
            prompt(f"tell me about the {word}"),
            reply(f"The {word}Reply", input=5_550, output=10),
            call("Read", f"/work/{word}.py", result=f"{word}Content"),
            pen=Pen(session),
        ),
    )
    os.utime(path, (1_790_000_000, 1_790_000_000))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CliRunner) -> Path:
    """A home with two sessions, of which one has words of its own; caches and a keep in folders of their own."""
    del cli
    home = tmp_path / "home"
    write_session(home, KEPT, "heron")
    write_session(home, GONE, "platypus")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    return home


def traces(folder: Path) -> set[bytes]:
    """The distinctive words in the names and bytes of all files in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    data = b"\n".join([*(os.fsencode(path.relative_to(folder)) for path in files), *map(Path.read_bytes, files)])
    return set(SECRET.findall(data))


def test_forgotten_session_is_gone_from_all_caches_at_once(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`keep forget` cleans the index and the unpacked sessions, without another command."""
    cli("keep")
    (home / f"projects/-work/{GONE}.jsonl").unlink()
    assert "platypusReply" in cli("search", "platypusReply").out
    assert cli("usage", "--no-keep").code == 0  # this one has an index of its own
    cli("export", GONE, "--out", tmp_path / "export")
    assert traces(tmp_path / "cache")
    assert cli("keep", "forget", GONE, "--reason", "a wish", "--yes", "--json").json["problems"] == []
    assert traces(tmp_path / "cache") == set()
    assert cli("sql", "SELECT COUNT(*) AS n FROM text WHERE text MATCH 'platypusReply'", "--json").json == [{"n": 0}]
    assert "heronReply" in cli("search", "heronReply").out
    assert traces(tmp_path / "cache") == set()


def test_deleted_session_is_gone_after_any_command(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a keep, the next command that uses the index removes the words, and `MATCH` counts what search finds."""
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    cli("index", "refresh")
    assert traces(tmp_path / "cache")
    (home / f"projects/-work/{GONE}.jsonl").unlink()
    cli("list")
    assert traces(tmp_path / "cache") == set()
    assert cli("sql", "SELECT COUNT(*) AS n FROM text WHERE text MATCH 'platypus'", "--json").json == [{"n": 0}]


def test_scrubbed_tokens_are_counted_again(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit in place of the same size with the old mtime changes usage, list and search at once."""
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    cli("index", "refresh")
    before = cli("usage", "--json").json["total"]["input"]
    path = home / f"projects/-work/{GONE}.jsonl"
    status = path.stat()
    with path.open("r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(data.replace(b"5550", b"9990").replace(b"platypus", b"kangaroo"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert cli("usage", "--json").json["total"]["input"] == before + 9990 - 5550
    assert "kangaroo" in cli("list").out
    assert cli("search", "platypusReply").code == 1
    assert cli("search", "kangarooReply").code == 0


@pytest.mark.usefixtures("home")
def test_merged_forgetting_waits_for_acceptance(cli: CliRunner, tmp_path: Path) -> None:
    """A run still stores what a merged keep has forgotten. Status names it, and one command accepts it."""
    there = tmp_path / "there"
    write_session(there, GONE, "platypus")
    (there / MEMORY).parent.mkdir()
    (there / MEMORY).write_text("notes\n")
    cli("keep", "--home", there, "--keep", tmp_path / "other")
    cli("keep", "forget", GONE, "--reason", "hostile", "--yes", "--keep", tmp_path / "other")
    merged = cli("keep", "merge", tmp_path / "other")
    assert (merged.code, "`threadline keep accept-forgotten`" in merged.out) == (0, True)
    run = cli("keep", "--json").json
    assert (run["new"], run["left_out"]) == (2, [])
    status = cli("keep", "status")
    assert (GONE[:8] in status.out, "Nothing is at risk" in status.out) == (True, True)
    assert cli("keep", "status", "--json").json["pending"][0]["session"] == GONE
    assert cli("keep", "accept-forgotten", "--list", "--json").json[0]["files"] == 1
    assert cli("keep", "accept-forgotten").code == 1
    assert cli("keep", "accept-forgotten", "zzz", "--yes").code == 1
    assert cli("keep", "accept-forgotten", GONE[:8], "--yes").code == 0
    assert cli("keep", "accept-forgotten", "--yes").code == 1
    assert cli("keep", "accept-forgotten", "--list", "--json").json == []
    assert "Not stored: 1 file (1 forgotten). `threadline keep status` lists them." in cli("keep").out
    assert [file["session"] for file in cli("keep", "--json").json["left_out"]] == [GONE]
    status = cli("keep", "status")
    assert "Nothing is at risk" not in status.out
    assert f"{GONE}.jsonl" in status.out


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_links_are_reported_as_not_stored(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`keep status` never says that everything is stored if a link was skipped."""
    (tmp_path / "outside.jsonl").write_text("{}\n")
    (home / "projects/-work" / f"{KEPT[:-1]}3.jsonl").symlink_to(tmp_path / "outside.jsonl")
    assert "Not stored: 1 file (1 skipped)." in cli("keep").out
    status = cli("keep", "status")
    assert ("Nothing is at risk" in status.out, "Everything else is stored." in status.out) == (False, True)
    assert cli("keep", "status", "--json").json["left_out"][0]["reason"] == "skipped"


def test_forget_says_what_claude_code_still_has(cli: CliRunner, home: Path) -> None:
    """Its own files are not changed: they are listed, and so are the prompts in its history."""
    row = {
        "display": "tell me about the platypus",
        "timestamp": 1_790_000_000_000,
        "project": "/work",
        "sessionId": GONE,
    }
    other = {**row, "display": "something else", "sessionId": KEPT}
    (home / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (row, other)))
    cli("keep")
    text = cli("keep", "forget", GONE, "--reason", "a wish", "--yes").out
    assert "Claude Code still has 1 file of the session" in text
    assert f"{home}/projects/-work/{GONE}.jsonl" in text
    assert "history.jsonl still has 1 prompt of the session" in text
    assert "tell me about the platypus" in text
    assert "something else" not in text
    (home / f"projects/-work/{KEPT}.jsonl").unlink()
    record = cli("keep", "forget", KEPT, "--reason", "a wish", "--yes", "--json").json
    assert record["left"] == []
    assert [prompt["text"] for prompt in record["history"]] == ["something else"]
