"""Avoidable costs in a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import Decimal

from msgspec import Struct

from threadline.model.context import BreakCause
from threadline.model.places import AgentId, Place, SessionId
from threadline.model.tables import Listing


class WasteRule(Struct, frozen=True):
    """A rule that finds waste: its name, what its findings are called, and which limits apply to it."""

    name: str
    label: str
    has_size_limit: bool = False
    has_repeat_limit: bool = False


WASTE_RULES = {
    rule.name: rule
    for rule in (
        WasteRule("cache-break", "Cache breaks"),
        WasteRule("unchanged-file", "Files read again, unchanged", has_repeat_limit=True),
        WasteRule("repeated-command", "Repeated commands", has_repeat_limit=True),
        WasteRule("large-output", "Large outputs that nothing refers to", has_size_limit=True),
        WasteRule("failed-call", "Failed calls"),
        WasteRule("refused-call", "Refused calls"),
        WasteRule("interrupted-call", "Interrupted calls"),
        WasteRule("abandoned-branch", "Abandoned branches"),
        WasteRule("unused-agent", "Agents without a result"),
        WasteRule("unused-tools", "Tool definitions that were never used"),
    )
}
"""The rules that find waste, by name. `threadline.insight.DETECTORS` has the function of each."""
DETECTOR_NAMES = tuple(WASTE_RULES)
"""The names of the rules that find waste."""


class Waste(Struct, frozen=True):
    """Something that cost money and that could have been avoided.

    `detector` is the name of the rule. `label` says what happened, and `evidence` how that is known. `places` are the
    rows that show it, the most important first. `tokens` and `amount` are what it added to the session; `estimated`
    says that they depend on an estimated size. `advice` says what to do. `project` is that of the session, if it is
    known. `cause` says why the cache was lost, if that is what happened.
    """

    detector: str
    session: SessionId | None
    label: str
    evidence: str
    places: tuple[Place, ...]
    tokens: int
    amount: Decimal
    estimated: bool
    advice: str
    agent: AgentId | None = None
    turn: int | None = None
    project: str | None = None
    cause: BreakCause | None = None

    def __repr__(self) -> str:
        return f"Waste({self.detector!r}, {self.label!r}, {self.amount} USD)"


class WasteList(Listing[Waste]):
    """Avoidable costs, most expensive first. `total` is what everything cost, to compare with."""

    row_type = Waste
    noun = "finding"
    html_columns = ("amount", "tokens", "detector", "label", "session")

    def __init__(self, rows: Iterable[Waste] = (), total: Decimal = Decimal(0)) -> None:
        super().__init__(rows)
        self.total = total


class WasteLimits(Struct, frozen=True):
    """Thresholds for reporting.

    `large_output` is the size of a large output, and `min_tokens` the least that anything adds, in tokens. `min_amount`
    is in USD. `repeats` is how often a file was read or a command was run, including the first time.
    """

    large_output: int = 4_000
    min_amount: Decimal = Decimal("0.01")
    min_tokens: int = 0
    repeats: int = 2


def filter_waste(findings: Iterable[Waste], limits: WasteLimits, detectors: Collection[str] = ()) -> list[Waste]:
    """Return the findings of these detectors that are within narrower limits, most expensive first."""
    matches = [
        waste for waste in findings if _is_within(waste, limits) and (not detectors or waste.detector in detectors)
    ]
    return sorted(matches, key=lambda waste: (-waste.amount, waste.detector, str(waste.places[:1])))


def _is_within(waste: Waste, limits: WasteLimits) -> bool:
    rule = WASTE_RULES[waste.detector]
    least_tokens = limits.large_output if rule.has_size_limit else 0
    if rule.has_repeat_limit and len(waste.places) + 1 < limits.repeats:
        return False
    return waste.amount >= limits.min_amount and waste.tokens >= max(limits.min_tokens, least_tokens)
