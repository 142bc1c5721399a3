"""Rows of lines that are not as they should be: what the forgiving reader makes of them is counted, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from threadline.parse.recover import spans
from threadline.parse.run import REFUSALS
from threadline.parse.usage_rows import Row
from threadline.shape import bare

_decode = msgspec.json.Decoder(Row).decode


def forgiven_rows(path: Path, offset: int, line: bytes) -> Iterator[Row]:
    """The rows of a line: those of its objects where lines were glued, and else what can be made to fit."""
    try:
        yield from [_decode(bare(line[span.start : span.end])) for span in spans(line) if span.lost is None]
    except REFUSALS:
        from threadline.parse.fitted_rows import fitted_rows  # noqa: PLC0415 - it brings all kinds of entries along

        yield from fitted_rows(path, offset, line)
