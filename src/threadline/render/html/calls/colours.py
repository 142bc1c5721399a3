"""Colours with a bound: of code that would take too many elements, comments and strings keep theirs longest."""

from __future__ import annotations

import re
from collections import Counter

from markupsafe import Markup

from threadline.render.html.code import coloured

MOST = 90
"""Elements of one piece of code on a page that is not whole."""
_SPAN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
_LEAST_FIRST = ("b", "n", "d", "f", "t", "k", "s", "add", "del", "c")


def colours(code: str, language: str | None, most: int | None = MOST) -> Markup:
    """Code as HTML with at most so many elements (None: as many as it takes)."""
    drawn = coloured(code, language)
    if most is None or drawn.count("<span") <= most:
        return drawn
    counts = Counter(found[1] for found in _SPAN.finditer(drawn))
    left, dropped = sum(counts.values()), set[str]()
    for name in _LEAST_FIRST:
        if left <= most:
            break
        dropped.add(name)
        left -= counts[name]
    # Spans of code do not nest, and what they hold is escaped already: taking one away leaves its text as it is.
    return Markup(_SPAN.sub(lambda found: found[2] if found[1] in dropped else found[0], drawn))  # noqa: S704
