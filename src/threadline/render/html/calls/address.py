"""Addresses of the web: shown, led to where that is safe, never fetched."""

from __future__ import annotations

from urllib.parse import urlsplit

from markupsafe import Markup

from threadline.render.html.element import el
from threadline.render.html.words import one

_SAFE = frozenset({"http", "https"})
_LONGEST = 2000


def is_safe(address: str) -> bool:
    """Whether it may be a link: of the web, and without anything hidden in it."""
    if not address.isprintable() or len(address) > _LONGEST:
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme.lower() in _SAFE and bool(parts.netloc)


def address_of(address: str, label: str = "") -> Markup:
    """A link out of the page where it is safe, else its words."""
    bare = address.strip()
    said = one(label or bare, 300)
    if not is_safe(bare):
        return el("span", said, class_="link", title=one(bare, 300) if label else None)
    return el("a", said, href=bare, target="_blank", rel="noopener noreferrer nofollow")
