"""Keys: one table, which the page, its data block and the documentation share."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.web.pages.requests import PAGES, ask, seen

from threadline.archive import Archive
from threadline.web import KEYS, keys_markdown_table
from threadline.web.pages.keys import KEYS_DATA_BLOCK, LIST_KINDS, SESSION_KINDS, key_label

_DOCS = Path(__file__).parents[3] / "docs" / "web-page.md"


def test_no_key_does_two_things_on_a_page() -> None:
    """On each kind of page a key has one meaning, and each deed one name; no key is the start of another."""
    for kind in {*SESSION_KINDS, *LIST_KINDS, "keys"}:
        keys = [key for one in KEYS if not one.pages or kind in one.pages for key in one.keys]
        assert len(keys) == len(set(keys))
        assert not any(other != key and other.startswith(f"{key} ") for key in keys for other in keys)
    assert len({one.name for one in KEYS}) == len(KEYS)


def test_keys_work_on_pages_that_there_are(demo: Archive) -> None:
    """Every kind of page that a key names is one."""
    kinds = {ask(demo, path).kind for path in PAGES} | set(SESSION_KINDS)
    assert {page for one in KEYS for page in one.pages} <= kinds


def test_rows_that_keys_go_through_are_marked(demo: Archive) -> None:
    """On pages with lists, each row has the mark and a link in it."""
    for path in ("/", "/sessions", "/search?q=the", "/calls", "/files", "/usage?since=all&by=model"):
        page = seen(demo, path)
        assert any("data-item" in attribute for attribute in page.attributes)


def test_the_data_block_is_the_table() -> None:
    """The script reads the same keys, and nothing in the block can end it."""
    block = str(KEYS_DATA_BLOCK)
    inside = re.fullmatch(r'<script type="application/json" id="keys">(.*)</script>', block, re.DOTALL)
    assert inside is not None
    assert "<" not in inside[1]
    assert [load["name"] for load in json.loads(inside[1])] == [one.name for one in KEYS]


def test_the_page_shows_every_key(demo: Archive) -> None:
    """Each key stands on the page with what it does."""
    words = seen(demo, "/keys").words
    assert all(one.what in words and key_label(one.keys[0]) in words for one in KEYS)


def test_the_documentation_has_the_same_table() -> None:
    """`docs/web-page.md` repeats the table; print `keys_markdown_table()` to update it."""
    assert keys_markdown_table() in _DOCS.read_text()
