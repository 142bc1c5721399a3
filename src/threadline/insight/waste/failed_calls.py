"""Calls that failed, with what sending and carrying them cost.

Calls of one tool that fail one after the other are one finding: an attempt and its retries. A command whose exit code
is not zero counts only if its result is marked as an error, as Claude Code does. A test that fails is often what was
asked for, so the advice depends on the person.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from threadline.insight.waste.facts import Detector, Finding, SessionFacts
from threadline.model.calls import Outcome
from threadline.model.text import count
from threadline.model.waste import WasteLimits
from threadline.render import one_line

_MAX_ERROR = 60


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each run of failed calls of one tool."""
    for agent in facts.agents:
        for (tool, failed), run in groupby(agent.calls, key=lambda call: (call.tool, call.outcome is Outcome.ERROR)):
            if failed:
                calls = list(run)
                error = one_line(calls[0].output.strip() or "failed", _MAX_ERROR)
                evidence = f"{count(len(calls), 'failed call')} in a row"
                yield facts.calls_finding(calls, label=f"{tool}: {error}", evidence=evidence)


FAILED_CALLS = Detector(
    "failed-call", "Write down in CLAUDE.md how this is done here, so that the first attempt works.", detect
)
