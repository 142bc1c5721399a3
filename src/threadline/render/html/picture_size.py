"""How wide and high a picture is, from its first bytes."""

from __future__ import annotations

import binascii
import struct

_FIRST = 64 * 1024
"""Characters of base64 that are looked at: the size of a JPEG may stand behind a thumbnail."""
_MOST = 30_000
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARK = 0xFF
_BARE = frozenset({0x01, *range(0xD0, 0xDA)})

Size = tuple[int, int]


def picture_size(kind: str, data: str) -> Size | None:
    """Width and height in pixels; None where the bytes do not tell."""
    some = data[:_FIRST]
    try:
        found = _READ[kind](binascii.a2b_base64(some[: len(some) // 4 * 4])) if kind in _READ else None
    except (ValueError, struct.error):
        return None
    return found if found is not None and all(0 < one <= _MOST for one in found) else None


def _png(raw: bytes) -> Size | None:
    if not raw.startswith(b"\x89PNG\r\n\x1a\n") or raw[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", raw, 16)
    return width, height


def _gif(raw: bytes) -> Size | None:
    if not raw.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack_from("<HH", raw, 6)
    return width, height


def _jpeg(raw: bytes) -> Size | None:
    at = 2 if raw.startswith(b"\xff\xd8") else len(raw)
    while at + 4 <= len(raw) and raw[at] == _MARK:
        mark = raw[at + 1]
        if mark in _FRAMES:
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += 2 if mark in _BARE else 1 if mark == _MARK else 2 + struct.unpack_from(">H", raw, at + 2)[0]
    return None


def _webp(raw: bytes) -> Size | None:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WEBP":
        return None
    form = raw[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if form == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", raw, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READ = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}
