"""Find avoidable costs in a session: a file for each group of detectors that have something in common.

A `Detector` has a name, advice, and a function that takes the `WasteContext` of a session and the limits, and yields
what it can show. Its module says what counts, and what does not.
"""

from __future__ import annotations

from collections.abc import Collection

from threadline.errors import BadQuery
from threadline.insight.waste.cache_breaks import CACHE_BREAKS
from threadline.insight.waste.detector import Detector, WasteContext
from threadline.insight.waste.failed_calls import FAILED_CALLS, INTERRUPTED_CALLS, REFUSED_CALLS
from threadline.insight.waste.large_outputs import LARGE_OUTPUTS
from threadline.insight.waste.repeats import REPEATED_COMMANDS, UNCHANGED_FILES
from threadline.insight.waste.unused import ABANDONED_BRANCHES, UNUSED_AGENTS, UNUSED_TOOLS
from threadline.model.insight.waste import DETECTOR_NAMES, Waste, WasteLimits, filter_waste

_ALL = (
    CACHE_BREAKS,
    UNCHANGED_FILES,
    REPEATED_COMMANDS,
    LARGE_OUTPUTS,
    FAILED_CALLS,
    REFUSED_CALLS,
    INTERRUPTED_CALLS,
    ABANDONED_BRANCHES,
    UNUSED_AGENTS,
    UNUSED_TOOLS,
)
DETECTORS: dict[str, Detector] = {name: next(d for d in _ALL if d.name == name) for name in DETECTOR_NAMES}
"""Every detector by name."""


def find_waste(
    context: WasteContext, limits: WasteLimits | None = None, detectors: Collection[str] = ()
) -> list[Waste]:
    """Return what the detectors find in a session, most expensive first. By default, all detectors run.

    Raises:
        BadQuery: there is no detector of this name.
    """
    limits = limits or WasteLimits()
    unknown = sorted(set(detectors) - DETECTORS.keys())
    if unknown:
        raise BadQuery(f"There is no detector {unknown[0]!r}. Choose from {', '.join(DETECTORS)}.")
    findings = (
        Waste(
            detector=detector.name,
            session=context.session.id,
            label=finding.label,
            evidence=finding.evidence,
            places=finding.places,
            tokens=finding.tokens,
            amount=finding.amount,
            estimated=finding.estimated,
            advice=finding.advice or detector.advice,
            agent=finding.agent,
            turn=finding.turn,
            project=context.project,
            cause=finding.cause,
        )
        for detector in DETECTORS.values()
        if not detectors or detector.name in detectors
        for finding in detector.detect(context, limits)
        if finding.amount
    )
    return filter_waste(findings, limits)
