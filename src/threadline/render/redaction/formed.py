"""Credentials that their form gives away, found in bytes: only at long runs of letters and digits is anything tried.

Nearly all text is passed over by one translation and one search; what is left are words of twenty letters and more,
most of which are ids and names that a glance tells apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction.formats import CLOUDS, CODE, MODELS
from threadline.render.redaction.formats_more import MONEY, TALK, WATCHING
from threadline.render.redaction.rule import Rule
from threadline.render.redaction.signs import by_sign
from threadline.render.redaction.span import Span
from threadline.render.redaction.trie import trie

FORMATS: tuple[Rule, ...] = (*CLOUDS, *CODE, *MODELS, *TALK, *MONEY, *WATCHING)
"""All kinds whose form gives them away, but private keys."""

SHORTEST = 18
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/.~"
_OF_BASE64 = _WORD.translate(None, b"_-.~")
_IN_WORD = bytes(0x41 if byte in _WORD else 0x20 for byte in range(256))
# Spelt out, not `A{18,}`: that has a prefix to search for, and is found many times faster.
_RUN = re.compile(b"A" * SHORTEST + b"A*+")
# Ids of any kind, and names and paths in lower case: no credential of the table looks so. The group is what is hex.
# What is joined to a word before it is not told by itself.
_DULL = re.compile(
    rb"(?<![:|$])(?:([0-9a-f-]++)|[a-z_./+-]++|(?:toolu|srvtoolu|msg|req|agent)_[0-9A-Za-z]++)(?![A-Za-z0-9_./+-])"
)
_FAR = 80
_JOINED_BACKWARDS = re.compile(rb"[\w.~:|$/+-]{1,80}")
JOINS = frozenset(b":|$")
_ENDS = frozenset(b"_.~:|$-")
_KEY = 3
_AZURE = re.compile(rb"Q~[A-Za-z0-9_~.-]{31,34}")
_AZURE_HEAD = 4
_ESCAPES = frozenset(b"nrtbf")
_UNICODE = re.compile(rb"u[0-9a-fA-F]{4}")
_HEX = frozenset(b"0123456789abcdefABCDEF")


class _Ready:
    """A rule as it is used: what it looks for in bytes, and its pattern, made when it is first needed."""

    __slots__ = ("_pattern", "alone", "anchor", "before", "kind", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.kind = rule.kind
        self.anchor = rule.anchor.encode()
        self.before = rule.before
        self.alone = rule.alone
        self._pattern: re.Pattern[bytes] | None = None

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The whole form."""
        if self._pattern is None:
            self._pattern = re.compile(self.rule.pattern.encode())
        return self._pattern


_Table = dict[bytes, list[_Ready]]


def _tables() -> tuple[_Table, _Table, dict[int, list[_Ready]]]:
    """The rules by the last letters of an anchor that ends a word, by the first of one that does not, by length."""
    tails: _Table = {}
    heads: _Table = {}
    lengths: dict[int, list[_Ready]] = {}
    for rule in map(_Ready, FORMATS):
        runs = rule.rule.runs
        if runs is not None:
            for length in range(runs[0], runs[1] + 1):
                lengths.setdefault(length, []).append(rule)
        elif rule.anchor[-1] in _ENDS:
            tails.setdefault(rule.anchor[-_KEY:], []).append(rule)
        else:
            heads.setdefault(rule.anchor[:_KEY], []).append(rule)
    return tails, heads, lengths


_TAILS, _HEADS, _LENGTHS = _tables()
# One look behind a letter that ends a word tells whether an anchor may end there; one look at the start of each word,
# whether one may begin.
_TAIL = re.compile(
    b"[_.~:|$-](?:"
    + b"|".join(
        b"(?<=" + trie(key for key in _TAILS if len(key) == length) + b")" for length in sorted({*map(len, _TAILS)})
    )
    + b")"
)
_HEAD = re.compile(b"(?:[A-Za-z0-9]*+[_.~:|$/+-])*?(" + trie(_HEADS) + b")")
_WORD_END = re.compile(rb"[A-Za-z0-9]*+[_.~:|$/+-]")
# The next word that is long, and those before it: tried where a word begins, each letter is looked at once.
_LONG_WORD = re.compile(rb"(?:[A-Za-z0-9_-]{0,23}+[^A-Za-z0-9_-])*+([A-Za-z0-9_-]{24,}+)")
_BACKSLASH, _PERCENT, _SPACE = b"\\% "
_IN_BASE64 = frozenset(b"+/")
_BASE64 = re.compile(rb"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9+/]{20}")


# How the names of ids end, before the `":"` that Claude Code writes between a name and its value.
_OF_IDS = frozenset(
    [b"uid", b"UID", b"_id", b'"id', b"ash", b"sha", *(bytes((letter,)) + b"Id" for letter in range(0x61, 0x7B))]
)


