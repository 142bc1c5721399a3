"""Find secrets that span lines: private keys, and tokens broken by a line end.

A private key may be complete, cut off at either end, inside a diff, with line numbers, or escaped in JSON. A token may
be broken by a terminal, in a diff, in a quotation, or between two string literals that are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from threadline.redact.rules import prefilter
from threadline.redact.rules.formats import FORMATS, Span
from threadline.redact.rules.patterns import compile_lazily, trie_pattern
from threadline.redact.rules.prefilter import RareMarks, gate, match_at_places, match_at_sign
from threadline.redact.rules.tokens import MIN_RUN, find_token_uncached

PRIVATE_KEY = "private-key"
_ARMOUR_LINE = compile_lazily(
    rb"----(?:-| )(BEGIN|END)[ A-Z0-9_-]{0,60}(?:PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)(?:-| )----"
)
_ARMOUR_MARKS = frozenset((prefilter.BEGIN, prefilter.END, prefilter.SSH2_BEGIN, prefilter.SSH2_END))
_CUT_END = compile_lazily(rb"----[- ]END[ A-Z0-9_-]{0,60}\Z|----[- ]E?N?D?\Z|-{1,4}\Z")
# How the body of a private key starts: OpenSSH's own format, and an ASN.1 sequence that starts with a version (RSA,
# DSA, PKCS 8, PKCS 12) or is the shorter one of an elliptic curve.
_OPENSSH_PREFIX = b"b3BlbnNzaC1rZXktdj"
_OPENSSH_BODY = compile_lazily(_OPENSSH_PREFIX + rb"[A-Za-z0-9+/=]{8,}")
_ASN1_BODY = compile_lazily(
    rb"M(?:II[A-Za-z0-9+/]{3,4}IBA[ADz]|(?:HcCAQEEI|HQCAQEEI|GkAgEBBD|IHcAgEBBE|IGHAgEAM|IG[1-4]AgEAM|IHuAgEAM"
    rb"|IGEAgEAM|C4CAQAwBQYDK2V|EcCAQAwBQYDK2V))[A-Za-z0-9+/=]{20,}"
)
_BODY_GATE = gate(_OPENSSH_PREFIX + rb"|" + _ASN1_BODY.pattern.removesuffix(rb"[A-Za-z0-9+/=]{20,}"))
_PUTTY_BODY = compile_lazily(rb"P(?:rivate-Lines: )[0-9]+")
_MAX_KEY = 64 * 1024
_LINE_BREAK = compile_lazily(rb"\r?\n|(?:\\+r)?\\+n")
# What may precede a line of a key: signs of a diff or quotation, a line number, and a separator.
_LINE_MARGIN = compile_lazily(rb"[\s+>|:\-\"'\x80-\xff?]*(?:[0-9]{1,6}[\s|:\x80-\xff?]+)?[+\-]?[ \t\"']*")
_BODY_LINE = compile_lazily(rb"(?![A-Za-z]?[a-z]{0,15}\Z)[A-Za-z0-9+/=]{1,128}[\"',\s+\\]*\Z")
_HEADER_LINE = compile_lazily(
    rb"(?:Proc-Type|DEK-Info|Version|Comment|Subject|Private-MAC|Hash|Charset|[Xx]-\w{1,40})[: ]"
)
_BODY_WORD = compile_lazily(rb"[A-Za-z0-9+/=]{16,}")
_MAX_BODY_LINE = 128
_LINE_SAMPLE = 1024
"""Bytes of a line that are checked before searching for its end."""
_MIN_DISTINCT = 16


def find_private_keys(view: bytes, rare_marks: RareMarks) -> Iterator[Span]:
    """Find private keys; `rare_marks` are the rare marks of the view."""
    armour_lines = list(_ARMOUR_LINE.finditer(view)) if not _ARMOUR_MARKS.isdisjoint(rare_marks.words) else []
    for index, mark in enumerate(armour_lines):
        is_begun = (
            index > 0
            and armour_lines[index - 1][1] == b"BEGIN"
            and _is_body(view, armour_lines[index - 1].end(), mark.start())
        )
        if mark[1] == b"BEGIN":
            yield Span(
                mark.start(),
                _key_end(view, mark.end(), armour_lines[index + 1] if index + 1 < len(armour_lines) else None),
                PRIVATE_KEY,
            )
        elif not is_begun:
            yield Span(
                _key_start(view, mark.start(), armour_lines[index - 1].end() if index else 0), mark.end(), PRIVATE_KEY
            )
    done = 0
    for body in _key_bodies(view, rare_marks):
        if body.start() >= done:
            done = _last_body_line(view, body.end(), len(view))
            yield Span(body.start(), done, PRIVATE_KEY)


def _key_bodies(view: bytes, marks: RareMarks) -> Iterator[re.Match[bytes]]:
    """Starts of key bodies, with or without an armour line before them."""
    if _BODY_GATE in marks.gates:
        yield from match_at_sign(_OPENSSH_BODY, _OPENSSH_PREFIX, view)
        yield from _ASN1_BODY.finditer(view)
    if prefilter.PRIVATE_LINES in marks.words:
        yield from _PUTTY_BODY.finditer(view)


def _is_body(view: bytes, start: int, end: int) -> bool:
    """Whether the text between two armour lines is a key, and not code or prose that mentions both."""
    if end - start > _MAX_KEY:
        return False
    for line in _LINE_BREAK.split(view[start:end]):
        bare = line[_LINE_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if bare.strip().count(b" ") > 1 and not _HEADER_LINE.match(bare):
            return False
    return True


def _key_end(view: bytes, at: int, following: re.Match[bytes] | None) -> int:
    """The end of the key whose armour starts before `at`: its END line, or the last line that can be part of it."""
    if following is not None and following[1] == b"END" and _is_body(view, at, following.start()):
        return following.end()
    return _last_body_line(view, at, following.start() if following is not None else len(view))


def _last_body_line(view: bytes, at: int, stop_at: int) -> int:
    """The end of the last line from `at` on that can be part of a key."""
    limit = min(stop_at, at + _MAX_KEY)
    end = at
    while at < limit:
        sample_end = min(limit, at + _LINE_SAMPLE)
        line_break = _LINE_BREAK.search(view, at, sample_end)
        if line_break is None and sample_end < limit and not _cannot_be_key_line(view[at:sample_end]):
            line_break = _LINE_BREAK.search(view, at, limit)
            sample_end = limit
        stop = line_break.start() if line_break else sample_end
        line = view[at:stop]
        line = line[_LINE_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if line and not _BODY_LINE.match(line) and not _HEADER_LINE.match(line) and not _CUT_END.match(line):
            word = _BODY_WORD.match(view, stop - len(line), limit if line_break is None else stop)
            return word.end() if word else end
        end = stop if line.strip() else end
        at = line_break.end() if line_break else limit
    return end


def _cannot_be_key_line(line: bytes) -> bool:
    """Whether the start of a line shows that the line is not part of a key.

    Without this check, many key starts on one long line would take quadratic time.
    """
    text = line[_LINE_MARGIN.match(line).end() :]  # type: ignore[union-attr]
    return len(text) > _MAX_BODY_LINE and not _BODY_LINE.match(text) and not _HEADER_LINE.match(text)


def _key_start(view: bytes, at: int, not_before: int) -> int:
    """The start of a key whose beginning is cut off and whose END line is at `at`."""
    floor = max(not_before, at - _MAX_KEY)
    lines = list(_LINE_BREAK.finditer(view, floor, at))
    start = at
    stop = at
    for line_break in reversed(lines):
        line = view[line_break.end() : stop]
        line = line[_LINE_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if line and not _BODY_LINE.match(line):
            return start
        start = stop - len(line) if line else start
        stop = line_break.start()
    # The first line may be incomplete. As much of its end as can be part of a key counts.
    tail = re.search(rb"[A-Za-z0-9+/=]{16,}[\"',\s+]*\Z", view[floor:stop][-256:])
    return stop - len(tail[0]) if tail else start


def body_lines(text: str) -> list[str]:
    """The lines of a key that are secret by themselves."""
    return [line for line in re.findall(r"[A-Za-z0-9+/=]{32,}", text) if len(set(line)) > _MIN_DISTINCT]


_WORD_PATTERN = rb"(?:[A-Za-z0-9_+/.~=-]|[:$|](?=[A-Za-z0-9]))"
_PIECE = compile_lazily(_WORD_PATTERN + rb"++")
_BLANK = rb"(?:[ \t]|\\+t)"
_BREAK_PATTERN = rb"(?:\\+r)?\\+n|\r?\n"
# What may precede a line: blanks, its number and a separator, then the sign of a diff or prompt.
_GUTTER = _BLANK + rb"{0,64}(?:[0-9]{1,6}(?:" + _BLANK + rb"{1,8}|[|:?\x80-\xff]{1,8})" + _BLANK + rb"{0,8})?"
# Two concatenated strings are one value, on one line or on two.
_JOINT = compile_lazily(
    rb"(?:(\\*[\"'`])[ \t]{0,8}(?:[+.\\]|\\\\)?[ \t]{0,8}(?:"
    + _BREAK_PATTERN
    + rb")"
    + _GUTTER
    + rb"[+>|-]?[ \t]{0,64}[+.]?[ \t]{0,8}\1"
    rb"|(\\*[\"'`])[ \t]{0,8}[+.][ \t]{0,8}\2"
    rb"|[ \t]{0,16}(?:\\(?=\r?\n))?(?:" + _BREAK_PATTERN + rb")" + _GUTTER + rb"(?:[>|][ \t]{0,64})?)"
)
_DIFF_SIGN = compile_lazily(rb"[+-][ \t]{0,64}")
# All characters of a joint and the signs after it.
_JOINT_SIGNS = bytes(sorted(b" \t\r\nnrt\\\"'`+.>|:?-0123456789")) + bytes(range(0x80, 0x100))
_MAY_JOIN = compile_lazily(rb"[ \t]{0,16}(?:\\+[nr\r\n]|[\r\n])|\\*[\"'`][ \t]{0,8}(?:[+.\r\n]|\\+[nr\r\n])")
_QUOTES = b"\"'`"
_BLANKS = b" \t"
_AFTER_QUOTE = b" \t+.\r\n\\"


class PredicateCache(dict[bytes, bool]):
    """Caches the answers of a function, which is called with the same few thousand values again and again."""

    def __init__(self, function: Callable[[bytes], bool]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: bytes) -> bool:
        if len(self) > _MAX_CACHED:
            self.clear()
        self[key] = self._function(key)
        return self[key]


_MAX_CACHED = 16384


def _may_start_joint(after: bytes) -> bool:
    if not after:
        return False
    first, rest = after[:1], after[1:]
    if first in _BLANKS:
        return rest[:1] != b"" and rest[:1] in b" \t\\\r\n" and (rest[:1] not in _BLANKS or rest[1:] in b" \t\\\r\n")
    if first == b"\\":
        second, third = rest[:1], rest[1:]
        return second != b"" and (second in b"\\nr\r\n" or (second in _QUOTES and third in _AFTER_QUOTE))
    if first in _QUOTES:
        return rest[:1] != b"" and rest[:1] in _AFTER_QUOTE and (rest[:1] not in _BLANKS or rest[1:] in _AFTER_QUOTE)
    return first in b"\r\n"


MAY_CONTINUE = PredicateCache(_may_start_joint)
"""Whether a joint may start with these three bytes. Most runs are followed by others."""


def _may_end_joint(before: bytes) -> bool:
    if len(before) < 3:  # noqa: PLR2004 - at the start of a text
        return before[-1:] == b"\n" or (len(before) > 1 and before[-1:] in _MARGIN_BYTES + _QUOTES)
    first, second, last = (bytes((byte,)) for byte in before)
    if last in _QUOTES:
        return second in _BEFORE_QUOTE or (second in b" \t\\" and first in _BEFORE_QUOTE + b" \t\\")
    if last not in _MARGIN_BYTES or second not in _JOINT_SIGNS:
        return last == b"\n"
    return b"\n" in (second, last) or b"\\n" in before or first in _JOINT_SIGNS


MAY_HAVE_STARTED = PredicateCache(_may_end_joint)
"""Whether a joint may end with these three bytes. Most quotes do not follow a concatenation sign, and most words follow
another word on the same line."""
_MARGIN_BYTES = b" \tn+->|:?\x92"
_BEFORE_QUOTE = b"+.n\n"
_PIECE_BACKWARDS = compile_lazily(rb"[A-Za-z0-9_+/.~=:$|-]{1,160}")
_PIECE_ENDS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/.~=:$|-"
_LINE_END_SIGNS = b" \t\r\n\\\"'`+"
_MARGIN_REACH = 32
_PIECE_REACH = 160
_CONTEXT = 80
_MAX_PIECES = 64
_MAX_LENGTH = 8192
_ESCAPES = frozenset(b"nrt")
_BACKSLASH, _N = b"\\n"
_LINE_ENDS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/.~=:$|- \t\r\n\\\"'`")
_PLAIN_WORD = compile_lazily(rb"[a-z_./+~=-]{4,}|[A-Za-z][a-z]*[.:]?|[A-Za-z]+\.[a-z]{1,5}")
# A joint, and after it a piece that is not a plain word. Most lines start with a plain word or a sign.
_CONTINUED = compile_lazily(
    rb"(?="
    + _MAY_JOIN.pattern
    + rb")(?>"
    + _JOINT.pattern
    + rb")(?!(?:"
    + _PLAIN_WORD.pattern
    + rb")(?!"
    + _WORD_PATTERN
    + rb"))"
    + _WORD_PATTERN
)
_TRAILING_SIGNS = compile_lazily(rb"[._/+~=-]*\Z")
_ALNUM = compile_lazily(rb"[A-Za-z0-9]")
_DIGIT = compile_lazily(rb"[0-9]")
_DIGIT_OR_AWS = compile_lazily(
    rb"[0-9]|"
    + trie_pattern(anchor.encode() for rule in FORMATS if rule.kind.startswith("aws-") for anchor in rule.anchors)
)
_ENDS_LINE = compile_lazily(rb"[ \t]*(?:\\*[\"'`]|\\+[nr]|[\r\n]|\Z)")
_MAY_JOIN_GATE = rb"(?:[ \t]*(?:\\+[nr\r\n]|[\r\n])|\\*[\"'`][ \t]*(?:[+.\r\n]|\\+[nr\r\n]))"
_SHORT_REST = rb"[A-Za-z0-9_-]{0,%d}+(?=%s)" % (MIN_RUN - 1, _MAY_JOIN.pattern)


_MAX_ANCHOR_END = 4


def _anchor_ends(sign: bytes) -> list[bytes]:
    """The last bytes of the anchors that end with a sign, of formats with tokens shorter than two runs."""
    anchors = {anchor for rule in FORMATS if rule.length[0] < 2 * MIN_RUN for anchor in rule.anchors}
    ends = {
        anchor[-_MAX_ANCHOR_END:].encode()
        for anchor in anchors
        if len(anchor) > 2  # noqa: PLR2004 - two letters are in words
    }
    return [end for end in sorted(ends, key=lambda end: (-len(end), end)) if end.endswith(sign)]


def _look_behind(ends: Collection[bytes]) -> bytes:
    """A pattern that looks behind for any of the ends."""
    by_length = {length: trie_pattern(end for end in ends if len(end) == length) for length in {*map(len, ends)}}
    return (
        rb"(?:" + b"|".join(rb"(?<=" + by_length[length] + rb")" for length in sorted(by_length, reverse=True)) + rb")"
    )


def broken_anchor_pattern(sign: bytes) -> bytes:
    """A pattern, for lower case, that follows a sign which may end the anchor of a token broken by a line end."""
    ends = {end.lower() for end in _anchor_ends(sign)}
    # Two letters rule out nearly all other signs. One letter rules out most dashes, which are those of ids.
    letters = b"".join(sorted({re.escape(end[-2:-1]) for end in ends}))
    one_letter = rb"(?<=[" + letters + rb"]-)" if sign == b"-" else b""
    return one_letter + _look_behind({end[-3:] for end in ends}) + _look_behind(ends) + rb"(?=" + _SHORT_REST + rb")"


def broken_anchor_gate(sign: bytes) -> bytes:
    """What a text must contain that `broken_anchor_pattern` and one of the formats match."""
    ends = {end.lower() for end in _anchor_ends(sign)}
    # A short anchor is a whole one, and only an escape may precede it (see `tokens.is_standalone`).
    short = {end for end in ends if len(end) < _MAX_ANCHOR_END}
    before = rb"(?:\A|[^a-z0-9]|\\[a-z0-9]|%[\x00-\xff][a-z0-9]|\\u[\x00-\xff]{3}[a-z0-9])"
    patterns = trie_pattern(ends - short) + rb"|" + before + rb"(?:" + trie_pattern(short) + rb")"
    return rb"(?:" + patterns + rb")[a-z0-9_-]*" + _MAY_JOIN_GATE


# Anchors of tokens that are so short that both halves of a broken one can be shorter than a run.
_DASH, _UNDERSCORE = (compile_lazily(sign + _look_behind(_anchor_ends(sign)) + _SHORT_REST) for sign in (b"-", b"_"))
_AWS_ANCHOR = compile_lazily(rb"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9]|C[0-9a-f]{4})" + _SHORT_REST)
_AWS_GATE = gate(rb"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9]|C[0-9a-f]{4})[A-Za-z0-9_-]*" + _MAY_JOIN_GATE)
_MAX_ANCHOR = max(len(anchor) for rule in FORMATS for anchor in rule.anchors)
_ANCHOR_BACKWARDS = compile_lazily(rb"[A-Za-z0-9_.-]{0,%d}" % _MAX_ANCHOR)


class BrokenTokenFinder:
    """Finds credentials that continue after a line end. Each line is searched once."""

    def __init__(self, view: bytes) -> None:
        self._view = view
        self._done = 0

    def find_at_run(self, start: int, end: int) -> Span | None:
        """The credential that a long run is a piece of, if a line end has broken it."""
        view = self._view
        if start < self._done:
            return None
        floor = self._done
        span = None
        if MAY_CONTINUE[view[end : end + 3]] and _CONTINUED.match(view, end):
            span = self._find_from(start)
        if span is None and start > 2 and MAY_HAVE_STARTED[view[start - 3 : start]]:  # noqa: PLR2004 - three bytes
            # Most lines end with a sign that is in no token.
            if view[start - 1] == _N and view[start - 2] == _BACKSLASH and view[start - 3] not in _LINE_ENDS:
                return None
            before = _previous_piece(view, start, floor)
            span = self._find_from(before) if before >= 0 else None
        return span

    def short(self, marks: RareMarks) -> Iterator[Span]:
        """Find credentials with only short pieces, by their anchors."""
        view = self._view
        for matches in (
            match_at_places(_DASH, view, marks.dashes),
            match_at_places(_UNDERSCORE, view, marks.underscores),
            _AWS_ANCHOR.finditer(view) if _AWS_GATE in marks.gates else (),
        ):
            self._done = 0
            for match in matches:
                if match.start() >= self._done:
                    back = _ANCHOR_BACKWARDS.match(view[max(0, match.start() - _MAX_ANCHOR) : match.start()][::-1])
                    span = self._find_from(match.start() - (back.end() if back else 0))
                    if span is not None:
                        yield span

    def _find_from(self, start: int) -> Span | None:
        """The credential in the pieces from `start` on, with or without the signs of a diff as part of it."""
        view = self._view
        if start and view[start - 1] == _BACKSLASH and view[start] in _ESCAPES:
            start += 1
        for signs in (True, False):
            pieces, has_signs = _collect_pieces(view, start, 2, without_signs=signs)
            if len(pieces) > 1 and _may_be_halves(view, pieces[0], pieces[1]):
                pieces, has_signs = _collect_pieces(view, start, _MAX_PIECES, without_signs=signs)
                # After a token of fixed length the next line may also be a word.
                span = _match_joined(view, pieces) or (_match_joined(view, pieces[:2]) if len(pieces) > 2 else None)  # noqa: PLR2004
                self._done = max(self._done, span.end if span else pieces[-1][0])
                if span is not None:
                    return span
            elif len(pieces) > 1:
                self._done = max(self._done, pieces[1][0])
            if not has_signs:
                return None
        return None


# Two directories, a file in a directory, or only signs: lines of listings, of tests and of searches.
_NO_HALF = compile_lazily(
    rb"(?:/|\.{1,2}/|~/)?(?:[A-Za-z][a-z.@_-]{2,}/){2}|[\w.@~+/-]*/[\w.@+-]*\.[A-Za-z]{1,5}\Z|[_./+~=-]+\Z"
)


def _may_be_halves(view: bytes, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two pieces can be a token that a line end has broken. Words and paths are not."""
    return not (_PLAIN_WORD.fullmatch(view, *second) or _NO_HALF.match(view, *second) or _NO_HALF.match(view, *first))


