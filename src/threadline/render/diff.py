"""Changes to files, as lines that went and lines that came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from threadline.model.call import Call
from threadline.model.results import EditResult, MultiEditResult, WriteResult
from threadline.model.results.files import Hunk
from threadline.render.style import Role, Span, Spans
from threadline.render.terminal_text import plain_lines

_ROLES = {"+": Role.ADDED, "-": Role.REMOVED}


def changes(call: Call) -> Iterator[Spans]:
    """The lines a call changed, with the numbers they have afterwards; nothing where that is not known."""
    result = call.result
    if isinstance(result, EditResult | MultiEditResult | WriteResult) and result.structured_patch:
        for at, hunk in enumerate(result.structured_patch):
            if at:
                yield (Span("⋯", Role.FAINT),)
            yield from _hunk(hunk)
    elif isinstance(result, WriteResult) and result.type == "create":
        yield from _all(result.content, "+")
    else:
        yield from _asked(call.input)


def tally(call: Call) -> str:
    """`+12 -3`; nothing where the result does not tell."""
    result = call.result
    if not isinstance(result, EditResult | MultiEditResult | WriteResult):
        return ""
    lines = list(chain.from_iterable(hunk.lines or () for hunk in result.structured_patch or ()))
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    if not lines and isinstance(result, WriteResult) and result.content is not None:
        added = len(result.content.splitlines())
    return f"+{added} -{removed}" if added or removed else ""


def _hunk(hunk: Hunk) -> Iterator[Spans]:
    old, new = hunk.old_start or 0, hunk.new_start or 0
    for line in hunk.lines or ():
        mark, text = (line[:1], line[1:]) if line[:1] in ("+", "-", " ") else (" ", line)
        if mark == "\\":  # "\ No newline at end of file"
            continue
        yield _line(mark, old if mark == "-" else new, text)
        old += mark != "+"
        new += mark != "-"


def _line(mark: str, number: int, text: str) -> Spans:
    shown = next(plain_lines(text.split("\n", 1)[0]))
    return (Span(f"{number:>5} ", Role.FAINT), Span(f"{mark} {shown}", _ROLES.get(mark, Role.FAINT)))


def _all(text: str | None, mark: str) -> Iterator[Spans]:
    for number, line in enumerate((text or "").removesuffix("\n").split("\n"), 1):
        yield _line(mark, number, line)


def _asked(given: Any) -> Iterator[Spans]:
    """What was asked for, where no result tells what was done."""
    edits: Iterable[Any] = (given.get("edits") or (given,)) if isinstance(given, dict) else ()
    for edit in edits if isinstance(edits, list | tuple) else ():
        for name, mark in (("old_string", "-"), ("new_string", "+"), ("content", "+")):
            text = edit.get(name) if isinstance(edit, dict) else None
            for line in text.removesuffix("\n").split("\n") if isinstance(text, str) and text else ():
                shown = next(plain_lines(line))
                yield (Span("      "), Span(f"{mark} {shown}", _ROLES[mark]))
