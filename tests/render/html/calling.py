"""Calls made for tests, and HTML taken apart again: its words, its elements, its links."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from threadline.model.blocks import ToolResultBlock
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.places import AgentId, CallId, SessionId
from threadline.render import View
from threadline.render.html import Scene

ALLOWED = frozenset(
    [
        "a",
        "article",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "li",
        "mark",
        "ol",
        "p",
        "pre",
        "s",
        "section",
        "span",
        "strong",
        "summary",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "time",
        "tr",
        "ul",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "alt",
        "aria-hidden",
        "class",
        "data-language",
        "height",
        "href",
        "loading",
        "tabindex",
        "open",
        "rel",
        "src",
        "start",
        "target",
        "title",
        "width",
    ]
)


class Paths:
    """Links as a server has them."""

    def session(self, session: SessionId | str) -> str | None:
        """Another session."""
        return f"/session/{session}"

    def agent(self, agent: AgentId | str) -> str | None:
        """An agent."""
        return f"agent/{agent}"

    def entry(self, anchor: str) -> str:
        """An entry."""
        return f"#{anchor}"

    def raw(self, anchor: str) -> str | None:
        """An entry's JSON."""
        return f"entry/{anchor}"

    def call(self, call: CallId) -> str | None:
        """A call."""
        return f"call/{call}"

    def state(self, anchor: str) -> str | None:
        """The state at an entry."""
        return f"state/{anchor}"

    def file(self, path: str) -> str | None:
        """A file."""
        return f"/files?path={len(path)}"

    def branch(self, number: int | None) -> str | None:
        """A branch."""
        return f"?branch={number}"

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:  # noqa: ARG002
        """A picture."""
        return f"image/{anchor}/{number}"


class Alone(Paths):
    """Links as a lone file has them: to nothing but its own entries."""

    def call(self, call: CallId) -> str | None:  # noqa: ARG002
        """No page of its own."""
        return None

    def file(self, path: str) -> str | None:  # noqa: ARG002
        """No page of its own."""
        return None


SCENE = Scene(View(), Paths(), cwd="/work/app")
WHOLE = Scene(View(), Paths(), uncut=True, cwd="/work/app")
LONE = Scene(View(), Alone())


def made(tool: str, given: Any = None, output: Any = "", own: Any = None, outcome: Outcome = Outcome.OK) -> Call:
    """A call as a session holds it, without a session around it."""
    is_open = outcome in (Outcome.PENDING, Outcome.LOST)
    return Call(
        id=CallId("toolu_1"),
        tool=tool,
        input=given,
        entry=AssistantEntry(),
        outcome=outcome,
        evidence="as a test says",
        answer=None if is_open else UserEntry(tool_use_result=own),
        block=None if is_open else ToolResultBlock(tool_use_id=CallId("toolu_1"), content=output),
    )


class Page(HTMLParser):
    """HTML as a browser takes it apart."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more element."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Some more text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All words."""
        return "".join(self.texts)

    @property
    def links(self) -> list[str]:
        """Where it leads, and what it loads."""
        return [value for name, value in self.attributes if name in ("href", "src")]

    def is_inert(self) -> bool:
        """Whether it has only elements, attributes and links that can do nothing."""
        names = {name for name, _ in self.attributes}
        led = all(link.startswith(("http://", "https://", "/files?", "call/", "#", "image/")) for link in self.links)
        loaded = all(value.startswith("image/") for name, value in self.attributes if name == "src")
        return set(self.tags) <= ALLOWED and names <= _ATTRIBUTES and led and loaded
