"""`threadline keep` and its actions, as a person or a program asks them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, control_characters
from tests.cli.test_cli_streams import answer_on_a_terminal

from threadline import files
from threadline.keep import Catalogue, Store
from threadline.keep.manifest import EndRow, FileRow, RunRow
from threadline.keep.pack import PackWriter, Piece

DAY = 86400


@pytest.fixture
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own with Claude Code's usual settings, a keep of its own, and a machine that has a name."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("THREADLINE_KEEP_PASSPHRASE", raising=False)
    monkeypatch.delenv("THREADLINE_KEEP_KEY_FILE", raising=False)
    monkeypatch.setattr("platform.node", lambda: "desk")
    copy = tmp_path / "home"
    shutil.copytree(demo_home, copy)
    (copy / "settings.json").unlink()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(copy))
    return copy


@pytest.fixture(autouse=True)
def _as_nobody(cli: CliRunner) -> None:
    """The asker takes variables away; the home above sets some after that."""


def _looks(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below a folder: its hash, mode and time."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_run_says_what_was_new_and_touches_nothing(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Sessions, files and bytes, in words and for a program; the home is as it was, and the keep its owner's alone."""
    before = _looks(home)
    first = cli("keep", "--json").json
    mains = home_counts.main_transcripts(home)
    assert first["run"] == 1
    assert first["files_new"] == first["files"] > len(mains)
    assert first["new"] == first["sessions"] >= len(mains)
    assert (first["grown"], first["gone"], first["kept"], first["problems"]) == (0, 0, 0, [])
    assert first["read"] == first["bytes"]
    assert 0 < first["written"] < first["stored"] < first["bytes"] / 4
    assert _looks(home) == before
    assert {path.stat().st_mode & 0o077 for path in [tmp_path / "keep", *(tmp_path / "keep").rglob("*")]} == {0}
    again = cli("keep")
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith(f"Nothing new. Checked {first['files']} files in ")
    assert f"{first['sessions']} sessions" in again.out
    assert cli("keep", "--quiet").out == ""


def test_a_second_run_tells_what_grew_and_what_it_saved(cli: CliRunner, home: Path) -> None:
    """What grew costs about what was added; what Claude Code deleted is still there, and said to be."""
    cli("keep")
    grown, *_between, gone = home_counts.main_transcripts(home)
    with grown.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    gone.unlink()
    shown = cli("keep").out
    assert shown.startswith("Sessions: 1 grown. 1 file, 16 bytes read, ")
    assert "1 session deleted by Claude Code since the last run, still kept." in shown
    assert "Claude Code has deleted 1 of them: `threadline keep list --only`." in shown
    (row,) = cli("keep", "list", "--only", "--jsonl").jsonl
    assert (row["session"], row["kept"], row["machine"]) == (gone.stem, True, "desk")
    found = cli("keep", "diff", "--jsonl").jsonl
    assert [(one["change"], one["session"]) for one in found] == [("grown", grown.stem), ("gone", gone.stem)]
    assert "1 grown, 1 gone" in cli("keep", "diff").out
    assert cli("keep", "diff", "2").code == 1
    runs = cli("keep", "diff", "--runs", "--jsonl").jsonl
    assert [(run["number"], run["label"]) for run in runs] == [(1, "desk"), (2, "desk")]


@pytest.mark.usefixtures("home")
def test_a_list_has_every_kept_session_in_every_format(cli: CliRunner) -> None:
    """The same rows in each; titles are those that `threadline list` shows; a limit limits, a project chooses."""
    cli("keep")
    rows = cli("keep", "list", "--json").json
    listed = {one["id"]: one for one in cli("list", "--json").json}
    assert {row["session"]: row["title"] for row in rows if row["session"] in listed} == {
        session: one["title"] for session, one in listed.items()
    }
    assert [row["modified"] for row in rows] == sorted((row["modified"] for row in rows), reverse=True)
    assert cli("keep", "list", "--jsonl").jsonl == rows
    assert [row["session"] for row in cli("keep", "list", "--csv").csv] == [row["session"] for row in rows]
    short = cli("keep", "list", "--limit", "2").out
    assert f"Showing the newest 2. {len(rows) - 2} more" in short
    assert sum(row["session"][:8] in short for row in rows) == 2
    chosen = cli("keep", "list", "--project", "KETTLE", "--json").json
    assert chosen == [row for row in rows if "kettle" in row["project"]]
    assert chosen
    result = cli("keep", "list", "--project", "nowhere")
    assert (result.code, result.out) == (1, "")
    assert cli("keep", "list", "--only").code == 1
    assert cli("keep", "list", "--machine", "desk", "--json").json == rows
    assert "Machines: desk_" in cli("keep", "list", "--machine", "other").err


