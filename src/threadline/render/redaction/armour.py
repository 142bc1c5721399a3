"""Private keys in armour: whole, cut off at either end, inside a diff, with numbered lines, or escaped in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction.span import Span

KIND = "private-key"
_BEGIN = re.compile(rb"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(rb"-----END[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_CUT_END = re.compile(rb"-----END[ A-Z0-9_-]{0,60}\Z|-----E?N?D?\Z|-{1,4}\Z")
# How a private key begins under its armour: OpenSSH's own, and a sequence whose first number is a version.
_BODIES = (
    re.compile(rb"b3BlbnNzaC1rZXktdj[A-Za-z0-9+/=]{8,}"),
    re.compile(rb"MII[A-Za-z0-9+/]{3,4}IBA[AD][A-Za-z0-9+/=]{20,}"),
)
_PUTTY = re.compile(rb"Private-Lines: [0-9]+")
_LONGEST = 64 * 1024
_BREAK = re.compile(rb"\r?\n|(?:\\+r)?\\+n")
# What may stand before a line of it: signs of a diff or quotation, a number, and what separates that from the line.
_MARGIN = re.compile(rb"[\s+>|:\-\"'\x80-\xff?]*(?:[0-9]{1,6}[\s|:\x80-\xff?]+)?[+\-]?[ \t\"']*")
_BODY_LINE = re.compile(rb"[A-Za-z0-9+/=]{1,128}[\"',\s+\\]*\Z")
_HEADER_LINE = re.compile(rb"(?:Proc-Type|DEK-Info|Version|Comment|Private-MAC|Hash|Charset)[: ]")
_FEW = 16


def armoured(view: bytes) -> Iterator[Span]:
    """All private keys."""
    done = 0
    if b"PRIVATE KEY" in view:
        for begin in _BEGIN.finditer(view):
            if begin.start() >= done:
                done = _end_of(view, begin.end())
                yield Span(begin.start(), done, KIND)
        for end in _END.finditer(view):
            if not _is_begun(view, end.start()):
                yield Span(_start_of(view, end.start()), end.end(), KIND)
    for pattern in (*_BODIES, _PUTTY):
        for found in pattern.finditer(view):
            yield Span(found.start(), _lines_after(view, found.end()), KIND)


def _is_begun(view: bytes, at: int) -> bool:
    before = view[max(0, at - _LONGEST) : at]
    begins = [found.start() for found in _BEGIN.finditer(before)]
    ends = [found.start() for found in _END.finditer(before)]
    return bool(begins) and (not ends or begins[-1] > ends[-1])


def _end_of(view: bytes, at: int) -> int:
    """Where the key ends whose armour begins before `at`: with the armour, or with the last line that can be of it."""
    end = _END.search(view, at, at + _LONGEST)
    again = _BEGIN.search(view, at, end.start() if end else at + _LONGEST)
    if end and not again:
        return end.end()
    return _lines_after(view, at)


def _lines_after(view: bytes, at: int) -> int:
    """The end of the last of the lines from `at` on that can be of a key."""
    limit = min(len(view), at + _LONGEST)
    end = at
    while at < limit:
        found = _BREAK.search(view, at, limit)
        stop = found.start() if found else limit
        line = view[at:stop]
        line = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if line and not _BODY_LINE.match(line) and not _HEADER_LINE.match(line) and not _CUT_END.match(line):
            word = re.match(rb"[A-Za-z0-9+/=]{16,}", line)
            return stop - len(line) + word.end() if word else end
        end = stop if line.strip() else end
        at = found.end() if found else limit
    return end


def _start_of(view: bytes, at: int) -> int:
    """Where the key begins whose armour ends at `at`, and whose beginning is cut off."""
    floor = max(0, at - _LONGEST)
    lines = list(_BREAK.finditer(view, floor, at))
    start = at
    stop = at
    for found in reversed(lines):
        line = view[found.end() : stop]
        line = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if line and not _BODY_LINE.match(line):
            return start
        start = stop - len(line) if line else start
        stop = found.start()
    # The first line may be a part of one: as much of its end as can be of a key.
    tail = re.search(rb"[A-Za-z0-9+/=]{16,}[\"',\s+]*\Z", view[floor:stop][-256:])
    return stop - len(tail[0]) if tail else start


def body_lines(text: str) -> list[str]:
    """The lines of a key that would give it away by themselves."""
    return [line for line in re.findall(r"[A-Za-z0-9+/=]{32,}", text) if len(set(line)) > _FEW]
