"""The archive is the one door: commands, pages and exports reach homes, index and search through it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/threadline"
BEHIND = ("threadline.find", "threadline.index", "threadline.search", "sqlite3")
# None of these looks for a home to read it, or asks an index.
EXCEPTED: dict[str, dict[str, set[str]]] = {
    "cli": {
        # The schema's own comments, read from an empty database in memory; which tables are private.
        "sql_answers": {"threadline.index", "sqlite3"},
        # DuckDB's errors have the messages of SQLite's.
        "sql_duckdb": {"threadline.index"},
        # `keep` stores the files of homes as they are; the archive is for reading sessions.
        "group": {"threadline.find"},
        "install": {"threadline.find"},
        "reports": {"threadline.find"},
        "run": {"threadline.find"},
    },
    "web": {
        # A damaged index is replaced.
        "archive_pool": {"threadline.index"},
        # Open pages are told when a home changes.
        "live": {"threadline.find"},
        # The files of a session whose main transcript the archive found.
        "session_cache": {"threadline.find"},
    },
    "export": {
        # The files of a session whose main transcript the archive found.
        "redacted_copies": {"threadline.find"},
        # All homes of this machine, read or not: nothing is written into one.
        "output": {"threadline.find"},
    },
}


@pytest.mark.parametrize("face", EXCEPTED)
def test_faces_go_through_the_archive(face: str) -> None:
    """None imports what finds, indexes or searches, but for its types and the few that are listed."""
    around = {
        path.stem: found
        for path in sorted((SOURCE / face).rglob("*.py"))
        if (found := {name for name in _imported(ast.parse(path.read_text())) if _is_behind(name)})
    }
    assert around == EXCEPTED[face]


@pytest.mark.parametrize("face", ["web", "export"])
def test_nobody_asks_the_index_itself(face: str) -> None:
    """Questions in SQL are the index's own: pages and exports ask the archive for what they want."""
    asking = [
        f"{path.name}:{node.lineno}"
        for path in sorted((SOURCE / face).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "connection"
    ]
    assert asking == []


def _is_behind(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in BEHIND)


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules that are imported when it runs, wherever that stands; not those that are imported for their types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = child.module or ""
            yield from (f"{module}.{name.name}" for name in child.names) if module == "threadline" else (module,)
        yield from _imported(child)
