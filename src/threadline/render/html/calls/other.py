"""Any other tool, those of MCP servers among them: what it was given and what it gave, as tidy JSON."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import McpResult
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import code, printed
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import el, join
from threadline.render.html.pictures import pictures_of
from threadline.render.html.scene import Scene
from threadline.render.html.tidy import is_json, tidy, written
from threadline.render.html.words import one

_MOST_TEXTS = 6
_LONGEST_JSON = 400_000


def given(made: Call, scene: Scene) -> Markup:
    """The input: JSON, and texts of several lines below it, each by its name, as they would be read."""
    value = made.input
    if value is None or value in ({}, [], ""):
        return Markup()
    if isinstance(value, str):
        return json_or_text(value, made, scene, class_="given")
    long = _long_texts(value)
    rest = {name: "…" if name in long else part for name, part in value.items()} if long else value
    return join(
        (
            code(written(rest), "json", made, scene, class_="given") if rest else Markup(),
            *(_text(name, text, made, scene) for name, text in long.items()),
        )
    )


def _long_texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {name: text for name, text in value.items() if isinstance(text, str) and "\n" in text.strip("\n")}
    return dict(list(texts.items())[:_MOST_TEXTS])


def _text(name: str, text: str, made: Call, scene: Scene) -> Markup:
    return join((el("p", one(name, 60), class_="label"), printed(text, made, scene, class_="given")))


def json_or_text(text: str, made: Call, scene: Scene, class_: str = "output") -> Markup:
    """JSON laid out and coloured, anything else as it is."""
    if len(text) <= _LONGEST_JSON and is_json(text):
        return code(tidy(text), "json", made, scene, class_=class_)
    return printed(text, made, scene, class_=class_)


def _came(made: Call, scene: Scene) -> Markup:
    return join((given(made, scene), json_or_text(_answer(made), made, scene), pictures_of(made, scene)))


def _answer(made: Call) -> str:
    """What the model saw; of a tool that gave it none, what the program kept, or what the API put into its block."""
    if text := clean(made.output):
        return text
    if isinstance(made.result, McpResult) and made.result.structured_content is not None:
        return written(made.result.structured_content)
    content: Any = made.block.content if made.block is not None else None
    return written(content) if isinstance(content, dict) else ""


OTHER = ToolView(_came, given)
"""The view of a tool that has none of its own."""
