"""Calls and link targets for tests, and a parser for the HTML: its text, elements and links."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from threadline import ToolResultBlock
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
    """Links like a server's."""

    def session(self, session: SessionId | str) -> str | None:
        """A link to a session."""
        return f"/session/{session}"

    def agent(self, agent: AgentId | str) -> str | None:
        """A link to an agent."""
        return f"agent/{agent}"

    def entry(self, anchor: str) -> str:
        """A link to an entry."""
        return f"#{anchor}"

    def raw(self, anchor: str) -> str | None:
        """A link to an entry's JSON."""
        return f"entry/{anchor}"

    def call(self, call: CallId) -> str | None:
        """A link to a call."""
        return f"call/{call}"

    def state(self, anchor: str) -> str | None:
        """A link to the state at an entry."""
        return f"state/{anchor}"

    def file_state(self, anchor: str, path: str) -> str | None:
        """A link to a file as it was at an entry."""
        return f"/state/{anchor}?file={len(path)}"

    def file(self, path: str) -> str | None:
        """A link to a file."""
        return f"/files?path={len(path)}"

    def branch(self, number: int | None, at: str | None = None) -> str | None:  # noqa: ARG002
        """A link to a branch."""
        return f"?branch={number}"

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:  # noqa: ARG002
        """A link to an image."""
        return f"image/{anchor}/{number}"


class FilePaths(Paths):
    """Links like an exported file's: only to its own entries."""

    def call(self, call: CallId) -> str | None:  # noqa: ARG002
        """Calls have no page."""
        return None

    def file(self, path: str) -> str | None:  # noqa: ARG002
        """Files have no page."""
        return None


SCENE = Scene(View(), Paths(), cwd="/work/app")
UNCUT_SCENE = Scene(View(), Paths(), uncut=True, cwd="/work/app")
FILE_SCENE = Scene(View(), FilePaths())


def make_call(
    tool: str, arguments: Any = None, output: Any = "", details: Any = None, outcome: Outcome = Outcome.OK
) -> Call:
    """A call without a session around it."""
    is_open = outcome in (Outcome.PENDING, Outcome.LOST)
    return Call(
        id=CallId("toolu_1"),
        tool=tool,
        input=arguments,
        entry=AssistantEntry(),
        outcome=outcome,
        evidence="as a test says",
        answer=None if is_open else UserEntry(tool_use_result=details),
        block=None if is_open else ToolResultBlock(tool_use_id=CallId("toolu_1"), content=output),
    )


class Page(HTMLParser):
    """Parsed HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element and its attributes."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Record text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text."""
        return "".join(self.texts)

    @property
    def links(self) -> list[str]:
        """All links and sources."""
        return [value for name, value in self.attributes if name in ("href", "src")]

    def is_inert(self) -> bool:
        """Whether all elements, attributes and links are harmless."""
        names = {name for name, _ in self.attributes}
        links_are_safe = all(
            link.startswith(("http://", "https://", "/files?", "call/", "#", "image/")) for link in self.links
        )
        sources_are_safe = all(value.startswith("image/") for name, value in self.attributes if name == "src")
        return set(self.tags) <= ALLOWED and names <= _ATTRIBUTES and links_are_safe and sources_are_safe
