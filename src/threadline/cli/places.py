"""Paths as people write them."""

from __future__ import annotations

from os.path import expanduser
from pathlib import Path

from threadline.render.terminal_text import clip_left, plain


def short_path(path: str | Path, width: int) -> str:
    """A path below the person's own folder as `~/…`, cut at its beginning where it is too long."""
    text = str(path)
    home = expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    if text.startswith(home + "/"):
        text = "~" + text[len(home) :]
    return clip_left(plain(text), width)
