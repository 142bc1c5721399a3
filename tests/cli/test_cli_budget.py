"""`threadline budget`: set, list, remove and check budgets; what `usage` and `statusline` show of them."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliResult, CliRunner
from tests.insight.spending import NOW, OTHER, REPLY_COST, spend
from tests.transcripts import SESSION, START

from threadline.account import save_budget
from threadline.cli.cost import budget as command
from threadline.cli.cost import statusline as statusline_command
from threadline.cli.cost import usage as usage_command
from threadline.files import BUDGETS, settings_file
from threadline.model.budgets import Budget

RunCheck = Callable[..., CliResult]


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the commands."""
    for module in (command, usage_command, statusline_command):
        monkeypatch.setattr(module, "_now", lambda: NOW)


@pytest.fixture
def home(cli: CliRunner, tmp_path: Path) -> Path:
    """A home in which 1.50 USD was spent just now. Its user has no budget yet."""
    del cli
    return spend(tmp_path / "home", START)


def test_commands(cli: CliRunner, home: Path) -> None:
    """Set, list, change and remove budgets."""
    options = ("--home", home, "--tz", "UTC")
    none = cli("budget", *options)
    assert (none.code, none.out) == (1, "")
    assert "budget set 50/day" in none.err
    assert cli("budget", "set", "2", "per", "day").code == 0
    assert cli("budget", "set", "3/day", "--json").json[0]["replaced"] == "2/day"
    assert "changed from 3/day to 2/day" in cli("budget", "set", "2/day").out
    assert cli("budget", "set", "1M tokens/5h", "--project", "app").code == 0
    assert [row["budget"] for row in cli("budget", "set", "4/week", "5/month", "--json").json] == ["4/week", "5/month"]
    assert cli("budget", "remove", "week").code == cli("budget", "remove", "month").code == 0
    assert settings_file(BUDGETS).read_text().splitlines()[-2:] == ["2/day", "1M tokens/5h --project app"]
    day, window = cli("budget", "list", *options, "--json").json
    assert (day["spent"], day["left"], day["share"], day["unit"]) == (
        REPLY_COST,
        Decimal("0.5"),
        Decimal("0.75"),
        "usd",
    )
    assert (window["left"], window["project"], window["until"]) == (900_000, "app", "2026-01-05T13:59:59.999999Z")
    assert "$0.50" in cli("budget", *options).out
    assert cli("budget", "remove", "5h").code == 1
    assert cli("budget", "remove", "tokens/5h", "--project", "app").out == "Removed 1M tokens/5h --project app.\n"
    assert cli("budget", "remove", "--all", "--json").json == [{"budget": "2/day"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("50/day",), "Did you mean `threadline budget set 50/day`?"),
        (("chek",), "Did you mean `threadline budget check`?"),
        (("set", "50"), "no period"),
        (("remove",), "or use --all"),
        (("check", "--warn-at", "much"), "Write it as 80%"),
    ],
)
def test_mistakes(cli: CliRunner, arguments: tuple[str, ...], message: str) -> None:
    """Say what to write instead."""
    result = cli("budget", *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("budget", "code", "text"),
    [
        ("9/day", 0, "Within budget: $7.50 left today."),
        ("1.6/day", 0, "Budget 1.6/day is 94% used: $1.50 spent today."),
        ("1.5/day", 1, "Budget 1.5/day is used up: $1.50 spent today. It starts again in 14h 49m."),
        ("1/day", 1, "Budget 1/day is used up"),
        ("1/day --project site", 1, "is used up"),
    ],
)
def test_check_answers_by_exit_code(cli: CliRunner, home: Path, budget: str, code: int, text: str) -> None:
    """0 within, 1 used up: `threadline budget check || …`."""
    if "site" in budget:
        spend(home, START, session=OTHER, cwd="/work/site")
    save_budget(Budget.parse_line(budget))
    result = cli("budget", "check", "--home", home, "--tz", "UTC")
    assert (result.code, result.err) == (code, "")
    assert text in result.out
    assert cli("budget", "check", "--home", home, "--tz", "UTC", "--project", "/work/app").code == code * (
        "site" not in budget
    )


