"""`keep install` and `uninstall` print what to change and change nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner

from threadline.cli.keep.install import HOOK_EVENT, MARKER, cron_line, hook_settings, unit_texts

COMMAND = ("/opt/my tools/threadline", "keep", "--quiet", "--home", "/home/a b/50%")


@pytest.fixture
def home(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with settings, a configuration folder of its own, and no keep yet."""
    del cli  # it removes variables, and these are set after that
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = tmp_path / "home"
    (home / "projects").mkdir(parents=True)
    (home / "settings.json").write_text('{\n  "env": {"TOKEN": "hidden"}\n}\n')
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    return home


def file_contents(folder: Path) -> dict[str, bytes]:
    """The contents of every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("timer", ["systemd", "cron", "none", "auto"])
def test_install_prints_and_changes_nothing(cli: CliRunner, home: Path, timer: str) -> None:
    """Hook and timer are printed, with the files they belong in. Settings are neither changed nor shown."""
    before = file_contents(home.parent)
    result = cli("keep", "install", "--timer", timer)
    assert (result.code, file_contents(home.parent)) == (0, before)
    assert HOOK_EVENT in result.out
    assert str(home / "settings.json") in result.out
    assert "hidden" not in result.out
    if timer != "auto":
        assert ("threadline-keep.timer" in result.out) == (timer == "systemd")
        assert ("17 * * * * " in result.out) == (timer == "cron")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_yes_option_explains_its_removal(cli: CliRunner, action: str) -> None:
    """Scripts that used the option learn why nothing is written."""
    result = cli("keep", action, "--yes")
    assert result.code == 2
    assert "--yes was removed" in result.err
    assert "--yes" not in cli("keep", action, "--help").out


def test_install_json_has_a_row_per_file(cli: CliRunner, home: Path) -> None:
    """Each row has the path, the contents, and the command that completes the step."""
    hook, service, timer = cli("keep", "install", "--timer", "systemd", "--json").json
    assert (hook["method"], hook["path"]) == ("hook", str(home / "settings.json"))
    command = json.loads(hook["text"])["hooks"][HOOK_EVENT][0]["hooks"][0]["command"]
    assert f"--home {home}" in command
    assert f"--keep {home.parent / 'keep'}" in command
    units = home.parent / "config/systemd/user"
    assert [service["path"], timer["path"]] == [str(units / f"threadline-keep.{end}") for end in ("service", "timer")]
    assert "enable --now threadline-keep.timer" in timer["command"]
    (_hook, cron) = cli("keep", "install", "--timer", "cron", "--json").json
    assert (cron["method"], cron["path"], cron["text"][:11]) == ("cron", None, "17 * * * * ")


def test_uninstall_names_what_is_installed(cli: CliRunner, home: Path) -> None:
    """Following the printed steps removes everything; then nothing is reported."""
    assert cli("keep", "uninstall").code == 1
    rows = cli("keep", "install", "--timer", "systemd", "--json").json
    for row in rows:
        path = Path(row["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["text"])
    backup = home / "settings.json.before-threadline-keep"
    backup.write_text("{}")
    before = file_contents(home.parent)
    result = cli("keep", "uninstall")
    assert (result.code, file_contents(home.parent)) == (0, before)
    assert MARKER in result.out
    assert "crontab" in result.out
    steps = cli("keep", "uninstall", "--json").json
    assert {step["path"] for step in steps} == {
        *(row["path"] for row in rows),
        f"{home}/settings.json.before-threadline-keep",
    }
    for step in steps:
        Path(step["path"]).unlink()
    assert cli("keep", "uninstall", "--json").json == []
    result = cli("keep", "uninstall")
    assert result.code == 1
    assert "crontab" in result.err


def test_hook_command_keeps(cli: CliRunner, home: Path, demo_home: Path, tmp_path: Path) -> None:
    """The command that Claude Code would run keeps everything, and returns before it is done."""
    shutil.copytree(demo_home, home, dirs_exist_ok=True)
    (hook,) = cli("keep", "install", "--timer", "none", "--json").json
    command = json.loads(hook["text"])["hooks"][HOOK_EVENT][0]["hooks"][0]["command"]
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, timeout=30, input=b"{}")  # noqa: S603 - our own
    runs = tmp_path / "keep/runs"
    deadline = time.monotonic() + 30
    while not (runs.is_dir() and any(runs.glob("*.jsonl.zst"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cli("keep", "status", "--json").json["at_risk"] == []


def test_commands_are_quoted_for_each_reader() -> None:
    """Shells, cron and systemd have different rules for spaces and percent signs."""
    line = hook_settings(COMMAND)["hooks"][HOOK_EVENT][0]["hooks"][0]["command"]
    assert shlex.split(line.removeprefix("nohup ").split(" >/dev/null")[0]) == [*COMMAND]
    assert r"50\%" in cron_line(COMMAND)
    service = unit_texts(COMMAND)["threadline-keep.service"]
    assert 'ExecStart="/opt/my tools/threadline" keep --quiet --home "/home/a b/50%%"\n' in service
