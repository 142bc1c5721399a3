"""Build regular expressions that are compiled when they are first used, and searches that skip most of a text.

The rules have hundreds of patterns, and compiling them takes longer than scanning a short transcript. Most texts need
few of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, AnyStr, cast

_lazy_patterns: list[_LazyPattern] = []
_ATTRIBUTES = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split", "groups", "groupindex")


class _LazyPattern:
    """Compiles its pattern at the first use of one of its methods, and then has the methods of the compiled one."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        self.compile()
        return self.__dict__[name]

    def compile(self) -> None:
        """Compile the pattern, unless that is done."""
        if _ATTRIBUTES[0] not in self.__dict__:
            compiled = re.compile(self.pattern, self.flags)
            self.__dict__.update((attribute, getattr(compiled, attribute)) for attribute in _ATTRIBUTES)


def compile_lazily(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, at the first use. An invalid pattern is reported only then.

    >>> compile_lazily("[0-9]+").findall("1, 22")
    ['1', '22']
    """
    lazy = _LazyPattern(pattern, flags)
    _lazy_patterns.append(lazy)
    return cast("re.Pattern[AnyStr]", lazy)


def compile_patterns() -> None:
    """Compile the patterns of the rules that are loaded, for a program that has to answer quickly later."""
    while _lazy_patterns:
        _lazy_patterns.pop().compile()


class LiteralPattern:
    """A pattern whose every match contains a literal. A text without the literal is not searched.

    Looking for one character is many times faster than searching a pattern that starts with it.
    """

    __slots__ = ("_literal", "_pattern")

    def __init__(self, literal: str, pattern: str) -> None:
        self._literal = literal
        self._pattern = compile_lazily(pattern)

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        """All matches in the text."""
        return self._pattern.finditer(text) if self._literal in text else ()

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text."""
        return self._pattern.search(text) if self._literal in text else None


def find_runs(marked: bytes, length: int) -> Iterator[tuple[int, int]]:
    """Find the runs of at least so many `A`s between blanks, as (start, end). A search for many `A`s skips short words.

    >>> list(find_runs(b"AA AAAA   A AAA", 3))
    [(3, 7), (12, 15)]
    """
    find = marked.find
    shortest = b"A" * length
    start = find(shortest)
    while start >= 0:
        end = find(b" ", start + length)
        if end < 0:
            yield start, len(marked)
            return
        yield start, end
        start = find(shortest, end)


def trie_pattern(words: Iterable[AnyStr]) -> AnyStr:
    """A regular expression that matches the words, longest first.

    >>> trie_pattern(["ab", "ac", "d"])
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
    pattern: AnyStr = _node_pattern(root, empty)
    return pattern


def _node_pattern(root: dict[Any, Any], empty: Any) -> Any:
    """The pattern of a trie node. Unbranched runs are one step, because a word may have thousands of letters."""
    texts = isinstance(empty, str)
    parts = []
    for first, below in sorted(root.items(), reverse=True):
        run, node = first, below
        while len(node) == 1 and empty not in node:
            ((letter, node),) = node.items()
            run += letter
        parts.append(re.escape(run) + (_node_pattern(node, empty) if node and set(node) != {empty} else empty))
    if len(parts) == 1:
        return parts[0]
    return f"(?:{'|'.join(parts)})" if texts else b"(?:" + b"|".join(parts) + b")"
