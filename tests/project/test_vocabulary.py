"""Words with one meaning in every interface, as docs/glossary.md defines them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.source_trees import SOURCE, source_nodes
from tests.subtests import Subtests

PACKAGES = ("archive", "cli", "export", "find", "keep", "render", "reports", "search", "thread", "web")
# `kept` marks a session that exists only in the keep: in tables, JSON and CSS, and in the names of folders and methods.
KEPT = re.compile(r"kept(_homes|_sessions| *| · )|.*`kept`.*|is_kept_only|clear_kept_homes", re.DOTALL)
OTHER_LABELS = {"cost", "costs", "replies", "spend", "spending"}
"""Other words for a charge and an amount, if they are a label, a column or a key."""
ALLOWED_LABELS = {
    "cli/commands.py": "words that people try instead of a command",
    "cli/cost/statusline.py": "the key that Claude Code sends",
    "render/context.py": "what the model said, a category of content",
    "reports/ccusage.py": "ccusage's JSON",
    "search/query.py": "the field cost:, and its synonyms",
    "web/pages/sessions.py": "former values of parameters, and the name of a cache",
    "web/pages/usage.py": "former values of parameters",
    "web/session/cost.py": "the address of a page; replies are a category of content",
    "web/session/head.py": "the address of a page",
    "web/session/insight.py": "the address of a page",
    "web/session/timeline.py": "a CSS class",
}
OTHER_TEXTS = {
    "export/redaction_settings.py": "a list of words",
    "keep/store.py": "README.txt in a keep, which never changes",
}


class Text(NamedTuple):
    """A text in a module."""

    value: str
    lineno: int


def texts(nodes: list[ast.AST]) -> Iterator[Text]:
    """The texts in a module. Docstrings are left out, except those of commands, which are help."""
    docstrings = set()
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = getattr(node, "decorator_list", [])
            if not any("command" in ast.unparse(decorator) for decorator in decorators):
                docstrings |= {id(statement.value) for statement in node.body if isinstance(statement, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield Text(node.value, node.lineno)


def modules() -> Iterator[tuple[str, list[ast.AST]]]:
    """The modules whose texts people and programs see, with their nodes."""
    for package in PACKAGES:
        for path, nodes in source_nodes(package).items():
            yield path.relative_to(SOURCE).as_posix(), nodes


def test_kept_means_only_in_the_keep() -> None:
    """No message, label or key uses `kept` for anything but a session that exists only in the keep."""
    with Subtests() as subtests:
        for name, nodes in modules():
            for text in texts(nodes):
                if re.search(r"\bkept\b", text.value, re.IGNORECASE) and name not in OTHER_TEXTS:
                    with subtests.test(f"{name}:{text.lineno}"):
                        assert KEPT.fullmatch(text.value), text.value


def test_figures_are_called_charges_and_amounts() -> None:
    """No column, label or key calls charges `replies`, or an amount `cost`."""
    with Subtests() as subtests:
        for name, nodes in modules():
            for text in texts(nodes):
                if name not in ALLOWED_LABELS:
                    with subtests.test(f"{name}:{text.lineno}"):
                        assert text.value.lower() not in OTHER_LABELS
