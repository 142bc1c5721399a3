"""What the detectors of waste know about a session, and the form of what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property

from msgspec import Struct

from threadline.account import Ledger
from threadline.insight.attribution import attribute_costs
from threadline.insight.request_costs import SessionRequests
from threadline.model.call_summary import summarize_call
from threadline.model.calls import Call
from threadline.model.context import BreakCause
from threadline.model.insight.attribution import Attribution, CauseKind, CostCause
from threadline.model.insight.waste import WasteLimits
from threadline.model.ledger import Charge, sum_amounts
from threadline.model.places import AgentId, Place
from threadline.model.session import Agent, Session
from threadline.model.text import fold_line

_MAX_LABEL = 60


class Finding(Struct, frozen=True):
    """What a detector shows: what happened, how that is known, where, and what it cost.

    `advice` replaces that of the detector. `cause` says why the cache was lost, if that is what happened.
    """

    label: str
    evidence: str
    places: tuple[Place, ...]
    tokens: int
    amount: Decimal
    estimated: bool = False
    agent: AgentId | None = None
    turn: int | None = None
    advice: str | None = None
    cause: BreakCause | None = None


class Detector(Struct, frozen=True):
    """A rule that finds waste: its name, what to do about it, and the function that finds it."""

    name: str
    advice: str
    detect: Callable[[WasteContext, WasteLimits], Iterator[Finding]]


class WasteContext:
    """A session with its charges, what they were caused by, and its calls with what each of them cost."""

    def __init__(self, session: Session, ledger: Ledger, project: str | None = None) -> None:
        self.session = session
        self.ledger = ledger
        self.project = project

    @cached_property
    def attribution(self) -> Attribution:
        """What the session's cost was caused by."""
        return attribute_costs(self.session, self.ledger, self.project, self.requests)

    @cached_property
    def requests(self) -> SessionRequests:
        """The requests with their charges."""
        return SessionRequests(self.session, self.ledger)

    @property
    def agents(self) -> Iterator[Agent]:
        """The main agent, then the others."""
        yield self.session.main
        yield from self.session.agents

    @property
    def calls(self) -> Iterator[Call]:
        """The calls of all agents."""
        for agent in self.agents:
            yield from agent.calls

    @cached_property
    def _by_call(self) -> dict[str, list[CostCause]]:
        causes: dict[str, list[CostCause]] = {}
        for row in self.attribution.rows:
            if row.call is not None:
                causes.setdefault(row.call, []).append(row)
        return causes

    def result_tokens(self, call: Call) -> int:
        """The size of a call's result."""
        return sum(cause.tokens for cause in self._causes_of(call, results_only=True))

    def charges_of_agent(self, agent: AgentId) -> list[Charge]:
        """The charges of an agent."""
        return [charge for group in self.requests.charges(agent).values() for charge in group]

    def calls_finding(self, calls: Sequence[Call], *, label: str, evidence: str, results_only: bool = False) -> Finding:
        """Return a finding that costs what calls of one agent and their results cost; or only the results."""
        causes = [cause for call in calls for cause in self._causes_of(call, results_only=results_only)]
        return Finding(
            label,
            evidence,
            tuple(call.place for call in calls),
            sum(cause.tokens for cause in causes),
            sum_amounts(cause.amount for cause in causes),
            any(cause.estimated for cause in causes),
            calls[0].agent,
            calls[0].turn,
        )

    def _causes_of(self, call: Call, *, results_only: bool) -> list[CostCause]:
        causes = self._by_call.get(str(call.id), [])
        return [cause for cause in causes if not results_only or cause.kind is not CauseKind.CALL]


def charges_finding(
    charges: Sequence[Charge],
    *,
    label: str,
    evidence: str,
    place: Place,
    agent: AgentId | None,
    turn: int | None,
) -> Finding:
    """Return a finding that costs what some requests cost."""
    tokens, amount = sum(charge.tokens for charge in charges), add_amounts(charge.amount for charge in charges)
    return Finding(label, evidence, (place,), tokens, amount, agent=agent, turn=turn)


def call_label(call: Call) -> str:
    """A call in one line: its tool and a summary of its input."""
    return fold_line(f"{call.tool} {summarize_call(call.tool, call.input)}", _MAX_LABEL)


def add_amounts(amounts: Iterable[Decimal | None]) -> Decimal:
    """Add up amounts exactly. None counts as nothing."""
    return sum_amounts(amount for amount in amounts if amount is not None)
