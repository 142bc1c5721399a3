"""Drift: what a transcript holds that the model does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from threadline.model.block import ToolResultBlock, ToolUseBlock
from threadline.model.entries import SUBTYPES, AnyEntry, AssistantEntry, Entry, OtherEntry, SystemEntry, UserEntry
from threadline.model.place import Place
from threadline.model.results import result_type
from threadline.parse.run import REFUSALS, lines_decoder
from threadline.shape import strict, unknown
from threadline.shape.unknown import Unknown

decode_strictly = lines_decoder(strict(AnyEntry))
"""Decodes a run of lines in which the model knows every field; the entries are still the model's own."""

_decode_one = msgspec.json.Decoder[Any](strict(AnyEntry)).decode
# A key may hold half a surrogate pair, which has no UTF-8.
_REFUSALS = (msgspec.MsgspecError, UnicodeEncodeError, RecursionError)
_WHAT = {
    "OtherEntry": "kind",
    "OtherBlock": "block",
    "OtherAttachment": "attachment",
    "OtherProgress": "progress",
}


class Strange(Struct, frozen=True):
    """One thing in one entry that the model does not know.

    `what` is `kind`, `subtype`, `block`, `attachment`, `progress`, `tool-result` or `field`; `within` is the shape
    or tool it was found in.
    """

    what: str
    name: str
    within: str
    place: Place
    size: int


class DriftFinder:
    """Finds what is strange in the entries of one transcript, in file order: it remembers which tool a call was to."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def strange(self, entry: Entry) -> Iterator[Strange]:
        """All that the model does not know of this entry."""
        if isinstance(entry, OtherEntry):
            if entry.data is not None:
                yield Strange("kind", entry.kind, "", entry.place, len(entry.raw))
            return
        if not _is_known(entry):
            for found in unknown(entry.data, AnyEntry):
                yield _strange(found, entry.place)
        if isinstance(entry, SystemEntry) and entry.subtype is not None and entry.subtype not in SUBTYPES:
            yield Strange("subtype", entry.subtype, "SystemEntry", entry.place.within("$.subtype"), len(entry.raw))
        if isinstance(entry, UserEntry | AssistantEntry):
            yield from self._results(entry)

    def _results(self, entry: UserEntry | AssistantEntry) -> Iterator[Strange]:
        for block in entry.message.blocks if entry.message is not None else ():
            if isinstance(block, ToolUseBlock):
                self._tools[block.id or ""] = block.name
            elif isinstance(block, ToolResultBlock) and isinstance(entry, UserEntry):
                tool = self._tools.pop(block.tool_use_id or "", None)
                if isinstance(entry.tool_use_result, dict):
                    yield from _result(entry.tool_use_result, tool, entry.place)


def _is_known(entry: Entry) -> bool:
    """Whether it was, or can be, decoded by the twin that refuses unknown fields."""
    if type(entry).__struct_config__.forbid_unknown_fields:
        return True
    try:
        _decode_one(entry.raw.strip(b"\0 \t\r\n"))
    except REFUSALS:
        return False
    return True


def _result(value: dict[str, Any], tool: str | None, place: Place) -> Iterator[Strange]:
    shape = result_type(value, tool)
    if shape is None:
        name = tool if tool is not None else "{" + ", ".join(sorted(value)[:6]) + "}"
        yield Strange("tool-result", name, "UserEntry", place.within("$.toolUseResult"), _size(value))
        return
    try:
        msgspec.convert(value, strict(shape))
    except _REFUSALS:
        for found in unknown(value, shape):
            inner = place.within("$.toolUseResult" + found.json_path[1:])
            yield Strange("field", found.name, found.shape, inner, _size(found.value))


def _strange(found: Unknown, place: Place) -> Strange:
    what = _WHAT[found.shape] if found.what == "tag" else "field"
    return Strange(what, found.name, found.shape, place.within(found.json_path), _size(found.value))


def _size(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return len(repr(value))
