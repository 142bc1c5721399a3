"""A drawing: an SVG with a name and a description, and shapes that carry words."""

from __future__ import annotations

from markupsafe import Markup

from threadline.render.html.element import Child, el


def drawing(
    name: str,
    title: str,
    told: str,
    *shapes: Child,
    width: int,
    height: int,
    linked: bool = False,
) -> Markup:
    """A chart. `name` makes its ids, `told` says in words what it shows.

    Where shapes are links, it is a group and no picture: a picture's parts cannot be gone to.
    """
    svg = el(
        "svg",
        el("title", title, id=f"{name}-title"),
        el("desc", told, id=f"{name}-told"),
        *shapes,
        class_=f"drawing {name}",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="group" if linked else "img",
        aria_labelledby=f"{name}-title {name}-told",
    )
    return el("div", svg, class_="chart")


def rect(x: float, y: float, width: float, height: float, kind: str, *inside: Child) -> Markup:
    """A rectangle."""
    return el("rect", *inside, x=num(x), y=num(y), width=num(width), height=num(height), class_=kind)


def text(x: float, y: float, words: str, kind: str) -> Markup:
    """Words in a drawing, which its table says again."""
    return el("text", words, x=num(x), y=num(y), class_=kind, aria_hidden="true")


def line(x: float, y: float, to_x: float, to_y: float, kind: str) -> Markup:
    """A line."""
    return el("line", x1=num(x), y1=num(y), x2=num(to_x), y2=num(to_y), class_=kind)


def link(href: str | None, words: str, *shapes: Child) -> Markup:
    """Shapes that lead somewhere and say what they are; a group of them where they lead nowhere.

    Keys pass them by: a year of days would be hundreds of stops, and the table below has the same links.
    """
    told = el("title", words)
    return el("a", told, *shapes, href=href, tabindex=-1) if href is not None else el("g", told, *shapes)


def num(value: float) -> str:
    """A number in as few digits as it needs, the same on every machine.

    >>> num(3.0), num(0.1 + 0.2), num(12.345)
    ('3', '0.3', '12.35')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
