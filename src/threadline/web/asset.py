"""Assets: the style and the scripts, each under a name, with a hash that changes when it does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import NotFound
from threadline.render.html.element import el, join
from threadline.render.html.style import style
from threadline.web.addresses import ASSETS

STYLE, EARLY, PAGE = "style.css", "early.js", "page.js"
_SCRIPTS = Path(__file__).parent / "assets"


class Asset(Struct, frozen=True):
    """A file that pages need."""

    data: bytes
    media_type: str
    hash: str


def asset(name: str) -> Asset:
    """The asset of that name.

    Raises:
        NotFound: there is none.
    """
    found = _assets().get(name)
    if found is None:
        raise NotFound("There is no such asset.")
    return found


def links_to_assets(scripts: Iterable[str] = ()) -> Markup:
    """What stands in the head of every page: style, the script that sets colours before anything is drawn, the rest.

    `scripts` are those that a page needs besides.
    """
    return join(
        (
            el("link", rel="stylesheet", href=_address(STYLE)),
            el("script", src=_address(EARLY)),
            *(el("script", src=_address(name), type="module") for name in (PAGE, *scripts)),
        )
    )


@lru_cache(maxsize=1)
def _assets() -> dict[str, Asset]:
    """Read once: none of them changes while the server runs."""
    found = {STYLE: _made(style().encode(), "text/css; charset=utf-8")}
    for path in sorted(_SCRIPTS.glob("*.js")):
        found[path.name] = _made(path.read_bytes(), "text/javascript; charset=utf-8")
    return found


def _made(data: bytes, media_type: str) -> Asset:
    return Asset(data, media_type, hashlib.blake2b(data, digest_size=6).hexdigest())


def _address(name: str) -> str:
    found = _assets().get(name)
    return f"{ASSETS}/{name}?{found.hash}" if found is not None else f"{ASSETS}/{name}"
