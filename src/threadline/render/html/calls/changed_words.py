"""Changed words: what differs inside two lines of which one took the other's place, where that is cheap to find."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST, _MOST_WORDS = 240, 100
_LIKE = 0.4
"""Lines less alike than this are different lines, and marking words in them would mark all of them."""
_MOST_MARKS = 4

Span = tuple[int, int]
"""From the first character that changed to before the first that did not."""


def changed_words(old: str, new: str) -> tuple[list[Span], list[Span]] | None:
    """Where two lines differ, in each of them; None where they are long, unlike or differ in many places.

    >>> changed_words("a = 1", "a = 10")
    ([(4, 5)], [(4, 6)])
    """
    if len(old) > _LONGEST or len(new) > _LONGEST:
        return None
    before, after = _WORD.findall(old), _WORD.findall(new)
    if len(before) > _MOST_WORDS or len(after) > _MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _LIKE:
        return None
    changes = [(i, j, k, m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
    if len(changes) > _MOST_MARKS:
        return None
    gone = [_span(before, i, j) for i, j, _, _ in changes if j > i]
    come = [_span(after, k, m) for _, _, k, m in changes if m > k]
    return gone, come


def _span(words: list[str], start: int, stop: int) -> Span:
    first = sum(map(len, words[:start]))
    return first, first + sum(map(len, words[start:stop]))
