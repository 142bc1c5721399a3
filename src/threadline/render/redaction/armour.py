"""Private keys in armour: whole, cut off at either end, inside a diff, with numbered lines, or escaped in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction import rare
from threadline.render.redaction.rare import Rare
from threadline.render.redaction.signs import by_sign
from threadline.render.redaction.span import Span

KIND = "private-key"
_MARK = re.compile(rb"-----(BEGIN|END)[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_CUT_END = re.compile(rb"-----END[ A-Z0-9_-]{0,60}\Z|-----E?N?D?\Z|-{1,4}\Z")
# How a private key begins under its armour: OpenSSH's own, and a sequence whose first number is a version.
_OPEN_SSH_BEGINS = b"b3BlbnNzaC1rZXktdj"
_OPEN_SSH = re.compile(_OPEN_SSH_BEGINS + rb"[A-Za-z0-9+/=]{8,}")
_SEQUENCE = re.compile(rb"M(?:II)[A-Za-z0-9+/]{3,4}IBA[AD][A-Za-z0-9+/=]{20,}")
_PUTTY = re.compile(rb"P(?:rivate-Lines: )[0-9]+")
_LONGEST = 64 * 1024
_BREAK = re.compile(rb"\r?\n|(?:\\+r)?\\+n")
# What may stand before a line of it: signs of a diff or quotation, a number, and what separates that from the line.
_MARGIN = re.compile(rb"[\s+>|:\-\"'\x80-\xff?]*(?:[0-9]{1,6}[\s|:\x80-\xff?]+)?[+\-]?[ \t\"']*")
_BODY_LINE = re.compile(rb"[A-Za-z0-9+/=]{1,128}[\"',\s+\\]*\Z")
_HEADER_LINE = re.compile(rb"(?:Proc-Type|DEK-Info|Version|Comment|Private-MAC|Hash|Charset)[: ]")
_BODY_WORD = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_LONGEST_BODY = 128
_LINE = 1024
"""Bytes of a line that are looked at before its end is."""
_FEW = 16


def armoured(view: bytes, seen: Rare) -> Iterator[Span]:
    """All private keys; `seen` is what the view has of what is rare."""
    marks = list(_MARK.finditer(view)) if rare.BEGIN in seen.words or rare.END in seen.words else []
    for at, mark in enumerate(marks):
        begun = at > 0 and marks[at - 1][1] == b"BEGIN" and _is_body(view, marks[at - 1].end(), mark.start())
        if mark[1] == b"BEGIN":
            yield Span(mark.start(), _end_of(view, mark.end(), marks[at + 1] if at + 1 < len(marks) else None), KIND)
        elif not begun:
            yield Span(_start_of(view, mark.start(), marks[at - 1].end() if at else 0), mark.end(), KIND)
    done = 0
    for found in _bodies(view, seen):
        if found.start() >= done:
            done = _lines_after(view, found.end(), len(view))
            yield Span(found.start(), done, KIND)


def _bodies(view: bytes, seen: Rare) -> Iterator[re.Match[bytes]]:
    """How keys begin under their armour, wherever that is."""
    yield from by_sign(_OPEN_SSH, _OPEN_SSH_BEGINS, view)
    yield from _SEQUENCE.finditer(view)
    if rare.PRIVATE_LINES in seen.words:
        yield from _PUTTY.finditer(view)


def _is_body(view: bytes, start: int, end: int) -> bool:
    """Whether what stands between two marks is a key, and not a program or a page that names both."""
    if end - start > _LONGEST:
        return False
    for line in _BREAK.split(view[start:end]):
        bare = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if bare.strip().count(b" ") > 1 and not _HEADER_LINE.match(bare):
            return False
    return True


def _end_of(view: bytes, at: int, following: re.Match[bytes] | None) -> int:
    """Where the key ends whose armour begins before `at`: with the armour, or with the last line that can be of it."""
    if following is not None and following[1] == b"END" and _is_body(view, at, following.start()):
        return following.end()
    return _lines_after(view, at, following.start() if following is not None else len(view))


def _lines_after(view: bytes, at: int, stop_at: int) -> int:
    """The end of the last of the lines from `at` on that can be of a key."""
    limit = min(stop_at, at + _LONGEST)
    end = at
    while at < limit:
        near = min(limit, at + _LINE)
        found = _BREAK.search(view, at, near)
        if found is None and near < limit and not _is_long(view[at:near]):
            found = _BREAK.search(view, at, limit)
            near = limit
        stop = found.start() if found else near
        line = view[at:stop]
        line = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
        if line and not _BODY_LINE.match(line) and not _HEADER_LINE.match(line) and not _CUT_END.match(line):
            word = _BODY_WORD.match(view, stop - len(line), limit if found is None else stop)
            return word.end() if word else end
        end = stop if line.strip() else end
        at = found.end() if found else limit
    return end


def _is_long(line: bytes) -> bool:
    """Whether the beginning of a line tells that it is none of a key, however it goes on; else its end is looked for.

    Without this, each of many beginnings on one line would look through all that follows.
    """
    text = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]
    return len(text) > _LONGEST_BODY and not _BODY_LINE.match(text) and not _HEADER_LINE.match(text)


def _start_of(view: bytes, at: int, not_before: int) -> int:
    """Where the key begins whose armour ends at `at`, and whose beginning is cut off."""
    floor = max(not_before, at - _LONGEST)
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
