"""Find tokens whose halves are assigned to variables, or to one variable one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.redact.rules.formats import FORMATS, Span
from threadline.redact.rules.patterns import compile_lazily, trie_pattern
from threadline.redact.rules.prefilter import RareMarks, gate
from threadline.redact.rules.tokens import find_token_uncached

_MIN_ANCHOR = 3
_ANCHORS = {anchor.encode() for rule in FORMATS for anchor in rule.anchors if len(anchor) >= _MIN_ANCHOR}
_QUOTE = rb"\\?[\"'`]?"
_VALUE = rb"([A-Za-z0-9_+/.~=-]{2,400})(?![A-Za-z0-9_+/.~=-])"
_FIRST_HALF = compile_lazily(
    rb"=[ \t]?+[\"'`]?+(?=" + trie_pattern(_ANCHORS) + rb")" + _VALUE + rb"(?=\\?[\"'`;,]|\s|\\n|\Z)"
)
# Most values that start with an anchor are plain names, such as `path`.
_PLAIN_NAME = compile_lazily(rb"[a-z_.]+")
_PLAIN_ANCHORS = {anchor for anchor in _ANCHORS if not anchor.strip(b"abcdefghijklmnopqrstuvwxyz_.")}
_GATE = gate(
    rb"=[ \t]?[\"'`]?(?:"
    + (trie_pattern(_ANCHORS - _PLAIN_ANCHORS) + rb"|" + trie_pattern(_PLAIN_ANCHORS) + rb"[a-z_.]*[A-Z0-9+/~=-])")
    + rb"[A-Za-z0-9_+/.~=-]*(?:[\\\"'`;,\t-\r ]|\z)"
)
_NAME_BACKWARDS = compile_lazily(rb"[ \t]?([A-Za-z0-9_]{1,40})")
_ASSIGN = rb"[ \t]{0,4}:?=[ \t]{0,4}"
_OPERATOR = rb"[ \t]?(?:\+|\.\.?|\|\||&|<>)[ \t]?"
_NO_LETTER = rb"(?<![A-Za-z0-9_])"
_NAME = rb"([A-Za-z_]\w{0,40})"
_REACH = 1200
_NAME_REACH = 48
_MAX_HALVES = 64
_MIN_KNOWN = 12


def find_joined_variables(view: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find both halves of tokens of a known format.

    The second half is appended to the variable (`T+=…`, `T="$T…"`), or it is the value of another variable, and both
    are used next to each other (`f"{a}{b}"`, `$a$b`, `a + b`).
    """
    for number, match in enumerate(_FIRST_HALF.finditer(view) if _GATE in marks.gates else ()):
        if number >= _MAX_HALVES:
            return
        before = _NAME_BACKWARDS.match(view[max(0, match.start() - _NAME_REACH) : match.start()][::-1])
        if before is None or _PLAIN_NAME.fullmatch(match[1]):
            continue
        first = match.span(1)
        second = _second_half(view, before[1][::-1], match.start(), match.end())
        if second is None:
            continue
        joined = view[slice(*first)] + view[slice(*second)]
        token = find_token_uncached(joined, 0, len(joined))
        if token is None or token.start or token.end <= first[1] - first[0] or view[slice(*first)] in _ANCHORS:
            continue
        for start, end in (first, second):
            yield Span(start, end, token.kind, local_only=end - start < _MIN_KNOWN)


def _second_half(view: bytes, name: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Where the text is that the value of a variable is joined to."""
    stop = end + _REACH
    # Compiling the patterns of a name takes longer than this search, and most variables are not used nearby.
    if view.find(name, end, stop) < 0:
        return None
    word = re.escape(name)
    ways = (
        rb"[ \t]?[+.]=[ \t]?" + _QUOTE,
        _ASSIGN + _QUOTE + rb"\$\{?" + word + rb"\}?",
        _ASSIGN + rb"\$?" + word + _OPERATOR + _QUOTE,
    )
    appended = re.compile(_NO_LETTER + word + rb"(?:" + b"|".join(ways) + rb")" + _VALUE).search(view, end, stop)
    if appended is not None:
        return appended.span(1)
    uses = (
        rb"\{" + word + rb"\}[$#]?\{" + _NAME + rb"\}",
        rb"\$\{?" + word + rb"\}?\$\{?" + _NAME,
        _NO_LETTER + word + _OPERATOR + rb"\$?" + _NAME + rb"(?![\w(.])",
    )
    use = re.compile(b"|".join(uses)).search(view, end, stop)
    if use is None:
        return None
    assignment = re.compile(_NO_LETTER + re.escape(use[use.lastindex or 1]) + _ASSIGN + _QUOTE + _VALUE)
    other = assignment.search(view, end, use.start()) or assignment.search(view, max(0, start - _REACH), start)
    return other.span(1) if other is not None else None