def may_continue_line(view: bytes, start: int) -> bool:
    """Whether a run after a margin may continue a piece that ends the previous line. On most lines it cannot."""
    near = view[max(0, start - _MARGIN_REACH) : start]
    end = max(near.rfind(b"\n"), near.rfind(b"\\n"))
    if end < 0:
        return False
    last = near[:end].rstrip(_LINE_END_SIGNS)[-1:]
    return not last or last in _PIECE_ENDS


def _end_of_previous_line(view: bytes, start: int) -> int:
    """The end of the previous line or string if only a margin separates it from a run; otherwise -1."""
    if view[start - 1] in _QUOTES:
        sign = view[max(0, start - 24) : start - 1].rstrip(b" \t\\")[-1:]
        return start - 1 if sign and sign in _BEFORE_QUOTE else -1
    near = view[max(0, start - _MARGIN_REACH) : start]
    margin = near[len(near.rstrip(_JOINT_SIGNS)) :]
    end = max(margin.rfind(b"\n"), margin.rfind(b"\\n"))
    return -1 if end < 0 else start - len(margin) + end


def _previous_piece(view: bytes, start: int, floor: int) -> int:
    """The start of the piece that ends the previous line or string; -1 if there is none."""
    end = _end_of_previous_line(view, start)
    if end <= floor:
        return -1
    head = view[max(floor, end - _PIECE_REACH) : end].rstrip(_LINE_END_SIGNS)
    word = _PIECE_BACKWARDS.match(head[::-1])
    if word is None or not word.end() or _PLAIN_WORD.fullmatch(word[0][::-1]):
        return -1
    behind = end - len(view[max(floor, end - _PIECE_REACH) : end]) + len(head)
    joint = _JOINT.match(view, behind)
    if joint is None or view[joint.end() : start].strip(b"+- \t"):
        return -1
    return behind - word.end()


