"""Tool view: how the calls of a tool are drawn."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup
from msgspec import Struct

from threadline.model.call import Call
from threadline.render.html.scene import Scene

Draw = Callable[[Call, Scene], Markup]
"""Draws a call, or a part of it."""


class ToolView(Struct, frozen=True):
    """`came` draws a call that has a result of its own, `tried` what one was to do that has none."""

    came: Draw
    tried: Draw | None = None
