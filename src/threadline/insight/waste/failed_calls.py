"""Calls that failed, with what sending and carrying them cost.

Calls of one tool that fail one after the other are one finding: an attempt and its retries. A command whose exit code
is not zero counts only if its result is marked as an error, as Claude Code does. A test that fails is often what was
asked for, so the advice depends on the person.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from threadline.insight.waste.facts import SessionFacts, waste_of_calls
from threadline.model.calls import Call, Outcome
from threadline.model.text import count
from threadline.model.waste import Waste, WasteLimits
from threadline.render import one_line

_MAX_LABEL = 60
_ADVICE = "Write down in CLAUDE.md how this is done here, so that the first attempt works."


def detect(facts: SessionFacts, _limits: WasteLimits) -> Iterator[Waste]:
    """Yield each run of failed calls of one tool."""
    for agent in facts.agents:
        for (tool, failed), run in groupby(agent.calls, key=lambda call: (call.tool, call.outcome is Outcome.ERROR)):
            if not failed:
                continue
            calls = list(run)
            waste = waste_of_calls(
                "failed-call",
                facts,
                calls,
                label=f"{tool}: {_first_error(calls)}",
                evidence=f"{count(len(calls), 'failed call')} in a row",
                advice=_ADVICE,
            )
            if waste is not None:
                yield waste


def _first_error(calls: list[Call]) -> str:
    return one_line(calls[0].output.strip() or "failed", _MAX_LABEL)
