"""Shell completion, through the protocol that the scripts for bash, zsh and fish use."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.runner import COMMAND, run_in_subprocess, subprocess_environment
from tests.profiles import share
from tests.transcripts import SESSION, Pen, call, prompt, reply, transcript, write

pytestmark = pytest.mark.sample(6)

OTHER = f"{SESSION[:-1]}7"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home with two sessions and their index. No test may change them."""
    return index_two_sessions(tmp_path_factory.mktemp("completion"))


def index_two_sessions(folder: Path) -> dict[str, str]:
    """Write a home with two sessions and index it. Return the variables that lead to both."""
    home = folder / "home"
    rows = transcript(prompt("calibrate the harbour"), call("Bash", "ls", result="a"), reply("done"))
    write(home / f"projects/-work-app/{SESSION}.jsonl", *rows)
    other = transcript(prompt("another one"), reply("so"), pen=Pen(OTHER, cwd="/work/other"))
    write(home / f"projects/-work-other/{OTHER}.jsonl", *other)
    environment = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(folder / "cache")}
    assert run_in_subprocess("index", "refresh", **environment).code == 0
    return environment


def _complete(shell: str, words: list[str], environment: dict[str, str]) -> list[list[str]]:
    """What the shell gets for a command line whose last word is unfinished: for each value, its fields."""
    line = ["threadline", *words]
    more = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
    if shell == "fish":
        more = {"COMP_WORDS": " ".join(line), "COMP_CWORD": line[-1]}
    result = run_in_subprocess(**environment, **more, _THREADLINE_COMPLETE=f"{shell}_complete")
    assert (result.code, result.err) == (0, "")
    lines = result.out.strip("\n").splitlines()
    if shell == "zsh":  # three lines for each value: its type, the value and its help
        return [lines[at : at + 3] for at in range(0, len(lines), 3)]
    if shell == "fish":
        return [[kind, *rest.split("\t")] for kind, _, rest in (line.partition(",") for line in lines)]
    return [line.split(",", 1) for line in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completes_session_ids(environment: dict[str, str], shell: str) -> None:
    """The ids of sessions, with their titles as help if the shell shows help."""
    items = _complete(shell, ["show", SESSION[:4]], environment)
    assert {item[1] for item in items} == {SESSION, OTHER}
    if shell != "bash":
        assert {item[1]: item[2] for item in items}[SESSION] == "calibrate the harbour"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["li"], {"list"}),
        (["keep", "re"], {"restore"}),
        (["show", "la"], {"last"}),
        (["explain", SESSION], {SESSION}),
        (["export", SESSION], {SESSION}),
        (["usage", "--session", SESSION], {SESSION}),
        (["list", "--project", "o"], {"other"}),
        (["list", "--project", "/work/a"], {"/work/app"}),
        (["usage", "--model", "claude-so"], {"claude-sonnet-4-5-20250929"}),
        (["usage", "--by", "proj"], {"project"}),
        (["usage", "--by", "project,mod"], {"project,model"}),
        (["calls", "--tool", "ba"], {"Bash"}),
        (["watch", "--kind", "assis"], {"assistant"}),
        (["search", "too"], {"tool:"}),
        (["search", "tool:B"], {"tool:Bash"}),
        (["search", "tool", ":", "B"], {"Bash"}),
        (["search", "harbour", "project:/work/o"], {"project:/work/other"}),
        (["usage", "--timezone"], set()),
        (["list", "--agent-ty"], {"--agent-type"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_completes_values(environment: dict[str, str], words: list[str], expected: set[str]) -> None:
    """Commands, projects, models, tools, keys, kinds, and fields of queries with their values."""
    assert {item[1] for item in _complete("bash", words, environment)} == expected


def test_without_an_index_nothing_is_read(environment: dict[str, str], tmp_path: Path) -> None:
    """If there is no index, only what needs none is completed, and no index is built."""
    cache = tmp_path / "empty"
    environment = {**environment, "THREADLINE_CACHE": str(cache)}
    assert _complete("bash", ["show", SESSION[:4]], environment) == []
    assert _complete("bash", ["usage", "--by", "proj"], environment) == [["plain", "project"]]
    assert not cache.exists()


@pytest.mark.slow
def test_a_damaged_index_completes_nothing(tmp_path: Path) -> None:
    """A shell gets no traceback."""
    environment = index_two_sessions(tmp_path)
    for path in Path(environment["THREADLINE_CACHE"]).glob("*.sqlite"):
        path.write_bytes(b"not an index" * 1000)
    assert _complete("bash", ["show", SESSION[:4]], environment) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_the_script(shell: str) -> None:
    """Each shell's script is valid, if the shell is installed to check it."""
    process = subprocess.run(  # noqa: S603 - our own command
        COMMAND,
        env=subprocess_environment(_THREADLINE_COMPLETE=f"{shell}_source"),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert b"_THREADLINE_COMPLETE" in process.stdout
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=process.stdout, check=True, timeout=60)  # noqa: S603 - checks only


def test_names_that_a_shell_would_run_are_not_offered(tmp_path: Path) -> None:
    """A session may have any file name, also one with a command, a newline or a control character in it."""
    home = tmp_path / "home"
    names = ("plain", "$(touch pwned)", "a;b", "new\nline", "esc\x1b[31mred", "*")
    for name in names:
        rows = transcript(prompt(f"title \x1b[31m of {name}"), reply("done"), pen=Pen(name))
        write(home / f"projects/-work-app/{name}.jsonl", *rows)
    environment = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(tmp_path / "cache")}
    assert run_in_subprocess("index", "refresh", **environment).code == 0
    for shell in share(("bash", "zsh", "fish"), 1):
        items = _complete(shell, ["show", ""], environment)
        assert {item[1] for item in items} == {"last", "plain"}
        assert not any("\x1b" in field for item in items for field in item)
