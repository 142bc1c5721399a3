"""The names in the README and in docs/library.md exist: types, attributes, methods, keywords and columns."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS, code_names, sections

import threadline

ROOT = DOCS.parent
LIBRARY = DOCS / "library.md"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
QUESTIONS = {
    "sessions",
    "calls",
    "files",
    "agents",
    "entries",
    "prompts",
    "history",
    "errors",
    "problems",
    "search",
    "ledger",
}
OTHER_NAMES = {"Decimal", *dir(builtins)}
_ATTRIBUTE = re.compile(r"(?<!/)\bthreadline\.([A-Za-z_]\w*)")
_CLASS = re.compile(r"(?:[A-Z][a-z0-9]+)+")
_NAME = re.compile(r"[a-z_][a-z_0-9]*")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_the_library_exists(page: Path) -> None:
    """Whatever is called `threadline.x` in text or code is exported, a package, or an attribute of spans."""
    names = set(_ATTRIBUTE.findall(page.read_text()))
    packages = {path.parent.name for path in (ROOT / "src/threadline").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "src/threadline").glob("*.py")}
    conventions = (ROOT / "src/threadline/export/otlp/conventions.py").read_text()
    span_attributes = set(re.findall(r'"threadline\.(\w+)', conventions))
    known = {*threadline.__all__, "__all__", "__version__", *packages, *modules, *span_attributes}
    assert names - known == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", LIBRARY], ids=lambda page: page.name)
def test_every_class_is_exported(page: Path) -> None:
    """Every class that the page names, such as `ShellResult`."""
    named = {name for code in code_names(page.read_text()) for name in _CLASS.findall(code.partition("(")[0])}
    classes = {name for name in named if name in code_names(page.read_text())}
    assert {name for name in classes if name not in {*threadline.__all__, *OTHER_NAMES}} == set()


def test_every_result_type_is_exported() -> None:
    """Results are typed by tool, and each type can be named: `threadline.ShellResult`."""
    from threadline.model import results  # noqa: PLC0415 - its names are the test

    types = {
        name
        for name, value in vars(results).items()
        if inspect.isclass(value) and issubclass(value, threadline.ToolResult)
    }
    assert {"ShellResult", "EditResult", "AgentResult"} <= types <= set(threadline.__all__)


def typed_rows() -> Iterator[tuple[str, str]]:
    """The rows of tables that describe types: the type, and the cell with its attributes."""
    for section in sections(LIBRARY).values():
        for line in section.lines:
            cells = [cell.strip() for cell in line.split(" | ")]
            names = code_names(cells[0]) if line.startswith("| `") else []
            if names and all(_CLASS.fullmatch(name) for name in names) and len(cells) == 2:
                yield from ((name, cells[1]) for name in names)


@pytest.mark.parametrize(("name", "cell"), list(typed_rows()))
def test_attributes_exist(name: str, cell: str) -> None:
    """Each attribute in the row of a type is one."""
    type_ = getattr(threadline, name)
    if issubclass(type_, Exception) or name == "Flag":
        return
    attributes = {code.partition("(")[0] for code in code_names(without_parentheses(cell))}
    fields = {*dir(type_), *dir(threadline.Row), *getattr(threadline.Ledger((), threadline.rates()), "__dict__", ())}
    assert {name for name in attributes if _NAME.fullmatch(name)} - fields - set(dir(builtins)) == set()


def without_parentheses(cell: str) -> str:
    """The text of a cell without links and remarks."""
    return re.sub(r"\([^()]*\)", "", strip_links(cell))


def strip_links(cell: str) -> str:
    """The text of a cell without the targets of its links."""
    return re.sub(r"\]\([^()]*\)", "]", cell)


def test_archive_methods_exist() -> None:
    """Each method and property in the table of the archive is one, and the questions with filters are there."""
    rows = [line for line in sections(LIBRARY)["The archive"].lines if line.startswith("| `")]
    names = [code.partition("(")[0] for row in rows[1:] for code in code_names(row.split(" | ")[0])]
    instance = threadline.Archive(())
    assert {name for name in names if not name.startswith("threadline.") and not hasattr(type(instance), name)} - set(
        vars(instance)
    ) == set()
    assert set(names) >= QUESTIONS


def test_keywords_are_those_of_the_methods() -> None:
    """The table of filters lists every keyword, with the questions that have it."""
    documented: dict[str, set[str]] = {question: set() for question in QUESTIONS}
    for row in sections(LIBRARY)["Filters"].table:
        cell = row["of"]
        questions = set(code_names(cell))
        if cell.startswith("all"):
            questions = QUESTIONS - questions
        for keyword in code_names(row["keyword"]):
            for question in questions:
                documented[question].add(keyword)
    others = {
        "selection",
        "path",
        "prices",
        "calls",
        "query",
        "every",
        "sort",
        "zone",
        "now",
        "near",
        "seconds",
        "exact_tools",
    }
    for question in QUESTIONS:
        parameters = set(inspect.signature(getattr(threadline.Archive, question)).parameters) - {"self", *others}
        extra = {"agent", "outcomes", "kinds"} if question in {"prompts", "problems", "entries"} else set()
        assert parameters <= documented[question], question
        assert documented[question] - parameters <= extra, question


def test_columns_are_those_of_the_tables(demo_home: Path, tmp_path: Path) -> None:
    """The columns that the page names exist."""
    with threadline.open(demo_home, index=tmp_path / "index.sqlite", keep=False) as archive:
        tables: dict[str, Any] = {name: getattr(archive, name) for name in QUESTIONS - {"search"}}
        tables["search"] = lambda: archive.search("the", limit=1)
        rows = [line.split(" | ") for line in sections(LIBRARY)["Data frames"].lines if line.count(" | ") == 2]
        for named, _, columns in rows:
            for question in (name.removesuffix("()") for name in code_names(named) if name.endswith("()")):
                names = {name for name in code_names(without_parentheses(columns)) if _NAME.fullmatch(name)}
                assert question not in tables or names <= set(tables[question]().columns), question
