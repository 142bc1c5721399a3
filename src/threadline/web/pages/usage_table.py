"""The table of what was spent: each row leads to the sessions, the session or the calls that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.model.sum import Row, Sum
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.said import money, project, short
from threadline.render.html.table import Cells, Column, table
from threadline.render.html.words import one
from threadline.web import addresses
from threadline.web.pages.filters import ALL
from threadline.web.pages.usage_chart import days_of

if TYPE_CHECKING:
    from threadline.web.asked import Asked
    from threadline.web.pages.usage_answer import Told

_GONE = "This session is only named by others: there is no page of it."
_FIGURES = ("Replies", "Input", "Output", "Cache write", "Cache read", "Cost")


def usage_table(asked: Asked, told: Told, names: tuple[str, ...]) -> Child:
    """The rows, and their sum below; times are the newest first."""
    title = f"By {' and '.join(names)}"
    if not told.rows.rows:
        return el("h2", title), el("p", "Nothing was spent that fits all of that.", class_="nothing")
    columns = (*(Column(name.capitalize()) for name in names), *(Column(name, "number") for name in _FIGURES))
    rows = [
        Cells([*(_key(asked, told, row, name) for name in names), *_figures(row)], item=True) for row in _ordered(told)
    ]
    foot = ["Total", *("" for _ in names[1:]), *_figures(told.total)]
    more = _more(asked, told) if told.left_out else EMPTY
    made = table(title, columns, rows, kind="list usage", foot=foot, hidden_caption=True)
    return join((el("h2", title), made, more))


def _ordered(told: Told) -> list[Row]:
    rows = list(told.rows.rows)
    return rows[::-1] if told.rows.by[0] in {"day", "week", "month"} else rows


def _figures(row: Sum) -> list[Child]:
    counts = (row.input, row.output, row.cache_write, row.cache_read)
    return [f"{row.charges:,}", *map(short, counts), money(row.amount, row.unpriced)]


def _more(asked: Asked, told: Told) -> Child:
    there = el("a", "Show more", href=asked.here(limit=2000))
    return el("p", f"{told.left_out:,} more are not shown; they are in the total. ", there, class_="note")


def _key(asked: Asked, told: Told, row: Row, name: str) -> Child:
    value = row.keys[name]
    address = _address(asked, name, value)
    if name == "project":
        return project(value, address)
    if name == "session":
        label = one(told.titles.get(value) or value, 90)
        if address is not None and value not in told.openable:
            return el("span", label, title=_GONE)
        return el("a", label, href=address, title=one(value, 80)) if address else label
    label = one(value, 90)
    return el("a", label, href=address) if address else label


def _address(asked: Asked, name: str, value: str) -> str | None:
    """Where a row leads; None for what no list can be asked for."""
    if value.startswith("("):  # what has no such value
        return None
    if name == "session":
        return addresses.session(value)
    if name == "tool":
        return addresses.address(addresses.CALLS, tool=value, **_kept(asked, "project", "since", "until"))
    if name in {"day", "week", "month"}:
        since, until = days_of(value, name)
        return addresses.address(addresses.SESSIONS, since=since, until=until, **_kept(asked, "project", "model"))
    if name in {"project", "model", "branch"}:
        kept = {key: text for key, text in _kept(asked, "project", "model", "since", "until").items() if key != name}
        return addresses.address(addresses.SESSIONS, **{name: value}, **kept)
    return None


def _kept(asked: Asked, *names: str) -> dict[str, str]:
    """What else was asked for and belongs to both pages."""
    return {name: text for name in names if (text := asked.text(name)) and text != ALL}
