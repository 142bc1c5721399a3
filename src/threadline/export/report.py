"""The report: what was taken out where, and what stands there now; never what it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from threadline.export.exporting import Exported
from threadline.export.writing import write


def write_report(made: Exported, place: Path) -> None:
    """Write the report of an export as JSON."""
    value = {
        "hidden": made.hidden,
        "findings": [
            {"kind": one.kind, "place": one.place, "placeholder": one.placeholder, "count": one.count}
            for one in made.findings
        ],
    }
    with tempfile.TemporaryDirectory(prefix="threadline-report-") as folder:
        staged = Path(folder) / "report.json"
        staged.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
        write(staged, place)
