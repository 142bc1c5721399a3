"""The style of every page: the CSS files joined into one text, for a server to send and a file to hold."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files

PARTS = ("base.css", "session.css", "lists.css", "charts.css", "print.css")
"""The files in the order in which they stand: what comes later may refine what came before."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")


def part(name: str) -> str:
    """One of the files as it was written."""
    return (files("threadline.render.html") / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def style() -> str:
    """All of them, without comments and line breaks: an exported file carries this with it."""
    return "".join(_packed(part(name)) for name in PARTS)


@lru_cache(maxsize=1)
def style_hash() -> str:
    """What a policy names to allow the style inside a file: `style-src 'sha256-…'`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()}"


def _packed(text: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", text)).strip() + "\n"
