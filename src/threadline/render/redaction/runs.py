"""Long runs of letters and digits, and what they are by themselves and by where they stand."""

from __future__ import annotations

from threadline.render.redaction.encoded import encoded
from threadline.render.redaction.formed import JOINS, formed
from threadline.render.redaction.span import Span
from threadline.render.redaction.unnamed import may_be_assigned, unnamed

# Runs that are nothing by themselves, as the same names and paths come again and again; and whether each can be a
# value, which what stands before it tells.
_NOTHING: dict[bytes, bool] = {}
_MOST = 16384
_LONGEST = 128


def at_run(view: bytes, start: int, end: int, is_hex: bool) -> Span | None:
    """The credential that a run is, or that it begins."""
    if is_hex:
        return unnamed(view, start, end) if may_be_assigned(view, start, end) else None
    run = view[start:end]
    may_be = _NOTHING.get(run) if not start or view[start - 1] not in JOINS else None
    if may_be is not None:
        return unnamed(view, start, end) if may_be else None
    return _at_new(view, start, end, run)


def _at_new(view: bytes, start: int, end: int, run: bytes) -> Span | None:
    span = formed(view, start, end)
    if span is not None:
        return span
    may_be = may_be_assigned(view, start, end)
    span = (unnamed(view, start, end) if may_be else None) or encoded(view, start, end)
    if span is None and len(run) < _LONGEST and (not start or view[start - 1] not in JOINS):
        if len(_NOTHING) > _MOST:
            _NOTHING.clear()
        _NOTHING[run] = may_be
    return span
