"""Commands never write the user's files and never open secrets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, subprocess_environment

# for each path: mode, owner, inode, size, mtime and ctime
State = dict[str, tuple[int, int, int, int, int, int]]

SPY = """
import json, os, sys
home, commands = sys.argv[1], json.loads(sys.argv[2])
events = []
def spy(event, arguments):
    if event.startswith(("open", "os.", "shutil.", "socket.", "subprocess.", "ctypes", "pty.")):
        events.append([event, [item if isinstance(item, str) else str(item) for item in arguments]])
from threadline.cli import run
import click, msgspec, threadline.reports, threadline.summary, threadline.parse, threadline.find
import threadline.cli.commands
sys.addaudithook(spy)
codes = [run(command) for command in commands]
sys.stdout = sys.stderr
print(json.dumps([codes, events]))
"""


def file_states(home: Path) -> State:
    """Everything about every file that reading must not change."""
    states = {}
    for path in [home, *home.rglob("*")]:
        status = path.lstat()
        times = (status.st_mtime_ns, status.st_ctime_ns)
        states[str(path)] = (status.st_mode, status.st_uid, status.st_ino, status.st_size, *times)
    return states


def all_commands(home: Path) -> list[list[str]]:
    """Every command in every format."""
    formats = [[], ["--json"], ["--jsonl"], ["--csv"]]
    transcript = str(home_counts.main_transcripts(home)[0])
    commands = [
        [*command, *form] for form in formats for command in (["--home", str(home)], ["doctor", "--home", str(home)])
    ]
    commands += [["doctor", "--check", str(home)], ["doctor", "--check", transcript], ["demo", str(home)]]
    commands += [
        ["entries", path, *form] for form in [*formats, ["--raw"], ["--problems"]] for path in (str(home), transcript)
    ]
    commands += [["entries", home_counts.main_transcripts(home)[0].stem[:8], "--home", str(home)]]
    return commands


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    """A copy of the demo home with secrets in it."""
    copy = tmp_path / "home"
    shutil.copytree(small_home, copy)
    for name in (".credentials.json", "ide/1234.key", "projects/x.key", "session.pem"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text('{"secret":"sk-planted"}')
    return copy


def test_changes_nothing(cli: CliRunner, home: Path) -> None:
    """After every command in every format, all names, sizes, times, modes and inodes are the same."""
    for path in home.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    home.chmod(0o500)
    before = file_states(home)
    try:
        for command in all_commands(home):
            assert cli(*command).code in {0, 1} or command[0] == "demo"
        assert file_states(home) == before
    finally:
        home.chmod(0o700)
        for path in home.rglob("*"):
            path.chmod(0o700)


def test_opens_files_read_only_and_no_secrets(home: Path, tmp_path: Path) -> None:
    """Python's audit events show: nothing is opened for writing except the index, and no secret, socket or process."""
    process = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-B", "-c", SPY, str(home), json.dumps(all_commands(home))],
        env=subprocess_environment(HOME=str(tmp_path), THREADLINE_CACHE=str(tmp_path / ".cache")),
        capture_output=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )
    codes, events = json.loads(process.stderr.splitlines()[-1])
    assert set(codes) <= {0, 1, 2}
    assert codes.count(2) == 1  # `demo` refuses to write into a home
    opened = [arguments for event, arguments in events if event == "open" and arguments[0].startswith(str(home))]
    assert len(opened) > 100
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    assert [arguments for arguments in opened if int(arguments[2]) & writing] == []
    assert [arguments[0] for arguments in opened if arguments[0].endswith((".credentials.json", ".key"))] == []
    harmless = {"open", "os.scandir", "os.listdir", "os.walk", "os.fwalk"}
    cache = str(tmp_path / ".cache")  # our own index
    # Whether a session is running: signal 0 only asks whether a process exists.
    events = [entry for entry in events if entry[0] != "os.kill" or entry[1][1] != "0"]
    assert [entry for entry in events if entry[0] not in harmless and not str(entry[1][0]).startswith(cache)] == []


@pytest.mark.slow
def test_prints_no_secrets(cli: CliRunner, home: Path) -> None:
    """The content of a secret is in no output."""
    for command in all_commands(home):
        assert "sk-planted" not in cli(*command).out


def test_demo_writes_only_into_a_new_or_empty_directory(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`demo` refuses a non-empty directory or a file: exit code 2, a sentence, nothing written."""
    before = file_states(home)
    file = tmp_path / "file"
    file.write_text("mine")
    for target in (home, home / "projects", file, file / "below"):
        result = cli("demo", target)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("threadline: ")
    assert "is not empty" in cli("demo", home).err
    assert file_states(home) == before
    assert file.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert cli("demo", tmp_path / "empty").code == 0
