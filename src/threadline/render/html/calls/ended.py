"""How a call ended that did not go well: in words, and what was said of it."""

from __future__ import annotations

import re

from markupsafe import Markup

from threadline.model.call import Call, Outcome
from threadline.render.html.calls.pieces import printed
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.scene import Scene
from threadline.render.html.words import one

_TAGS = re.compile(r"</?(?:tool_use_error|error|persisted-output)>")
_REFUSED = "The user doesn't want to proceed with this tool use."
_EXIT = re.compile(r"(?:Error: )?Exit code (-?\d{1,10})\s*")
_WORDS = {
    Outcome.DENIED: "It was refused, and not done.",
    Outcome.INTERRUPTED: "It was interrupted.",
    Outcome.PENDING: "It has no result yet.",
    Outcome.LOST: "Its result was not kept: the conversation went on without it.",
}


def ended(made: Call, scene: Scene) -> Markup:
    """How it ended, and the words of the error."""
    return join((how(made), _error(made, scene)))


def how(made: Call) -> Markup:
    """How it ended, in a sentence; an error says it itself."""
    said = _WORDS.get(made.outcome, "")
    return el("p", said, class_=f"ended {made.outcome}", title=one(made.evidence, 200)) if said else EMPTY


def _error(made: Call, scene: Scene) -> Markup:
    text = clean(made.output)
    if made.outcome is Outcome.DENIED and (text.startswith(_REFUSED) or made.feedback):
        return EMPTY  # what the program tells the model; the person's own words stand below
    code = _EXIT.match(text)
    if code is None:
        return printed(text, made, scene, class_="output error")
    status = el("p", f"exit code {code[1]}", class_="facts exit")
    return join((status, printed(text[code.end() :], made, scene, class_="output error")))


def clean(text: str) -> str:
    """What the model saw, without the tags that the program puts around it."""
    return _TAGS.sub("", text).strip("\n")
