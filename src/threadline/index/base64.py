"""Base64 in the middle of text: no words, and more bytes than all words around it."""

from __future__ import annotations

import re

RUN = 256
"""How long a run of base64 must be to be left out: what is shorter may be a name, and costs little."""

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
_WHOLE_RUN = re.compile("[A-Za-z0-9+/=_-]+")
# As certificates and mail have it: lines of one width; the last may be shorter, but then no shorter than a long word.
_WRAPPED = re.compile("(?:[A-Za-z0-9+/]{60,76}\r?\n){3,}(?:[A-Za-z0-9+/]{16,}={0,2})?")
_DIVIDERS = re.compile("[/_+-]")
_MIXED = ((str.isupper, RUN // 8), (str.islower, RUN // 8), (str.isdigit, RUN // 20))


def without_base64(text: str) -> str:
    """The text with a space in place of each long run of base64.

    Looks at the end of a window first, where in most text a space is near: what lies before it needs no look.
    """
    kept: list[str] = []
    start = at = 0
    last = len(text) - RUN
    while at <= last:
        space = text.rfind(" ", at, at + RUN)
        if space >= 0:
            at = space + 1
            continue
        window = text[at : at + RUN]
        other = len(window.rstrip(_ALPHABET))
        found = None
        if not other:
            found = _WHOLE_RUN.match(text, at) if _is_random(window) else None
            at += 0 if found else RUN
        else:
            at += other
            found = _WRAPPED.match(text, at) if window[other - 1] == "\n" else None
        if found:
            kept.append(text[start:at])
            start = at = found.end()
    return " ".join([*kept, text[start:]]) if kept else text


def _is_random(window: str) -> bool:
    """Whether it is no path and no ruler: letters of both cases and digits all over, or nothing that divides words."""
    if not _DIVIDERS.search(window):
        return True
    return all(sum(map(is_it, window)) >= few for is_it, few in _MIXED)
