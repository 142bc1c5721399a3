"""Cheap byte searches that decide which rules a window needs.

Words and signs that few texts contain are located once for all rules that need them. A search for one rare byte lets
the processor skip many bytes at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, AnyStr

# The letters behind the shared one come first: they tell at once that it is none of the words.
_WORDS_BY_LETTER = (
    re.compile(rb"b(?:earer|asic|le(?<=airtable)|sys(?<=contribsys)|ox(?<=dropbox)|y (?<=identified by ))"),
    re.compile(rb"u(?:thoriz(?<=authoriz)|dant(?<=cloudant)|ent(?<=confluent)|mo(?<=sumo))"),
)
COOKIE, LINKEDIN = b"ie", b"edin"
BEARER, BASIC, AIRTABLE, CONTRIBSYS, DROPBOX = b"bearer", b"basic", b"ble", b"bsys", b"box"
AUTHORIZATION, CLOUDANT, CONFLUENT, SUMO = b"uthoriz", b"udant", b"uent", b"umo"
IDENTIFIED_BY, SUDO, SECURE_STRING = b"by ", b"-s", b"-securestring"
BEGIN, END, PRIVATE_LINES = b"-begin", b"-end", b"-lines: "
CHPASSWD, NETRC = b"asswd", b"assword"


class RareMarks:
    """What a window has of them.

    `words` are the words, each by some of its letters; the rest are places: of `hooks` in an address, of the dashes
    that may begin the `options` of a command, and of dashes and underscores that may end the beginning of a form.
    """

    __slots__ = ("dashes", "hooks", "options", "underscores", "words")

    def __init__(self, low: bytes) -> None:
        self.words = {word for pattern in _WORDS_BY_LETTER for word in pattern.findall(low)}
        self.hooks: list[int] = []
        self.options: list[int] = []
        self.dashes: list[int] = []
        self.underscores: list[int] = []

    def add(self, found: re.Match[bytes]) -> None:
        """Notes a word that another search has found; its last group is the word without its first letter."""
        if found.end() - found.start() > len(b"ks"):
            self.words.add(found[found.lastindex or 0])
        else:
            self.hooks.append(found.start() - len(b"hoo"))


MAX_SIGNS = 2048
"""A window that has more of a sign than this is faster searched by a pattern alone."""


def match_at_sign(pattern: re.Pattern[bytes], sign: bytes, view: bytes, back: int = 0) -> Iterator[re.Match[bytes]]:
    """What `finditer` gives, for a pattern that has the sign `back` bytes behind its beginning."""
    at = view.find(sign, back)
    for _ in range(MAX_SIGNS):
        if at < 0:
            return
        found = pattern.match(view, at - back)
        if found is None:
            at = view.find(sign, at + 1)
        else:
            yield found
            at = view.find(sign, found.end() + back)
    if at >= 0:
        yield from pattern.finditer(view, at - back)


def match_at_places(pattern: re.Pattern[bytes], view: bytes, places: list[int]) -> Iterator[re.Match[bytes]]:
    """What `finditer` gives, for a pattern that can only begin at these places."""
    done = 0
    for at in places:
        found = pattern.match(view, at) if at >= done else None
        if found is not None:
            done = found.end()
            yield found


def trie_pattern(words: Iterable[AnyStr]) -> AnyStr:
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
    made: AnyStr = _node_pattern(root, empty)
    return made


def _node_pattern(root: dict[Any, Any], empty: Any) -> Any:
    """Down to where words part in one step: a word may have thousands of letters."""
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
