"""`threadline keep` and its actions."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, TypedLines, control_characters
from tests.cli.test_cli_streams import run_on_terminal

from threadline import home_files
from threadline.keep import Catalogue, Store
from threadline.keep.manifest import EndRow, FileRow, RunRow
from threadline.keep.pack import PackWriter, Piece

DAY = 86400


@pytest.fixture
def home(small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with Claude Code's default settings, a keep, and a machine with a name."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("THREADLINE_KEEP_PASSPHRASE", raising=False)
    monkeypatch.delenv("THREADLINE_KEEP_KEY_FILE", raising=False)
    monkeypatch.setattr("platform.node", lambda: "desk")
    copy = tmp_path / "home"
    shutil.copytree(small_home, copy)
    (copy / "settings.json").unlink()
    for path in filter(Path.is_file, copy.rglob("*")):
        path.chmod(0o600)  # as Claude Code writes them, and `restore`
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(copy))
    return copy


@pytest.fixture(autouse=True)
def _clean_environment(cli: CliRunner) -> None:
    """The runner removes variables. `home` sets some after that."""


def snapshot(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below a folder: its hash, mode and mtime."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_run_reports_what_is_new_and_changes_nothing(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Sessions, files and bytes are reported. The home is unchanged, and only the owner can read the keep."""
    before = snapshot(home)
    first = cli("keep", "--json").json
    mains = home_counts.main_transcripts(home)
    assert first["run"] == 1
    assert first["files_new"] == first["files"] > len(mains)
    assert first["new"] == first["sessions"] >= len(mains)
    assert (first["grown"], first["gone"], first["kept"], first["problems"]) == (0, 0, 0, [])
    assert first["read"] == first["bytes"]
    assert 0 < first["written"] < first["stored"] < first["bytes"] / 4
    assert snapshot(home) == before
    assert {path.stat().st_mode & 0o077 for path in [tmp_path / "keep", *(tmp_path / "keep").rglob("*")]} == {0}
    again = cli("keep")
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith(f"Nothing new. Checked {first['files']} files in ")
    assert f"{first['sessions']} sessions" in again.out
    assert cli("keep", "--quiet").out == ""


def test_second_run_reports_grown_and_deleted_sessions(cli: CliRunner, home: Path) -> None:
    """Growth costs about what was added. Sessions that Claude Code deleted are still kept and reported."""
    cli("keep")
    grown, *_between, deleted = home_counts.main_transcripts(home)
    with grown.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    deleted.unlink()
    output = cli("keep").out
    assert output.startswith("Sessions: 1 grown. 1 file, 16 bytes read, ")
    assert "1 session deleted by Claude Code since the last run, still in the keep." in output
    assert "Claude Code has deleted 1 of them: `threadline keep list --only`." in output
    (row,) = cli("keep", "list", "--only", "--jsonl").jsonl
    assert (row["session"], row["kept"], row["machine"]) == (deleted.stem, True, "desk")
    changes = cli("keep", "diff", "--jsonl").jsonl
    assert [(change["change"], change["session"]) for change in changes] == [
        ("grown", grown.stem),
        ("gone", deleted.stem),
    ]
    difference = cli("keep", "diff").out
    assert "1 grown, 1 gone" in difference
    assert f"projects/{deleted.parent.name}\n" in difference, "the name of the file repeats the session"
    assert [line[2:18] for line in cli("keep", "list").out.splitlines() if " kept " in line] == [
        f"{deleted.stem[:8]}  kept  "
    ]
    assert cli("keep", "diff", "2").code == 1
    runs = cli("keep", "diff", "--runs", "--jsonl").jsonl
    assert [(run["number"], run["label"]) for run in runs] == [(1, "desk"), (2, "desk")]


