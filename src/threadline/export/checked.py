"""The second look: what a finished file says is searched once more for what must not be shared."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from threadline.errors import Error
from threadline.export.own_words import OWN
from threadline.export.vocabulary import vocabulary
from threadline.render.figures import count
from threadline.render.redaction import Finding, Redactor

_STYLE = re.compile(r"<style>.*?</style>|<script>.*?</script>", re.DOTALL)
_DATA = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
# What stands within a word or a line of code, and so does not part it; elements of ours that have a class begin a word.
_INLINE = re.compile(
    r"</(?:span|b|i|em|strong|code|a|s|mark)>|<(?:em|strong|code|s|mark)>|<a href[^>]*>"
    r'|<span class="(?:[a-z]|add|del)">'
)
_TAG = re.compile(r"<[^>]*>")
_SAID = re.compile(r' (?:title|href|alt|aria-label|datetime|id|data-[a-z]+)="([^"]*)"')
_PICTURE = re.compile(r' src="data:[^"]*"')
_DEEP = 300
_PIECE = 1 << 20
_ACROSS = 1 << 14
"""How many characters are looked at again with what follows them: the longest private key is shorter."""


class Unsafe(Error):
    """A file still holds what must not be shared; it was not written."""


def refuse(found: list[Finding]) -> None:
    """Say of what kinds and how many things are left, and never what they are.

    Raises:
        Unsafe: there are any.
    """
    if not found:
        return
    counts = Counter[str]()
    for one in found:
        counts[one.kind] += one.count
    told = ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))
    places = sorted({one.place for one in found})
    where = ", ".join(places[:3]) + (f" and {len(places) - 3:,} more" if len(places) > 3 else "")  # noqa: PLR2004 - a few
    raise Unsafe(
        f"Nothing was written: {count(sum(counts.values()), 'thing')} that must not be shared would be left in {where}"
        f" ({told}). Hide what it is with --hide WORD, leave parts out (--tools none, --from, --to),"
        " or give it out as it is with --no-redact."
    )


def leftovers(redactor: Redactor, form: str, text: str, place: str) -> list[Finding]:
    """What a file of this form still says that must not be shared; our own words do not count."""
    found: list[Finding] = []
    for said in _says(form, text):
        found += redactor.check(said, place, OWN)
    return found


class Looking:
    """The second look at a file of HTML that comes in pieces; what would stand across two of them is seen, too."""

    def __init__(self, redactor: Redactor, place: str) -> None:
        self._redactor = redactor
        self._place = place
        self._waiting: list[str] = []
        self._size = 0
        self._before = ""
        self._found = Counter[tuple[str, str]]()

    def more(self, piece: str) -> None:
        """Look at another piece, as soon as it is worth it."""
        self._waiting.append(piece)
        self._size += len(piece)
        if self._size >= _PIECE:
            self._look()

    def end(self) -> list[Finding]:
        """Look at what is left; all that was found."""
        self._look()
        return [Finding(kind, self._place, made, many) for (kind, made), many in self._found.items() if many > 0]

    def _look(self) -> None:
        *others, text = _of_html("".join(self._waiting))
        self._waiting, self._size = [], 0
        for one in others:
            self._found.update(self._counted(one))
        joined = self._before + text
        self._found.update(self._counted(joined))
        self._found.subtract(self._counted(self._before))
        cut = joined.find("\n", max(0, len(joined) - _ACROSS))
        self._before = joined[cut + 1 :] if cut >= 0 else joined[-_ACROSS:]

    def _counted(self, text: str) -> dict[tuple[str, str], int]:
        return {(one.kind, one.placeholder): one.count for one in self._redactor.check(text, self._place, OWN)}


def _says(form: str, text: str) -> Iterator[str]:
    """The texts that a reader of the file could find in it."""
    if form == "html":
        yield from _of_html(text)
    elif form == "json":
        yield "\n".join(_texts(json.loads(text)))
    elif form == "jsonl":
        for line in text.split("\n"):
            try:
                yield "\n".join(_texts(json.loads(line)))
            except (ValueError, RecursionError):
                yield line
    elif form == "md":
        yield html.unescape(text.replace("\\<", "<"))
    else:
        yield text


def _of_html(text: str) -> Iterator[str]:
    for data in _DATA.findall(text):
        yield "\n".join(_texts(json.loads(data)))
    bare = _PICTURE.sub("", _STYLE.sub("", _DATA.sub("", text)))
    yield html.unescape("\n".join(sorted(set(_SAID.findall(bare)))))
    yield html.unescape(_TAG.sub("\n", _INLINE.sub("", bare)))


def _texts(value: Any) -> Iterator[str]:
    """All texts of a tree, names that are not the format's own among them; what its fields call things is left out."""
    fixed = vocabulary()
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        key, one, depth = waiting.pop()
        if isinstance(one, str):
            if not fixed.is_fixed(key, one) and not (key in {"data", "base64"} and _is_base64(one)):
                yield one
        elif depth > _DEEP:
            continue
        elif isinstance(one, dict):
            yield from (name for name in one if name not in fixed.keys)
            waiting += [(name, inner, depth + 1) for name, inner in reversed(one.items())]
        elif isinstance(one, list):
            waiting += [(key, inner, depth + 1) for inner in reversed(one)]


def _is_base64(text: str) -> bool:
    return len(text) > 256 and re.fullmatch(r"[A-Za-z0-9+/=_\s-]+", text) is not None  # noqa: PLR2004 - a picture's, as a rule
