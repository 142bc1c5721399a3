"""The size of the source: the number and length of files, and imports between packages.

`pytest -s tests/project/test_source_size.py` prints the table. See `LIMITS`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import ceil
from pathlib import Path
from statistics import median

from tests.source_trees import SOURCE, module_nodes

ROOT = Path(__file__).parents[2]
SMALL = 60
_FROM = re.compile(r"^ *from (threadline\.\w+\.[\w.]+) import", re.MULTILINE)

LIMITS = {
    "files": 500,
    "lines": 134_000,
    "modules under 60 lines": 12,
    "files in the biggest folder": 25,
    "modules imported from other packages": 1,
    "imports inside functions, per 1,000 lines": 3,
    "modules that tests import": 126,
}
"""No number may be greater than its limit. A limit may be lowered. A new capability may raise the first two.

Raised in November 2026, from 300 files and 78,000 lines: `schema`, `convert`, tables of the library, history of files.
And from 320 files and 87,000 lines: decoded views, structure, provenance and formats of secrets; `insight`. And from
360 files and 97,000 lines: causes and waste across sessions, outcomes, blame, digests, budgets, their pages, the
session store and the MCP server. And from 440 files and 116,000 lines: exports for other tools, archives as homes,
actions on the page, and the lake.
"""
MIN_MEDIAN = 200
"""The minimum of the median length of a file. It may be raised, never lowered."""
SLACK = 0.8
"""A limit must be lowered if its number is less than this share of it."""


def test_source_stays_within_limits() -> None:
    """Files, lines, small files, the largest folder, and imports of other packages' modules stay below their limits."""
    numbers = _numbers()
    sys.stdout.write(f"\n{_table()}\n\n" + "\n".join(f"{name}: {number:,}" for name, number in numbers.items()) + "\n")
    assert numbers.keys() == LIMITS.keys()
    over = {name: (number, LIMITS[name]) for name, number in numbers.items() if number > LIMITS[name]}
    assert not over, f"more than the limit: {over}"
    slack = {name: (number, LIMITS[name]) for name, number in numbers.items() if number < SLACK * LIMITS[name]}
    assert not slack, f"lower the limits in this test: {slack}"


def test_median_file_length() -> None:
    """Half of the files have at least this many lines: one idea per file, not one function."""
    length = median(_sizes(SOURCE.rglob("*.py")))
    assert length >= MIN_MEDIAN
    assert length * SLACK <= MIN_MEDIAN, f"raise MIN_MEDIAN to {length:.0f}"


def _numbers() -> dict[str, int]:
    sizes = _sizes(SOURCE.rglob("*.py"))
    folders = Counter(path.parent for path in SOURCE.rglob("*.py"))
    return {
        "files": len(sizes),
        "lines": sum(sizes),
        "modules under 60 lines": sum(
            len(path.read_text().splitlines()) < SMALL
            for path in SOURCE.rglob("*.py")
            if path.stem not in {"__init__", "__main__"}
        ),
        "files in the biggest folder": max(folders.values()),
        "modules imported from other packages": sum(
            len(modules) for modules in _modules_imported_from_outside().values()
        ),
        "imports inside functions, per 1,000 lines": ceil(
            1000 * sum(_imports(path)[1] for path in SOURCE.rglob("*.py")) / sum(sizes)
        ),
        "modules that tests import": len(_modules_imported_by_tests()),
    }


def _table() -> str:
    """Return a row for each package."""
    reached = _modules_imported_from_outside()
    rows: list[tuple[str, ...]] = [
        ("package", "files", "lines", "median", "largest", "< 60", "biggest folder", "modules used from outside")
    ]
    for package in sorted(path.parent for path in SOURCE.glob("*/__init__.py")):
        paths = list(package.rglob("*.py"))
        sizes = _sizes(paths)
        small = sum(size < SMALL for size in sizes)
        folder = max(Counter(path.parent for path in paths).values())
        figures = (len(sizes), sum(sizes), round(median(sizes)), max(sizes), small, folder)
        rows.append((package.name, *map(str, figures), str(len(reached.get(package.name, ())))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)


def _sizes(paths: Iterator[Path] | list[Path]) -> list[int]:
    return [len(path.read_text().splitlines()) for path in paths]


def _modules_imported_from_outside() -> dict[str, set[str]]:
    """Return the modules of each package that other packages import. `model` has no interface of its own."""
    reached: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        importer = path.relative_to(SOURCE).parts[0]
        for name in _imported(path):
            package, _, module = name.partition(".")
            if module and package not in {importer, "model"}:
                reached.setdefault(package, set()).add(module)
    return reached


@cache
def _imports(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the modules that a file imports anywhere, and the number of imports inside functions."""
    tree, *_ = module_nodes(path)
    assert isinstance(tree, ast.Module)
    nodes = [node for node in module_nodes(path) if isinstance(node, ast.Import | ast.ImportFrom)]
    blocks = [node for node in tree.body if isinstance(node, ast.If | ast.Try)]  # only for type checkers
    beside = sum(isinstance(node, ast.Import | ast.ImportFrom) for block in blocks for node in ast.walk(block))
    return tuple(name for node in nodes for name in _names(node)), sum(node.col_offset > 0 for node in nodes) - beside


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imported(path: Path) -> Iterator[str]:
    """Yield the modules of threadline that a file imports: `find.homes`, or `find` for the package."""
    return (name.removeprefix("threadline.") for name in _imports(path)[0] if _is_module(name))


@cache
def _is_module(name: str) -> bool:
    if not name.startswith("threadline."):
        return False
    place = SOURCE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def _modules_imported_by_tests() -> set[str]:
    """Return the modules inside packages that tests import."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    return {name for text in texts for name in _FROM.findall(text)}
