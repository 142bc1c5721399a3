"""What was looked for: files, lines with their numbers, tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, islice
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

from threadline.model.block import ToolReferenceBlock
from threadline.model.call import Call
from threadline.model.results import GlobResult, GrepResult, LspResult, ToolSearchResult
from threadline.render.figures import count
from threadline.render.html.calls.cut import cut
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import facts, file_name, printed, some
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import number_of, text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.words import one, shown

_MATCH = re.compile(r"(?P<path>(?:[A-Za-z]:[\\/])?[^:\n]+):(?P<line>\d{1,9}):(?P<text>.*)", re.DOTALL)
_NEAR = re.compile(r"-(?P<line>\d{1,9})-")
_SLASH = re.compile(r"[/\\]")
_LONGEST_PATH, _MOST_MARKS = 1000, 20
_WORDS = ("path", "glob", "type", "output_mode")
_FLAGS = ("-i", "-A", "-B", "-C", "context", "head_limit", "offset", "multiline")


class _Found(Struct, frozen=True):
    """A line that was found, or stands near one; `path` is empty where the line does not name a file."""

    path: str
    line: str
    text: str
    is_match: bool = True


def _asked(made: Call, scene: Scene) -> Markup:
    """What was looked for, and where."""
    given = made.input
    words = [scene.near(text_of(given, name)) for name in _WORDS if text_of(given, name)]
    flags = [f"{name} {value}" for name in _FLAGS if isinstance(value := value_of(given, name), bool | int)]
    pattern = text_of(given, "pattern")
    return join((el("pre", shown(pattern[:2000]), class_="pattern") if pattern else EMPTY, facts(*words, *flags)))


def _files(names: Sequence[str], made: Call, scene: Scene) -> Markup:
    """Files, one a line, each a link to its page."""
    text = "\n".join(name.replace("\n", "⏎") for name in names)
    return cut(text, made, scene, lambda part: el("pre", _linked(part, scene), class_="files")) if text else EMPTY


def _linked(text: str, scene: Scene) -> Markup:
    return join((file_name(name, scene) for name in text.split("\n")), Markup("\n"))


def _grep(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, GrepResult):
        return join((_asked(made, scene), _lines(clean(made.output), made, scene)))
    files = result.filenames or []
    return join(
        (
            _asked(made, scene),
            facts(*_counts(result, files)),
            _files(files, made, scene) if files else _lines(result.content or "", made, scene),
        )
    )


def _counts(result: GrepResult, files: Sequence[str]) -> Iterator[str]:
    if number := len(files) or result.num_files:
        yield count(number, "file")
    if result.num_matches:
        yield count(result.num_matches, "match", "matches")
    if result.num_lines:
        yield count(result.num_lines, "line")
    if not (files or result.content):
        yield "nothing found"
    if result.applied_limit:
        yield f"cut at {result.applied_limit:,}"


def _lines(text: str, made: Call, scene: Scene) -> Markup:
    """Lines that were found, below the file that each stands in."""
    if not text.strip():
        return EMPTY
    return cut(text.strip("\n"), made, scene, lambda part: el("pre", _grouped(part, scene), class_="found"))


def _grouped(text: str, scene: Scene) -> Markup:
    drawn: list[Markup] = []
    for path, lines in groupby(_found(text.split("\n")), key=lambda line: line.path):
        if path:
            drawn.append(file_name(path, scene) + "\n")
        drawn += [escape(f"{_number(line)}{shown(line.text)}\n") for line in lines]
    return join(drawn)


def _number(line: _Found) -> str:
    return f"{line.line:>6}{':' if line.is_match else ' '} " if line.line else ""


def _found(lines: Sequence[str]) -> Iterator[_Found]:
    """The lines in parts: file, number and text; those that have none of these as they are."""
    matches = [_MATCH.fullmatch(line) for line in lines]
    paths = {match["path"] for match in matches if match is not None}
    last = ""
    for line, match in zip(lines, matches, strict=True):
        if match is not None:
            last = match["path"]
            yield _Found(last, match["line"], match["text"])
            continue
        near = _near(line, paths)
        if near is not None:
            last = near.path
            yield near
        else:
            yield _Found(last, "", "⋯") if line == "--" else _Found("", "", line)


def _near(line: str, paths: AbstractSet[str]) -> _Found | None:
    """A line near a match: `FILE-12-text`. Old builds name the file in full there, and short in matches."""
    for mark in islice(_NEAR.finditer(line, 0, _LONGEST_PATH), _MOST_MARKS):
        name = line[: mark.start()]
        path = next((end for end in _ends(name) if end in paths), None)
        if path is not None:
            return _Found(path, mark["line"], line[mark.end() :], is_match=False)
    return None


def _ends(path: str) -> Iterator[str]:
    """A path, and what is left of it when folders are taken away from its front."""
    yield path
    yield from (path[mark.end() :] for mark in _SLASH.finditer(path))


def _glob(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, GlobResult):
        return join((_asked(made, scene), _files(clean(made.output).split("\n"), made, scene)))
    files = result.filenames or []
    of = f" of {result.total_matches:,}" if result.total_matches and result.total_matches > len(files) else ""
    said = f"{len(files):,}{of} {'file' if len(files) == 1 else 'files'}" if files else "nothing found"
    is_cut = "not all were told" if result.truncated else ""
    return join((_asked(made, scene), facts(said, is_cut), _files(files, made, scene)))


def _folder(made: Call, scene: Scene) -> Markup:
    path = text_of(made.input, "path")
    return join((el("p", file_name(path, scene), class_="file") if path else EMPTY, printed(made.output, made, scene)))


def _tools(made: Call, scene: Scene) -> Markup:
    """`ToolSearch`: the tools that were found."""
    result = made.result
    content: Any = made.block.content if made.block is not None else None
    matches = result.matches if isinstance(result, ToolSearchResult) else None
    seen = [item.tool_name for item in content if isinstance(item, ToolReferenceBlock)] if content else []
    names = [name for item in matches or seen if (name := item if isinstance(item, str) else text_of(item, "name"))]
    total = number_of(result, "total_deferred_tools")
    said = count(len(names), "tool") + (f" of {total:,}" if total else "") if names else "nothing found"
    rows = some(names, lambda name: el("li", one(name, 120)), "tools", made, scene)
    text = "" if names else clean(made.output)
    return join((_query(made), facts(said), rows, printed(text, made, scene)))


def _query(made: Call) -> Markup:
    query = text_of(made.input, "query")
    return el("pre", shown(query[:2000]), class_="pattern") if query else EMPTY


def _lsp(made: Call, scene: Scene) -> Markup:
    """`LSP`: what a language server answered."""
    result, given = made.result, made.input
    line, character = number_of(given, "line"), number_of(given, "character")
    at = f"line {line:,}, character {character:,}" if line is not None and character is not None else ""
    results = number_of(result, "result_count")
    answer = result.result if isinstance(result, LspResult) and isinstance(result.result, str) else clean(made.output)
    path = text_of(given, "filePath")
    return join(
        (
            el("p", file_name(path, scene), class_="file") if path else EMPTY,
            facts(text_of(given, "operation"), at, count(results, "result") if results is not None else ""),
            printed(answer, made, scene),
        )
    )


VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Grep", "GrepTool"), ToolView(_grep, _asked)),
    **dict.fromkeys(("Glob", "GlobTool"), ToolView(_glob, _asked)),
    "LS": ToolView(_folder),
    "ToolSearch": ToolView(_tools, lambda made, _scene: _query(made)),
    "LSP": ToolView(_lsp),
}