def looked_at(view: bytes) -> Iterator[tuple[int, int, bool]]:
    """The long runs of letters, digits and signs of base64 that are worth a look, and whether they are all hex."""
    dull = _DULL.match
    for run in _RUN.finditer(view.translate(_IN_WORD)):
        start = run.start()
        is_dull = dull(view, start)
        if is_dull is not None:
            if is_dull.lastindex and view[start - 6 : start - 3] not in _OF_IDS:
                yield start, run.end(), True
            continue
        end = run.end()
        before = view[start - 1] if start else _SPACE
        # What stands behind `\` or `%` is a part of an escape, and not of the word.
        if before == _BACKSLASH:
            start += 1 if view[start] in _ESCAPES else 5 if _UNICODE.match(view, start) else 0
        elif before == _PERCENT and view[start] in _HEX and view[start + 1] in _HEX:
            start += 2
        yield start, end, False


# Runs that are nothing: the same names and paths come again and again. A window's worth of them is remembered.
_NOTHING: set[bytes] = set()
_MOST_NOTHING = 4096
_SHORT = 128


def formed(view: bytes, start: int, end: int) -> Span | None:
    """The credential at a run, if its form is one of the table's."""
    before = view[start - 1] if start else _SPACE
    begin = start
    if before in JOINS:
        joined = _JOINED_BACKWARDS.match(view[max(0, start - _FAR) : start][::-1])
        begin = start - (joined.end() if joined else 0)
    run = view[begin:end]
    # A form may go on behind this sign: then the run is not all of it, and may be nothing elsewhere and something here.
    goes_on = view[end : end + 1] == b"="
    if run in _NOTHING and not goes_on:
        return None
    span = _formed(view, begin, start, end)
    if span is None and not goes_on and end - begin < _SHORT and start - begin < _FAR and before not in _IN_BASE64:
        if len(_NOTHING) > _MOST_NOTHING:
            _NOTHING.clear()
        _NOTHING.add(run)
    return span


def formed_in(view: bytes, start: int, end: int) -> Span | None:
    """The credential in a part of a view, whatever was met before."""
    joined = _JOINED_BACKWARDS.match(view[max(0, start - _FAR) : start][::-1]) if view[start - 1 : start] else None
    begin = start - (joined.end() if joined and view[start - 1] in JOINS else 0)
    return _formed(view, begin, start, end)


def _formed(view: bytes, begin: int, start: int, end: int) -> Span | None:
    """The same, without memory; from `begin` on there are words that are joined to the run."""
    at = begin
    # A long run of nothing but base64 has no sign that ends a word of a form.
    only_base64 = end - begin > _SHORT and not view[begin:end].translate(None, _OF_BASE64)
    while not only_base64 and (found := _TAIL.search(view, at, end)):
        at = found.end()
        span = _at_tail(view, at)
        if span:
            return span
    at = begin
    while found := _HEAD.match(view, at, end):
        span = _at_head(view, found.start(1))
        if span:
            return span
        word = _WORD_END.match(view, found.start(1), end)
        if word is None:
            break
        at = word.end()
    return _by_length(view, start, end)


def azure(view: bytes) -> Iterator[Span]:
    """Client secrets of Azure: the one form that has its marks in the middle."""
    for mark in by_sign(_AZURE, b"~", view, 1):
        start = mark.start() - _AZURE_HEAD
        if start >= 0 and re.fullmatch(rb"[A-Za-z0-9_~.]{3}[0-9]", view[start : mark.start()]):
            yield Span(start, mark.end(), "azure-client-secret")


def _at_tail(view: bytes, at: int) -> Span | None:
    for length in (_KEY, _KEY - 1):
        for rule in _TAILS.get(view[max(0, at - length) : at], ()):
            begin = at - len(rule.anchor)
            if begin >= 0 and view.startswith(rule.anchor, begin):
                found = _matched(rule, view, begin)
                if found:
                    return found
    return None


def _at_head(view: bytes, at: int) -> Span | None:
    for length in (_KEY, _KEY - 1):
        for rule in _HEADS.get(view[at : at + length], ()):
            if view.startswith(rule.anchor, at):
                found = _matched(rule, view, at)
                if found:
                    return found
    return None


def _by_length(view: bytes, start: int, end: int) -> Span | None:
    at = start
    while word := _LONG_WORD.match(view, at, end):
        first, at = word.span(1)
        rules = _LENGTHS.get(at - first)
        if rules is None:
            continue
        joined = first > 0 and view[first - 1] in JOINS
        for rule in rules:
            found = _matched(rule, view, first) if joined or not rule.before else None
            if found:
                return found
    return None


def _matched(rule: _Ready, view: bytes, at: int) -> Span | None:
    """The rule's credential, where it is one and reaches `at`."""
    pattern = rule.pattern
    found = pattern.match(view, at)
    if found is None and rule.before:
        found = pattern.search(view, max(0, at - rule.before), at + 400)
        if found is None or not found.start() <= at < found.end():
            return None
    if found is None or (rule.alone and not stands_alone(view, found.start())):
        return None
    return Span(found.start(), found.end(), rule.kind)


def stands_alone(view: bytes, at: int) -> bool:
    """Whether no letter or digit stands before, but for one that belongs to an escape; and it is not within base64."""
    before = view[max(0, at - 2) : at]
    if before and before[-1] in _IN_BASE64 and _BASE64.fullmatch(view, max(0, at - 20), at):
        return False
    if not before or not before[-1:].isalnum():
        return True
    return before[:1] == b"\\" or view[max(0, at - 3) : at - 2] == b"%" or view[max(0, at - 6) : at - 4] == b"\\u"
