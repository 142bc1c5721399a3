"""Exit codes: 0 if there are results, 1 if nothing matches, 2 if something that was named does not exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, run_in_subprocess
from tests.transcripts import SESSION, prompt, reply, transcript, write

pytestmark = pytest.mark.sample(5)

SESSION_COMMANDS = ("show", "tree", "calls", "errors", "files", "todos", "request", "context", "entries")
"""Commands whose argument is a session."""
OTHER_SESSION_COMMANDS = ("explain", "watch", "export", "scan", "doctor")
"""Commands whose argument may also be something else."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session that has no calls, todos, failures or secrets."""
    home = tmp_path / "home"
    write(home / f"projects/-work-app/{SESSION}.jsonl", *transcript(prompt("harbour"), reply("done")))
    return home


@pytest.mark.parametrize("name", ["zzzz", "no/such/file.jsonl", "/etc/passwd"])
@pytest.mark.parametrize("command", [*SESSION_COMMANDS, *OTHER_SESSION_COMMANDS])
def test_a_session_that_does_not_exist_is_an_error(cli: CliRunner, home: Path, command: str, name: str) -> None:
    """A session, file or message that was named and does not exist exits with 2 and a message that names it."""
    if name == "/etc/passwd" and command in {"entries", "scan", "doctor"}:
        pytest.skip("reads any file")
    if name == "/etc/passwd" and not Path(name).is_file():
        pytest.skip("there is no such file on this system")
    result = cli(command, name, "--home", home) if command != "doctor" else cli(command, name)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: ")
    assert name in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", SESSION, "--turn", "99"],
        ["show", SESSION, "--branch", "99"],
        ["request", SESSION, "99"],
        ["calls", SESSION, "--agent", "zzzz"],
        ["context", SESSION, "--agent", "zzzz"],
        ["context", SESSION, "--turn", "99"],
        ["search", "harbour", "--open", "99"],
        ["keep", "restore", "zzzz"],
        ["keep", "forget", "zzzz", "--reason", "test"],
        ["explain", "msg_zzzz"],
        ["prices", "--on", "never"],
        ["list", "--since", "never"],
        ["list", "--tz", "Nowhere/Town"],
        ["list", "--home", "/no/such/home"],
    ],
    ids=" ".join,
)
def test_a_part_that_does_not_exist_is_an_error(
    cli: CliRunner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """A turn, branch, agent, hit or request that does not exist exits with 2, and so does a value without a meaning."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    if arguments[0] == "keep":
        assert cli("keep", "--home", home).code == 0
    own_home = [] if arguments[0] in {"prices", "keep"} or "--home" in arguments else ["--home", str(home)]
    result = cli(*arguments, *own_home)
    if arguments[:2] == ["calls", SESSION]:
        assert result.code == 1, "a filter of a list"
        return
    assert (result.code, result.out) == (2, "")
    assert result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--project", "zzzz"],
        ["list", "--since", "2031-01-01"],
        ["search", "zzzz"],
        ["usage", "--project", "zzzz"],
        ["usage", "--session", "zzzz"],
        ["blocks", "--since", "2031-01-01"],
        ["explain", "2031-01-01"],
        ["history"],
        ["calls"],
        ["calls", SESSION],
        ["errors"],
        ["errors", SESSION],
        ["files"],
        ["files", SESSION],
        ["todos", SESSION],
        ["request", SESSION],
        ["scan"],
        ["entries", SESSION, "--kind", "summary"],
        ["export", "--project", "zzzz"],
    ],
    ids=" ".join,
)
def test_nothing_found_is_not_an_error(cli: CliRunner, home: Path, arguments: list[str]) -> None:
    """A list or report without results exits with 1, prints nothing but its format, and says why."""
    result = cli(*arguments, "--home", home)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: ")


@pytest.mark.parametrize(
    "arguments",
    [
        *(["list"], ["search", "x"], ["history"], ["watch"], ["calls"], ["errors"], ["files"], ["usage"], ["explain"]),
        *(["blocks"], ["why", "--since", "7d"], ["waste", "--since", "7d"], ["outcomes"], ["tools"], ["digest"]),
        *(["keep"], ["scan"], ["export", "--since", "7d"], ["sql", "SELECT 1"], ["index"], ["doctor"]),
    ],
    ids=" ".join,
)
def test_without_a_home_each_command_says_only_that(cli: CliRunner, arguments: list[str]) -> None:
    """No command says that every call succeeded, or that a filter leaves everything out, if there is no home."""
    result = cli(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: No Claude home found.")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["outcomes", "--list"], "No commits, pull requests, test runs or edits in any session."),
        (
            ["outcomes", "--since", "2031-01-01"],
            "No commits, pull requests, test runs or edits match. Remove a filter.",
        ),
        (["tools"], "No calls in any session."),
        (["tools", "--tool", "Bash"], "No matching calls. Remove a filter."),
        (["why", "--since", "2031-01-01"], "Nothing was spent in that period."),
        (["why", "--project", "app", "--since", "2031-01-01"], "Nothing was spent by projects that match 'app' in"),
    ],
    ids=" ".join,
)
def test_advice_names_only_filters_in_use(cli: CliRunner, home: Path, arguments: list[str], sentence: str) -> None:
    """Nobody is told to remove a filter that was not given."""
    result = cli(*arguments, "--home", home)
    assert (result.code, result.out) == (1, "")
    assert sentence in result.err


@pytest.mark.parametrize("command", [*SESSION_COMMANDS, "explain", "why", "waste", "export", "watch"])
def test_last_without_sessions_says_that_there_is_none(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """In an empty home, `last` is not called an unknown message or path."""
    (tmp_path / "empty/projects").mkdir(parents=True)
    result = cli(command, "last", "--home", tmp_path / "empty")
    assert (result.code, result.out) == (2, "")
    assert "There is no session yet" in result.err


def test_a_kind_that_would_never_come_is_an_error(cli: CliRunner, home: Path) -> None:
    """`watch --kind nope` would wait for ever."""
    result = cli("watch", "--kind", "nope", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "nope" in result.err


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "x", "--timeout"],
        ["sql", "SELECT 1", "--timeout"],
        ["sql", "SELECT 1", "--duckdb", "--timeout"],
        ["lake", "sql", "/lake", "SELECT 1", "--timeout"],
        ["watch", "--poll"],
        ["waste", "--min"],
        ["export", "--format", "otlp", "--rate"],
        ["export", "--format", "otlp", "--idle"],
    ],
    ids=" ".join,
)
def test_nan_and_infinity_are_not_numbers(cli: CliRunner, home: Path, arguments: list[str], value: str) -> None:
    """An option that takes a number names the value that is none."""
    own_home = [] if arguments[0] == "lake" else ["--home", str(home)]
    result = cli(*arguments, value, *own_home)
    assert (result.code, result.out) == (2, "")
    assert f"Invalid value for '{arguments[-1]}'" in result.err
    assert value in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["usage", "--prices"],
        ["prices", "--prices"],
        ["prices", "--import"],
        ["export", "last", "--hide-from"],
        ["export", "last", "--patterns"],
        ["show"],
    ],
    ids=" ".join,
)
def test_pipes_are_refused(home: Path, tmp_path: Path, arguments: list[str]) -> None:
    """A named pipe as a file is an error. Reading it would wait for a writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run_in_subprocess(*arguments, pipe, CLAUDE_CONFIG_DIR=str(home), THREADLINE_KEEP=str(tmp_path / "keep"))
    assert (result.code, result.out) == (2, "")
    assert str(pipe) in result.err


@pytest.mark.parametrize("word", ["restore", "verify", "status"])
def test_commands_of_keep_are_suggested(cli: CliRunner, word: str) -> None:
    """`threadline restore` points to `threadline keep restore`."""
    result = cli(word)
    assert result.code == 2
    assert f"Did you mean `threadline keep {word}`?" in result.err
