"""Texts of a transcript as Markdown that says the same wherever it is drawn, and cannot reach out of its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.render.html.words import shown

_FENCE = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_TICKS = re.compile(r"`+")
# A tag, a comment or a placeholder would vanish; an address in brackets is a link, and stays.
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>)")
_PICTURE = re.compile(r"!(?=\[)")
_LEAST = 3


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
    open_: str | None = None
    for line in shown(text).strip("\n").split("\n"):
        fence = _FENCE.match(line)
        if open_ is not None:
            yield line
            if fence and fence["marks"].startswith(open_) and not fence["info"].strip():
                open_ = None
        elif fence and not ("`" in fence["marks"] and "`" in fence["info"]):
            open_ = fence["marks"]
            yield line
        else:
            yield _outside_code(line)
    if open_ is not None:
        yield open_


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
