"""Messages and help use plain English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "threadline"
PHRASES = re.compile(
    r"what else fits|nobody went on|do so at once|\btold by\b|\bat once\b|\banew\b|\b[Gg]ive (?:a|an|at|each|one)\b"
    r"|\bis no [a-z]+ (?:there|here)\b|\b1 bytes\b|\ba (?:expired|old|open|empty|error)\b"
)
"""What messages of earlier versions said, and its like."""
_SQL = re.compile(r"\bSELECT .* FROM|CREATE ")


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that users may see: neither docstrings nor SQL."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and not _SQL.search(text):
                yield node.lineno, text


def test_messages_are_plain_english() -> None:
    """No message or help text of an option has one of the phrases that people could not understand."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {match[0]}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "redact" not in path.parts
        for line, text in _texts(path)
        if (match := PHRASES.search(text))
    ]
    assert found == []
