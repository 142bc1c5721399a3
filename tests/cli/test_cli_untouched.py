"""The user's files are never written, and secrets never opened."""

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

# name, kind and permissions, owner, inode, size, time of change and of the last change of status
State = dict[str, tuple[int, int, int, int, int, int]]

SPY = """
import json, os, sys
home, questions = sys.argv[1], json.loads(sys.argv[2])
seen = []
def spy(event, given):
    if event.startswith(("open", "os.", "shutil.", "socket.", "subprocess.", "ctypes", "pty.")):
        seen.append([event, [one if isinstance(one, str) else str(one) for one in given]])
from threadline.cli import run
import click, msgspec, threadline.reports, threadline.summary, threadline.parse, threadline.find
import threadline.cli.commands
sys.addaudithook(spy)
codes = [run(question) for question in questions]
sys.stdout = sys.stderr
print(json.dumps([codes, seen]))
"""


def state(home: Path) -> State:
    """Everything about every file that reading must not change."""
    found = {}
    for path in [home, *home.rglob("*")]:
        seen = path.lstat()
        times = (seen.st_mtime_ns, seen.st_ctime_ns)
        found[str(path)] = (seen.st_mode, seen.st_uid, seen.st_ino, seen.st_size, *times)
    return found


def questions(home: Path) -> list[list[str]]:
    """Every command in every format."""
    formats = [[], ["--json"], ["--jsonl"], ["--csv"]]
    transcript = str(home_counts.main_transcripts(home)[0])
    asked = [
        [*command, *form] for form in formats for command in (["--home", str(home)], ["doctor", "--home", str(home)])
    ]
    asked += [["doctor", "--check", str(home)], ["doctor", "--check", transcript], ["demo", str(home)]]
    asked += [
        ["entries", path, *form] for form in [*formats, ["--raw"], ["--problems"]] for path in (str(home), transcript)
    ]
    asked += [["entries", home_counts.main_transcripts(home)[0].stem[:8], "--home", str(home)]]
    return asked


@pytest.fixture
def home(demo_home: Path, tmp_path: Path) -> Path:
    """A home of its own, with secrets in it."""
    copy = tmp_path / "home"
    shutil.copytree(demo_home, copy)
    for name in (".credentials.json", "ide/1234.key", "projects/x.key", "session.pem"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text('{"secret":"sk-planted"}')
    return copy


def test_nothing_is_changed(cli: CliRunner, home: Path) -> None:
    """After every command in every format all names, sizes, times, modes and inodes are as they were."""
    for path in home.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    home.chmod(0o500)
    before = state(home)
    try:
        for question in questions(home):
            assert cli(*question).code in {0, 1} or question[0] == "demo"
        assert state(home) == before
    finally:
        home.chmod(0o700)
        for path in home.rglob("*"):
            path.chmod(0o700)


def test_files_are_opened_for_reading_only_and_secrets_never(home: Path, tmp_path: Path) -> None:
    """Python itself tells what is opened: nothing for writing but the index, no secret, no socket, no process."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-B", "-c", SPY, str(home), json.dumps(questions(home))],
        env=subprocess_environment(HOME=str(tmp_path), THREADLINE_CACHE=str(tmp_path / ".cache")),
        capture_output=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )
    codes, seen = json.loads(done.stderr.splitlines()[-1])
    assert set(codes) <= {0, 1, 2}
    assert codes.count(2) == 1  # the demo that would not write into a home
    opened = [given for event, given in seen if event == "open" and given[0].startswith(str(home))]
    assert len(opened) > 100
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    assert [given for given in opened if int(given[2]) & writing] == []
    assert [given[0] for given in opened if given[0].endswith((".credentials.json", ".key"))] == []
    harmless = {"open", "os.scandir", "os.listdir", "os.walk", "os.fwalk"}
    cache = str(tmp_path / ".cache")  # where the index lies, which is ours
    assert [one for one in seen if one[0] not in harmless and not str(one[1][0]).startswith(cache)] == []


def test_secrets_do_not_show(cli: CliRunner, home: Path) -> None:
    """What stands in a secret is in no answer."""
    for question in questions(home):
        assert "sk-planted" not in cli(*question).out


def test_a_demo_writes_into_a_new_or_empty_directory_only(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """`demo` refuses a directory that holds something, or a file: exit code 2, a sentence, nothing written."""
    before = state(home)
    file = tmp_path / "file"
    file.write_text("mine")
    for target in (home, home / "projects", file, file / "below"):
        result = cli("demo", target)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("threadline: ")
    assert "is not empty" in cli("demo", home).err
    assert state(home) == before
    assert file.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert cli("demo", tmp_path / "empty").code == 0
