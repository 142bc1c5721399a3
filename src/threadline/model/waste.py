"""What a session spent without need."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from threadline.model.places import AgentId, Place, SessionId


class Waste(Struct, frozen=True):
    """Something that cost money and that could have been avoided.

    `detector` is the name of the rule. `label` says what happened, and `evidence` how that is known. `places` are the
    rows that show it, the most important first. `tokens` and `amount` are what it added to the session; `estimated`
    says that they depend on an estimated size. `advice` says what to do.
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

    def __repr__(self) -> str:
        return f"Waste({self.detector!r}, {self.label!r}, {self.amount} USD)"


class WasteLimits(Struct, frozen=True):
    """From when on something is reported. Sizes are in tokens, `min_amount` is in USD."""

    large_output: int = 4_000
    min_amount: Decimal = Decimal("0.01")
