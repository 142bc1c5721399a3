"""Search a finished file once more for anything that must not be shared, and refuse it if something is left.

The text is extracted from HTML and JSON first, as a reader would see it. Messages say how many things of which kind
are left, and never what they are.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from threadline.errors import Error
from threadline.export.redaction_settings import OWN_WORDS, format_vocabulary
from threadline.model.text import count
from threadline.redact import Finding, Redactor

_STYLE_OR_SCRIPT = re.compile(r"<style>.*?</style>|<script>.*?</script>", re.DOTALL)
_JSON_SCRIPT = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
# What stands within a word or a line of code, and so does not part it; elements of ours that have a class begin a word.
_INLINE_TAG = re.compile(
    r"</(?:span|b|i|em|strong|code|a|s|mark)>|<(?:em|strong|code|s|mark)>|<a href[^>]*>"
    r'|<span class="(?:[a-z]|add|del)">'
)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE_TEXT = re.compile(r' (?:title|href|alt|aria-label|datetime|id|data-[a-z]+)="([^"]*)"')
_INLINE_IMAGE = re.compile(r' src="data:[^"]*"')
_MAX_DEPTH = 300
_CHECK_SIZE = 1 << 20
_OVERLAP = 1 << 14
"""How many characters are looked at again with what follows them: the longest private key is shorter."""


class UnsafeExport(Error):
    """A file still holds what must not be shared; it was not written."""


def raise_if_unsafe(found: list[Finding]) -> None:
    """Say of what kinds and how many things are left, and never what they are.

    Raises:
        Unsafe: there are any.
    """
    if not found:
        return
    counts = Counter[str]()
    for finding in found:
        counts[finding.kind] += finding.count
    told = ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))
    places = sorted({finding.place for finding in found})
    where = ", ".join(places[:3]) + (f" and {len(places) - 3:,} more" if len(places) > 3 else "")  # noqa: PLR2004 - a few
    raise UnsafeExport(
        f"Nothing was written: {count(sum(counts.values()), 'thing')} that must not be shared would be left in {where}"
        f" ({told}). Hide what it is with --hide WORD, leave parts out (--tools none, --from, --to),"
        " or give it out as it is with --no-redact."
    )


def find_leftovers(redactor: Redactor, form: str, text: str, place: str) -> list[Finding]:
    """What a file of this form still says that must not be shared; our own words do not count."""
    found: list[Finding] = []
    for said in _readable_texts(form, text):
        found += redactor.check(said, place, OWN_WORDS)
    return found


class StreamChecker:
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
        if self._size >= _CHECK_SIZE:
            self._look()

    def end(self) -> list[Finding]:
        """Look at what is left; all that was found."""
        self._look()
        return [Finding(kind, self._place, made, many) for (kind, made), many in self._found.items() if many > 0]

    def _look(self) -> None:
        *others, text = _html_texts("".join(self._waiting))
        self._waiting, self._size = [], 0
        for other in others:
            self._found.update(self._counted(other))
        joined = self._before + text
        self._found.update(self._counted(joined))
        self._found.subtract(self._counted(self._before))
        cut = joined.find("\n", max(0, len(joined) - _OVERLAP))
        self._before = joined[cut + 1 :] if cut >= 0 else joined[-_OVERLAP:]

    def _counted(self, text: str) -> dict[tuple[str, str], int]:
        return {(one.kind, one.placeholder): one.count for one in self._redactor.check(text, self._place, OWN_WORDS)}


def _readable_texts(form: str, text: str) -> Iterator[str]:
    """The texts that a reader of the file could find in it."""
    if form == "html":
        yield from _html_texts(text)
    elif form == "json":
        yield "\n".join(_json_texts(json.loads(text)))
    elif form == "jsonl":
        for line in text.split("\n"):
            try:
                yield "\n".join(_json_texts(json.loads(line)))
            except (ValueError, RecursionError):
                yield line
    elif form == "md":
        yield html.unescape(text.replace("\\<", "<"))
    else:
        yield text


def _html_texts(text: str) -> Iterator[str]:
    for data in _JSON_SCRIPT.findall(text):
        yield "\n".join(_json_texts(json.loads(data)))
    bare = _INLINE_IMAGE.sub("", _STYLE_OR_SCRIPT.sub("", _JSON_SCRIPT.sub("", text)))
    yield html.unescape("\n".join(sorted(set(_ATTRIBUTE_TEXT.findall(bare)))))
    yield html.unescape(_TAG.sub("\n", _INLINE_TAG.sub("", bare)))


def _json_texts(value: Any) -> Iterator[str]:
    """All texts of a tree, names that are not the format's own among them; what its fields call things is left out."""
    fixed = format_vocabulary()
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        key, one, depth = waiting.pop()
        if isinstance(one, str):
            if not fixed.is_fixed(key, one) and not (key in {"data", "base64"} and _is_base64(one)):
                yield one
        elif depth > _MAX_DEPTH:
            continue
        elif isinstance(one, dict):
            yield from (name for name in one if name not in fixed.keys)
            waiting += [(name, inner, depth + 1) for name, inner in reversed(one.items())]
        elif isinstance(one, list):
            waiting += [(key, inner, depth + 1) for inner in reversed(one)]


def _is_base64(text: str) -> bool:
    return len(text) > 256 and re.fullmatch(r"[A-Za-z0-9+/=_\s-]+", text) is not None  # noqa: PLR2004 - a picture's, as a rule
