"""Texts of a transcript as Markdown that says the same wherever it is drawn, and cannot reach out of its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.render.html.words import shown

_FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_LIST = re.compile(r" *(?:[-*+]|[0-9]{1,9}[.)]) {1,4}")
_TICKS = re.compile(r"`+")
# A tag, a comment or a placeholder would vanish; an address in brackets is a link, and stays.
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>)")
_PICTURE = re.compile(r"!(?=\[)")
_LEAST, _DEEPER = 3, 3


def fenced(text: str, language: str = "") -> Iterator[str]:
    """A text as a block of code, in a fence that is longer than any inside."""
    lines = shown(text).strip("\n").split("\n")
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(_LEAST, longest + 1)
    yield fence + language
    yield from lines
    yield fence


def code(text: str) -> str:
    """A text on one line as a span of code, in as many ticks as it takes.

    >>> code("a `b` c")
    '``a `b` c``'
    """
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def words(text: str) -> str:
    r"""A text on one line, nothing in it a mark of Markdown.

    >>> words("a *b* <c> [d]")
    'a \\*b\\* \\<c> \\[d\\]'
    """
    return re.sub(r"([\\`*_\[\]<|~])", r"\\\1", " ".join(shown(text).split()))


def quoted(lines: Iterable[str]) -> Iterator[str]:
    """Lines behind the sign of a quotation."""
    yield from (f"> {line}" if line else ">" for line in lines)


def prose(text: str) -> Iterator[str]:
    """Markdown as it was written: tags and pictures are shown as they are written, and no fence is left open."""
    fence: re.Match[str] | None = None
    margin = 0  # where the words of the list begin that we are in
    for line in shown(text).strip("\n").split("\n"):
        at = len(line) - len(line.lstrip(" "))
        if fence is not None and at < margin <= len(fence["indent"]) and line.strip():
            fence = None  # it ended with its item
        found = _FENCE.match(line)
        if fence is not None:
            if found and found["marks"].startswith(fence["marks"]) and not found["info"].strip():
                fence = None
            yield line
            continue
        if item := _LIST.match(line):
            margin = item.end()
        elif line.strip() and not at:
            margin = 0
        if found and at <= margin + _DEEPER and not ("`" in found["marks"] and "`" in found["info"]):
            fence = found
            yield line
        else:
            yield _outside_code(line)
    if fence is not None:
        yield fence["indent"] + fence["marks"]


def _outside_code(line: str) -> str:
    """A line with its tags and pictures made visible, but for those in spans of code."""
    if "<" not in line and "![" not in line:
        return line
    parts: list[str] = []
    at = 0
    while (ticks := _TICKS.search(line, at)) is not None:
        end = _closing(line, ticks)
        if end is None:
            parts += [_visible(line[at : ticks.end()])]
            at = ticks.end()
        else:
            parts += [_visible(line[at : ticks.start()]), line[ticks.start() : end]]
            at = end
    return "".join([*parts, _visible(line[at:])])


def _closing(line: str, opening: re.Match[str]) -> int | None:
    """Where the span of code ends that begins with these ticks."""
    return next((run.end() for run in _TICKS.finditer(line, opening.end()) if run[0] == opening[0]), None)


def _visible(text: str) -> str:
    return _PICTURE.sub(r"\!", _TAG.sub(r"\<", text))