@pytest.mark.usefixtures("home")
def test_list_has_every_kept_session_in_every_format(cli: CliRunner) -> None:
    """All formats have the same rows, titles equal those of `threadline list`, and the filters work."""
    cli("keep")
    rows = cli("keep", "list", "--json").json
    listed = {listed_row["session"]: listed_row for listed_row in cli("list", "--json").json}
    assert {row["session"]: row["title"] for row in rows if row["session"] in listed} == {
        session: listed_row["title"] for session, listed_row in listed.items()
    }
    assert [row["modified"] for row in rows] == sorted((row["modified"] for row in rows), reverse=True)
    assert cli("keep", "list", "--jsonl").jsonl == rows
    assert [row["session"] for row in cli("keep", "list", "--csv").csv] == [row["session"] for row in rows]
    short = cli("keep", "list", "--limit", "2").out
    assert short.startswith("  session   last written"), "a column without any mark"
    assert f"Showing the newest 2. {len(rows) - 2} more" in short
    assert sum(row["session"][:8] in short for row in rows) == 2
    filtered = cli("keep", "list", "--project", "KETTLE", "--json").json
    assert filtered == [row for row in rows if "kettle" in row["project"]]
    assert filtered
    result = cli("keep", "list", "--project", "nowhere")
    assert (result.code, result.out) == (1, "")
    assert cli("keep", "list", "--only").code == 1
    assert cli("keep", "list", "--machine", "desk", "--json").json == rows
    assert "Machines: desk_" in cli("keep", "list", "--machine", "other").err


def test_status_shows_what_is_at_risk_and_when(cli: CliRunner, home: Path) -> None:
    """Sessions due for deletion come first, in the table and in JSON. After a run nothing is at risk."""
    cli("keep")
    assert "Nothing is at risk" in cli("keep", "status").out
    due, soon, *_others = home_counts.main_transcripts(home)
    for path, age in ((due, 31), (soon, 27.5)):
        with path.open("ab") as file:
            file.write(b'{"type":"user"}\n')
        os.utime(path, (time.time() - age * DAY,) * 2)
    output = cli("keep", "status").out
    assert "At risk: 2 sessions. Run `threadline keep`." in output
    assert re.search(r"last run \S+ \S+ \(\S+\)\n", output), "times without a zone"
    first, second = (line for line in output.splitlines() if "has grown" in line)
    assert (first.split()[0], second.split()[0]) == (due.stem[:8], soon.stem[:8])
    assert first.endswith(f"projects/{due.parent.name}")
    assert "at the next start" in first
    assert re.search(r" in 2 days  \d{4}-\d\d-\d\d ", second)
    assert "Claude Code deletes after 30 days" in output
    status = cli("keep", "status", "--json").json
    rows = cli("keep", "status", "--jsonl").jsonl
    assert status["at_risk"] == rows
    assert [(row["session"], row["state"], row["bytes"]) for row in rows] == [
        (due.stem, "grown", 16),
        (soon.stem, "grown", 16),
    ]
    (home / "settings.json").write_text('{"cleanupPeriodDays": 99999}')
    assert [row["deleted"] for row in cli("keep", "status", "--jsonl").jsonl] == [None, None]
    never = cli("keep", "status").out
    assert "Claude Code deletes after 99,999 days" in never
    assert "Not stored yet: 2 sessions. Run `threadline keep`." in never
    (home / "settings.json").write_text('{"cleanupPeriodDays": 0}')
    assert "everything is deleted at the next start" in " ".join(cli("keep", "status").out.split())


def test_restore_reproduces_deleted_session(cli: CliRunner, home: Path) -> None:
    """A deleted session is restored byte for byte, with modes and times. A second restore changes nothing."""
    before = snapshot(home)
    cli("keep")
    session = max(cli("keep", "list", "--json").json, key=lambda row: row["files"])
    assert session["files"] > 3
    for path in [path for path in before if session["session"] in path]:
        (home / path).unlink()
    missing = len(before) - len(snapshot(home))
    result = cli("keep", "restore", session["session"][:10])
    assert (result.code, result.err) == (0, "")
    assert f"Restored {missing} files of 1 session into {home}." in result.out
    assert f"claude -r {session['session']}" in result.out
    assert snapshot(home) == before
    again = cli("keep", "restore", session["session"], "--json").json
    assert (again["files"], again["refused"]) == (0, [])
    assert snapshot(home) == before


