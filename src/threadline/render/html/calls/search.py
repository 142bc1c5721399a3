"""Views of tools that search files, code, tools and the web. URLs become links; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, islice
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

from threadline.model.blocks import ToolReferenceBlock
from threadline.model.call_summary import list_of, number_of, strip_program_tags, text_of, value_of
from threadline.model.calls import Call
from threadline.model.results import (
    GlobResult,
    GrepResult,
    LspResult,
    ToolSearchResult,
    WebFetchResult,
    WebSearchResult,
)
from threadline.model.text import count
from threadline.render import shorten, visible
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    cut_text,
    facts_line,
    file_heading,
    file_link,
    folded_block,
    output_block,
    prose_block,
)
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.markdown import external_link
from threadline.render.html.sections import Scene

_MATCH_LINE = re.compile(r"(?P<path>(?:[A-Za-z]:[\\/])?[^:\n]+):(?P<line>\d{1,9}):(?P<text>.*)", re.DOTALL)
_CONTEXT_LINE = re.compile(r"-(?P<line>\d{1,9})-")
_SLASH = re.compile(r"[/\\]")
_MAX_PATH, _MAX_CANDIDATES = 1000, 20
_TEXT_OPTIONS = ("path", "glob", "type", "output_mode")
_FLAG_OPTIONS = ("-i", "-A", "-B", "-C", "context", "head_limit", "offset", "multiline")


class _GrepLine(Struct, frozen=True):
    """A matching line or a context line. `path` is empty if the line does not contain a file name."""

    path: str
    line: str
    text: str
    is_match: bool = True


def _search_input(call: Call, scene: Scene) -> Markup:
    """The pattern and the options of a search."""
    arguments = call.input
    words = [scene.relative_path(text_of(arguments, name)) for name in _TEXT_OPTIONS if text_of(arguments, name)]
    flags = [f"{name} {value}" for name in _FLAG_OPTIONS if isinstance(value := value_of(arguments, name), bool | int)]
    pattern = text_of(arguments, "pattern")
    return join(
        (el("pre", visible(pattern[:2000]), class_="pattern") if pattern else EMPTY, facts_line(*words, *flags))
    )


def _file_list(names: Sequence[str], call: Call, scene: Scene) -> Markup:
    """Files, one per line, each a link to its page."""
    text = "\n".join(name.replace("\n", "⏎") for name in names)
    return (
        cut_text(text, call, scene, lambda part: el("pre", _linked_files(part, scene), class_="files"))
        if text
        else EMPTY
    )


def _linked_files(text: str, scene: Scene) -> Markup:
    return join((file_link(name, scene) for name in text.split("\n")), Markup("\n"))


def _grep_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, GrepResult):
        return join((_search_input(call, scene), _match_lines(strip_program_tags(call.output), call, scene)))
    files = result.filenames or []
    return join(
        (
            _search_input(call, scene),
            facts_line(*_grep_facts(result, files)),
            _file_list(files, call, scene) if files else _match_lines(result.content or "", call, scene),
        )
    )


def _grep_facts(result: GrepResult, files: Sequence[str]) -> Iterator[str]:
    if number := len(files) or result.num_files:
        yield count(number, "file")
    if result.num_matches:
        yield count(result.num_matches, "match", "matches")
    if result.num_lines:
        yield count(result.num_lines, "line")
    if not (files or result.content):
        yield "nothing found"
    if result.applied_limit:
        yield f"limited to {result.applied_limit:,}"


def _match_lines(text: str, call: Call, scene: Scene) -> Markup:
    """Matching lines, grouped by file."""
    if not text.strip():
        return EMPTY
    return cut_text(
        text.strip("\n"), call, scene, lambda part: el("pre", _group_by_file(part, scene), class_="matches")
    )


def _group_by_file(text: str, scene: Scene) -> Markup:
    html: list[Markup] = []
    for path, lines in groupby(_parse_lines(text.split("\n")), key=lambda line: line.path):
        if path:
            html.append(file_link(path, scene) + "\n")
        html += [escape(f"{_line_prefix(line)}{visible(line.text)}\n") for line in lines]
    return join(html)


def _line_prefix(line: _GrepLine) -> str:
    return f"{line.line:>6}{':' if line.is_match else ' '} " if line.line else ""


def _parse_lines(lines: Sequence[str]) -> Iterator[_GrepLine]:
    """Split lines into file, number and text. Lines without these are yielded as text."""
    matches = [_MATCH_LINE.fullmatch(line) for line in lines]
    paths = {match["path"] for match in matches if match is not None}
    last = ""
    for line, match in zip(lines, matches, strict=True):
        if match is not None:
            last = match["path"]
            yield _GrepLine(last, match["line"], match["text"])
            continue
        context_line = _parse_context_line(line, paths)
        if context_line is not None:
            last = context_line.path
            yield context_line
        else:
            yield _GrepLine(last, "", "⋯") if line == "--" else _GrepLine("", "", line)


def _parse_context_line(line: str, paths: AbstractSet[str]) -> _GrepLine | None:
    """A context line: `FILE-12-text`. Old versions print the full path here and a relative one in matches."""
    for mark in islice(_CONTEXT_LINE.finditer(line, 0, _MAX_PATH), _MAX_CANDIDATES):
        name = line[: mark.start()]
        path = next((end for end in _path_suffixes(name) if end in paths), None)
        if path is not None:
            return _GrepLine(path, mark["line"], line[mark.end() :], is_match=False)
    return None


def _path_suffixes(path: str) -> Iterator[str]:
    """A path, and the path without its first folders."""
    yield path
    yield from (path[mark.end() :] for mark in _SLASH.finditer(path))


def _glob_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, GlobResult):
        return join((_search_input(call, scene), _file_list(strip_program_tags(call.output).split("\n"), call, scene)))
    files = result.filenames or []
    of = f" of {result.total_matches:,}" if result.total_matches and result.total_matches > len(files) else ""
    summary = f"{len(files):,}{of} {'file' if len(files) == 1 else 'files'}" if files else "nothing found"
    cut_note = "list truncated" if result.truncated else ""
    return join((_search_input(call, scene), facts_line(summary, cut_note), _file_list(files, call, scene)))


def _ls_result(call: Call, scene: Scene) -> Markup:
    path = text_of(call.input, "path")
    return join((file_heading(path, scene), output_block(call.output, call, scene)))


def _tool_search_result(call: Call, scene: Scene) -> Markup:
    """`ToolSearch`: the matching tools."""
    result = call.result
    content: Any = call.block.content if call.block is not None else None
    matches = result.matches if isinstance(result, ToolSearchResult) else None
    references = [item.tool_name for item in content if isinstance(item, ToolReferenceBlock)] if content else []
    names = [
        name for item in matches or references if (name := item if isinstance(item, str) else text_of(item, "name"))
    ]
    total = number_of(result, "total_deferred_tools")
    summary = count(len(names), "tool") + (f" of {total:,}" if total else "") if names else "nothing found"
    rows = bounded_list(names, lambda name: el("li", shorten(name, 120)), "tools", call, scene)
    text = "" if names else strip_program_tags(call.output)
    return join((_tool_search_input(call), facts_line(summary), rows, output_block(text, call, scene)))


def _tool_search_input(call: Call) -> Markup:
    query = text_of(call.input, "query")
    return el("pre", visible(query[:2000]), class_="pattern") if query else EMPTY


def _lsp_result(call: Call, scene: Scene) -> Markup:
    """`LSP`: the answer of a language server."""
    result, arguments = call.result, call.input
    line, character = number_of(arguments, "line"), number_of(arguments, "character")
    position = f"line {line:,}, character {character:,}" if line is not None and character is not None else ""
    results = number_of(result, "result_count")
    answer = (
        result.result
        if isinstance(result, LspResult) and isinstance(result.result, str)
        else strip_program_tags(call.output)
    )
    path = text_of(arguments, "filePath")
    return join(
        (
            file_heading(path, scene),
            facts_line(
                text_of(arguments, "operation"), position, count(results, "result") if results is not None else ""
            ),
            output_block(answer, call, scene),
        )
    )


SEARCH_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Grep", "GrepTool"), ToolView(_grep_result, _search_input)),
    **dict.fromkeys(("Glob", "GlobTool"), ToolView(_glob_result, _search_input)),
    "LS": ToolView(_ls_result),
    "ToolSearch": ToolView(_tool_search_result, lambda call, _scene: _tool_search_input(call)),
    "LSP": ToolView(_lsp_result),
}


_MAX_PROMPT_ELEMENTS, _MAX_TEXT_ELEMENTS = 30, 70


def _web_search_input(call: Call, _scene: Scene) -> Markup:
    query = text_of(call.input, "query")
    return el("p", el("b", "searched for "), visible(query[:2000]), class_="facts") if query else EMPTY


def _search_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, WebSearchResult):
        return join((_web_search_input(call, scene), prose_block(strip_program_tags(call.output), call, scene)))
    results = result.results or []
    hits = [hit for item in results for hit in list_of(item, "content")]
    text = "\n\n".join(item for item in results if isinstance(item, str))
    return join(
        (
            _web_search_input(call, scene),
            _hit_list(hits, call, scene),
            prose_block(text, call, scene, _MAX_TEXT_ELEMENTS),
        )
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
    moved = f"redirected to {result.url}" if result.url and result.url != text_of(call.input, "url") else ""
    return join(
        (_fetch_input(call, scene), facts_line(status, size, moved), prose_block(result.result or "", call, scene))
    )


def _server_search_result(call: Call, scene: Scene) -> Markup:
    """The API's own search. Its result is a block of the reply."""
    content: Any = call.block.content if call.block is not None else None
    if isinstance(content, list):
        return join((_web_search_input(call, scene), _hit_list(content, call, scene)))
    return join((_web_search_input(call, scene), _error_code(content)))


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
    "WebSearch": ToolView(_search_result, _web_search_input),
    "WebFetch": ToolView(_fetch_result, _fetch_input),
    "web_search": ToolView(_server_search_result, _web_search_input),
    "web_fetch": ToolView(_server_fetch_result, _fetch_input),
    "code_execution": ToolView(_server_code_result),
    "bash_code_execution": ToolView(_server_code_result),
}
