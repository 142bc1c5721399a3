"""Build HTML from typed Python calls; all text is escaped.

Templates would be a second language without types. Here an element is a call, its children are its arguments, text
becomes HTML only by being escaped, and mypy finds a misspelt name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from markupsafe import Markup, escape

Child = Markup | str | int | float | None | Iterable["Child"]
"""The content of an element: `Markup`, any other text (which is escaped), or nothing."""
Value = str | int | float | bool | None
"""The value of an attribute. False and None omit it; True writes only its name."""

EMPTY = Markup()
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag. SVG shapes need one: without it, the next shape would be inside the last."""


def el(name: str, *children: Child, **attributes: Value) -> Markup:
    """An element: `el("p", "a < b", class_="note")`. Underscores in attributes become hyphens; a last one is dropped.

    >>> el("a", "1 < 2", href="/x?a&b", aria_label='"q"')
    Markup('<a href="/x?a&amp;b" aria-label="&#34;q&#34;">1 &lt; 2</a>')
    >>> el("input", type="checkbox", checked=True, disabled=False)
    Markup('<input type="checkbox" checked>')
    """
    begun = open_tag(name, **attributes)
    return begun if name in _VOID else Markup(f"{begun}{join(children)}</{name}>")  # noqa: S704 - the name is ours


def open_tag(name: str, **attributes: Value) -> Markup:
    """Only the start tag."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{written}>")  # noqa: S704 - the name is ours, the rest was escaped


def join(children: Iterable[Child], between: Markup = EMPTY) -> Markup:
    """Join several children."""
    return between.join(_to_markup(child) for child in children if child is not None)


def _to_markup(child: Child) -> Markup:
    if isinstance(child, str):
        return escape(child)  # leaves Markup as it is
    if isinstance(child, int | float):
        return escape(str(child))
    return EMPTY if child is None else join(child)


def _attribute(key: str, value: Value) -> str:
    if value is False:
        return ""
    if value is True:
        return f" {_attribute_name(key)}"
    return f' {_attribute_name(key)}="{escape(str(value))}"'


@lru_cache(maxsize=512)
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
