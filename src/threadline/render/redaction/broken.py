"""Credentials of known forms that line ends have broken: by a terminal, in a diff, in a quotation, in strings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import product

from threadline.render.redaction.formed import FORMATS, SHORTEST, formed_in
from threadline.render.redaction.rare import Rare
from threadline.render.redaction.signs import at_places
from threadline.render.redaction.span import Span
from threadline.render.redaction.trie import trie

_WORD = rb"(?:[A-Za-z0-9_+/.~=-]|[:$|](?=[A-Za-z0-9]))"
_PIECE = re.compile(_WORD + rb"++")
_BLANK = rb"(?:[ \t]|\\+t)"
_BREAK = rb"(?:\\+r)?\\+n|\r?\n"
# What may stand before a line: blanks, its number and what parts that from the line; then the sign of a diff or prompt.
_GUTTER = _BLANK + rb"{0,64}(?:[0-9]{1,6}(?:" + _BLANK + rb"{1,8}|[|:?\x80-\xff]{1,8})" + _BLANK + rb"{0,8})?"
# Two strings that are put together are one value, whether they stand on one line or on two.
_JOINT = re.compile(
    rb"(?:(\\*[\"'`])[ \t]{0,8}(?:[+.\\]|\\\\)?[ \t]{0,8}(?:"
    + _BREAK
    + rb")"
    + _GUTTER
    + rb"[+>|-]?[ \t]{0,64}[+.]?[ \t]{0,8}\1"
    rb"|(\\*[\"'`])[ \t]{0,8}[+.][ \t]{0,8}\2"
    rb"|[ \t]{0,16}(?:\\(?=\r?\n))?(?:" + _BREAK + rb")" + _GUTTER + rb"(?:[>|][ \t]{0,64})?)"
)
_SIGN = re.compile(rb"[+-][ \t]{0,64}")
# All that a joint is made of, and the signs behind it.
_JOINT_SIGNS = bytes(sorted(b" \t\r\nnrt\\\"'`+.>|:?-0123456789")) + bytes(range(0x80, 0x100))
_MAY_JOIN = re.compile(rb"[ \t]{0,16}(?:\\+[nr\r\n]|[\r\n])|\\*[\"'`][ \t]{0,8}(?:[+.\r\n]|\\+[nr\r\n])")
# How that may begin: what stands behind most runs is none of these, which one look tells.
MAY_GO_ON = frozenset(
    bytes(two)
    for firsts, seconds in (
        (b" \t", b" \t\\\r\n"),
        (b"\\", b"\\nr\r\n\"'`"),
        (b"\r\n", bytes(range(256))),
        (b"\"'`", b" \t+.\r\n\\"),
    )
    for two in product(firsts, seconds)
) | {b"\r", b"\n"}
_MARGIN = b" \tn+->|:?\x92"
_ADDS = frozenset((b"+", b".", b"n", b"\n"))
_QUOTES = frozenset(b"\"'`")
# The same for what stands before: most quotes stand behind a sign that puts no strings together, and most words behind
# another one of the same line.
MAY_HAVE_BEGUN = frozenset(
    bytes(two)
    for firsts, seconds in (
        (b"+.n\n \t\\", bytes(_QUOTES)),
        (_JOINT_SIGNS, _MARGIN),
        (bytes(range(256)), b"\n"),
    )
    for two in product(firsts, seconds)
)
_BACKWARDS = re.compile(rb"[A-Za-z0-9_+/.~=:$|-]{1,160}")
_NEAR = 32
_FAR = 160
_CONTEXT = 80
_MOST_PIECES = 64
_LONGEST = 8192
_ESCAPES = frozenset(b"nrt")
_BACKSLASH = 0x5C
_PLAIN = re.compile(rb"[a-z_./+~=-]{4,}|[A-Za-z][a-z]*[.:]?|[A-Za-z]+\.[a-z]{1,5}")
_TRAILS = re.compile(rb"[._/+~=-]*\Z")
_ALNUM = re.compile(rb"[A-Za-z0-9]")
_DIGIT = re.compile(rb"[0-9]")
_MOST_SHORT = 36
_ENDS_LINE = re.compile(rb"[ \t]*(?:\\*[\"'`]|\\+[nr]|[\r\n]|\Z)")
_REST = rb"[A-Za-z0-9_-]{0,%d}(?=%s)" % (SHORTEST - 1, _MAY_JOIN.pattern)


def _ends(sign: bytes) -> list[bytes]:
    """How the beginnings of forms end, of those that end with a sign."""
    fours = {rule.anchor[-4:].encode() for rule in FORMATS if len(rule.anchor) > 3}  # noqa: PLR2004 - the others are here
    return [one for one in (*sorted(fours), b"sk-", b"hf_", b"re_") if one.endswith(sign)]


def _behind(ends: Collection[bytes]) -> bytes:
    """Looks back for any of the ends."""
    by_length = {length: trie(one for one in ends if len(one) == length) for length in {*map(len, ends)}}
    return (
        rb"(?:" + b"|".join(rb"(?<=" + by_length[length] + rb")" for length in sorted(by_length, reverse=True)) + rb")"
    )


def anchors(sign: bytes) -> bytes:
    """What tells of a sign in a text in lower case that it may end the beginning of a form that a line's end breaks."""
    ends = {one.lower() for one in _ends(sign)}
    # Two letters tell nearly all others apart, in one look; of most dashes, which are an id's, one letter tells.
    letters = b"".join(sorted({re.escape(one[-2:-1]) for one in ends}))
    one_letter = rb"(?<=[" + letters + rb"]-)" if sign == b"-" else b""
    return one_letter + _behind({one[-3:] for one in ends}) + _behind(ends) + rb"(?=" + _REST + rb")"