def test_check_opens_no_transcript_that_is_indexed(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on every prompt: what did not change is not opened, and what grew is read from where it grew."""
    (transcript,) = home.rglob("*.jsonl")
    os.utime(transcript, (1_700_000_000, 1_700_000_000))  # one that was just written to would be opened again
    cli("index", "refresh", "--home", home)
    save_budget(Budget.parse("9/month"))
    opened: list[str] = []
    real_open = os.open

    def spy(path: Any, *arguments: Any, **keywords: Any) -> int:
        opened.append(str(path))
        return real_open(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", spy)
    assert "$7.50 left this month" in cli("budget", "check", "--home", home, "--tz", "UTC").out
    assert not [path for path in opened if path.endswith(".jsonl")]


def test_check_without_budgets(cli: CliRunner, home: Path) -> None:
    """Nothing is exceeded, and nothing is read."""
    result = cli("budget", "check", "--home", home)
    assert (result.code, result.out) == (0, "No budget is set.\n")


@pytest.fixture
def run_hook(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, home: Path) -> RunCheck:
    """Runs the check as a hook, with Claude Code's input on standard input."""

    def run(hook_input: Any, *options: str) -> CliResult:
        data = hook_input if isinstance(hook_input, bytes) else json.dumps(hook_input).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return cli("budget", "check", "--hook", "--home", home, "--tz", "UTC", *options)

    return run


def test_hook_blocks_prompts_and_stops_work(run_hook: RunCheck) -> None:
    """What each event of Claude Code needs."""
    save_budget(Budget.parse("1/day"))
    blocked = run_hook({"hook_event_name": "UserPromptSubmit", "cwd": "/work/app"})
    assert blocked.code == 0
    assert blocked.json["decision"] == "block"
    assert blocked.json["reason"].endswith("To go on, set a higher one, or: threadline budget remove day")
    assert run_hook({"hook_event_name": "PreToolUse"}).json["continue"] is False
    assert list(run_hook({"hook_event_name": "Stop"}).json) == ["systemMessage"]


def test_hook_warns(run_hook: RunCheck) -> None:
    """From `--warn-at` on, but not on every call of a tool."""
    save_budget(Budget.parse("1.6/day"))
    assert "94% used" in run_hook({"hook_event_name": "UserPromptSubmit"}).json["systemMessage"]
    assert run_hook({"hook_event_name": "PreToolUse"}).out == ""
    assert run_hook({"hook_event_name": "UserPromptSubmit"}, "--warn-at", "95").out == ""


def test_hook_ignores_other_projects(run_hook: RunCheck) -> None:
    """A budget of a project blocks only work in it."""
    save_budget(Budget.parse("1/day", project="/app"))
    assert run_hook({"hook_event_name": "UserPromptSubmit", "cwd": "/work/site"}).out == ""
    assert run_hook({"hook_event_name": "UserPromptSubmit", "cwd": "/work/app"}).json["decision"] == "block"
    for broken in (b"", b"[]", b"{", b'{"cwd": 3, "hook_event_name": []}'):
        assert list(run_hook(broken).json) == ["systemMessage"]


def test_error_in_a_hook_blocks_nothing(run_hook: RunCheck) -> None:
    """Claude Code treats exit code 2 as a refusal, and 1 as a message."""
    settings_file(BUDGETS).parent.mkdir(parents=True)
    settings_file(BUDGETS).write_text("fifty\n")
    result = run_hook({"hook_event_name": "UserPromptSubmit"})
    assert (result.code, result.out) == (1, "")
    assert "line 1" in result.err


def test_usage_and_statusline_show_what_is_left(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures as `budget`; a wrong file is a message there, not a failure."""
    options = ("--home", home, "--tz", "UTC")
    save_budget(Budget.parse("2/day"))
    save_budget(Budget.parse("9/month", project="site"))
    uses = cli("budget", *options, "--json").json
    report = cli("usage", *options, "--json").json
    assert report["budgets"] == uses
    assert "Budget 2/day: $0.50 left today." in cli("usage", *options).out
    assert cli("usage", *options, "--session", SESSION, "--json").json["budgets"] == []
    text = json.dumps({"session_id": SESSION, "cwd": "/work/app"}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert "| budget $0.50 left today" in cli("statusline", "--no-color", *options).out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli("statusline", *options, "--json").json["budgets"] == uses[:1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli("statusline", *options, "--format", "{budget}").out == "$0.50 left today\n"
    settings_file(BUDGETS).write_text("fifty\n")
    for name in ("usage", "statusline"):
        result = cli(name, *options)
        assert result.code == 0
        assert "line 1" in result.err
