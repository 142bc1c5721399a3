"""The keys of the page: one table, which the script obeys, `?` shows and the documentation repeats."""

from __future__ import annotations

import json
from collections.abc import Iterable

from markupsafe import Markup
from msgspec import Struct, to_builtins

SESSION = ("session", "agent")
LISTS = ("home", "sessions", "search", "calls", "files", "usage")
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
    Key(("j",), "next-item", "next entry, or next row of a list", "Move", (*SESSION, *LISTS)),
    Key(("k",), "previous-item", "previous entry, or previous row", "Move", (*SESSION, *LISTS)),
    Key(("J",), "next-turn", "next turn", "Move", SESSION),
    Key(("K",), "previous-turn", "previous turn", "Move", SESSION),
    Key(("g g",), "start", "to the start", "Move"),
    Key(("G",), "end", "to the end", "Move"),
    Key(("/",), "find", "find in this session; elsewhere, go to the search box", "Find"),
    Key(("n",), "next-find", "next place that was found", "Find", SESSION),
    Key(("N",), "previous-find", "previous place that was found", "Find", SESSION),
    Key(("e",), "errors", "only what failed, or everything again", "Show", SESSION),
    Key(("o", "Enter"), "fold", "open or fold the entry; in a list, open the row", "Show", (*SESSION, *LISTS)),
    Key(("t",), "thinking", "show or fold all thinking", "Show", SESSION),
    Key(("c",), "calls", "show or fold all calls", "Show", SESSION),
    Key(("f",), "focus", "prompts and replies only, or everything again", "Show", SESSION),
    Key(("b",), "branches", "next branch, and back to the conversation", "Show", SESSION),
    Key(("r",), "raw", "JSON of this entry", "Beside", SESSION),
    Key(("s",), "state", "files and lists as they stood here", "Beside", SESSION),
    Key(("[",), "left-panel", "show or hide the turns at the left", "Beside", SESSION),
    Key(("]",), "right-panel", "show or hide the panel at the right", "Beside", SESSION),
    Key(("y",), "copy-link", "copy a link to this place", "Copy"),
    Key(("m",), "copy-markdown", "copy this entry as Markdown", "Copy", SESSION),
    Key(("Ctrl+k",), "palette", "go to a session or a page by name", "Go"),
    Key(("h",), "home", "home", "Go"),
    Key(("l",), "sessions", "list of sessions", "Go"),
    Key(("u",), "usage", "usage", "Go"),
    Key(("d",), "theme", "light, dark, or as the system has it", "Page"),
    Key(("?",), "help", "this table", "Page"),
    Key(("Escape",), "close", "close what is open", "Page"),
)

_SPELT = {"Escape": "Esc", "Ctrl+k": "Ctrl K"}


def data_block() -> Markup:
    """The table as a block of data in a page, which is no script and runs nothing."""
    text = json.dumps(to_builtins(KEYS), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="keys">{text}</script>')  # noqa: S704 - no `<` is left in it


def spelt(key: str) -> str:
    """A key as people write it."""
    return _SPELT.get(key, key)


def where(one: Key) -> str:
    """The pages that a key works on, in words."""
    if not one.pages:
        return "every page"
    return "sessions" if one.pages == SESSION else "sessions, lists"


def groups() -> Iterable[tuple[str, list[Key]]]:
    """The keys by heading, in the order of the table."""
    found: dict[str, list[Key]] = {}
    for one in KEYS:
        found.setdefault(one.group, []).append(one)
    return found.items()


def markdown_table() -> str:
    """The table as the documentation has it."""
    rows = [f"| {' '.join(f'`{spelt(key)}`' for key in one.keys)} | {one.what} | {where(one)} |" for one in KEYS]
    return "\n".join(("| key | what it does | where |", "|---|---|---|", *rows))
