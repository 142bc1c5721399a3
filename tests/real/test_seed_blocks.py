"""Every JSON block printed in the five descriptions of the format, saved as a transcript under different names.

All interfaces must agree on the session, its tokens and its calls, whether the file is in a home or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import entry_points
from tests.interfaces.identity import NAMES, Facts, ask_about_file, ask_about_session

import threadline

SEEDS = Path(__file__).parents[3] / "shared/seeds"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not SEEDS.exists(), reason="there are no descriptions beside the project"),
]
_BLOCK = re.compile(r"^```jsonl?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MIN_BLOCKS = 39
"""How many blocks the descriptions print: a pattern that finds fewer would test less in silence."""


def _blocks() -> dict[str, str]:
    """Return every block by the number of its description and its line."""
    blocks: dict[str, str] = {}
    for path in sorted(SEEDS.glob("*.txt")):
        text = path.read_text()
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            blocks[f"{path.name[:3]}:{line}"] = match[1]
    return blocks


_PLACEHOLDERS = (("{...}", "{}"), ("[...]", "[]"), ("<content>", '"text"'))
_COMMENT = re.compile(r"^\s*//.*$|(?<=[,\]}\d\"])[ \t]+//.*$", re.MULTILINE)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a block, which are printed on one line or several.

    Comments are removed and placeholders are filled in. A fragment of an object (`"usage": {...}`) becomes one.
    """
    for placeholder, value in _PLACEHOLDERS:
        text = text.replace(placeholder, value)
    text = _COMMENT.sub("", text).strip()
    if text.startswith('"'):
        text = f"{{{text}}}"
    decoder = json.JSONDecoder()
    objects: list[dict[str, Any]] = []
    while text:
        value, end = decoder.raw_decode(text)
        objects += value if isinstance(value, list) else [value]
        text = text[end:].lstrip()
    return objects


def _tokens(rows: list[dict[str, Any]]) -> int:
    """Return the tokens of all replies, each once."""
    counts: dict[str, int] = {}
    for number, row in enumerate(rows):
        message = row.get("message")
        if row.get("type") == "assistant" and isinstance(message, dict) and isinstance(message.get("usage"), dict):
            usage = message["usage"]
            names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            key = message.get("id") or row.get("requestId") or row.get("uuid") or str(number)
            counts[key] = sum(usage.get(name) or 0 for name in names)
    return sum(counts.values())


BLOCKS = _blocks() if SEEDS.exists() else {}


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path) -> Iterator[None]:
    with entry_points.isolated(tmp_path / "environment", frozen=False):
        yield


def test_every_block_is_tested() -> None:
    """The pattern finds all blocks, and each has an object."""
    assert len(BLOCKS) >= _MIN_BLOCKS
    assert all(_objects(text) for text in BLOCKS.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block", BLOCKS)
def test_interfaces_agree_on_a_printed_block(tmp_path: Path, block: str, name: str) -> None:
    """Saved with one object per line."""
    rows = _objects(BLOCKS[block])
    text = "".join(json.dumps(row) + "\n" for row in rows)
    home = tmp_path / "home"
    inside = home / "projects/-home-user-project-a" / f"{name}.jsonl"
    outside = tmp_path / "copies" / f"{name}.jsonl"
    for path in (inside, outside):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    calls = len(threadline.read(inside).calls)
    facts_by_interface = ask_about_file(home, outside)
    with threadline.open(home, index=False) as archive:
        is_session = bool(archive.sessions().sessions)
    if is_session:
        facts_by_interface |= ask_about_session(home, inside)
    else:
        assert not _tokens(rows)
    for interface, facts in facts_by_interface.items():
        expected = Facts(
            name, _tokens(rows) if facts.tokens is not None else None, calls if facts.calls is not None else None
        )
        assert (interface, facts) == (interface, expected)
