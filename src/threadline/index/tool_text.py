"""What a call and its result say, by field; what the same entry says twice is taken once."""

from __future__ import annotations

import re
from typing import Any

from threadline.index.strings import strings
from threadline.model.block import ToolResultBlock

Texts = dict[str, list[str]]
"""The parts of each field, as they are met."""

_PATHS = frozenset({"file_path", "notebook_path", "path", "filePath", "notebookPath", "glob", "paths", "file_paths"})
_GLOBS = frozenset({"Glob", "GlobTool"})
# Names beyond these are as a rule a listing of everything there is.
_MANY_NAMES = 2000
# How much may be looked through for what is said twice: beyond it, twice is cheaper.
_LOOKED_THROUGH = 16_000_000
# What results hold that other entries or other keys say already.
_SAID_ELSEWHERE = frozenset(
    {
        *("prompt", "usage", "toolStats", "status", "retrieval_status", "questions", "oldTodos", "newTodos"),
        *("originalFile", "originalFileContents", "original_file", "updated_file", "new_source", "old_source"),
    }
)
# What a change was asked with, in a result's words and in a call's.
_CHANGED = ("oldString", "newString", "old_string", "new_string", "content")
# How much longer than its names a text may be that only lists them.
_HEADING = 200
_NUMBERED = re.compile(r"\s*\d+[→\t]")
_REMINDER = "<system-reminder>"


def call(name: str, given: Any, texts: Texts) -> None:
    """Adds what a tool is given: commands, paths, and all else as input."""
    if type(given) is not dict:
        add(texts, "input", strings(given))
        return
    foreign = name.startswith("mcp__")
    if foreign:
        add(texts, "input", [name])
    for key, value in given.items():
        if key == "command" and type(value) is str:
            field = "command"
        elif key in _PATHS or (key == "pattern" and name in _GLOBS):
            field = "path"
        else:
            field = "input"
        add(texts, field, [value] if type(value) is str else strings(value, everything=foreign))


def result(blocks: list[ToolResultBlock], told: Any, texts: Texts) -> None:
    """Adds what tools gave back: the text that the model saw, and of the tool's own result what that does not say."""
    seen = _text_of(blocks)
    if type(told) is dict:
        for key, adds in _BY_KEY.items():
            if key in told:
                seen = adds(told, seen, texts)
                break
        else:
            add(texts, "result", news(strings(told, mute=_SAID_ELSEWHERE), seen))
    elif told is not None:
        add(texts, "result", news(strings(told), seen))
    if seen:
        add(texts, "result", [seen])


def _text_of(blocks: list[ToolResultBlock]) -> str:
    if len(blocks) == 1 and type(blocks[0].content) is str:
        return blocks[0].content
    return "\n".join(one for block in blocks for one in strings(block.content))


def add(texts: Texts, field: str, parts: list[str]) -> None:
    """Adds parts to a field."""
    if parts:
        texts.setdefault(field, []).extend(parts)


def news(parts: list[str], seen: str) -> list[str]:
    """The parts that a text does not hold."""
    if not seen or len(parts) * len(seen) > _LOOKED_THROUGH:
        return parts
    return [part for part in parts if not _holds(seen, part)]


def _holds(seen: str, part: str) -> bool:
    # As a rule the one is the other, or begins with it: only else is it looked for.
    return seen.startswith(part) or part.removeprefix("Error: ").strip() in seen


def _shell(told: dict[str, Any], seen: str, texts: Texts) -> str:
    """Output is given to the model as it is, or cut: the whole of it counts once."""
    printed = [one for key in ("stdout", "stderr") if type(one := told.get(key)) is str and one]
    add(texts, "result", news(printed, seen))
    add(texts, "result", news(strings([told.get("returnCodeInterpretation")]), seen))
    return seen


def _read(told: dict[str, Any], seen: str, texts: Texts) -> str:
    """A file's content counts without the numbers of its lines; a reminder behind it is none of the file's."""
    file = told["file"]
    if type(file) is not dict:
        return seen
    add(texts, "path", strings(file.get("filePath")))
    content = file.get("content")
    if type(content) is not str or not content:
        return seen
    add(texts, "result", [content])
    if not _NUMBERED.match(seen):
        return "" if _holds(content, seen) else seen
    reminder = seen.rfind(_REMINDER)
    if reminder >= 0 and seen[reminder:] not in content:
        add(texts, "injected", [seen[reminder:]])
    return ""


def _changed(told: dict[str, Any], seen: str, texts: Texts) -> str:
    """Of a change, the lines that neither the call nor the model's text has: what stood there before, and around it."""
    add(texts, "path", strings(told.get("filePath")))
    edits = told.get("edits")
    said = {
        line
        for edit in (told, *(edits if type(edits) is list else ()))
        if type(edit) is dict
        for key in _CHANGED
        if type(text := edit.get(key)) is str
        for line in text.split("\n")
    }
    hunks = told.get("structuredPatch")
    lines = [
        line[1:]
        for hunk in (hunks if type(hunks) is list else ())
        if type(hunk) is dict and type(hunk.get("lines")) is list
        for line in hunk["lines"]
        if type(line) is str and line[1:] not in said
    ]
    if lines:
        add(texts, "result", ["\n".join(lines)])
    return seen


def _names(told: dict[str, Any], seen: str, texts: Texts) -> str:
    """Names of files are paths; of a text that only lists them once more, what stands around them is left."""
    names = told["filenames"]
    listed = [one for one in names if type(one) is str] if type(names) is list else []
    add(texts, "path", listed[:_MANY_NAMES])
    content = told.get("content")
    if type(content) is str and content:
        add(texts, "result", news([content], seen))
    if not 0 < len(listed) <= _MANY_NAMES or len(seen) > sum(map(len, listed)) + len(listed) + _HEADING:
        return seen
    first, last = seen.find(listed[0]), seen.rfind(listed[-1])
    return seen if first < 0 or last < 0 else seen[:first] + seen[last + len(listed[-1]) :]


def _answers(told: dict[str, Any], seen: str, texts: Texts) -> str:
    """What a person answered is theirs."""
    add(texts, "prompt", strings([told["answers"], told.get("annotations")]))
    return seen


# By the key that tells a kind of result; the first that is there counts.
_BY_KEY = {
    "stdout": _shell,
    "file": _read,
    "structuredPatch": _changed,
    "filenames": _names,
    "answers": _answers,
}
