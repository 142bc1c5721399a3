"""The page of keys: the one table, for whoever has no script to show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.render.html.element import el, join
from threadline.render.html.table import Column, table
from threadline.web.keys import KEYS, Key, groups, spelt, where
from threadline.web.page import Page

if TYPE_CHECKING:
    from threadline.render.html.element import Child
    from threadline.web.asked import Asked


def keys(_asked: Asked) -> Page:
    """All keys."""
    columns = (Column("Key"), Column("What it does"), Column("Where"))
    tables = [
        el("section", el("h2", name), table(name, columns, map(_cells, some), hidden_caption=True), class_="block")
        for name, some in groups()
    ]
    told = el("p", "Keys work wherever nothing is being typed. They need scripts; everything else here does not.")
    return Page("Keys", "keys", join((el("div", el("h1", "Keys"), told, class_="head"), *tables)), KEYS)


def _cells(one: Key) -> list[Child]:
    written = [[" or " if at else "", _key(key)] for at, key in enumerate(one.keys)]
    return [written, one.what, where(one)]


def _key(key: str) -> Child:
    return [[" " if at else "", el("kbd", part)] for at, part in enumerate(spelt(key).split(" "))]