def test_last_is_the_session_that_show_and_list_mean(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """If all files have the same mtime, as after a copy, `keep list` and `restore last` follow `list`."""
    for path in filter(Path.is_file, home.rglob("*")):
        os.utime(path, (1_800_000_000, 1_800_000_000))
    cli("keep")
    last = cli("show", "last", "--json").json["session"]
    listed = [row["session"] for row in cli("list", "--json").json if not row["unlisted"]]
    assert [row["session"] for row in cli("keep", "list", "--json").json if row["session"] in listed] == listed
    assert listed[0] == last
    assert cli("keep", "restore", "last", "--to", tmp_path / "new", "--json").code == 0
    assert [path.stem for path in home_counts.main_transcripts(tmp_path / "new")] == [last]


def test_restore_all_into_another_home(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Every kept file is restored with its mode and time, and the restored home reads like the original."""
    run = cli("keep", "--json").json
    result = cli("keep", "restore", "--all", "--to", tmp_path / "new", "--json")
    assert (result.code, result.json["files"], result.json["refused"]) == (0, run["files"], [])
    before = snapshot(home)
    assert all(before[path] == state for path, state in snapshot(tmp_path / "new").items())
    listed = [cli("list", "--home", folder, "--no-keep", "--json").json for folder in (home, tmp_path / "new")]
    first, second = ([(row["session"], row["title"], row["turns"]) for row in rows] for rows in listed)
    assert first == second
    assert first


def test_restore_overwrites_only_with_force(cli: CliRunner, home: Path) -> None:
    """A transcript with other bytes is not overwritten, and reported. `--force` replaces it."""
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


def test_restore_at_an_earlier_run(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`--at RUN` restores the session as that run saw it."""
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
@pytest.mark.parametrize("remaining", [0, 0.5])
def test_restore_recovers_truncated_transcript(cli: CliRunner, home: Path, tmp_path: Path, remaining: float) -> None:
    """The text before the truncation is restored, and that is reported. `--at` restores the truncated one."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    before, title = main.read_bytes(), _list_row(cli, main)["title"]
    os.truncate(main, int(len(before) * remaining))
    cli("keep")
    assert _list_row(cli, main)["title"] == title
    main.unlink()
    result = cli("keep", "restore", main.stem)
    assert (result.code, main.read_bytes()) == (0, before)
    assert "was truncated to" in result.out
    assert cli("keep", "restore", main.stem, "--at", "2", "--to", tmp_path / "at").code == 0
    assert (tmp_path / "at" / main.relative_to(home)).read_bytes() == before[: int(len(before) * remaining)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("remaining", [0, 0.5])
def test_restore_combines_truncated_and_continued_transcript(
    cli: CliRunner, home: Path, tmp_path: Path, remaining: float
) -> None:
    """A truncated and continued session is restored with every line. `--at` restores either part."""
    main = max(home_counts.main_transcripts(home), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    content = main.read_bytes()
    (title,) = (row["title"] for row in cli("list", "--json").json if row["session"] == main.stem)
    first = lines[: len(lines) * 3 // 4]
    continued = [*first[: int(len(first) * remaining)], *lines[len(first) :]]
    for part in (first, first[: int(len(first) * remaining)], continued):
        main.write_bytes(b"".join(part))
        cli("keep")
    assert (_list_row(cli, main)["title"], _list_row(cli, main)["kept"]) == (title, False)
    (part,) = (row for row in cli("list", "--json").json if row["kept"])
    result = cli("keep", "restore", main.stem, "--to", tmp_path / "all")
    assert result.code == 0
    assert (tmp_path / "all" / main.relative_to(home)).read_bytes() == content
    assert "was truncated and then continued" in " ".join(result.out.split())
    for run, data in (("1", first), ("3", continued)):
        assert cli("keep", "restore", part["session"][:8], "--at", run, "--to", tmp_path / run).code == 0
        assert (tmp_path / run / main.relative_to(home)).read_bytes() == b"".join(data)
    assert cli("keep", "restore", main.stem).code == 2
    assert main.read_bytes() == b"".join(continued)


def test_machine_is_recognised_after_losing_its_id(cli: CliRunner, home: Path) -> None:
    """The files and their ctimes show that it is the same machine, so nothing is new."""
    cli("keep")
    before = cli("keep", "status", "--json").json["machines"]
    folder = Path(os.environ["XDG_DATA_HOME"]) / "threadline"
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    home_counts.main_transcripts(home)[0].unlink()
    result = cli("keep")
    assert "Continuing as" in result.err
    assert [machine["id"] for machine in cli("keep", "status", "--json").json["machines"]] == [before[0]["id"]]
    assert (folder / "machine").read_text().strip() == before[0]["id"]
    assert cli("keep", "list", "--only", "--json").json
    assert cli("keep", "restore", "--all").code == 0


def test_machine_with_the_same_name_is_not_confused(cli: CliRunner, home: Path) -> None:
    """If all files were rewritten, it may be another machine. How to adopt its id is said once."""
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


def test_restore_mentions_a_longer_version(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The newest version is restored, and the message names the run with the longer one."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    main.write_bytes(b"{}\n")
    cli("keep")
    result = cli("keep", "restore", main.stem, "--to", tmp_path / "to")
    assert (tmp_path / "to" / main.relative_to(home)).read_bytes() == b"{}\n"
    assert "--at 1 restores" in " ".join(result.out.split())


def test_restore_prefers_the_longest_copy_of_two_homes(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The other copy is mentioned, and `--home` selects either."""
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
    assert [str(other) in message and main.name in message for message in everything.json["refused"]] == [True]
    assert (tmp_path / "all" / main.relative_to(home)).read_bytes() == main.read_bytes()
    assert cli("keep", "restore", "--all", "--home", tmp_path / "none", "--to", tmp_path / "x").code != 0


def test_merged_keep_cannot_choose_the_restore_folder(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """A forged run of this machine cannot write files into a folder that the user never called a home."""
    cli("keep")
    elsewhere = tmp_path / "elsewhere"
    session = "0abcdef0-0000-4000-8000-000000000000"
    text = json.dumps({"type": "user", "sessionId": session}).encode() + b"\n"
    files = (f"projects/-p/{session}.jsonl", f"file-history/{session}/x", f"etc/cron.d/{session}", "settings.json")
    machine = (tmp_path / "data" / "threadline" / "machine").read_text().strip()
    _forge_keep(
        tmp_path / "forged",
        RunRow(1, machine, "desk", 77, None, "2026-11-15T00:00:00Z", (str(elsewhere),)),
        files,
        text,
    )
    assert cli("keep", "merge", tmp_path / "forged").code == 0
    refused = cli("keep", "restore", session)
    assert (refused.code, elsewhere.exists()) == (2, False)
    assert "--home" in refused.err
    cli("keep", "restore", "--all", "--home", elsewhere, "--to", tmp_path / "to")
    restored = sorted(str(path.relative_to(tmp_path / "to")) for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert restored == sorted(files[:2])
    assert cli("keep", "restore", home_counts.main_transcripts(home)[0].stem).code == 0


def _forge_keep(folder: Path, run: RunRow, files: tuple[str, ...], data: bytes) -> None:
    """A keep with a forged run."""
    store = Store.make(folder)
    piece = Piece.of(data)
    with PackWriter(store, run.machine) as packing:
        packing.add(piece)
    rows = [FileRow(run.homes[0], path, 0o777, time.time_ns(), len(data), (piece.hash,), 0, None, 0) for path in files]
    store.put_run([run, *rows, EndRow(run.began, len(files), len(data))])


def _list_row(cli: CliRunner, main: Path) -> Any:
    """The row of a session in `keep list`."""
    (row,) = (candidate for candidate in cli("keep", "list", "--json").json if candidate["session"] == main.stem)
    return row


def test_restore_warns_if_session_would_be_deleted_again(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """A session older than the retention period gets a warning. `--touch` makes it new."""
    main = home_counts.main_transcripts(home)[0]
    os.utime(main, (time.time() - 40 * DAY,) * 2)
    cli("keep")
    assert "older than 30 days" in cli("keep", "restore", main.stem, "--to", tmp_path / "a").out
    (tmp_path / "c").mkdir()
    (tmp_path / "c/settings.json").write_text('{"cleanupPeriodDays": 1}')
    everything = " ".join(cli("keep", "restore", "--all", "--to", tmp_path / "c").out.split())
    assert "older than 1 day, so Claude Code deletes them again soon" in everything
    touched = cli("keep", "restore", main.stem, "--to", tmp_path / "b", "--touch")
    assert "older than" not in touched.out
    assert time.time() - (tmp_path / "b" / main.relative_to(home)).stat().st_mtime < DAY


@pytest.mark.usefixtures("home")
def test_verify_names_damaged_sessions(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 2, with the affected sessions and how to repair them. Merging a copy repairs them."""
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
    listed = {row["session"] for row in cli("keep", "list", "--json").json}
    assert result.json["sessions"]
    assert set(result.json["sessions"]) <= listed
    report = cli("keep", "verify")
    assert report.code == 2
    assert "threadline keep merge COPY" in report.out
    assert result.json["sessions"][0] in report.out
    assert cli("keep", "merge", tmp_path / "copy").code == 0
    assert cli("keep", "verify", "--json").json["sessions"] == []
    assert cli("keep", "restore", "--all", "--to", tmp_path / "all").code == 0


def test_forget_needs_confirmation(cli: CliRunner, home: Path) -> None:
    """Without --yes it refuses. With it, the session is removed, not kept again, and the reason stays."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    refused = cli("keep", "forget", main.stem, "--reason", "a mistake")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert cli("keep", "forget", main.stem, "--reason", " ", "--yes").code == 2
    result = cli("keep", "forget", main.stem, "--reason", "a mistake", "--yes", "--json")
    assert (result.code, result.json["reason"], result.json["problems"]) == (0, "a mistake", [])
    assert main.stem not in {row["session"] for row in cli("keep", "list", "--json").json}
    assert cli("keep").out.startswith("Nothing new")
    assert "No session in the keep" in cli("keep", "restore", main.stem).err
    assert cli("keep", "verify").code == 0
    assert main.exists()


@pytest.mark.parametrize(("typed", "code"), [("n\n", 1), ("", 130)], ids=["no", "Ctrl-D"])
def test_forget_asks_on_a_terminal(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    """Whoever says no, or ends the question with Ctrl-C or Ctrl-D, keeps the session and sees no traceback."""
    cli("keep")
    session = home_counts.main_transcripts(home)[0].stem
    monkeypatch.setattr("sys.stdin", TypedLines(typed))
    assert cli("keep", "forget", session, "--reason", "a mistake").code == code
    assert session in {row["session"] for row in cli("keep", "list", "--json").json}


@pytest.mark.usefixtures("home")
def test_merge_lists_sessions_by_machine(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of another machine are listed with its name. A second merge finds nothing new."""
    cli("keep")
    own_rows = cli("keep", "list", "--json").json
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data2"))
    monkeypatch.setattr("platform.node", lambda: "lap top")
    cli("keep", "--keep", tmp_path / "other")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    result = cli("keep", "merge", tmp_path / "other")
    assert result.out.startswith("Imported 1 run and ")
    assert cli("keep", "merge", tmp_path / "other").out.startswith("Nothing new")
    rows = cli("keep", "list", "--json").json
    assert sorted({row["machine"] for row in rows}) == ["desk", "lap top"]
    assert len(rows) == 2 * len(own_rows)
    assert len(cli("keep", "list", "--machine", "lap top", "--json").json) == len(own_rows)
    assert " machine " in cli("keep", "list").out
    foreign = cli("keep", "restore", rows[0]["session"], "--machine", "lap top")
    assert foreign.code == 2
    assert "another machine, lap top" in foreign.err
    assert cli("keep", "restore", rows[0]["session"], "--machine", "lap top", "--to", tmp_path / "here").code == 0
    assert cli("keep", "pack").code == 0
    assert cli("keep", "verify").code == 0


@pytest.mark.slow
def test_encrypted_keep_is_written_without_secret_and_read_with_it(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By passphrase or key file. Without it, the message says what to give. No file contains a session id."""
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
    contents = b"".join(path.read_bytes() for path in (tmp_path / "keep").rglob("*") if path.is_file())
    assert main.stem.encode() not in contents
    monkeypatch.setenv("THREADLINE_KEEP_PASSPHRASE", "pass")
    assert cli("keep", "--encrypt", "--keep", tmp_path / "second").code == 0
    assert cli("keep", "status", "--keep", tmp_path / "second", "--json").json["encrypted"]
    monkeypatch.setenv("THREADLINE_KEEP_PASSPHRASE", "other")
    wrong = cli("keep", "status", "--keep", tmp_path / "second")
    assert wrong.code == 2
    assert "Wrong passphrase" in wrong.err


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("passphrase", [None, "pass"])
def test_encrypted_keep_is_created_with_the_key_file_of_the_environment(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str | None
) -> None:
    """With THREADLINE_KEEP_KEY_FILE, `keep --encrypt` asks for no passphrase, and the file opens the keep."""
    pytest.importorskip("pyrage")
    key = tmp_path / "key"
    monkeypatch.setenv("THREADLINE_KEEP_KEY_FILE", str(key))
    if passphrase:
        monkeypatch.setenv("THREADLINE_KEEP_PASSPHRASE", passphrase)
    created = cli("keep", "--encrypt")
    assert (created.code, key.stat().st_mode & 0o777) == (0, 0o600), created.err
    assert len(cli("keep", "list", "--json").json) > 3
    monkeypatch.delenv("THREADLINE_KEEP_KEY_FILE")
    assert cli("keep", "list").code == 2


@pytest.mark.usefixtures("home")
def test_missing_keep_and_invalid_arguments(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a keep the exit code is 1, and the message says how to create one. Invalid arguments exit with 2."""
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
    for words, sentence in (
        (["diff", "9"], "There is no run 9"),
        (["diff", "1", "1", "1"], "at most two runs"),
        (["restore"], "Name a session"),
        (["restore", "last", "--all"], "Name sessions"),
        (["restore", "zzz"], "No session in the keep starts with 'zzz'"),
        (["lst"], "Did you mean `threadline keep list`?"),
        (["merge"], "OTHER"),
        (["merge", tmp_path / "nowhere"], "There is no keep in"),
        (["forget", "last"], "--reason"),
        (["--quiet", "status"], "--quiet does not apply to `threadline keep status`"),
    ):
        result = cli("keep", *words)
        assert result.code in (1, 2)
        assert sentence in result.err
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    assert "turns the keep off" in cli("keep").err
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert cli("keep").code == 1
    assert cli("keep", "--home", tmp_path / "nowhere").code == 2


def test_reports_unreadable_files_and_keeps_the_rest(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and the file's name, even with --quiet. All other sessions are kept."""
    main = home_counts.main_transcripts(home)[0]
    open_unbuffered = home_files.open_unbuffered

    def refuse_main(path: Path, *, home: Path) -> object:
        if Path(path) == main:
            raise PermissionError(13, "Permission denied", str(path))
        return open_unbuffered(path, home=home)

    monkeypatch.setattr(home_files, "open_unbuffered", refuse_main)
    result = cli("keep", "--quiet")
    assert (result.code, result.out) == (2, "")
    assert main.name in result.err
    monkeypatch.setattr(home_files, "open_unbuffered", open_unbuffered)
    assert cli("keep", "list", "--json").json
    (row,) = cli("keep", "status", "--jsonl").jsonl
    assert (row["session"], row["state"]) == (main.stem, "new")


def test_options_are_allowed_before_the_action(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`threadline keep --keep DIR status` and `threadline --home DIR keep` work."""
    assert cli("--home", home, "keep", "--keep", tmp_path / "b", "--json").json["keep"] == str(tmp_path / "b")
    status = cli("keep", "--keep", tmp_path / "b", "--json", "status").json
    assert status["path"] == str(tmp_path / "b")
    assert cli("keep", "--keep", tmp_path / "b", "path").out == f"{tmp_path / 'b'}\n"


def test_escapes_hostile_names(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Hostile project names and titles are escaped."""
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


def test_progress_bar_in_a_terminal(home: Path, tmp_path: Path) -> None:
    """A terminal shows a progress bar on standard error. The output is the same."""
    result = run_on_terminal("keep", "--home", home, "--keep", tmp_path / "k", XDG_DATA_HOME=str(tmp_path / "d"))
    assert result.code == 0
    assert b"Keeping" in result.raw_err
    assert result.out.startswith("Sessions: ")


@pytest.mark.usefixtures("home")
def test_without_zstandard_says_what_to_install(cli: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2 and one sentence with the command, for every action."""
    real_find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "zstandard" else real_find_spec(name))
    for action in ([], ["status"], ["list"], ["verify"], ["path"]):
        result = cli("keep", *action)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("threadline: A keep needs zstandard, which is not installed. Run: ")
        assert result.err.endswith("[keep]'\n")


@pytest.mark.usefixtures("home")
def test_missing_keep_is_not_recreated_without_begin(cli: CliRunner, tmp_path: Path) -> None:
    """An unmounted disk gets no new keep, even with --quiet. `--begin` creates one."""
    disk = tmp_path / "disk"
    assert cli("keep", "--keep", disk / "keep", "--quiet").code == 0
    machine = cli("keep", "status", "--keep", disk / "keep", "--json").json["machines"][0]
    assert machine["ended"] >= machine["last"]
    disk.rename(tmp_path / "elsewhere")
    refused = cli("keep", "--keep", disk / "keep", "--quiet")
    assert refused.code == 2
    assert "Mount its disk" in refused.err
    assert not disk.exists()
    assert cli("keep", "--keep", disk / "keep", "--begin").code == 0
    assert cli("keep", "--keep", disk / "keep").code == 0


@pytest.mark.usefixtures("home")
def test_run_repairs_what_verify_found_damaged(cli: CliRunner, tmp_path: Path) -> None:
    """A flipped bit is found, reported by `status` until it is repaired, and repaired by the next run."""
    assert cli("keep").code == 0
    pack = max((tmp_path / "keep/packs").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[len(data) // 3] ^= 4
    pack.write_bytes(data)
    report = cli("keep", "verify", "--json")
    assert report.code == 2
    assert report.json["sessions"]
    assert "found 1 damaged pack" in cli("keep", "status").err
    assert cli("keep").code == 0
    assert cli("keep", "verify", "--json").json["sessions"] == []
    assert cli("keep", "pack").code == 0
    assert cli("keep", "verify").code == 0
    assert "damaged" not in cli("keep", "status").err


def test_restore_refuses_invalid_arguments(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """An empty folder name, an unknown run, the keep itself, and contradicting options."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    for words, sentence in (
        (("--to", ""), "name of the folder is empty"),
        (("--at", "99", "--to", "x"), "There is no run 99. The last is 1"),
        (("--to", tmp_path / "keep"), "is inside the keep"),
        (("--to", tmp_path / "keep" / "packs" / "x"), "is inside the keep"),
        (("--all", "--to", "x"), "not both"),
    ):
        result = cli("keep", "restore", main.stem, *words)
        assert (result.code, sentence in result.err) == (2, True), result.err
    assert cli("keep", "--keep", "").code == 2
    assert cli("keep", "verify").code == 0


def test_expands_tilde_in_the_variable(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service's environment file, where no shell expands it."""
    monkeypatch.setenv("THREADLINE_KEEP", "~/kept")
    assert cli("keep").code == 0
    assert (Path(os.environ["HOME"]) / "kept" / "keep.json").is_file()
    home_counts.main_transcripts(home)[0].unlink()
    assert any(row["kept"] for row in cli("list", "--json").json)
    assert cli("keep", "path").out.strip() == str(Path(os.environ["HOME"]) / "kept")


def test_touch_applies_to_existing_files(cli: CliRunner, home: Path) -> None:
    """The warning suggests `--touch`, so it also works after the restore."""
    main = home_counts.main_transcripts(home)[0]
    os.utime(main, (1, 1))
    cli("keep")
    assert "--touch" in cli("keep", "restore", main.stem).out
    assert "--touch" not in cli("keep", "restore", main.stem, "--touch").out
    assert time.time() - main.stat().st_mtime < DAY


def test_warning_uses_the_retention_of_each_home(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each home's sessions and settings count. Without a restored file, there is no warning."""
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
    output = " ".join(cli("keep", "restore", "--all").out.split())
    assert f"{len(mains)} of them are older than 30 days" in output
    assert "1 of them is older than 400 days" in output
    mains[0].write_bytes(b"{}\n")
    refused = cli("keep", "restore", mains[0].stem, "--home", home)
    assert (refused.code, "older than" in refused.out) == (2, False)


@pytest.mark.usefixtures("home")
def test_merging_encrypted_keep_into_plain_keep_warns(cli: CliRunner, tmp_path: Path) -> None:
    """The user asked for it, but should know."""
    pytest.importorskip("pyrage")
    key = tmp_path / "key"
    assert cli("keep", "--encrypt", "--keep", tmp_path / "sealed", "--key-file", key).code == 0
    result = cli("keep", "merge", tmp_path / "sealed", "--keep", tmp_path / "plain", "--other-key-file", key)
    assert (result.code, "not encrypted here" in result.err) == (0, True)


def test_status_before_the_first_run(cli: CliRunner, home: Path) -> None:
    """Everything is at risk, with the dates, and the message says that there is no keep."""
    result = cli("keep", "status", "--all")
    assert result.code == 1
    assert "Run `threadline keep` to create one" in result.err
    assert f"At risk: {len({path.stem for path in home_counts.main_transcripts(home)})} sessions" in result.out
    assert all(path.stem[:8] in result.out for path in home_counts.main_transcripts(home))
    document = cli("keep", "status", "--json")
    rows = [json.loads(line) for line in cli("keep", "status", "--jsonl").out.splitlines()]
    assert (document.code, document.json["path"], document.json["sessions"]) == (1, None, 0)
    assert document.json["at_risk"] == rows


@pytest.mark.usefixtures("home")
def test_readers_report_an_unmounted_keep(cli: CliRunner, tmp_path: Path) -> None:
    """An unmounted disk is not reported as a keep that was never created."""
    cli("keep")
    (tmp_path / "keep").rename(tmp_path / "elsewhere")
    for action in ("status", "list", "verify"):
        result = cli("keep", action)
        assert (result.code, "is missing. Mount its disk" in result.err) == (2, True)
        assert "to create one" not in result.err
    result = cli("keep", "merge", tmp_path / "nosuch", "--keep", tmp_path / "elsewhere")
    assert (result.code, "There is no keep in" in result.err) == (2, True)


def test_status_mentions_forgotten_sessions_that_still_exist(cli: CliRunner, home: Path) -> None:
    """They are not kept, as requested, and `status` does not claim that everything is kept."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    cli("keep", "forget", main.stem, "--reason", "private", "--yes")
    assert f"still in a home: 1 session ({main.stem[:8]})" in cli("keep", "status").out


def test_encrypted_keep_explains_how_to_adopt_a_machine_id(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """An encrypted keep does not reveal its machines. `status` names the ids of machines with this name."""
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


def test_force_does_not_overwrite_unkept_growth(cli: CliRunner, home: Path) -> None:
    """An older version replaces a transcript only after the keep has what was added to it."""
    cli("keep")
    main = home_counts.main_transcripts(home)[0]
    before = main.read_bytes()
    main.write_bytes(before + b'{"type":"summary"}\n')
    result = cli("keep", "restore", main.stem, "--force")
    assert (result.code, "has grown since it was stored" in result.err) == (2, True)
    assert main.read_bytes() == before + b'{"type":"summary"}\n'
    cli("keep")
    assert cli("keep", "restore", main.stem, "--at", "1", "--force").code == 0
    assert main.read_bytes() == before


def test_each_action_builds_the_catalogue_once(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building it takes most of the time of a run without news. After that it is only refreshed."""
    built: list[Store] = []
    build = Catalogue.__init__

    def counting_init(self: Catalogue, store: Store, *more: Any, **keywords: Any) -> None:
        built.append(store)
        build(self, store, *more, **keywords)

    monkeypatch.setattr(Catalogue, "__init__", counting_init)
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