def test_the_status_tells_what_is_at_risk_and_when_it_is_deleted(cli: CliRunner, home: Path) -> None:
    """What is due comes first; in words and for a program; after a run nothing is."""
    cli("keep")
    assert "Nothing is at risk" in cli("keep", "status").out
    due, soon, *_others = home_counts.main_transcripts(home)
    for path, age in ((due, 31), (soon, 27.5)):
        with path.open("ab") as file:
            file.write(b'{"type":"user"}\n')
        os.utime(path, (time.time() - age * DAY,) * 2)
    shown = cli("keep", "status").out
    assert "At risk: 2 sessions. Run `threadline keep`." in shown
    first, second = (line for line in shown.splitlines() if "has grown" in line)
    assert (first.split()[0], second.split()[0]) == (due.stem[:8], soon.stem[:8])
    assert "at the next start" in first
    assert "(in 2 days)" in second
    assert "deleted after 30 days" in shown
    told = cli("keep", "status", "--json").json
    rows = cli("keep", "status", "--jsonl").jsonl
    assert told["at_risk"] == rows
    assert [(row["session"], row["state"], row["bytes"]) for row in rows] == [
        (due.stem, "grown", 16),
        (soon.stem, "grown", 16),
    ]
    (home / "settings.json").write_text('{"cleanupPeriodDays": 99999}')
    assert [row["deleted"] for row in cli("keep", "status", "--jsonl").jsonl] == [None, None]
    assert "kept for 99,999 days" in cli("keep", "status").out
    (home / "settings.json").write_text('{"cleanupPeriodDays": 0}')
    assert "everything is deleted at the next start" in cli("keep", "status").out


def test_a_restored_session_is_the_one_that_was_kept(cli: CliRunner, home: Path) -> None:
    """Deleted with everything of it, it comes back byte for byte, with modes and times; twice is once."""
    before = _looks(home)
    cli("keep")
    session = max(cli("keep", "list", "--json").json, key=lambda row: row["files"])
    assert session["files"] > 3
    for path in [path for path in before if session["session"] in path]:
        (home / path).unlink()
    missing = len(before) - len(_looks(home))
    shown = cli("keep", "restore", session["session"][:10])
    assert (shown.code, shown.err) == (0, "")
    assert f"Restored {missing} files of 1 session into {home}." in shown.out
    assert f"claude -r {session['session']}" in shown.out
    assert _looks(home) == before
    again = cli("keep", "restore", session["session"], "--json").json
    assert (again["files"], again["refused"]) == (0, [])
    assert _looks(home) == before


