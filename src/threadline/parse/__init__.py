"""Read transcripts and side files from bytes, without losing any.

`entries` yields complete entries, `heads` only the fields that most questions need, and `read_sightings` only token
counts. Modules are loaded when a name is first used, so counting tokens does not load the entry types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.parse.lines import (
        FIRST_HEADS,
        MAX_LINE_LENGTH,
        Chunk,
        LineNumbers,
        MatchingLines,
        find_lines,
        find_lines_in_block,
        heads,
        make_lines_decoder,
        named_session,
        read_chunks,
        read_first_lines,
    )
    from threadline.parse.reader import (
        EntryRun,
        TranscriptReader,
        decode_object,
        entries,
        entry_runs,
        head_of,
        load_entries,
    )
    from threadline.parse.receipts import (
        CompactionBoundary,
        CostStates,
        Mentions,
        find_compaction_offsets,
        read_cost_states,
        read_mentions,
    )
    from threadline.parse.side_files import SIDE_SHAPES, read_side_file, read_task, read_todos
    from threadline.parse.side_values import (
        decode_content,
        decode_side_value,
        read_agent_meta,
        read_side_bytes,
        read_side_content,
    )
    from threadline.parse.summaries import (
        TranscriptLinks,
        can_have_summaries,
        find_named_entries,
        find_summaries,
    )
    from threadline.parse.usage import (
        USAGE_NEEDLE,
        ContentRow,
        EntryRow,
        MessageRow,
        SightingCollector,
        decode_rows,
        find_first_time,
        is_compacted_at_end,
        read_sightings,
        read_sightings_since,
    )

export_lazily(
    __name__,
    {
        "lines": [
            "Chunk",
            "FIRST_HEADS",
            "LineNumbers",
            "MAX_LINE_LENGTH",
            "MatchingLines",
            "find_lines",
            "find_lines_in_block",
            "heads",
            "make_lines_decoder",
            "named_session",
            "read_chunks",
            "read_first_lines",
        ],
        "reader": ["EntryRun", "TranscriptReader", "decode_object", "entries", "entry_runs", "head_of", "load_entries"],
        "receipts": [
            "CompactionBoundary",
            "CostStates",
            "Mentions",
            "find_compaction_offsets",
            "read_cost_states",
            "read_mentions",
        ],
        "side_files": ["SIDE_SHAPES", "read_side_file", "read_task", "read_todos"],
        "side_values": [
            "decode_content",
            "decode_side_value",
            "read_agent_meta",
            "read_side_bytes",
            "read_side_content",
        ],
        "summaries": [
            "TranscriptLinks",
            "can_have_summaries",
            "find_named_entries",
            "find_summaries",
        ],
        "usage": [
            "ContentRow",
            "EntryRow",
            "MessageRow",
            "SightingCollector",
            "USAGE_NEEDLE",
            "decode_rows",
            "find_first_time",
            "is_compacted_at_end",
            "read_sightings",
            "read_sightings_since",
        ],
    },
)
