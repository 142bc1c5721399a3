"""Home directories and whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction.span import Span
from threadline.render.redaction.wordlist import words

_NAME = rb"([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})"
_HOMES = (
    re.compile(rb"/(?:home|Users)/" + _NAME),
    re.compile(rb"Users\\{1,4}([A-Za-z0-9_][^\\/:*?\"<>|\r\n\x00-\x1f]{0,63}(?=\\)|[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})"),
)
_FOLDER = re.compile(rb"-(?:home|Users)-([A-Za-z0-9]{1,64})(?=-|[\"'/\\\s]|\Z)")
# Before the first letter of a path: then it is one, and nothing else need be looked at.
_CERTAIN = frozenset(b" \t\n\"'`(=:,;[<>|")
_SLASH = ord("/")
_DRIVE = re.compile(rb"(?i)[a-z]:(?:\\{1,4}|/)\Z")
_MOUNT = re.compile(rb"(?:/mnt|/cygdrive|)/[a-z]\Z|/var\Z|/export\Z|/System/Volumes/Data\Z|file://\Z")
NOBODY = words(
    "user users username name you your yourname me root admin administrator ubuntu debian node app apps"
    " runner vscode codespace shared public default guest dev developer test tests tester example someone"
    " somebody foo bar home work build ci jenkins git main data code src project projects claude docker"
    " ec2-user vagrant pi will may can .shared all any local new old www web server service system bin lib"
    " opt tmp var etc"
)
"""Names that are many people's: their home is taken away, but not the word."""


def homes(view: bytes) -> Iterator[Span]:
    """Each home directory, its value being the name of its owner; the name alone in the names of folders."""
    for pattern in _HOMES:
        for found in pattern.finditer(view):
            start = _begin(view, found.start())
            name = found[1].rstrip(b".- ")
            if start is not None and name:
                yield Span(start, found.start(1) + len(name), "home", value=name.decode("latin-1"))
    for found in _FOLDER.finditer(view):
        yield Span(*found.span(1), "user")


def _begin(view: bytes, at: int) -> int | None:
    """Where the path begins that has its home here; None where a home is only a folder of that name."""
    if at and view[at - 1] in _CERTAIN and view[at] == _SLASH:
        return at
    before = view[max(0, at - 24) : at]
    if view[at : at + 1] == b"U":
        drive = _DRIVE.search(before)
        return at - len(drive[0]) if drive else None
    mount = _MOUNT.search(before)
    if mount and not mount[0].startswith(b"file"):
        return at - len(mount[0])
    last = before[-1:]
    if (before[-2:-1] == b"\\" and last in b"nrt" and last) or before[-6:-4] == b"\\u":
        return at
    return None if last.isalnum() or (last in {b".", b"_", b"-", b"~", b"}", b"*", b"?"} and last) else at
