"""Style sheet and scripts under hashed URLs, and the table of keyboard shortcuts that scripts read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct, to_builtins

from threadline.errors import NotFound
from threadline.render.html import el, join, stylesheet
from threadline.web.urls import ASSETS

STYLE_SHEET, EARLY_SCRIPT, PAGE_SCRIPT = "style.css", "early.js", "page.js"
_SCRIPT_FOLDER = Path(__file__).parent / "assets"


class Asset(Struct, frozen=True):
    """A file that pages need."""

    data: bytes
    media_type: str
    hash: str


def find_asset(name: str) -> Asset:
    """The asset of that name.

    Raises:
        NotFound: there is none.
    """
    found = _assets().get(name)
    if found is None:
        raise NotFound("There is no such asset.")
    return found


def asset_links(scripts: Iterable[str] = ()) -> Markup:
    """What stands in the head of every page: style, the script that sets colours before anything is drawn, the rest.

    `scripts` are those that a page needs besides.
    """
    return join(
        (
            el("link", rel="stylesheet", href=_asset_url(STYLE_SHEET)),
            el("script", src=_asset_url(EARLY_SCRIPT)),
            *(el("script", src=_asset_url(name), type="module") for name in (PAGE_SCRIPT, *scripts)),
        )
    )


@lru_cache(maxsize=1)
def _assets() -> dict[str, Asset]:
    """Read once: none of them changes while the server runs."""
    found = {STYLE_SHEET: _build_asset(stylesheet().encode(), "text/css; charset=utf-8")}
    for path in sorted(_SCRIPT_FOLDER.glob("*.js")):
        found[path.name] = _build_asset(path.read_bytes(), "text/javascript; charset=utf-8")
    return found


def _build_asset(data: bytes, media_type: str) -> Asset:
    return Asset(data, media_type, hashlib.blake2b(data, digest_size=6).hexdigest())


def _asset_url(name: str) -> str:
    found = _assets().get(name)
    return f"{ASSETS}/{name}?{found.hash}" if found is not None else f"{ASSETS}/{name}"


SESSION_KINDS = ("session", "agent")
LIST_KINDS = ("home", "sessions", "search", "calls", "files", "usage")
"""Pages with rows to go through: elements that have the attribute `data-item`, each with a link in it."""


class Key(Struct, frozen=True):
    """A key and what it does.

    `keys` are as `KeyboardEvent.key` names them, each alone enough; two after another have a space between them
    (`g g`), and one with Control or Command begins with `Ctrl+`. `name` is what the script calls the deed. `pages` are
    the kinds of page (the class of the body) that it works on; on all of them where none is given. `group` is the
    heading that it stands under.
    """

    keys: tuple[str, ...]
    name: str
    what: str
    group: str
    pages: tuple[str, ...] = ()


KEYS: tuple[Key, ...] = (
    Key(("j",), "next-item", "next entry, or next row of a list", "Move", (*SESSION_KINDS, *LIST_KINDS)),
    Key(("k",), "previous-item", "previous entry, or previous row", "Move", (*SESSION_KINDS, *LIST_KINDS)),
    Key(("J",), "next-turn", "next turn", "Move", SESSION_KINDS),
    Key(("K",), "previous-turn", "previous turn", "Move", SESSION_KINDS),
    Key(("g g",), "start", "to the start", "Move"),
    Key(("G",), "end", "to the end", "Move"),
    Key(("/",), "find", "find in this session; elsewhere, go to the search box", "Find"),
    Key(("n",), "next-find", "next place that was found", "Find", SESSION_KINDS),
    Key(("N",), "previous-find", "previous place that was found", "Find", SESSION_KINDS),
    Key(("e",), "errors", "only what failed, or everything again", "Show", SESSION_KINDS),
    Key(
        ("o", "Enter"), "fold", "open or fold the entry; in a list, open the row", "Show", (*SESSION_KINDS, *LIST_KINDS)
    ),
    Key(("t",), "thinking", "show or fold all thinking", "Show", SESSION_KINDS),
    Key(("c",), "calls", "show or fold all calls", "Show", SESSION_KINDS),
    Key(("f",), "focus", "prompts and replies only, or everything again", "Show", SESSION_KINDS),
    Key(("b",), "branches", "next branch, and back to the conversation", "Show", SESSION_KINDS),
    Key(("r",), "raw", "JSON of this entry", "Beside", SESSION_KINDS),
    Key(("s",), "state", "files and lists as they stood here", "Beside", SESSION_KINDS),
    Key(("[",), "left-panel", "show or hide the turns at the left", "Beside", SESSION_KINDS),
    Key(("]",), "right-panel", "show or hide the panel at the right", "Beside", SESSION_KINDS),
    Key(("y",), "copy-link", "copy a link to this place", "Copy"),
    Key(("m",), "copy-markdown", "copy this entry as Markdown", "Copy", SESSION_KINDS),
    Key(("Ctrl+k",), "palette", "go to a session or a page by name", "Go"),
    Key(("h",), "home", "home", "Go"),
    Key(("l",), "sessions", "list of sessions", "Go"),
    Key(("u",), "usage", "usage", "Go"),
    Key(("d",), "theme", "light, dark, or as the system has it", "Page"),
    Key(("?",), "help", "this table", "Page"),
    Key(("Escape",), "close", "close what is open", "Page"),
)

_KEY_LABELS = {"Escape": "Esc", "Ctrl+k": "Ctrl K"}


def keys_data_block() -> Markup:
    """The table as a block of data in a page, which is no script and runs nothing."""
    text = json.dumps(to_builtins(KEYS), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="keys">{text}</script>')  # noqa: S704 - no `<` is left in it


def key_label(key: str) -> str:
    """A key as people write it."""
    return _KEY_LABELS.get(key, key)


def describe_pages(key: Key) -> str:
    """The pages that a key works on, in words."""
    if not key.pages:
        return "every page"
    return "sessions" if key.pages == SESSION_KINDS else "sessions, lists"


def keys_by_group() -> Iterable[tuple[str, list[Key]]]:
    """The keys by heading, in the order of the table."""
    found: dict[str, list[Key]] = {}
    for one in KEYS:
        found.setdefault(one.group, []).append(one)
    return found.items()


def keys_markdown_table() -> str:
    """The table as the documentation has it."""
    rows = [
        f"| {' '.join(f'`{key_label(key)}`' for key in one.keys)} | {one.what} | {describe_pages(one)} |"
        for one in KEYS
    ]
    return "\n".join(("| key | what it does | where |", "|---|---|---|", *rows))