def _collect_pieces(view: bytes, start: int, most: int, *, without_signs: bool) -> tuple[list[tuple[int, int]], bool]:
    """The pieces from `start` on, each but the last up to the end of its line; and whether any follows a diff sign."""
    pieces: list[tuple[int, int]] = []
    has_signs = False
    at = start
    while len(pieces) < most and at - start < _MAX_LENGTH:
        piece = _PIECE.match(view, at)
        if piece is None:
            break
        pieces.append(piece.span())
        joint = _JOINT.match(view, piece.end())
        if joint is None:
            break
        at = joint.end()
        sign = _DIFF_SIGN.match(view, at)
        if sign is not None:
            has_signs = True
            at = sign.end() if without_signs else at
    return pieces, has_signs


def _match_joined(view: bytes, pieces: list[tuple[int, int]]) -> Span | None:
    """The credential that the joined pieces are, unless the first piece is already one."""
    first = pieces[0][0]
    joined = b"".join([view[start:end] for start, end in pieces])
    # The rest of a token has a letter or digit, and every token but those of AWS has a digit.
    if not _ALNUM.search(joined, pieces[0][1] - first) or not _DIGIT_OR_AWS.search(joined):
        return None
    context = view[max(0, first - _CONTEXT) : first]
    text = context + joined
    token = find_token_uncached(text, len(context), len(text))
    if token is None or token.start < len(context):
        return None
    while True:
        last_piece = _last_piece(pieces, token.end - len(context))
        if last_piece is None:
            return None
        index, used = last_piece
        start, stop = pieces[index]
        if _is_continuation(view, start, used, stop):
            break
        # The continuation may belong to the next line. Then the part before it must be a credential by itself.
        shorter = find_token_uncached(text[: token.end - used], len(context), token.end - used)
        if shorter is None or shorter.start != token.start:
            return None
        token = shorter
    value = text[token.start : token.end]
    if not _DIGIT.search(value) and not token.kind.startswith("aws-"):
        return None
    begin = _position_in_text(pieces, token.start - len(context))
    return Span(begin, start + used, token.kind, value=value.decode("latin-1"))


def _last_piece(pieces: list[tuple[int, int]], length: int) -> tuple[int, int] | None:
    """The index of the piece where it ends and the length used of it; None if that is the first piece."""
    for index, (start, end) in enumerate(pieces):
        if length <= end - start:
            return (index, length) if index else None
        length -= end - start
    return None


def _position_in_text(pieces: list[tuple[int, int]], position: int) -> int:
    for start, end in pieces:
        if position < end - start:
            return start + position
        position -= end - start
    return pieces[-1][1]


def _is_continuation(view: bytes, start: int, used: int, stop: int) -> bool:
    """Whether the start of a line can be the rest of a credential: a complete word that is not a plain word."""
    rest = view[start : start + used]
    if not _TRAILING_SIGNS.match(view[start + used : stop]) or not _ALNUM.search(rest):
        return False
    if _PLAIN_WORD.fullmatch(rest):
        return len(rest) < 4 and _ENDS_LINE.match(view, stop) is not None  # noqa: PLR2004 - a few letters can be all
    return True
