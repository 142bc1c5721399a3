"""Which view suits which tool."""

from __future__ import annotations

from markupsafe import Markup

from threadline.model.call import Call, Outcome
from threadline.model.results import OtherResult, ToolResult
from threadline.render.html.calls import agents, asking, changing, finding, lists, program, reading, shell, web
from threadline.render.html.calls.ended import ended, how
from threadline.render.html.calls.other import OTHER
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.scene import Scene
from threadline.render.html.words import shown

VIEWS: dict[str, ToolView] = {
    **agents.VIEWS,
    **asking.VIEWS,
    **changing.VIEWS,
    **finding.VIEWS,
    **lists.VIEWS,
    **program.VIEWS,
    **reading.VIEWS,
    **shell.VIEWS,
    **web.VIEWS,
}
"""The tools that have a view of their own."""


def view_of(made: Call, _anchor: str, scene: Scene) -> Markup:
    """What a call did and what came of it, in the view of its tool; empty where there is nothing to say."""
    view = VIEWS.get(made.tool, OTHER)
    return join((_body(view, made, scene), _kept(made)))


def _body(view: ToolView, made: Call, scene: Scene) -> Markup:
    if made.outcome is Outcome.OK:
        return view.came(made, scene)
    if isinstance(made.result, ToolResult) and not isinstance(made.result, OtherResult):
        # The tool told what it did even so: a command that was interrupted has printed something.
        after = ended(made, scene) if made.outcome is Outcome.ERROR else how(made)
        return join((view.came(made, scene), after))
    return join((view.tried(made, scene) if view.tried is not None else EMPTY, ended(made, scene)))


def _kept(made: Call) -> Markup:
    """Where the whole output lies, where it was too long for the transcript."""
    if made.persisted is None:
        return EMPTY
    return el("p", "The whole output was put into ", el("code", shown(str(made.persisted))), class_="persisted")
