"""Many words as one expression that tells by the first letters which of them are left."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, AnyStr


def trie(words: Iterable[AnyStr]) -> AnyStr:
    """An expression for the words; of several that begin alike, the longest is found.

    >>> trie(["ab", "ac", "d"])
    '(?:d|a(?:c|b))'
    """
    root: dict[Any, Any] = {}
    empty: Any = None
    for word in words:
        node = root
        empty = word[:0]
        for at in range(len(word)):
            node = node.setdefault(word[at : at + 1], {})
        node[empty] = {}
    made: AnyStr = _expression(root, empty)
    return made


def _expression(root: dict[Any, Any], empty: Any) -> Any:
    """Down to where words part in one step: a word may have thousands of letters."""
    texts = isinstance(empty, str)
    parts = []
    for first, below in sorted(root.items(), reverse=True):
        run, node = first, below
        while len(node) == 1 and empty not in node:
            ((letter, node),) = node.items()
            run += letter
        parts.append(re.escape(run) + (_expression(node, empty) if node and set(node) != {empty} else empty))
    if len(parts) == 1:
        return parts[0]
    return f"(?:{'|'.join(parts)})" if texts else b"(?:" + b"|".join(parts) + b")"
