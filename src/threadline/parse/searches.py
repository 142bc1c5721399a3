"""Web searches that calls made: the API's own count is 0 for those of the client, so their results are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from threadline.model.sighting import Sighting
from threadline.model.usage import Count
from threadline.parse.lines_with import Lines, lines_of
from threadline.parse.run import REFUSALS


class _Result(Struct, gc=False):
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(Struct, gc=False):
    content: list[_Result] | None = None


class _Row(Struct, gc=False, rename="camel"):
    message: _Message | None = None
    tool_use_result: Raw = Raw()


class _Search(Struct, gc=False, rename="camel"):
    search_count: Count | None = None


_RESULT = b'"tool_use_id"'
_FEW = 16
_decode = msgspec.json.Decoder(_Row).decode
_decode_search = msgspec.json.Decoder(_Search).decode


def searched(found: Lines, waiting: Mapping[str, Sighting]) -> Iterator[tuple[str, int]]:
    """Calls whose results are in a block, and how many searches each made; `waiting` may lose those that were given."""
    if len(waiting) > _FEW:  # looking for each would take as long as all of them together, each time
        for line in lines_of(found.block, _RESULT):
            yield from ((call, number) for call, number in _results(line) if call in waiting)
        return
    for call, known in list(waiting.items()):
        number = searches(found.block, call, max(0, known.offsets[0] - found.begins))
        if number is not None:
            yield call, number


def searches(block: bytes, call: str, start: int = 0) -> int | None:
    """How many searches a call made: what its result says, or one if it succeeded. None where that is not in the block.

    `start` is where to begin: the call itself, if that is in the block.
    """
    lines = lines_of(block, call.encode(), start)
    return next((number for line in lines for told, number in _results(line) if told == call), None)


def _results(line: bytes) -> Iterator[tuple[str, int]]:
    try:
        row = _decode(line)
    except REFUSALS:
        return
    for result in (row.message.content or ()) if row.message is not None else ():
        if result.tool_use_id:
            yield result.tool_use_id, 0 if result.is_error else _count(row.tool_use_result)


def _count(result: Raw) -> int:
    if bytes(result)[:1] == b'"':  # a text: that the call went wrong in a way that old versions do not mark
        return 0
    try:
        told = _decode_search(result).search_count if bytes(result) else None
    except REFUSALS:
        told = None
    return 1 if told is None else told
