"""Lines that tell of messages, read once more: each for its own counts, where the ledger keeps only the best."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from threadline.errors import Error
from threadline.model.problem import Problem
from threadline.model.receipt import LineCounts
from threadline.model.sighting import split_writes
from threadline.parse.chunks import Chunk
from threadline.parse.forgiven_rows import forgiven_rows
from threadline.parse.line_numbers import LineNumbers
from threadline.parse.lines_with import Lines, lines_of, lines_with
from threadline.parse.reader import Reader
from threadline.parse.run import REFUSALS
from threadline.parse.sightings import NEEDLE
from threadline.parse.usage_rows import MessageRow, Row, UsageRow, Writes

_COMPACTION = b'"compact_boundary"'


class _CompactMetadata(Struct, gc=False, rename="camel"):
    pre_tokens: int | None = None


class Compacted(Struct, gc=False, rename="camel"):
    """A compaction's boundary: when it was, and how much was summarised."""

    kind: str = field(default="", name="type")
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    compact_metadata: _CompactMetadata | None = None

    @property
    def tokens(self) -> int:
        """How many tokens the window held before; 0 where that is not told."""
        return (self.compact_metadata.pre_tokens or 0) if self.compact_metadata is not None else 0


class Mentioned(Struct, gc=False):
    """What a transcript tells: counts by offset of the line and message, compactions, and what could not be read."""

    counts: dict[tuple[int, str], list[LineCounts]] = {}
    compactions: list[Compacted] = []
    problems: list[Problem] = []
    gone: str | None = None


_decode = msgspec.json.Decoder(Row).decode
_decode_compacted = msgspec.json.Decoder(Compacted).decode
_is_json = msgspec.json.Decoder(msgspec.Raw).decode


def mentions(path: str | Path, wanted: Container[int]) -> Mentioned:
    """Read a transcript once more for the lines that begin at the offsets wanted. `gone` says why that was refused."""
    told = Mentioned()
    reader, numbers = Reader(str(path)), LineNumbers(str(path))
    boundaries: dict[tuple[str | None, str | None], Compacted] = {}
    try:
        for found in lines_with(path, NEEDLE):
            told.problems += _damage(reader, found, numbers)
            for offset, row in _wanted(Path(path), found, wanted):
                for key, counts in _counts(row, f"{path}@{offset}"):
                    told.counts.setdefault((offset, key), []).append(counts)
            for one in _compactions(found.block):
                boundaries[one.uuid, one.timestamp] = one
    except Error as error:
        told.gone = str(error)
    told.compactions += boundaries.values()
    return told


def _wanted(path: Path, found: Lines, wanted: Container[int]) -> Iterator[tuple[int, Row]]:
    for offset, line in zip(found.offsets, found.lines, strict=True):
        if offset in wanted:
            try:
                yield offset, _decode(line)
            except REFUSALS:
                for row in forgiven_rows(path, offset, line):
                    yield offset, row


def _counts(row: Row, place: str) -> Iterator[tuple[str, LineCounts]]:
    """A row's counts by its message, under the key that the ledger has for it."""
    if row.kind == "assistant" and row.message is not None:
        key = row.message.id or row.request_id or row.uuid or place
        yield from _told(key, row.message)
    elif row.kind == "progress" and row.data is not None and row.data.message is not None:
        again = row.data.message
        if again.message is not None:
            key = again.message.id or again.request_id or again.uuid or row.uuid or place
            yield from _told(key, again.message)


def _told(key: str, message: MessageRow) -> Iterator[tuple[str, LineCounts]]:
    usage: UsageRow | None = message.usage
    if usage is None:
        return
    split = usage.cache_creation or Writes()
    five, hour = split_writes(
        usage.cache_creation_input_tokens or 0,
        split.ephemeral_5m_input_tokens or 0,
        split.ephemeral_1h_input_tokens or 0,
    )
    yield (
        key,
        LineCounts(
            input=usage.input_tokens or 0,
            output=usage.output_tokens or 0,
            cache_write_5m=five,
            cache_write_1h=hour,
            cache_read=usage.cache_read_input_tokens or 0,
            stop_reason=message.stop_reason,
        ),
    )


def _damage(reader: Reader, found: Lines, numbers: LineNumbers) -> Iterator[Problem]:
    """Lines with a token count of which nothing, or not all, can be read."""
    for offset, line in zip(found.offsets, found.lines, strict=True):
        try:
            _is_json(line)
        except REFUSALS:
            for entry in reader.one_by_one(Chunk([line], offset), numbers(offset)):
                yield from (one for one in entry.line.problems if one.lost or not one.recovered)


def _compactions(block: bytes) -> Iterator[Compacted]:
    for line in lines_of(block, _COMPACTION):
        try:
            made = _decode_compacted(line)
        except REFUSALS:
            continue  # cut where the block ends, and whole in the next one; or a text that quotes the word
        if made.kind == "system" and made.subtype == "compact_boundary":
            yield made
