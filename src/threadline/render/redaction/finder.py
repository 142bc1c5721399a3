"""All rules at once over a text of any length, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.render.redaction.addresses import addresses
from threadline.render.redaction.armour import armoured
from threadline.render.redaction.assigned import assigned, named
from threadline.render.redaction.broken import MAY_GO_ON, MAY_HAVE_BEGUN, Broken
from threadline.render.redaction.commands import commanded
from threadline.render.redaction.formed import azure, looked_at
from threadline.render.redaction.glance import glance
from threadline.render.redaction.homes import homes
from threadline.render.redaction.runs import at_run
from threadline.render.redaction.seams import Seamless, seamless
from threadline.render.redaction.span import Span
from threadline.render.redaction.unnamed import short

WINDOW = 512 * 1024
"""How much is looked at at once: it stays in the processor's cache, and memory does not grow with the text."""
_BEYOND = 8 * 1024
_BEFORE = 256
_MOST_BEYOND = 128 * 1024
PERSONAL = frozenset(("email", "ip", "host", "home", "user"))
"""Kinds that are no secrets, but tell of people and machines."""


def spans(text: str, layers: Iterable[Seamless] | None = None, *, personal: bool = True) -> list[Span]:
    """All that is to be taken away; the text with and without its seams is looked at. Some may overlap.

    `layers` are the text without seams, where that is known.
    """
    found = list(_in_windows(_view(text), personal=personal))
    for without in seamless(text) if layers is None else layers:
        for span in _in_windows(_view(without.text), personal=personal):
            start, end = without.where(span.start, span.end)
            value = span.value or without.text[span.start : span.end]
            found.append(Span(start, end, span.kind, span.weak, value))
    return found


def spans_of_bytes(view: bytes, *, personal: bool = False) -> list[Span]:
    """The same for bytes as they are in a file, by their offsets; seams are left alone."""
    return list(_in_windows(view, personal=personal))


def _view(text: str) -> bytes:
    """The text as bytes, one a character, so that offsets are the same."""
    return text.encode("ascii", "replace")


def _in_windows(view: bytes, *, personal: bool) -> Iterator[Span]:
    if len(view) <= WINDOW + _BEYOND:
        yield from _in_window(view, personal=personal)
        return
    start = 0
    while start < len(view):
        stop = start + WINDOW
        begin = max(0, start - _BEFORE)
        beyond = _BEYOND
        while True:
            end = min(len(view), stop + beyond)
            found = [
                Span(first + begin, last + begin, kind, weak, value)
                for first, last, kind, weak, value in _in_window(view[begin:end], personal=personal)
            ]
            # What touches the window's end may go on behind it.
            if (
                end == len(view)
                or beyond >= _MOST_BEYOND
                or all(span.end < end or span.start >= stop for span in found)
            ):
                break
            beyond *= 4
        yield from (span for span in found if start <= span.start < stop or span.start < start < span.end)
        start = stop


def _in_window(view: bytes, *, personal: bool) -> Iterator[Span]:
    low = view.lower()
    seen = glance(low)
    yield from armoured(view, seen)
    done = 0
    broken = Broken(view)
    for start, end, is_hex in looked_at(view):
        if end <= done:
            continue
        is_broken = view[end : end + 2] in MAY_GO_ON or view[start - 2 : start] in MAY_HAVE_BEGUN
        span = (broken.at_run(start, end) if is_broken else None) or at_run(view, start, end, is_hex)
        if span is not None:
            done = span.end
            yield span
    yield from broken.short(seen)
    yield from azure(view)
    found = named(view, low, seen)
    yield from short(view, low, seen)
    yield from found
    yield from assigned(view, low, seen)
    yield from commanded(view, seen)
    if personal:
        yield from homes(view)
        yield from addresses(view)


def disjoint(found: list[Span]) -> list[tuple[int, int, Span]]:
    """The spans in order, those that overlap made one: from where to where, and which of them says what it is."""
    kept: list[tuple[int, int, Span]] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if kept and span.start < kept[-1][1]:
            start, end, first = kept[-1]
            tells = span if (first.kind in PERSONAL and span.kind not in PERSONAL) else first
            kept[-1] = (start, max(end, span.end), tells)
        else:
            kept.append((span.start, span.end, span))
    return kept
