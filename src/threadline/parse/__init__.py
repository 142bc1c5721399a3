"""Bytes to entries, losing nothing: `entries` for the whole of each, `heads` for what most questions need.

Names are loaded when they are first used: what counts tokens needs no entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.parse.lines import (
        DECODE_ERRORS,
        MAX_LINE_LENGTH,
        Chunk,
        LineNumbers,
        MatchingLines,
        find_lines,
        find_lines_in_block,
        make_lines_decoder,
        open_transcript,
        read_chunks,
        read_first_lines,
    )
    from threadline.parse.reader import EntryRun, TranscriptReader, decode_object, entries, entry_runs, head_of, heads
    from threadline.parse.receipts import (
        CompactionBoundary,
        CostStates,
        Mentions,
        find_compaction_offsets,
        read_cost_states,
        read_mentions,
    )
    from threadline.parse.side_files import read_agent_meta, read_side_file
    from threadline.parse.side_values import SideReading, decode_side_value, read_side_bytes
    from threadline.parse.sightings import (
        USAGE_NEEDLE,
        SightingCollector,
        is_compacted_at_end,
        read_sightings,
        read_sightings_since,
    )
    from threadline.parse.usage_rows import ContentRow, EntryRow, MessageRow, decode_rows, find_first_time

__getattr__ = lazy_exports(
    __name__,
    {
        "lines": [
            "Chunk",
            "DECODE_ERRORS",
            "LineNumbers",
            "MAX_LINE_LENGTH",
            "MatchingLines",
            "find_lines",
            "find_lines_in_block",
            "make_lines_decoder",
            "open_transcript",
            "read_chunks",
            "read_first_lines",
        ],
        "reader": ["EntryRun", "TranscriptReader", "decode_object", "entries", "entry_runs", "head_of", "heads"],
        "receipts": [
            "CompactionBoundary",
            "CostStates",
            "Mentions",
            "find_compaction_offsets",
            "read_cost_states",
            "read_mentions",
        ],
        "side_files": ["read_agent_meta", "read_side_file"],
        "side_values": ["SideReading", "decode_side_value", "read_side_bytes"],
        "sightings": [
            "SightingCollector",
            "USAGE_NEEDLE",
            "is_compacted_at_end",
            "read_sightings",
            "read_sightings_since",
        ],
        "usage_rows": ["ContentRow", "EntryRow", "MessageRow", "decode_rows", "find_first_time"],
    },
)
