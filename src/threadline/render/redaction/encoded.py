"""Credentials in base64 that stand nowhere in plain: what is text when it is decoded is looked at once."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterator

from threadline.render.redaction.assigned import assigned, named
from threadline.render.redaction.formed import formed_in, looked_at
from threadline.render.redaction.glance import glance
from threadline.render.redaction.span import Span

_RUN = re.compile(rb"[A-Za-z0-9+/_-]{24,65536}+={0,2}")
_UPPER = re.compile(rb"[A-Z]")
_AS_USUAL = bytes.maketrans(b"-_", b"+/")
_GLANCE = 16
_TEXT = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
_FEW = 3
_MOST_OTHERS = 0.1


def encoded(view: bytes, start: int, end: int) -> Span | None:
    """The run, if it is base64 of a text that holds a credential; that is its value."""
    run = _RUN.match(view, start)
    # Nearly no run is text, which its first letters tell.
    if run is None or len(a2b_base64(view[start : start + _GLANCE].translate(_AS_USUAL)).translate(None, _TEXT)) > _FEW:
        return None
    if not _UPPER.search(view, start, end):
        return None
    said = run[0].rstrip(b"=").translate(_AS_USUAL)
    text = a2b_base64(said[: len(said) - (len(said) % 4 == 1)] + b"==")
    if len(text.translate(None, _TEXT)) > len(text) * _MOST_OTHERS:
        return None
    for span in _found(text.decode("ascii", "replace").encode("ascii", "replace")):
        return Span(start, run.end(), span.kind, value=span.value)
    return None


def _found(text: bytes) -> Iterator[Span]:
    """What a decoded text holds, the surest first."""
    for start, end, is_hex in looked_at(text):
        span = None if is_hex else formed_in(text, start, end)
        if span is not None:
            yield span._replace(value=text[span.start : span.end].decode())
    low = text.lower()
    seen = glance(low)
    for span in (*named(text, low, seen), *assigned(text, low, seen)):
        if not span.weak:
            yield span._replace(value=span.value or text[span.start : span.end].decode())
