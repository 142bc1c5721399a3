"""The text in a message's content, whatever shape the content has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def extract_text(content: Any) -> str:
    r"""The text of a content: a string as it is, text blocks joined with newlines, else nothing.

    Takes what the format has been seen to hold: a string, a list of blocks (as structs or as plain
    objects, with bare strings among them), one block, a whole message or entry, or nothing.

    >>> extract_text("hello")
    'hello'
    >>> extract_text([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])
    'a\nb'
    >>> extract_text(None)
    ''
    """
    return "\n".join(_texts(content))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for item in content:
            if isinstance(item, str):
                yield item
            else:
                yield from _block_text(item)
    elif content is not None:
        inner = _get(content, "message", None)
        holder = content if inner is None else inner
        nested = _get(holder, "content", None)
        if _get(holder, "type", None) in (None, "message", "user", "assistant") and nested is not None:
            yield from _texts(nested)
        else:
            yield from _block_text(holder)


def _block_text(block: Any) -> Iterator[str]:
    text = _get(block, "text", None)
    if isinstance(text, str) and _get(block, "type", "text") == "text":
        yield text


def _get(thing: Any, name: str, default: Any) -> Any:
    return thing.get(name, default) if isinstance(thing, dict) else getattr(thing, name, default)
