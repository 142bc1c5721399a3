"""Searches by a sign that is rare in text: the processor looks at many bytes at once for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 2048
"""A window that has more of a sign than this is faster searched by a pattern alone."""


def by_sign(pattern: re.Pattern[bytes], sign: bytes, view: bytes, back: int = 0) -> Iterator[re.Match[bytes]]:
    """What `finditer` gives, for a pattern that has the sign `back` bytes behind its beginning."""
    at = view.find(sign, back)
    for _ in range(MOST):
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


def at_places(pattern: re.Pattern[bytes], view: bytes, places: list[int]) -> Iterator[re.Match[bytes]]:
    """What `finditer` gives, for a pattern that can only begin at these places."""
    done = 0
    for at in places:
        found = pattern.match(view, at) if at >= done else None
        if found is not None:
            done = found.end()
            yield found