# Beginnings of forms so short that both halves of one can be shorter than what is looked at.
_DASH, _UNDERSCORE = (re.compile(sign + _behind(_ends(sign)) + _REST) for sign in (b"-", b"_"))
_OF_AWS = re.compile(rb"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9]|C[0-9a-f]{4})" + _REST)
_LONGEST_ANCHOR = max(len(rule.anchor) for rule in FORMATS)
_ANCHOR_BACKWARDS = re.compile(rb"[A-Za-z0-9_.-]{0,%d}" % _LONGEST_ANCHOR)


class Broken:
    """Finds credentials that go on behind a line's end; each line is looked at once."""

    def __init__(self, view: bytes) -> None:
        self._view = view
        self._done = 0

    def at_run(self, start: int, end: int) -> Span | None:
        """The credential that a long run is a piece of, if a line's end has broken it.

        It is asked only where the run may go on behind its end, or may have begun before.
        """
        view = self._view
        if start < self._done:
            return None
        floor = self._done
        span = None
        if view[end : end + 2] in MAY_GO_ON and _MAY_JOIN.match(view, end) and _may_go_on(view, end):
            span = self._from(start)
        if span is None and start > 1 and view[start - 2 : start] in MAY_HAVE_BEGUN:
            before = _before(view, start, floor)
            span = self._from(before) if before >= 0 else None
        return span

    def short(self, seen: Rare) -> Iterator[Span]:
        """Those whose pieces are all short, by how they begin."""
        view = self._view
        for begins in (
            at_places(_DASH, view, seen.dashes),
            at_places(_UNDERSCORE, view, seen.underscores),
            _OF_AWS.finditer(view),
        ):
            self._done = 0
            for found in begins:
                if found.start() >= self._done:
                    back = _ANCHOR_BACKWARDS.match(view[max(0, found.start() - _LONGEST_ANCHOR) : found.start()][::-1])
                    span = self._from(found.start() - (back.end() if back else 0))
                    if span is not None:
                        yield span

    def _from(self, start: int) -> Span | None:
        """The credential in the pieces from here on: with the signs of a diff as a part of it, or without them."""
        view = self._view
        if start and view[start - 1] == _BACKSLASH and view[start] in _ESCAPES:
            start += 1
        for signs in (True, False):
            pieces, has_signs = _pieces(view, start, 2, without_signs=signs)
            if len(pieces) > 1 and not _PLAIN.fullmatch(view, *pieces[1]):
                pieces, has_signs = _pieces(view, start, _MOST_PIECES, without_signs=signs)
                # Behind one that has a length the next line may be a word, too.
                span = _joined(view, pieces) or (_joined(view, pieces[:2]) if len(pieces) > 2 else None)  # noqa: PLR2004
                self._done = max(self._done, span.end if span else pieces[-1][0])
                if span is not None:
                    return span
            if not has_signs:
                return None
        return None


