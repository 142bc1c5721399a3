"""The web: what a search found and what a page said, its addresses as links that nothing here follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import WebFetchResult, WebSearchResult
from threadline.render.figures import count
from threadline.render.html.calls.address import address_of
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import facts, folded, printed, prose, some
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, number_of, text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.words import one, shown

_FEW, _SOME = 30, 70


def _query(made: Call, _scene: Scene) -> Markup:
    query = text_of(made.input, "query")
    return el("p", el("b", "searched for "), shown(query[:2000]), class_="facts") if query else EMPTY


def _searched(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, WebSearchResult):
        return join((_query(made, scene), prose(clean(made.output), made, scene)))
    results = result.results or []
    found = [hit for item in results for hit in list_of(item, "content")]
    said = "\n\n".join(item for item in results if isinstance(item, str))
    return join((_query(made, scene), _hits(found, made, scene), prose(said, made, scene, _SOME)))


def _hits(found: list[Any], made: Call, scene: Scene) -> Markup:
    if not found:
        return facts("nothing found")
    return some(found, lambda hit: el("li", *_hit(hit)), "hits", made, scene)


def _hit(hit: Any) -> Iterator[Markup | str]:
    address = text_of(hit, "url")
    yield address_of(address, text_of(hit, "title"))
    if age := text_of(hit, "page_age"):
        yield f" {one(age, 60)}"


def _page(made: Call, scene: Scene) -> Markup:
    """The address that was asked for, and what of it."""
    address = text_of(made.input, "url")
    return join(
        (
            el("p", address_of(address), class_="file") if address else EMPTY,
            folded("Prompt", prose(text_of(made.input, "prompt"), made, scene, _FEW)),
        )
    )


def _fetched(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, WebFetchResult):
        return join((_page(made, scene), prose(clean(made.output), made, scene)))
    status = f"{result.code or ''} {result.code_text or ''}".strip()
    size = count(result.bytes, "byte") if result.bytes is not None else ""
    moved = f"came from {result.url}" if result.url and result.url != text_of(made.input, "url") else ""
    return join((_page(made, scene), facts(status, size, moved), prose(result.result or "", made, scene)))


def _server_search(made: Call, scene: Scene) -> Markup:
    """The API's own search; its result stands in the reply."""
    content: Any = made.block.content if made.block is not None else None
    if isinstance(content, list):
        return join((_query(made, scene), _hits(content, made, scene)))
    return join((_query(made, scene), _code(content)))


def _server_fetch(made: Call, scene: Scene) -> Markup:
    """The API's own fetch: a document, of which the text is shown."""
    content: Any = made.block.content if made.block is not None else None
    document = value_of(content, "content")
    source = value_of(document, "source")
    address = text_of(content, "url")
    text = text_of(source, "data") if text_of(source, "type") == "text" else ""
    return join(
        (
            _page(made, scene),
            facts(text_of(document, "title"), address if address != text_of(made.input, "url") else ""),
            _code(content),
            prose(text, made, scene),
        )
    )


def _code(content: Any) -> Markup:
    """Why a tool of the API gave nothing."""
    return facts(text_of(content, "error_code"))


def _server_run(made: Call, scene: Scene) -> Markup:
    """Code that the API ran itself."""
    content: Any = made.block.content if made.block is not None else None
    status = number_of(content, "return_code")
    return join(
        (
            printed(text_of(made.input, "code", "command"), made, scene, class_="command"),
            printed(text_of(content, "stdout"), made, scene),
            printed(text_of(content, "stderr"), made, scene, class_="output stderr"),
            facts(f"exit code {status}" if status is not None else ""),
            _code(content),
        )
    )


VIEWS: dict[str, ToolView] = {
    "WebSearch": ToolView(_searched, _query),
    "WebFetch": ToolView(_fetched, _page),
    "web_search": ToolView(_server_search, _query),
    "web_fetch": ToolView(_server_fetch, _page),
    "code_execution": ToolView(_server_run),
    "bash_code_execution": ToolView(_server_run),
}
