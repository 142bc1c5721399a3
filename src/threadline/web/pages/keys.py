"""The keyboard shortcuts: one table for the scripts, the page that lists them, and the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct, to_builtins

from threadline.render.html import Child, Column, el, join, render_table
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

SESSION_KINDS = ("session", "agent")
LIST_KINDS = ("home", "sessions", "search", "calls", "files", "usage", "insight", "compare")
"""Pages with rows to move through: elements with the attribute `data-item`, each with a link in it."""


class Key(Struct, frozen=True):
    """A keyboard shortcut.

    `keys` are alternatives, as `KeyboardEvent.key` names them. Two keys pressed in turn are separated by a space
    (`g g`); one with Control or Command begins with `Ctrl+`. `name` is the action in the scripts. `pages` are the kinds
    of page (the class of the body) on which it works; empty for all. `group` is its heading.
    """

    keys: tuple[str, ...]
    name: str
    what: str
    group: str
    pages: tuple[str, ...] = ()


KEYS: tuple[Key, ...] = (
    Key(("j",), "next-item", "next entry or row", "Move", (*SESSION_KINDS, *LIST_KINDS)),
    Key(("k",), "previous-item", "previous entry or row", "Move", (*SESSION_KINDS, *LIST_KINDS)),
    Key(("J",), "next-turn", "next turn", "Move", SESSION_KINDS),
    Key(("K",), "previous-turn", "previous turn", "Move", SESSION_KINDS),
    Key(("g g",), "start", "go to the start", "Move"),
    Key(("G",), "end", "go to the end", "Move"),
    Key(("/",), "find", "find in this session; on other pages, go to the search box", "Find"),
    Key(("Ctrl+f",), "find-in-session", "find in this session; again: the browser's find", "Find", SESSION_KINDS),
    Key(("n",), "next-find", "next match", "Find", SESSION_KINDS),
    Key(("N",), "previous-find", "previous match", "Find", SESSION_KINDS),
    Key(("e",), "errors", "show only errors, or everything again", "Show", SESSION_KINDS),
    Key(
        ("o", "Enter"),
        "fold",
        "expand or fold the entry; in a list, open the row; while matches are shown, Enter goes to the next",
        "Show",
        (*SESSION_KINDS, *LIST_KINDS),
    ),
    Key(("t",), "thinking", "expand or fold all thinking", "Show", SESSION_KINDS),
    Key(("c",), "calls", "expand or fold all calls", "Show", SESSION_KINDS),
    Key(("f",), "focus", "show only prompts and replies, or everything again", "Show", SESSION_KINDS),
    Key(("b",), "branches", "next branch, then back to the main conversation", "Show", SESSION_KINDS),
    Key(("r",), "raw", "JSON of this entry", "Panels", SESSION_KINDS),
    Key(("s",), "state", "files and lists at this point", "Panels", SESSION_KINDS),
    Key(("x",), "context", "what fills the context window at this point", "Panels", SESSION_KINDS),
    Key(("[",), "left-panel", "show or hide the turns on the left", "Panels", SESSION_KINDS),
    Key(("]",), "right-panel", "show or hide the panel on the right", "Panels", SESSION_KINDS),
    Key(("*",), "star", "star the session or row, or remove its star", "Copy", (*SESSION_KINDS, *LIST_KINDS)),
    Key(("y",), "copy-link", "copy a link to this place", "Copy"),
    Key(("Y",), "copy-block", "copy the code, command or output of this entry", "Copy", SESSION_KINDS),
    Key(("m",), "copy-markdown", "copy this entry as Markdown, redacted", "Copy", SESSION_KINDS),
    Key(("Ctrl+k",), "palette", "go to a session or page by name", "Go to"),
    Key(("h",), "home", "home", "Go to"),
    Key(("l",), "sessions", "list of sessions", "Go to"),
    Key(("u",), "usage", "usage", "Go to"),
    Key(("i",), "insight", "what it cost, and why", "Go to"),
    Key(("d",), "theme", "theme: light, dark, system", "Page"),
    Key(("?",), "help", "show these shortcuts", "Page"),
    Key(("Escape",), "close", "close what is open", "Page"),
)
_KEY_LABELS = {"Escape": "Esc", "Ctrl+k": "Ctrl K", "Ctrl+f": "Ctrl F"}
_KEYS_JSON = json.dumps(to_builtins(KEYS), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
KEYS_DATA_BLOCK = Markup(f'<script type="application/json" id="keys">{_KEYS_JSON}</script>')  # noqa: S704 - no `<` is left in it
"""The table as a data block in every page; scripts read it, and browsers do not run it."""


def keys_page(_request: PageRequest) -> Page:
    """All keyboard shortcuts."""
    columns = (Column("Key"), Column("What it does"), Column("Where"))
    tables = [
        el(
            "section",
            el("h2", group),
            render_table(group, columns, map(_key_cells, keys), hidden_caption=True),
            class_="block",
        )
        for group, keys in keys_by_group()
    ]
    note = el(
        "p", "Shortcuts work while no text field has the focus. They need JavaScript; everything else works without it."
    )
    title = "Keyboard shortcuts"
    return Page(title, "keys", join((el("div", el("h1", title), note, class_="head"), *tables)), KEYS)


def _key_cells(key: Key) -> list[Child]:
    labels = [[" or " if at else "", _key_element(name)] for at, name in enumerate(key.keys)]
    return [labels, key.what, describe_pages(key)]


def _key_element(name: str) -> Child:
    return [[" " if at else "", el("kbd", part)] for at, part in enumerate(key_label(name).split(" "))]


def key_label(name: str) -> str:
    """A key as people write it."""
    return _KEY_LABELS.get(name, name)


def describe_pages(key: Key) -> str:
    """The pages on which a key works, in words."""
    if not key.pages:
        return "every page"
    return "sessions" if key.pages == SESSION_KINDS else "sessions, lists"


def keys_by_group() -> Iterable[tuple[str, list[Key]]]:
    """The keys by heading, in the order of the table."""
    groups: dict[str, list[Key]] = {}
    for key in KEYS:
        groups.setdefault(key.group, []).append(key)
    return groups.items()


def keys_markdown_table() -> str:
    """The table for the documentation."""
    rows = [
        f"| {' '.join(f'`{key_label(name)}`' for name in key.keys)} | {key.what} | {describe_pages(key)} |"
        for key in KEYS
    ]
    return "\n".join(("| key | what it does | where |", "|---|---|---|", *rows))
