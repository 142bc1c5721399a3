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
    # What is joined to a word before or behind is not told by itself.
    if view[end : end + 1] == b"=" or (start and view[start - 1] in JOINS):
        return _looked_at(view, start, end)[0]
    run = view[start:end]
    may_be = _NOTHING.get(run)
    if may_be is not None:
        return unnamed(view, start, end) if may_be else None
    span, may_be = _looked_at(view, start, end)
    if span is None and end - start < _LONGEST:
        if len(_NOTHING) > _MOST:
            _NOTHING.clear()
        _NOTHING[run] = may_be
    return span


def _looked_at(view: bytes, start: int, end: int) -> tuple[Span | None, bool]:
    """The credential, and whether the run can be a value."""
    may_be = may_be_assigned(view, start, end)
    span = formed(view, start, end) or (unnamed(view, start, end) if may_be else None) or encoded(view, start, end)
    return span, may_be
