"""The extras: `all` brings every optional package, and each hint names an extra that brings the missing one."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.source_trees import SOURCE, source_nodes

from threadline.errors import Missing
from threadline.extras import adapt_install_command

ROOT = Path(__file__).parents[2]
DEVELOPMENT = {"test", "bench", "interop", "oracle", "lake-test"}
SEPARATE = {"lake", "spark", "clickhouse"}
"""Not part of `all`: only teams need them, and they take 400 MB, ClickHouse 530 MB more."""
DISTRIBUTIONS = {
    "grpc": "grpcio",
    "pyspark": "pyspark-client",
    "re2": "google-re2",
    "markdown_it": "markdown-it-py",
    "age": "pyrage",
    "opentelemetry": "opentelemetry-proto",
}
"""The distribution of each module, or the word for it in a hint, if the names differ."""
WEB = {"starlette", "uvicorn", "markupsafe", "markdown-it-py", "pygments"}
HINT = re.compile(r"threadline\[([\w-]+)\]")
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@cache
def packages_of(extra: str) -> frozenset[str]:
    """The packages that an extra brings, with those of the extras that it includes."""
    packages: set[str] = set()
    for requirement in EXTRAS[extra]:
        match = re.match(r"threadline\[([\w,-]+)\]", requirement)
        if match is None:
            packages.add(re.split(r"[<>=~\[]", requirement)[0].lower())
        else:
            packages.update(*map(packages_of, match[1].split(",")))
    return frozenset(packages)


def imported_packages() -> set[str]:
    """The packages outside the standard library that the source imports.

    Without the Agent SDK: only its own programs use the session store.
    """
    names: set[str] = set()
    for nodes in source_nodes().values():
        for node in nodes:
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names.add(node.module)
    roots = (
        {name.partition(".")[0] for name in names}
        - set(sys.stdlib_module_names)
        - {"threadline", "msgspec", "claude_agent_sdk"}
        - {"mcp_types", "pydantic"}  # parts of the interface of mcp
    )
    return {DISTRIBUTIONS.get(name, name) for name in roots}


def hints() -> Iterator[tuple[str, str]]:
    """Each string of the source that names an extra, as source text, and the extra; `{extra}` is an argument."""
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        if "pip " not in source:  # parsing every file would delay the collection of all tests
            continue
        tree = ast.parse(source)
        docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.Module)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Missing", "sys.stderr.write"}:
                text = ast.unparse(node)
                if "pip install" in text and text not in docstrings:
                    yield text, (HINT.search(text) or ["", "{extra}"])[1]


def test_all_brings_every_package() -> None:
    """So does `data` for data frames and SQL."""
    everything = set().union(*(packages_of(extra) for extra in EXTRAS if extra not in DEVELOPMENT | SEPARATE))
    assert packages_of("all") == everything
    assert imported_packages() <= everything.union(*map(packages_of, SEPARATE))
    assert packages_of("data") == {"pyarrow", "polars", "pandas", "duckdb", "pytz"}


@pytest.mark.parametrize(("text", "extra"), list(hints()))
def test_hints_name_an_extra_that_brings_the_package(text: str, extra: str) -> None:
    """Each hint names the package, or is about the web page, which needs several."""
    if extra == "{extra}":
        return  # `import_library`: the next test
    words = {DISTRIBUTIONS.get(word, word) for word in re.findall(r"[\w-]+", text)}
    named = words & set().union(*map(packages_of, EXTRAS))
    missing = named or WEB
    assert missing <= packages_of(extra), text


def test_imported_libraries_name_an_extra_that_brings_them() -> None:
    """`import_library` is called with the library and its extra; the default is `frames`."""
    calls = [
        node
        for nodes in source_nodes().values()
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_library"
    ]
    assert len(calls) > 5
    for call in calls:
        name, extra = (*(ast.literal_eval(argument) for argument in call.args), "frames")[:2]
        package = name.partition(".")[0]
        assert DISTRIBUTIONS.get(package, package) in packages_of(extra), ast.unparse(call)


@pytest.mark.parametrize(
    ("prefix", "has_pip", "which", "source", "command"),
    [
        ("/venv", True, "/venv/bin/pip", None, "pip install 'threadline[web]'"),
        ("/venv", True, "/usr/bin/pip", None, "/venv/bin/python -m pip install 'threadline[web]'"),
        ("/my tools/venv", True, None, None, "'/my tools/venv/bin/python' -m pip install 'threadline[web]'"),
        ("/uv/tools/threadline", False, None, None, "uv pip install --python /uv/tools/threadline/bin/python "),
        ("/x/pipx/venvs/threadline", True, None, None, "pipx runpip threadline install 'threadline[web]'"),
        ("/venv", True, "/venv/bin/pip", ("file:///my%20clone", True), "pip install -e '/my clone[web]'"),
        ("/venv", True, "/venv/bin/pip", ("file:///a.whl", False), "pip install 'threadline[web] @ file:///a.whl'"),
    ],
)
def test_install_command(  # noqa: PLR0917 - an environment
    prefix: str,
    has_pip: bool,
    which: str | None,
    source: tuple[str, bool] | None,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message names the command that installs into this environment, from where threadline was installed."""
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
    monkeypatch.setattr("threadline.extras.find_spec", lambda _name: has_pip or None)
    monkeypatch.setattr("shutil.which", lambda _name: which)
    monkeypatch.setattr("threadline.extras._source", lambda: source)
    message = adapt_install_command("It needs x. Run: pip install 'threadline[web]'. Or not.")
    assert message.startswith(f"It needs x. Run: {command}")
    assert message.endswith(". Or not.")
    assert str(Missing("It needs x. Run: pip install 'threadline[web]'. Or not.")) == message
    assert adapt_install_command("pip install tzdata").endswith("install tzdata") or not has_pip


def test_makefile_and_docs_name_extras_that_exist() -> None:
    """In every `pip install` of the Makefile and the docs."""
    pages = [ROOT / "Makefile", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for names in re.findall(r"(?:threadline|['.])\[([a-z,-]+)\]'", page.read_text()):
            assert set(names.split(",")) <= set(EXTRAS), page