def test_everything_is_restored_into_another_home(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Every file that is kept, with its mode and time, and no other; the restored home reads like the first."""
    kept = cli("keep", "--json").json
    result = cli("keep", "restore", "--all", "--to", tmp_path / "new", "--json")
    assert (result.code, result.json["files"], result.json["refused"]) == (0, kept["files"], [])
    before = _looks(home)
    assert all(before[path] == looks for path, looks in _looks(tmp_path / "new").items())
    listed = [cli("list", "--home", where, "--no-keep", "--json").json for where in (home, tmp_path / "new")]
    first, second = ([(row["id"], row["title"], row["turns"]) for row in rows] for rows in listed)
    assert first == second
    assert first


def test_nothing_is_overwritten_without_force(cli: CliRunner, home: Path) -> None:
    """A transcript that is there with other bytes stays, and is told; with --force the kept one takes its place."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    kept = main.read_bytes()
    main.write_bytes(b"mine\n")
    refused = cli("keep", "restore", main.stem)
    assert refused.code == 2
    assert "--force" in refused.err
    assert main.read_bytes() == b"mine\n"
    assert cli("keep", "restore", main.stem, "--force").code == 0
    assert main.read_bytes() == kept


def test_an_earlier_version_is_restored(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`--at RUN` gives the session as that run saw it."""
    main = home_counts.main_transcripts(home)[0]
    before = main.read_bytes()
    cli("keep")
    main.write_bytes(b"{}\n" + before)
    cli("keep")
    for run, data in ((1, before), (2, b"{}\n" + before)):
        place = tmp_path / f"at{run}"
        assert cli("keep", "restore", main.stem, "--at", str(run), "--to", place).code == 0
        assert (place / main.relative_to(home)).read_bytes() == data


@pytest.mark.sample(2)
@pytest.mark.parametrize("left", [0, 0.5])
def test_a_transcript_that_was_cut_off_comes_back_whole(
    cli: CliRunner, home: Path, tmp_path: Path, left: float
) -> None:
    """What stood before is put back, and that is said; `--at` gives it as it was, and `list` shows its title."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    before, title = main.read_bytes(), _row_of(cli, main)["title"]
    os.truncate(main, int(len(before) * left))
    cli("keep")
    assert _row_of(cli, main)["title"] == title
    main.unlink()
    result = cli("keep", "restore", main.stem)
    assert (result.code, main.read_bytes()) == (0, before)
    assert "was truncated to" in result.out
    assert cli("keep", "restore", main.stem, "--at", "2", "--to", tmp_path / "at").code == 0
    assert (tmp_path / "at" / main.relative_to(home)).read_bytes() == before[: int(len(before) * left)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("left", [0, 0.5])
def test_what_a_cut_took_comes_back_with_what_followed(cli: CliRunner, home: Path, tmp_path: Path, left: float) -> None:
    """A session that was cut off and gone on with is listed and put back with every line; `--at` gives either part."""
    main = max(home_counts.main_transcripts(home), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    whole, title = main.read_bytes(), None
    first = lines[: len(lines) * 3 // 4]
    rest = [*first[: int(len(first) * left)], *lines[len(first) :]]
    for part in (first, first[: int(len(first) * left)], rest):
        main.write_bytes(b"".join(part))
        cli("keep")
        title = title or _row_of(cli, main)["title"]
    assert (_row_of(cli, main)["title"], _row_of(cli, main)["kept"]) == (title, False)
    (part,) = (row for row in cli("list", "--json").json if row["kept"])
    result = cli("keep", "restore", main.stem, "--to", tmp_path / "all")
    assert result.code == 0
    assert (tmp_path / "all" / main.relative_to(home)).read_bytes() == whole
    assert "was truncated and then continued" in " ".join(result.out.split())
    for run, data in (("1", first), ("3", rest)):
        assert cli("keep", "restore", part["id"][:8], "--at", run, "--to", tmp_path / run).code == 0
        assert (tmp_path / run / main.relative_to(home)).read_bytes() == b"".join(data)
    assert cli("keep", "restore", main.stem).code == 2
    assert main.read_bytes() == b"".join(rest)


def test_a_machine_whose_id_was_lost_goes_on_as_it_was(cli: CliRunner, home: Path) -> None:
    """The files that lie there, down to when the system saw each change, say that it is the same: nothing is new."""
    cli("keep")
    before = cli("keep", "status", "--json").json["machines"]
    folder = Path(os.environ["XDG_DATA_HOME"]) / "threadline"
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    home_counts.main_transcripts(home)[0].unlink()
    result = cli("keep")
    assert "Continuing as" in result.err
    assert [one["id"] for one in cli("keep", "status", "--json").json["machines"]] == [before[0]["id"]]
    assert (folder / "machine").read_text().strip() == before[0]["id"]
    assert cli("keep", "list", "--only", "--json").json
    assert cli("keep", "restore", "--all").code == 0


def test_a_machine_of_the_same_name_is_not_taken_for_this_one(cli: CliRunner, home: Path) -> None:
    """Where the files were all written since, it may be another one; how to take up its id is said, once."""
    cli("keep")
    folder = Path(os.environ["XDG_DATA_HOME"]) / "threadline"
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for path in [path for path in home.rglob("*") if path.is_file()]:
        data, status = path.read_bytes(), path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    result = cli("keep")
    assert f"into {str(folder / 'machine')!r}" in result.err
    assert len(cli("keep", "status", "--json").json["machines"]) == 2
    assert not cli("keep").err


def test_a_longer_version_of_what_was_rewritten_is_told(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The newest is put back, and where the longer one is."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    main.write_bytes(b"{}\n")
    cli("keep")
    result = cli("keep", "restore", main.stem, "--to", tmp_path / "to")
    assert (tmp_path / "to" / main.relative_to(home)).read_bytes() == b"{}\n"
    assert "--at 1 restores" in " ".join(result.out.split())


def test_a_session_of_two_homes_is_the_longest_and_the_other_is_told(
    cli: CliRunner, home: Path, tmp_path: Path
) -> None:
    """What of two homes has the same path is not dropped silently, and `--home` names either."""
    other = tmp_path / "other"
    shutil.copytree(home, other)
    main = home_counts.main_transcripts(home)[0]
    short = other / main.relative_to(home)
    short.write_bytes(main.read_bytes()[: main.stat().st_size // 2].rpartition(b"\n")[0] + b"\n")
    assert cli("keep", "--home", home, "--home", other).code == 0
    result = cli("keep", "restore", main.stem, "--to", tmp_path / "one", "--json")
    assert (tmp_path / "one" / main.relative_to(home)).read_bytes() == main.read_bytes()
    assert str(other) in result.json["notes"][0]
    assert cli("keep", "restore", main.stem, "--home", other, "--to", tmp_path / "two").code == 0
    assert (tmp_path / "two" / main.relative_to(home)).read_bytes() == short.read_bytes()
    everything = cli("keep", "restore", "--all", "--to", tmp_path / "all", "--json")
    assert everything.code == 2
    assert [str(other) in one and main.name in one for one in everything.json["refused"]] == [True]
    assert (tmp_path / "all" / main.relative_to(home)).read_bytes() == main.read_bytes()
    assert cli("keep", "restore", "--all", "--home", tmp_path / "none", "--to", tmp_path / "x").code != 0


def test_a_keep_that_was_merged_names_no_home_to_write_into(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Who says that he is this machine cannot have files put into a folder that the user never called a home."""
    cli("keep")
    elsewhere = tmp_path / "elsewhere"
    session = "0abcdef0-0000-4000-8000-000000000000"
    text = json.dumps({"type": "user", "sessionId": session}).encode() + b"\n"
    files = (f"projects/-p/{session}.jsonl", f"file-history/{session}/x", f"etc/cron.d/{session}", "settings.json")
    own = (tmp_path / "data" / "threadline" / "machine").read_text().strip()
    _forge(
        tmp_path / "forged", RunRow(1, own, "desk", 77, None, "2026-11-15T00:00:00Z", (str(elsewhere),)), files, text
    )
    assert cli("keep", "merge", tmp_path / "forged").code == 0
    refused = cli("keep", "restore", session)
    assert (refused.code, elsewhere.exists()) == (2, False)
    assert "--home" in refused.err
    cli("keep", "restore", "--all", "--home", elsewhere, "--to", tmp_path / "to")
    put = sorted(str(path.relative_to(tmp_path / "to")) for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert put == sorted(files[:2])
    assert cli("keep", "restore", home_counts.main_transcripts(home)[0].stem).code == 0


def _forge(folder: Path, run: RunRow, files: tuple[str, ...], data: bytes) -> None:
    store = Store.make(folder)
    piece = Piece.of(data)
    with PackWriter(store, run.machine) as packing:
        packing.add(piece)
    rows = [FileRow(run.homes[0], path, 0o777, time.time_ns(), len(data), (piece.hash,), 0, None, 0) for path in files]
    store.put_run([run, *rows, EndRow(run.began, len(files), len(data))])


def _row_of(cli: CliRunner, main: Path) -> Any:
    (row,) = (one for one in cli("keep", "list", "--json").json if one["session"] == main.stem)
    return row


def test_a_session_that_would_be_deleted_again_is_told(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Older than the days after which Claude Code deletes: a warning, and none with `--touch`, which makes it new."""
    main = home_counts.main_transcripts(home)[0]
    os.utime(main, (time.time() - 40 * DAY,) * 2)
    cli("keep")
    assert "older than 30 days" in cli("keep", "restore", main.stem, "--to", tmp_path / "a").out
    touched = cli("keep", "restore", main.stem, "--to", tmp_path / "b", "--touch")
    assert "older than" not in touched.out
    assert time.time() - (tmp_path / "b" / main.relative_to(home)).stat().st_mtime < DAY


@pytest.mark.usefixtures("home")
def test_damage_is_found_and_the_sessions_it_touches_are_named(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 2, which sessions, and what mends it; merging a copy does."""
    cli("keep")
    assert cli("keep", "verify").out.startswith("Everything is intact: ")
    assert cli("keep", "verify", "--sample", "1", "--json").json["clean"]
    shutil.copytree(tmp_path / "keep", tmp_path / "copy")
    pack = max((tmp_path / "keep/packs").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[len(data) // 3] ^= 1
    pack.write_bytes(data)
    result = cli("keep", "verify", "--json")
    assert result.code == 2
    assert not result.json["clean"]
    known = {row["session"] for row in cli("keep", "list", "--json").json}
    assert result.json["sessions"]
    assert set(result.json["sessions"]) <= known
    shown = cli("keep", "verify")
    assert shown.code == 2
    assert "threadline keep merge COPY" in shown.out
    assert result.json["sessions"][0] in shown.out
    assert cli("keep", "merge", tmp_path / "copy").code == 0
    assert cli("keep", "verify", "--json").json["sessions"] == []
    assert cli("keep", "restore", "--all", "--to", tmp_path / "all").code == 0


def test_forgetting_asks_and_then_forgets(cli: CliRunner, home: Path) -> None:
    """Not without --yes where nobody can be asked; then it is gone, is not kept again, and the reason stays."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    refused = cli("keep", "forget", main.stem, "--reason", "a mistake")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert cli("keep", "forget", main.stem, "--reason", " ", "--yes").code == 2
    done = cli("keep", "forget", main.stem, "--reason", "a mistake", "--yes", "--json")
    assert (done.code, done.json["reason"], done.json["problems"]) == (0, "a mistake", [])
    assert main.stem not in {row["session"] for row in cli("keep", "list", "--json").json}
    assert cli("keep").out.startswith("Nothing new")
    assert "No kept session" in cli("keep", "restore", main.stem).err
    assert cli("keep", "verify").code == 0
    assert main.exists()


@pytest.mark.usefixtures("home")
def test_keeps_are_merged_and_machines_told_apart(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine kept is listed with its name; the second time nothing is new."""
    cli("keep")
    own = cli("keep", "list", "--json").json
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data2"))
    monkeypatch.setattr("platform.node", lambda: "lap top")
    cli("keep", "--keep", tmp_path / "other")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    done = cli("keep", "merge", tmp_path / "other")
    assert done.out.startswith("Imported 1 run and ")
    assert cli("keep", "merge", tmp_path / "other").out.startswith("Nothing new")
    rows = cli("keep", "list", "--json").json
    assert sorted({row["machine"] for row in rows}) == ["desk", "lap top"]
    assert len(rows) == 2 * len(own)
    assert len(cli("keep", "list", "--machine", "lap top", "--json").json) == len(own)
    assert "MACHINE" in cli("keep", "list").out
    there = cli("keep", "restore", rows[0]["session"], "--machine", "lap top")
    assert there.code == 2
    assert "another machine, lap top" in there.err
    assert cli("keep", "restore", rows[0]["session"], "--machine", "lap top", "--to", tmp_path / "here").code == 0
    assert cli("keep", "pack").code == 0
    assert cli("keep", "verify").code == 0


@pytest.mark.slow
def test_an_encrypted_keep_is_added_to_without_its_secret_and_read_with_it(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a passphrase or a key file; without it a sentence says what to name; no id of a session stands in any file."""
    pytest.importorskip("pyrage")
    key = tmp_path / "key"
    assert cli("keep", "--encrypt", "--key-file", key).code == 0
    assert key.stat().st_mode & 0o777 == 0o600
    main = home_counts.main_transcripts(home)[0]
    with main.open("ab") as file:
        file.write(b"{}\n")
    assert cli("keep").out.startswith("Sessions: 1 grown.")
    locked = cli("keep", "list")
    assert locked.code == 2
    assert "--key-file" in locked.err
    assert len(cli("keep", "list", "--key-file", key, "--json").json) > 3
    assert cli("keep", "verify", "--key-file", key).code == 0
    held = b"".join(path.read_bytes() for path in (tmp_path / "keep").rglob("*") if path.is_file())
    assert main.stem.encode() not in held
    monkeypatch.setenv("THREADLINE_KEEP_PASSPHRASE", "pass")
    assert cli("keep", "--encrypt", "--keep", tmp_path / "second").code == 0
    assert cli("keep", "status", "--keep", tmp_path / "second", "--json").json["encrypted"]
    monkeypatch.setenv("THREADLINE_KEEP_PASSPHRASE", "other")
    wrong = cli("keep", "status", "--keep", tmp_path / "second")
    assert wrong.code == 2
    assert "Wrong passphrase" in wrong.err


@pytest.mark.usefixtures("home")
def test_no_keep_no_home_and_wrong_words(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keep yet: exit code 1, and how one is begun. What is no keep, no run, no action: 2, and a sentence."""
    for action in ("list", "diff", "verify", "pack"):
        result = cli("keep", action)
        assert (result.code, result.out) == (1, "")
        assert "Run `threadline keep` to create one" in result.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    assert "is not a keep" in cli("keep", "status", "--keep", tmp_path / "full").err
    assert cli("keep", "--keep", tmp_path / "full").code == 2
    assert (tmp_path / "full/mine").read_text() == "mine"
    cli("keep")
    for words, said in (
        (["diff", "9"], "There is no run 9"),
        (["diff", "1", "1", "1"], "at most two runs"),
        (["restore"], "Name a session"),
        (["restore", "last", "--all"], "Name sessions"),
        (["restore", "zzz"], "No kept session starts with 'zzz'"),
        (["lst"], "Did you mean `threadline keep list`?"),
        (["merge"], "OTHER"),
        (["merge", tmp_path / "nowhere"], "There is no keep in"),
        (["forget", "last"], "--reason"),
        (["--quiet", "status"], "has no option --quiet"),
    ):
        result = cli("keep", *words)
        assert result.code in (1, 2)
        assert said in result.err
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    assert "turns the keep off" in cli("keep").err
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert cli("keep").code == 1
    assert cli("keep", "--home", tmp_path / "nowhere").code == 2


def test_what_cannot_be_read_is_told_and_the_rest_is_kept(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and its place, also when quiet; all other sessions are kept."""
    main = home_counts.main_transcripts(home)[0]
    opened = files.open_regular

    def refusing(path: Path, *, follow_symlinks: bool) -> object:
        if Path(path) == main:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(files, "open_regular", refusing)
    result = cli("keep", "--quiet")
    assert (result.code, result.out) == (2, "")
    assert main.name in result.err
    monkeypatch.setattr(files, "open_regular", opened)
    assert cli("keep", "list", "--json").json
    (row,) = cli("keep", "status", "--jsonl").jsonl
    assert (row["session"], row["state"]) == (main.stem, "new")


def test_options_may_stand_before_the_action(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`threadline keep --keep DIR status` and `threadline --home DIR keep` are what they look like."""
    assert cli("--home", home, "keep", "--keep", tmp_path / "b", "--json").json["keep"] == str(tmp_path / "b")
    told = cli("keep", "--keep", tmp_path / "b", "--json", "status").json
    assert told["path"] == str(tmp_path / "b")
    assert cli("keep", "--keep", tmp_path / "b", "path").out == f"{tmp_path / 'b'}\n"


def test_hostile_names_are_shown_harmlessly(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Whatever a project or a title is called, nothing steers the terminal."""
    folder = home / "projects" / "-evil\x1b[31m\u202e"
    folder.mkdir()
    session = "0f0f0f0f-0000-4000-8000-000000000000"
    row = {
        "type": "user",
        "sessionId": session,
        "cwd": "/evil\x1b]0;x\x07",
        "message": {"role": "user", "content": "\x1b[2J"},
    }
    (folder / f"{session}.jsonl").write_text(json.dumps(row) + "\n")
    for words in (["status"], ["list"], ["diff"], ["restore", session, "--to", tmp_path / "a\x1b[31m"]):
        if words == ["status"]:
            cli("keep", "--keep", tmp_path / "empty", "--home", home)
        cli("keep")
        result = cli("keep", *words)
        assert control_characters(result.out + result.err) == set()


def test_a_bar_is_for_a_terminal(home: Path, tmp_path: Path) -> None:
    """On a terminal a bar runs on standard error; the answer says the same."""
    shown = answer_on_a_terminal("keep", "--home", home, "--keep", tmp_path / "k", XDG_DATA_HOME=str(tmp_path / "d"))
    assert shown.code == 0
    assert b"Keeping" in shown.raw_err
    assert shown.out.startswith("Sessions: ")


@pytest.mark.usefixtures("home")
def test_without_zstandard_it_says_what_to_install(cli: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the command, exit code 2, for every action that needs it."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "zstandard" else found(name))
    for action in ([], ["status"], ["list"], ["verify"], ["path"]):
        result = cli("keep", *action)
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            "threadline: A keep needs zstandard, which is not installed. Run: pip install 'threadline[keep]'\n"
        )


@pytest.mark.usefixtures("home")
def test_a_keep_that_is_gone_is_not_begun_anew_by_itself(cli: CliRunner, tmp_path: Path) -> None:
    """A disk that is not mounted gets no new keep, however quietly it is asked for; one that is gone for good does."""
    disk = tmp_path / "disk"
    assert cli("keep", "--keep", disk / "keep", "--quiet").code == 0
    told = cli("keep", "status", "--keep", disk / "keep", "--json").json["machines"][0]
    assert told["ended"] >= told["last"]
    disk.rename(tmp_path / "elsewhere")
    refused = cli("keep", "--keep", disk / "keep", "--quiet")
    assert refused.code == 2
    assert "Mount its disk" in refused.err
    assert not disk.exists()
    assert cli("keep", "--keep", disk / "keep", "--begin").code == 0
    assert cli("keep", "--keep", disk / "keep").code == 0


@pytest.mark.usefixtures("home")
def test_what_verify_found_damaged_is_kept_again(cli: CliRunner, tmp_path: Path) -> None:
    """A flipped bit is found, told by the status until it is mended, and mended by the next run."""
    assert cli("keep").code == 0
    pack = max((tmp_path / "keep/packs").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[len(data) // 3] ^= 4
    pack.write_bytes(data)
    found = cli("keep", "verify", "--json")
    assert found.code == 2
    assert found.json["sessions"]
    assert "found 1 damaged pack" in cli("keep", "status").err
    assert cli("keep").code == 0
    assert cli("keep", "verify", "--json").json["sessions"] == []
    assert cli("keep", "pack").code == 0
    assert cli("keep", "verify").code == 0
    assert "damaged" not in cli("keep", "status").err


def test_what_cannot_be_meant_is_refused(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """An empty folder's name, a run that never was, the keep itself, and both of two: each says what to do."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    for words, said in (
        (("--to", ""), "name of the folder is empty"),
        (("--at", "99", "--to", "x"), "There is no run 99. The last is 1"),
        (("--to", tmp_path / "keep"), "is inside the keep"),
        (("--to", tmp_path / "keep" / "packs" / "x"), "is inside the keep"),
        (("--all", "--to", "x"), "not both"),
    ):
        result = cli("keep", "restore", main.stem, *words)
        assert (result.code, said in result.err) == (2, True), result.err
    assert cli("keep", "--keep", "").code == 2
    assert cli("keep", "verify").code == 0


def test_a_tilde_in_the_variable_is_ones_own_folder(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file that sets variables for a service has it, where no shell replaces it."""
    monkeypatch.setenv("THREADLINE_KEEP", "~/kept")
    assert cli("keep").code == 0
    assert (Path(os.environ["HOME"]) / "kept" / "keep.json").is_file()
    home_counts.main_transcripts(home)[0].unlink()
    assert any(row["kept"] for row in cli("list", "--json").json)
    assert cli("keep", "path").out.strip() == str(Path(os.environ["HOME"]) / "kept")


def test_touching_holds_for_what_is_there_already(cli: CliRunner, home: Path) -> None:
    """The warning says `--touch`; who follows it after the fact is not left with the old times."""
    main = home_counts.main_transcripts(home)[0]
    os.utime(main, (1, 1))
    cli("keep")
    assert "--touch" in cli("keep", "restore", main.stem).out
    assert "--touch" not in cli("keep", "restore", main.stem, "--touch").out
    assert time.time() - main.stat().st_mtime < DAY


def test_the_days_are_told_of_the_home_that_deletes(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two homes, each is told by its own sessions and settings; and nothing of it where nothing was put back."""
    other = tmp_path / "other"
    shutil.copytree(home, other)
    (other / "settings.json").write_text('{"cleanupPeriodDays": 400}')
    now = time.time()
    mains = home_counts.main_transcripts(home)
    for path in (*mains, *home_counts.main_transcripts(other)):
        os.utime(path, (now - 40 * DAY, now - 40 * DAY))
    os.utime(home_counts.main_transcripts(other)[0], (now - 500 * DAY, now - 500 * DAY))
    cli("keep", "--home", home, "--home", other)
    for path in (*mains, *home_counts.main_transcripts(other)):
        path.unlink()
    monkeypatch.setenv("CLAUDE_CONFIG_DIRS", f"{home}{os.pathsep}{other}")
    said = " ".join(cli("keep", "restore", "--all").out.split())
    assert f"{len(mains)} of them are older than 30 days" in said
    assert "1 of them is older than 400 days" in said
    mains[0].write_bytes(b"{}\n")
    refused = cli("keep", "restore", mains[0].stem, "--home", home)
    assert (refused.code, "older than" in refused.out) == (2, False)


@pytest.mark.usefixtures("home")
def test_merging_what_is_encrypted_into_the_clear_is_told(cli: CliRunner, tmp_path: Path) -> None:
    """It is what was asked for, and one should know it."""
    pytest.importorskip("pyrage")
    key = tmp_path / "key"
    assert cli("keep", "--encrypt", "--keep", tmp_path / "sealed", "--key-file", key).code == 0
    result = cli("keep", "merge", tmp_path / "sealed", "--keep", tmp_path / "plain", "--other-key-file", key)
    assert (result.code, "not encrypted here" in result.err) == (0, True)


def test_before_the_first_run_all_is_at_risk(cli: CliRunner, home: Path) -> None:
    """Just then one wants to know what will be deleted, and when; that there is no keep is said, too."""
    result = cli("keep", "status", "--all")
    assert result.code == 1
    assert "Run `threadline keep` to create one" in result.err
    assert f"At risk: {len({path.stem for path in home_counts.main_transcripts(home)})} sessions" in result.out
    assert all(path.stem[:8] in result.out for path in home_counts.main_transcripts(home))


@pytest.mark.usefixtures("home")
def test_a_keep_that_is_away_is_told_by_those_who_read(cli: CliRunner, tmp_path: Path) -> None:
    """A disk that is not mounted is no keep that was never begun: nobody is told to begin one."""
    cli("keep")
    (tmp_path / "keep").rename(tmp_path / "elsewhere")
    for action in ("status", "list", "verify"):
        result = cli("keep", action)
        assert (result.code, "is missing. Mount its disk" in result.err) == (2, True)
        assert "to create one" not in result.err
    result = cli("keep", "merge", tmp_path / "nosuch", "--keep", tmp_path / "elsewhere")
    assert (result.code, "There is no keep in" in result.err) == (2, True)


def test_what_was_forgotten_and_is_still_there_is_told(cli: CliRunner, home: Path) -> None:
    """It is not kept, as was wished; the status does not say that all is kept."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    cli("keep", "forget", main.stem, "--reason", "private", "--yes")
    assert f"still there: 1 session ({main.stem[:8]})" in cli("keep", "status").out


def test_whoever_has_neither_id_nor_key_is_told_how_to_take_it_up(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """An encrypted keep does not say who kept; the status names the ids of machines of one name, to be taken up."""
    pytest.importorskip("pyrage")
    cli("keep", "--encrypt", "--key-file", tmp_path / "key")
    folder = Path(os.environ["XDG_DATA_HOME"]) / "threadline"
    old = (folder / "machine").read_text().strip()
    shutil.rmtree(folder)
    assert f"Write it into {str(folder / 'machine')!r}" in cli("keep").err
    monkeypatch.setenv("THREADLINE_KEEP_KEY_FILE", str(tmp_path / "key"))
    assert f"desk [{old}]" in cli("keep", "status").out
    (folder / "machine").write_text(old)
    home_counts.main_transcripts(home)[0].unlink()
    assert cli("keep", "--json").json["files_gone"] == 1


def test_what_grew_since_is_not_lost_by_force(cli: CliRunner, home: Path) -> None:
    """An older version takes the place of a transcript only once the keep has what was added to it."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    before = main.read_bytes()
    main.write_bytes(before + b'{"type":"summary"}\n')
    result = cli("keep", "restore", main.stem, "--force")
    assert (result.code, "has grown since it was kept" in result.err) == (2, True)
    assert main.read_bytes() == before + b'{"type":"summary"}\n'
    cli("keep")
    assert cli("keep", "restore", main.stem, "--at", "1", "--force").code == 0
    assert main.read_bytes() == before


def test_each_action_builds_one_catalogue(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building it takes most of the time of a run that finds nothing new; after that it is only refreshed."""
    built: list[Store] = []
    build = Catalogue.__init__

    def counted(self: Catalogue, store: Store, *more: Any, **named: Any) -> None:
        built.append(store)
        build(self, store, *more, **named)

    monkeypatch.setattr(Catalogue, "__init__", counted)
    main = home_counts.main_transcripts(home)[0]
    for words in (
        (),
        ("--quiet",),
        ("status",),
        ("diff", "0"),
        ("verify",),
        ("pack",),
        ("forget", main.stem, "--reason", "a test", "--yes"),
        ("merge", tmp_path / "keep", "--keep", tmp_path / "second"),
    ):
        built.clear()
        assert cli("keep", *words).code == 0, words
        assert len(built) == 1, words
