"""Views of web search, web fetch and the API's own server tools. Addresses become links; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.calls import Call
from threadline.model.results import WebFetchResult, WebSearchResult
from threadline.model.text import count
from threadline.render import list_of, number_of, shorten, text_of, value_of, visible
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    facts_line,
    folded_block,
    output_block,
    prose_block,
    strip_program_tags,
)
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.markdown import external_link
from threadline.render.html.scene import Scene

_MAX_PROMPT_ELEMENTS, _MAX_TEXT_ELEMENTS = 30, 70


def _search_input(call: Call, _scene: Scene) -> Markup:
    query = text_of(call.input, "query")
    return el("p", el("b", "searched for "), visible(query[:2000]), class_="facts") if query else EMPTY


def _search_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, WebSearchResult):
        return join((_search_input(call, scene), prose_block(strip_program_tags(call.output), call, scene)))
    results = result.results or []
    hits = [hit for item in results for hit in list_of(item, "content")]
    text = "\n\n".join(item for item in results if isinstance(item, str))
    return join(
        (_search_input(call, scene), _hit_list(hits, call, scene), prose_block(text, call, scene, _MAX_TEXT_ELEMENTS))
    )


def _hit_list(hits: list[Any], call: Call, scene: Scene) -> Markup:
    if not hits:
        return facts_line("nothing found")
    return bounded_list(hits, lambda hit: el("li", *_hit_row(hit)), "hits", call, scene)


def _hit_row(hit: Any) -> Iterator[Markup | str]:
    address = text_of(hit, "url")
    yield external_link(address, text_of(hit, "title"))
    if age := text_of(hit, "page_age"):
        yield f" {shorten(age, 60)}"


def _fetch_input(call: Call, scene: Scene) -> Markup:
    """The requested URL and the prompt."""
    address = text_of(call.input, "url")
    return join(
        (
            el("p", external_link(address), class_="file") if address else EMPTY,
            folded_block("Prompt", prose_block(text_of(call.input, "prompt"), call, scene, _MAX_PROMPT_ELEMENTS)),
        )
    )


def _fetch_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, WebFetchResult):
        return join((_fetch_input(call, scene), prose_block(strip_program_tags(call.output), call, scene)))
    status = f"{result.code or ''} {result.code_text or ''}".strip()
    size = count(result.bytes, "byte") if result.bytes is not None else ""
    moved = f"came from {result.url}" if result.url and result.url != text_of(call.input, "url") else ""
    return join(
        (_fetch_input(call, scene), facts_line(status, size, moved), prose_block(result.result or "", call, scene))
    )


def _server_search_result(call: Call, scene: Scene) -> Markup:
    """The API's own search. Its result is a block of the reply."""
    content: Any = call.block.content if call.block is not None else None
    if isinstance(content, list):
        return join((_search_input(call, scene), _hit_list(content, call, scene)))
    return join((_search_input(call, scene), _error_code(content)))


def _server_fetch_result(call: Call, scene: Scene) -> Markup:
    """The API's own fetch: the text of the document."""
    content: Any = call.block.content if call.block is not None else None
    document = value_of(content, "content")
    source = value_of(document, "source")
    address = text_of(content, "url")
    text = text_of(source, "data") if text_of(source, "type") == "text" else ""
    return join(
        (
            _fetch_input(call, scene),
            facts_line(text_of(document, "title"), address if address != text_of(call.input, "url") else ""),
            _error_code(content),
            prose_block(text, call, scene),
        )
    )


def _error_code(content: Any) -> Markup:
    """The error code of a server tool."""
    return facts_line(text_of(content, "error_code"))


def _server_code_result(call: Call, scene: Scene) -> Markup:
    """Code that was executed by the API."""
    content: Any = call.block.content if call.block is not None else None
    status = number_of(content, "return_code")
    return join(
        (
            output_block(text_of(call.input, "code", "command"), call, scene, class_="command"),
            output_block(text_of(content, "stdout"), call, scene),
            output_block(text_of(content, "stderr"), call, scene, class_="output stderr"),
            facts_line(f"exit code {status}" if status is not None else ""),
            _error_code(content),
        )
    )


WEB_VIEWS: dict[str, ToolView] = {
    "WebSearch": ToolView(_search_result, _search_input),
    "WebFetch": ToolView(_fetch_result, _fetch_input),
    "web_search": ToolView(_server_search_result, _search_input),
    "web_fetch": ToolView(_server_fetch_result, _fetch_input),
    "code_execution": ToolView(_server_code_result),
    "bash_code_execution": ToolView(_server_code_result),
}
