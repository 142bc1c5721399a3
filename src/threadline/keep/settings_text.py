"""Add a hook to the text of a settings.json, or remove it, leaving every other byte unchanged.

To be deleted together with `install`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from threadline.errors import Unreadable

HOOKS = "hooks"
_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{[ \t]*\r?\n([ \t]+)\S")
_decoder = json.JSONDecoder()


class _Part(Struct, frozen=True):
    """A member of an object, or an element of a list: where it begins, and where its value begins and ends."""

    key: str | None
    start: int
    value: int
    end: int


def with_hook(text: str, event: str, hook: dict[str, Any]) -> str:
    """The text with one more hook of an event, written as the rest is.

    Raises:
        Unreadable: it is not what settings are.
    """
    root = _root(text)
    hooks = _member(text, root, HOOKS)
    if hooks is None:
        return _added(text, root, HOOKS, {event: [hook]}, 1)
    _check(text, hooks.value, "{", HOOKS)
    events = _member(text, hooks.value, event)
    if events is None:
        return _added(text, hooks.value, event, [hook], 2)
    _check(text, events.value, "[", event)
    return _added(text, events.value, None, hook, 3)


def without_hook(text: str, event: str, is_ours: Callable[[Any], bool]) -> str:
    """The text without the hooks of an event that are ours, and without what is empty for that.

    Raises:
        Unreadable: it is not what settings are.
    """
    while True:
        root = _root(text)
        hooks = _member(text, root, HOOKS)
        events = _member(text, hooks.value, event) if hooks is not None and text[hooks.value] == "{" else None
        if hooks is None or events is None or text[events.value] != "[":
            return text
        listed = _parts(text, events.value)
        ours = next((one for one in listed if is_ours(_decoder.raw_decode(text, one.value)[0])), None)
        if ours is None:
            return text
        if len(listed) > 1:
            text = _removed(text, events.value, ours)
        elif len(_parts(text, hooks.value)) > 1:
            text = _removed(text, hooks.value, events)
        else:
            text = _removed(text, root, hooks)


def hooks_of(text: str, event: str) -> list[Any]:
    """The hooks of an event.

    Raises:
        Unreadable: it is not JSON.
    """
    try:
        told = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON ({error})") from None
    hooks = told.get(HOOKS) if isinstance(told, dict) else None
    found = hooks.get(event) if isinstance(hooks, dict) else None
    return found if isinstance(found, list) else []


def _root(text: str) -> int:
    hooks_of(text, "")  # what is no JSON as a whole is not touched
    at = _after(text, 0)
    if text[at : at + 1] != "{":
        raise Unreadable("it holds no object")
    return at


def _check(text: str, at: int, sign: str, name: str) -> None:
    if text[at] != sign:
        raise Unreadable(f"its {name!r} is not what Claude Code reads")


def _after(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _parts(text: str, at: int) -> list[_Part]:
    """The members of the object, or the elements of the list, that begins there."""
    is_object = text[at] == "{"
    found = []
    at = _after(text, at + 1)
    while text[at] not in "}]":
        start, key = at, None
        if is_object:
            key, at = _decoder.raw_decode(text, at)
            at = _after(text, _after(text, at) + 1)
        value = at
        _value, at = _decoder.raw_decode(text, at)
        found.append(_Part(key, start, value, at))
        at = _after(text, at)
        if text[at] == ",":
            at = _after(text, at + 1)
    return found


def _member(text: str, at: int, key: str) -> _Part | None:
    """The member of that name.

    Raises:
        Unreadable: there are several, of which readers of JSON see only the last.
    """
    found = [part for part in _parts(text, at) if part.key == key]
    if len(found) > 1:
        raise Unreadable(f"it has {key!r} twice")
    return found[0] if found else None


def _end(text: str, at: int) -> int:
    return int(_decoder.raw_decode(text, at)[1]) - 1


def _added(text: str, at: int, key: str | None, value: Any, depth: int) -> str:
    """The text with one more member or element at the end of what begins there."""
    parts = _parts(text, at)
    end = _end(text, at)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = "\n" in text[at:end] if parts else "\n" in text.strip() or text.strip() == "{}"
    name = f"{json.dumps(key)}: " if key is not None else ""
    if not lines:
        written = f"{name}{json.dumps(value)}"
        return (
            text[: parts[-1].end] + f", {written}" + text[parts[-1].end :] if parts else _filled(text, at, end, written)
        )
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    own = _indent(text, parts[-1].start) if parts else None
    inner = own if own is not None else unit * depth
    block = json.dumps(value, indent=unit).replace("\n", newline + inner)
    if parts:
        return text[: parts[-1].end] + f",{newline}{inner}{name}{block}" + text[parts[-1].end :]
    outer = inner.removesuffix(unit)
    return _filled(text, at, end, f"{newline}{inner}{name}{block}{newline}{outer}")


def _filled(text: str, at: int, end: int, inside: str) -> str:
    return text[: at + 1] + inside + text[end:]


def _indent(text: str, at: int) -> str | None:
    """What stands before it on its line; None where that is not only space."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip() else None


def _removed(text: str, at: int, part: _Part) -> str:
    """The text without one part of what begins there."""
    parts = _parts(text, at)
    number = next(number for number, one in enumerate(parts) if one.start == part.start)
    if len(parts) == 1:
        return text[: at + 1] + text[_end(text, at) :]
    if number:
        return text[: parts[number - 1].end] + text[part.end :]
    return text[: part.start] + text[parts[1].start :]
