"""Which view suits which tool."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from threadline.model.call import Call
from threadline.render.html.element import EMPTY, el
from threadline.render.html.scene import Scene
from threadline.render.html.words import shown

Draw = Callable[[Call, str, Scene], Markup]
"""Draws what came of a call, given the anchor of its item."""

_FEW = 4000


def view_of(made: Call, anchor: str, scene: Scene) -> Markup:
    """What came of a call, in the view of its tool; empty where nothing did."""
    return _VIEWS.get(made.tool, _output)(made, anchor, scene)


def _output(made: Call, _anchor: str, scene: Scene) -> Markup:
    text = shown(made.output).strip("\n")
    if not text:
        return EMPTY
    return el("pre", text if scene.whole else text[:_FEW], class_="output")


_VIEWS: dict[str, Draw] = {}
