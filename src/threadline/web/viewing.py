"""Viewing: what of a session a request wants to see; all of it is in the address."""

from __future__ import annotations

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.render.html.placed import KINDS
from threadline.render.html.view import Amount, View
from threadline.render.options import Agents
from threadline.web.asked import Asked
from threadline.web.kept import Kept
from threadline.web.linked import Linked

NAMES = (
    "thinking",
    "calls",
    "agents",
    "everything",
    "branch",
    "thread",
    "from",
    "to",
    "kind",
    "tool",
    "errors",
    "focus",
)
"""The names in a query that say what is shown."""
ALL_KINDS = tuple(dict.fromkeys(KINDS.values()))
FOCUSED = ("prompt", "task", "reply", "compaction", "branch", "failure")
"""What is left where only what was said is wanted."""


class Viewing(Struct, frozen=True):
    """A view, the agent that it shows (None: the main one), and the links that keep it so."""

    view: View
    agent: str | None
    links: Linked
    focus: bool = False


def viewing(asked: Asked, kept: Kept) -> Viewing:
    """What a request wants to see.

    Raises:
        BadQuery: it says nothing sensible.
    """
    agent = asked.named.get("agent") or asked.text("agent")
    query = [(name, value) for name, value in asked.query if name in NAMES and value.strip()]
    focus = asked.flag("focus")
    return Viewing(_view(asked, focus=focus), agent, Linked(kept.id, agent, tuple(query), kept.agents), focus)


def _view(asked: Asked, *, focus: bool) -> View:
    kinds = asked.texts("kind")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise BadQuery(f"kind={kind[:40]!r} is none of {', '.join(ALL_KINDS)}.")
    return View(
        thinking=Amount.NONE if focus else asked.one_of("thinking", Amount, Amount.FOLD),
        calls=Amount.NONE if focus else asked.one_of("calls", Amount, Amount.FOLD),
        agents=asked.one_of("agents", Agents, Agents.FOLD),
        everything=asked.flag("everything"),
        branch=asked.maybe_number("branch", least=1, most=1_000_000),
        thread=asked.flag("thread"),
        from_turn=asked.maybe_number("from"),
        to_turn=asked.maybe_number("to"),
        kinds=FOCUSED if focus and not kinds else kinds,
        tools=asked.texts("tool"),
        errors=asked.flag("errors"),
    )
