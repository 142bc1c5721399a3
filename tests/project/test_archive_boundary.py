"""Commands, pages and exports reach homes, index and search only through the archive."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from tests.source_trees import source_nodes

RESTRICTED = ("threadline.find", "threadline.index", "threadline.search", "sqlite3")
# None of these reads a home or queries an index.
EXCEPTIONS: dict[str, dict[str, set[str]]] = {
    "cli": {
        # The schema's own comments, read from an empty database in memory; which tables are private.
        "answers": {"threadline.index"},
        "command": {"threadline.index"},
        # The fields of the query language.
        "completion": {"threadline.search"},
        "search": {"threadline.search"},
        # DuckDB's errors have the messages of SQLite's.
        "duckdb_query": {"threadline.index"},
        # `keep` stores the files of homes as they are; the archive is for reading sessions.
        "group": {"threadline.find"},
        "install": {"threadline.find"},
        "reports": {"threadline.find"},
        "run": {"threadline.find"},
    },
    "web": {
        # A damaged index is replaced.
        "archive_pool": {"threadline.index"},
        # Open pages are notified when a home changes.
        "live": {"threadline.find"},
        # The files of a session whose main transcript the archive found.
        "session_cache": {"threadline.find"},
    },
    "export": {
        # All homes of this machine, read or not: nothing is written into one.
        "output": {"threadline.find"},
    },
}


@pytest.mark.parametrize("package", EXCEPTIONS)
def test_interfaces_go_through_the_archive(package: str) -> None:
    """None imports what finds, indexes or searches, except for types and the listed exceptions."""
    imports = {
        path.stem: names
        for path, nodes in source_nodes(package).items()
        if (names := {name for name in _imported(nodes[0]) if _is_restricted(name)})
    }
    assert imports == EXCEPTIONS[package]


@pytest.mark.parametrize("package", ["web", "export"])
def test_interfaces_do_not_use_the_database_connection(package: str) -> None:
    """SQL belongs to the index. Pages and exports ask the archive."""
    uses = [
        f"{path.name}:{node.lineno}"
        for path, nodes in source_nodes(package).items()
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "connection"
    ]
    assert uses == []


def _is_restricted(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in RESTRICTED)


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that are imported at run time, anywhere in the file. Imports for type checkers are skipped."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = child.module or ""
            yield from (f"{module}.{name.name}" for name in child.names) if module == "threadline" else (module,)
        yield from _imported(child)
