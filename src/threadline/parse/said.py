"""How much a row says: looked up anew, for only rows whose output looks like a placeholder need it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from threadline.parse.chunks import LONGEST, open_transcript
from threadline.parse.run import REFUSALS

_BLOCK = 32 * 1024
_NOTHING = Raw()


class _Block(Struct, gc=False):
    type: str | None = None
    text: Raw = _NOTHING
    input: Raw = _NOTHING


class _Message(Struct, gc=False):
    content: list[_Block] | str | None = None


class _Row(Struct, gc=False):
    message: _Message | None = None


_decode = msgspec.json.Decoder(_Row).decode


def said(path: Path, offsets: Iterable[int]) -> dict[int, int]:
    """The length of the longest text or call of each row, by where the row begins."""
    descriptor = open_transcript(path)
    try:
        return {offset: _length(_line(descriptor, offset)) for offset in offsets}
    except OSError:  # read a moment ago: what it said then is enough
        return {}
    finally:
        os.close(descriptor)


def _line(descriptor: int, offset: int) -> bytes:
    parts: list[bytes] = []
    os.lseek(descriptor, offset, os.SEEK_SET)
    while (block := os.read(descriptor, _BLOCK)) and len(parts) * _BLOCK < LONGEST:
        end = block.find(b"\n") + 1
        parts.append(block[:end] if end else block)
        if end:
            break
    return b"".join(parts)


def _length(line: bytes) -> int:
    try:
        message = _decode(line).message
    except REFUSALS:
        return 0
    content = message.content if message is not None else None
    if not isinstance(content, list):
        return len(content or "")
    told = [block.text if block.type == "text" else block.input for block in content]
    return max((len(bytes(one)) for one in told), default=0)
