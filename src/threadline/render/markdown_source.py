"""Texts of a transcript as Markdown that says the same wherever it is drawn, and cannot reach out of its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.render.html.words import shown

_FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_TICKS = re.compile(r"`+")
# A tag, a comment or a placeholder would vanish; an address in brackets is a link, and stays.
_TAG = re.compile(r"(\\*)(<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>)|!(?=\[))")
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
    lines = shown(text).strip("\n").split("\n")
    block: list[str] = []
    at, wary = 0, False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        end = _end_of_fence(lines, at, fence) if fence is not None and not wary else None
        if fence is not None and end is not None:
            yield from (*_visible_block(block), *lines[at:end])
            if end == len(lines) and (end - at == 1 or not _closes(lines[-1], fence)):
                yield fence["marks"]
            block = []
            at = end
            continue
        # What such a fence begins or ends hangs on the list it stands in: it and all after it are shown as they are.
        wary = wary or fence is not None
        line = lines[at] if fence is None else re.sub(r"([`~])", r"\\\1", lines[at])
        if line.strip():
            block.append(line)
        else:
            yield from (*_visible_block(block), line)
            block = []
        at += 1
    yield from _visible_block(block)


def _end_of_fence(lines: list[str], at: int, fence: re.Match[str]) -> int | None:
    """Behind the last line of a fence's block; None where it may be none.

    At the margin a fence is one wherever it stands, and open to the end where nothing closes it. An indented one counts
    where another closes it at the same indent and nothing between them is less indented.
    """
    if "`" in fence["marks"] and "`" in fence["info"]:
        return None
    indent = len(fence["indent"])
    for number, line in enumerate(lines[at + 1 :], at + 1):
        if _closes(line, fence):
            return number + 1
        if indent and line.strip() and (len(line) - len(line.lstrip(" ")) < indent or _FENCE.match(line)):
            return None
    return None if indent else len(lines)


def _closes(line: str, fence: re.Match[str]) -> bool:
    found = _FENCE.match(line)
    if found is None or not found["marks"].startswith(fence["marks"]) or found["info"].strip():
        return False
    return len(found["indent"]) <= _DEEPER if not fence["indent"] else found["indent"] == fence["indent"]


def _visible_block(lines: list[str]) -> Iterator[str]:
    """Lines without a blank one between them, their tags and pictures made visible.

    Those in code stay as they are, but only where every line closes the spans that it opens: else it depends on what
    the lines are to each other where a span begins, and every tag is made visible.
    """
    parted = [_parted(line) for line in lines]
    certain = None not in parted
    for line, parts in zip(lines, parted, strict=True):
        if certain and parts is not None:
            yield "".join(part if is_code else _visible(part) for part, is_code in parts)
        else:
            yield _visible(line)


def _parted(line: str) -> list[tuple[str, bool]] | None:
    """A line in parts that are code and parts that are not; None where a span is left open or a tick is escaped."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while (ticks := _TICKS.search(line, at)) is not None:
        end = next((run.end() for run in _TICKS.finditer(line, ticks.end()) if run[0] == ticks[0]), None)
        if end is None or line[: ticks.start()].endswith("\\"):
            return None
        parts += [(line[at : ticks.start()], False), (line[ticks.start() : end], True)]
        at = end
    return [*parts, (line[at:], False)]


def _visible(text: str) -> str:
    return _TAG.sub(lambda found: found[0] if len(found[1]) % 2 else f"{found[1]}\\{found[2]}", text)
