"""Keyboard shortcuts: the page, its data block and the documentation share one table."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.web.pages.requests import PAGES, ask, parse_page

from threadline.archive import Archive
from threadline.web import KEYS, keys_markdown_table
from threadline.web.pages.keys import KEYS_DATA_BLOCK, LIST_KINDS, SESSION_KINDS, key_label

_DOCS = Path(__file__).parents[3] / "docs" / "web-page.md"


def test_keys_are_unique_on_each_kind_of_page() -> None:
    """On each kind of page a key has one meaning, and no key is the start of another. Names are unique."""
    for kind in {*SESSION_KINDS, *LIST_KINDS, "keys"}:
        keys = [key for shortcut in KEYS if not shortcut.pages or kind in shortcut.pages for key in shortcut.keys]
        assert len(keys) == len(set(keys))
        assert not any(other != key and other.startswith(f"{key} ") for key in keys for other in keys)
    assert len({shortcut.name for shortcut in KEYS}) == len(KEYS)


def test_keys_name_existing_kinds_of_pages(demo: Archive) -> None:
    """Every kind of page that a key names exists."""
    kinds = {ask(demo, path).kind for path in PAGES} | set(SESSION_KINDS)
    assert {page for shortcut in KEYS for page in shortcut.pages} <= kinds


def test_rows_of_lists_are_marked_for_the_keys(demo: Archive) -> None:
    """On pages with lists, rows have the `data-item` attribute."""
    for path in ("/", "/sessions", "/search?q=the", "/calls", "/files", "/usage?since=all&by=model"):
        page = parse_page(demo, path)
        assert any("data-item" in attribute for attribute in page.attributes)


def test_the_data_block_contains_the_table() -> None:
    """The script reads the same keys, and nothing in the block can end it."""
    block = str(KEYS_DATA_BLOCK)
    content = re.fullmatch(r'<script type="application/json" id="keys">(.*)</script>', block, re.DOTALL)
    assert content is not None
    assert "<" not in content[1]
    assert [row["name"] for row in json.loads(content[1])] == [shortcut.name for shortcut in KEYS]


def test_the_page_shows_every_key(demo: Archive) -> None:
    """The page lists each key with its effect."""
    words = parse_page(demo, "/keys").words
    assert all(shortcut.what in words and key_label(shortcut.keys[0]) in words for shortcut in KEYS)


def test_the_documentation_has_the_same_table() -> None:
    """`docs/web-page.md` repeats the table; print `keys_markdown_table()` to update it."""
    assert keys_markdown_table() in _DOCS.read_text()