def _may_go_on(view: bytes, end: int) -> bool:
    """Whether the next line begins with what can be a piece: most begin with a plain word or a sign."""
    joint = _JOINT.match(view, end)
    piece = _PIECE.match(view, joint.end()) if joint is not None else None
    return piece is not None and _PLAIN.fullmatch(view, *piece.span()) is None


def _line_before(view: bytes, start: int) -> int:
    """Where the line before ends, or the string before, if only a margin stands between that and a run; or -1."""
    if view[start - 1] in _QUOTES:
        return start - 1 if view[max(0, start - 24) : start - 1].rstrip(b" \t\\")[-1:] in _ADDS else -1
    near = max(0, start - _NEAR)
    end = max(view.rfind(b"\n", near, start), view.rfind(b"\\n", near, start))
    return -1 if end < 0 or view[end:start].translate(None, _JOINT_SIGNS) else end


def _before(view: bytes, start: int, floor: int) -> int:
    """Where the piece begins that ends the line before, or the string before; -1 where there is none."""
    end = _line_before(view, start)
    if end <= floor:
        return -1
    head = view[max(floor, end - _FAR) : end].rstrip(b" \t\r\n\\\"'`+")
    word = _BACKWARDS.match(head[::-1])
    if word is None or not word.end() or _PLAIN.fullmatch(word[0][::-1]):
        return -1
    behind = end - len(view[max(floor, end - _FAR) : end]) + len(head)
    joint = _JOINT.match(view, behind)
    if joint is None or view[joint.end() : start].strip(b"+- \t"):
        return -1
    return behind - word.end()


def _pieces(view: bytes, start: int, most: int, *, without_signs: bool) -> tuple[list[tuple[int, int]], bool]:
    """The pieces from a place on, each but the last up to the end of its line; and whether signs stood before any."""
    pieces: list[tuple[int, int]] = []
    has_signs = False
    at = start
    while len(pieces) < most and at - start < _LONGEST:
        piece = _PIECE.match(view, at)
        if piece is None:
            break
        pieces.append(piece.span())
        joint = _JOINT.match(view, piece.end())
        if joint is None:
            break
        at = joint.end()
        sign = _SIGN.match(view, at)
        if sign is not None:
            has_signs = True
            at = sign.end() if without_signs else at
    return pieces, has_signs


def _joined(view: bytes, pieces: list[tuple[int, int]]) -> Span | None:
    """The credential that the pieces are together and the first of them is not."""
    first = pieces[0][0]
    context = view[max(0, first - _CONTEXT) : first]
    text = context + b"".join(view[start:end] for start, end in pieces)
    found = formed_in(text, len(context), len(text))
    if found is None or found.start < len(context):
        return None
    while True:
        ends = _last_piece(pieces, found.end - len(context))
        if ends is None:
            return None
        index, used = ends
        start, stop = pieces[index]
        if _goes_on(view, start, used, stop):
            break
        # What it goes on with may be the next line's own: as much as stands before is one by itself, or none is.
        shorter = formed_in(text[: found.end - used], len(context), found.end - used)
        if shorter is None or shorter.start != found.start:
            return None
        found = shorter
    value = text[found.start : found.end]
    if not _DIGIT.search(value) and not found.kind.startswith("aws-"):
        return None
    begin = _place(pieces, found.start - len(context))
    return Span(begin, start + used, found.kind, value=value.decode("latin-1"))


def _last_piece(pieces: list[tuple[int, int]], length: int) -> tuple[int, int] | None:
    """In which piece it ends, and how much of that it takes; None where that is the first."""
    for index, (start, end) in enumerate(pieces):
        if length <= end - start:
            return (index, length) if index else None
        length -= end - start
    return None


def _place(pieces: list[tuple[int, int]], position: int) -> int:
    for start, end in pieces:
        if position < end - start:
            return start + position
        position -= end - start
    return pieces[-1][1]


def _goes_on(view: bytes, start: int, used: int, stop: int) -> bool:
    """Whether the beginning of a line can be the rest of a credential: the whole of a word that is no plain word."""
    rest = view[start : start + used]
    if not _TRAILS.match(view[start + used : stop]) or not _ALNUM.search(rest):
        return False
    if _PLAIN.fullmatch(rest):
        return len(rest) < 4 and _ENDS_LINE.match(view, stop) is not None  # noqa: PLR2004 - a few letters can be all
    return True
