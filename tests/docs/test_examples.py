"""The examples in the docs work: commands, Python, doctests, the reference, links."""

from __future__ import annotations

import doctest
import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from tools.demo import write

import threadline
from threadline.cli.commands import COMMANDS
from threadline.cli.commands import threadline as command

ROOT = Path(__file__).parents[2]
GUIDES = ("README.md", "docs/quickstart.md")
LIBRARY = "docs/library.md"
PYTHON_PAGES = (*GUIDES, LIBRARY, "docs/why.md", "docs/budget.md", "docs/digest.md", "docs/blame.md")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def code_blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return [code for tag, code in _BLOCK.findall((ROOT / page).read_text()) if tag == language]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the examples: the installed command, and a generated home as the user's."""
    home = tmp_path_factory.mktemp("examples") / "home"
    write(home)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "HOME": str(home.parent), "CLAUDE_CONFIG_DIR": str(home)}


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES)
def test_every_command_works(page: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Every line of every shell block succeeds, in order. For `make`, the target exists."""
    lines = [line for block in code_blocks(page, "sh") for line in block.splitlines() if line.strip()]
    assert len(lines) >= 5
    targets = re.findall(r"^(\w+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in lines:
        if line.startswith("make "):
            assert line.split()[1] in targets
            continue
        process = subprocess.run(  # noqa: S603 - our own examples
            ["/bin/sh", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60
        )
        assert (process.returncode, process.stderr) == (0, b""), line
        assert process.stdout or ">" in line, line


def test_commands_about_blame_work(environment: dict[str, str], tmp_path: Path) -> None:
    """Every command at the start of the page about blame finds lines that a session of the demo home wrote."""
    lines = code_blocks("docs/blame.md", "sh")[0].splitlines()
    assert len(lines) >= 5
    for line in lines:
        process = subprocess.run(  # noqa: S603 - our own examples
            ["/bin/sh", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60
        )
        assert (process.returncode, b"ca69209c" in process.stdout) == (0, True), line


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("page", "number"),
    [(page, number) for page in PYTHON_PAGES for number in range(len(code_blocks(page, "python")))],
)
def test_every_python_example_works(page: str, number: int, environment: dict[str, str], tmp_path: Path) -> None:
    """Every Python block runs by itself and prints something. A guide's block needs only the demo home."""
    code = code_blocks(page, "python")[number]
    for library, method in (("pyarrow", ".arrow("), ("polars", ".polars("), ("pandas", ".pandas(")):
        if method in code:
            pytest.importorskip(library)
    if page in GUIDES:
        (tmp_path / "demo-home").symlink_to(environment["CLAUDE_CONFIG_DIR"])
        environment = {**environment, "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": ""}
    process = subprocess.run(  # noqa: S603 - our own examples
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert process.stdout


def test_every_doctest_works() -> None:
    """Every docstring example of every module passes."""
    packages = ["threadline", *(package.name for package in pkgutil.walk_packages(threadline.__path__, "threadline."))]
    modules = [module for module in map(import_module, packages) if ">>>" in Path(str(module.__file__)).read_text()]
    results = {module.__name__: doctest.testmod(module) for module in modules}
    assert {name for name, result in results.items() if result.failed} == set()
    assert sum(result.attempted for result in results.values()) >= 5


def test_reference_is_up_to_date(environment: dict[str, str]) -> None:
    """`docs/cli.md` is what `make docs` would write now."""
    # In a new process, as make does: click remembers earlier help options.
    code = "import sys; sys.path.insert(0, 'docs'); import write_cli; sys.stdout.write(write_cli.page())"
    process = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-B", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert (ROOT / "docs/cli.md").read_text() == process.stdout, "run: make docs"


def test_every_command_and_option_is_in_the_reference() -> None:
    """Every command has a heading, and each of its visible options is below it."""
    page = (ROOT / "docs/cli.md").read_text()
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    context = click.Context(command)
    commands = {"threadline": command} | {f"threadline {name}": command.get_command(context, name) for name in COMMANDS}
    assert set(sections) == set(commands)
    for title, subcommand in commands.items():
        assert subcommand is not None
        options = [option for option in subcommand.params if isinstance(option, click.Option) and not option.hidden]
        for name in (name for option in options for name in option.opts):
            assert re.search(rf"^ +(-[-\w]+, )*{name}\b", sections[title], re.MULTILINE), (title, name)


def printed_keys(environment: dict[str, str], words: list[str]) -> set[str]:
    """The keys of the output: of the JSON document, or of the first row."""
    code = "import sys; from threadline.cli import main; main()"
    process = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, check=True, timeout=60
    )
    return set(json.loads(process.stdout if "--json" in words else process.stdout.splitlines()[0]))


@pytest.mark.slow
def test_every_key_is_documented(environment: dict[str, str], tmp_path: Path) -> None:
    """The tables of keys in `docs/cli.md` have exactly the keys that each command prints."""
    page = (ROOT / "docs/cli.md").read_text()
    sections = dict(re.findall(r"^## threadline ?([^\n]*)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    environment = {**environment, "THREADLINE_CACHE": str(tmp_path / "cache")}
    home = Path(environment["CLAUDE_CONFIG_DIR"])
    edited = next(path for path in sorted(home.glob("projects/*/*.jsonl")) if b'"Edit"' in path.read_bytes())
    edited_file = re.findall(r'"filePath":"([^"]+)","oldString"', edited.read_text())[0]
    lake = str(tmp_path / "lake")
    commands = {
        "": [["--json"], ["--jsonl"]],
        "doctor": [["--json"], ["--jsonl"]],
        "prices": [["--json"], ["--jsonl"]],
        "usage": [["--mode", "both", "--json"], ["--jsonl"], ["--mode", "reported", "--jsonl"]],
        "blocks": [["--json"], ["--jsonl"]],
        "statusline": [["--json"]],
        "explain": [["last", "--json"], ["last", "--jsonl"]],
        "entries": [[str(home), "--jsonl", "--data", "--limit", "1"]],
        "context": [["last", "--json"], ["last", "--jsonl"]],
        "why": [["last", "--json"], ["last", "--jsonl"]],
        "blame": [[edited_file, "--no-git", "--json"], [edited_file, "--no-git", "--jsonl"]],
        "waste": [["e3e75616", "--min", "0", "--jsonl"]],  # a session with an abandoned branch
        "tools": [["--jsonl"]],
        "outcomes": [["--jsonl"], ["--list", "--jsonl"]],
        "digest": [["--month", "2026-11", "--json"], ["--month", "2026-11", "--jsonl"]],
        "budget": [["--jsonl"], ["set", "9/week", "--jsonl"], ["remove", "week", "--jsonl"]],
        "watch": [["--since", "99999d", "--limit", "1", "--jsonl"]],
        "search": [["the", "--jsonl"]],
        "sql": [["--schema", "--jsonl"], ["--export", str(tmp_path / "tables"), "--jsonl"]],
        "scan": [["--personal", "--jsonl"]],
        "index": [["refresh", "--json"], ["status", "--json"]],
        "keep": [
            ["--json"],
            ["status", "--json"],
            ["status", "--keep", str(tmp_path / "other"), "--jsonl"],
            ["list", "--jsonl"],
            ["diff", "--jsonl"],
            ["diff", "--runs", "--jsonl"],
            ["restore", "last", "--to", str(tmp_path / "back"), "--json"],
            ["verify", "--json"],
            ["forget", "last", "--reason", "an example", "--yes", "--json"],
            ["merge", str(tmp_path / "other"), "--json"],
            ["accept-forgotten", "--list", "--keep", str(tmp_path / "pending"), "--jsonl"],
            ["pack", "--json"],
            ["install", "--jsonl"],
            ["path", "--json"],
        ],
        "lake": [
            ["init", lake, "--policy", "full", "--json"],
            ["push", lake, "--accept", "full", "--json"],
            ["build", lake, "--json"],
            ["search", lake, "the", "--jsonl"],
            ["forget", lake, "--session", edited.stem, "--yes", "--json"],
            ["status", lake, "--json"],
        ],
        "export": [],  # in docs/export.md: tests/export/test_docs.py
        "schema": [["--list", "--jsonl"]],
        "convert": [
            [str(ROOT / "tests/cli/convert_sources/tool-rows.jsonl"), output] for output in ("--json", "--jsonl")
        ],
        "demo": [[str(tmp_path / "new"), "--json"]],
        "files": [["--jsonl"], [str(edited), "--jsonl"], [edited_file, "--log", "--jsonl"]],
        "calls": [["--jsonl"], ["last", "--jsonl"]],
        **{name: [["--jsonl"]] for name in ("list", "errors", "history")},
        **{name: [["last", "--jsonl"]] for name in ("show", "tree", "todos", "request")},
    }
    printed_keys(environment, ["budget", "set", "50/day", "--jsonl"])
    # A keep of another home, so that the sessions of this one are at risk.
    write(tmp_path / "small", megabytes=0.1, transcripts=2)
    printed_keys(environment, ["keep", "--home", str(tmp_path / "small"), "--keep", str(tmp_path / "other"), "--json"])
    # A keep that has forgotten a session, and one that it was merged into.
    forgetful = ["--keep", str(tmp_path / "forgetful"), "--json"]
    printed_keys(environment, ["keep", "--home", str(tmp_path / "small"), *forgetful])
    printed_keys(environment, ["keep", "forget", "last", "--reason", "an example", "--yes", *forgetful])
    pending = ["--keep", str(tmp_path / "pending"), "--json"]
    printed_keys(environment, ["keep", "merge", str(tmp_path / "forgetful"), *pending])
    del sections["serve"]  # it runs until it is stopped: tests/web/test_server.py
    del sections["mcp"]  # it speaks a protocol: tests/mcp
    assert set(commands) == set(sections)
    for name, argument_lists in commands.items():
        tables = re.findall(r"^\| key \|.*?(?=^[^|]|\Z)", sections[name], re.MULTILINE | re.DOTALL)
        documented = [set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) for table in tables]
        words = [[name, *arguments] if name else arguments for arguments in argument_lists]
        printed = [printed_keys(environment, arguments) for arguments in words]
        if name == "calls":  # the calls of all sessions and of one have the same keys
            assert printed[0] == printed.pop()
        assert documented == printed, name


def markdown_files() -> list[Path]:
    """All Markdown files that git tracks or would add, or all of them without git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],  # noqa: S607 - whichever git there is
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    return [ROOT / name for name in names] or [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = _HEADING.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_have_targets() -> None:
    """Every relative link in every Markdown file leads to a file, and its anchor to a heading."""
    broken = []
    for page in markdown_files():
        for link in _LINK.findall(_CODE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            exists = target.exists() and (not anchor or anchor in anchors(target))
            if not exists:
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []
