"""Secrets in a tree of lists and objects: by the texts in it, and by their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from threadline.render.redaction.assigned import is_credible, kind_of
from threadline.render.redaction.finder import disjoint, spans
from threadline.render.redaction.naming import is_secret

_PLAIN = re.compile(r"[A-Za-z_$][\w$-]*\Z")


def found_in(value: Any, *, personal: bool = False) -> Iterator[tuple[str, str, str]]:
    """All that a tree holds: the JSON path of the text it is in, its kind, and what it is.

    The last is for counting only, and must not be given out.
    """
    for path, key, text in texts(value):
        if key and is_secret(key) and is_credible(key, text, quoted=True):
            yield path, kind_of(key, text), text
            continue
        for _start, _end, span in disjoint(spans(text, personal=personal)):
            yield path, span.kind, text[span.start : span.end]


def texts(value: Any) -> Iterator[tuple[str, str, str]]:
    """All texts of a tree, each with its JSON path and its nearest key."""
    waiting: list[tuple[str, str, Any]] = [("$", "", value)]
    while waiting:
        path, key, one = waiting.pop()
        if isinstance(one, str):
            yield path, key, one
        elif isinstance(one, dict):
            for name, inner in reversed(one.items()):
                waiting.append((path + (f".{name}" if _PLAIN.match(name) else f"[{name!r}]"), name, inner))
            # A key is a text, too, and may be a path or an address.
            waiting += [(path, "", name) for name in one if len(name) > 16]  # noqa: PLR2004 - shorter ones are names
        elif isinstance(one, list):
            waiting += [(f"{path}[{at}]", key, one[at]) for at in range(len(one) - 1, -1, -1)]
