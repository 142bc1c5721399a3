"""Messages and help use plain English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.source_trees import SOURCE, source_nodes

PHRASES = re.compile(
    r"what else fits|nobody went on|do so at once|\btold by\b|\bat once\b|\banew\b|\b[Gg]ive (?:a|an|at|each|one)\b"
    r"|\bis no [a-z]+ (?:there|here)\b|\b1 bytes\b|\ba (?:expired|old|open|empty|error)\b"
)
"""What messages of earlier versions said, and its like."""
_SQL = re.compile(r"\bSELECT .* FROM|CREATE ")


def _texts(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """The texts of a module that users may see: neither docstrings nor SQL."""
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and not _SQL.search(text):
                yield node.lineno, text


def test_messages_are_plain_english() -> None:
    """No message or help text of an option has one of the phrases that people could not understand."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {match[0]}"
        for path, nodes in source_nodes().items()
        if "redact" not in path.parts
        for line, text in _texts(nodes)
        if (match := PHRASES.search(text))
    ]
    assert found == []
