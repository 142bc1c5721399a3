"""Files that were read again although the same content was still in the window.

A read counts if an earlier read of the same path and range by the same agent had exactly the same result, and no
compaction of this agent came between the two. What counts is the result, until it left the window.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext
from threadline.insight.waste.repeats import repeated_calls
from threadline.model.waste import WasteLimits

_TOOLS = frozenset(("Read", "NotebookRead"))


def detect(facts: WasteContext, limits: WasteLimits) -> Iterator[Finding]:
    """Yield each file with the reads that repeated an earlier one."""
    for calls in repeated_calls(facts, _TOOLS, limits):
        inputs = calls[0].input if isinstance(calls[0].input, dict) else {}
        path = inputs.get("file_path") or inputs.get("notebook_path") or "a file"
        yield facts.calls_finding(
            calls[1:],
            label=f"{path} read {len(calls)} times, unchanged",
            evidence=f"the same result as at line {calls[0].place.line}, still in the window",
            results_only=True,
        )


UNCHANGED_FILES = Detector(
    "unchanged-file",
    "Ask for the part that is needed, or refer to what was read; a shorter session forgets less.",
    detect,
)
