"""The strings in a value of any shape, as deep as it goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

# Keys whose values are words to nobody: what kind of thing it is, and what only the API can read.
_MUTE = frozenset({"type", "signature", "encrypted_content", "encrypted_index", "encrypted_stdout", "cache_control"})
_WHOLE = range(-(2**63), 2**64)


def strings(value: Any, *, everything: bool = False, mute: Collection[str] = ()) -> list[str]:
    """All strings in a value, in its order, each once; keys are left out, and what says that it is base64.

    Args:
        value: any mixture of objects, lists, structs and plain values.
        everything: numbers too, and nothing is left out for what its key is called.
        mute: keys of the outermost object whose values are left out.
    """
    found: dict[str, None] = {}
    never = () if everything else _MUTE
    # A stack of its own: a value may be nested deeper than Python calls.
    waiting = [one for key, one in _items(value) if key not in mute] if mute and _has_keys(value) else [value]
    waiting.reverse()
    while waiting:
        one = waiting.pop()
        if type(one) is str:
            if one:
                found[one] = None
        elif type(one) is list:
            waiting += reversed(one)
        elif _has_keys(one):
            waiting += reversed([inner for key, inner in _items(one) if key not in never])
        elif everything and (type(one) is float or (type(one) is int and one in _WHOLE)):
            found[str(one)] = None
    return list(found)


def _has_keys(value: Any) -> bool:
    return isinstance(value, dict | Struct)


def _items(holder: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(holder, Struct):
        yield from ((name, getattr(holder, name)) for name in holder.__struct_fields__)
    elif holder.get("type") != "base64":
        yield from holder.items()
