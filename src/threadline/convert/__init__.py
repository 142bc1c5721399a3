"""Convert other formats into transcripts that Claude Code and the official SDK read.

`convert_files` reads JSON documents (one per line, pretty-printed, or an array) and returns a `Conversion`: transcripts
as rows, and a `Finding` for everything that the source lacks and that had to be invented, changed or left out.
`write_conversion` writes the transcripts to a folder, and never over an existing file. The same source always gives the
same ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.convert.conversion import (
        Conversion,
        ConvertedSession,
        Finding,
        convert_files,
        target_paths,
        write_conversion,
    )

export_lazily(
    __name__,
    {
        "conversion": [
            "Conversion",
            "ConvertedSession",
            "Finding",
            "convert_files",
            "target_paths",
            "write_conversion",
        ],
    },
)
