"""Amounts that Claude Code itself reports, compared with the computed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.charges import EXACT
from threadline.model.places import Place, Problem
from threadline.model.totals import sum_amounts

TOLERANCE = Decimal("1e-9")
"""Claude Code adds up in floats, we exactly; no token costs as little as this, so that less is the floats' doing."""


class ReportedSource(StrEnum):
    """Where an amount was reported: in the session's total, or on the rows of its messages (up to about 1.0.8)."""

    COST_STATE = "cost-state"
    COST_USD = "costUSD"


class DifferenceCause(StrEnum):
    """Why a reported amount is another than the computed one.

    `continues`: the total goes on from another session's. `unclosed`: a run ended without writing its total, or has
    not ended yet. `restarted`: the total began again at nothing. `cut`: a reply that broke off, of which Claude Code
    counts nothing. `compaction` and `web`: calls for these are in no transcript. `side-calls`: neither are others.
    `unpriced`: we know no price for a model. `prices`: the tokens are the same, the prices are not. `lower-bound`: the
    transcript does not hold the final output. `silent`: messages that report nothing. `larger`: more was computed than
    reported, and nothing explains it.
    """

    AGREES = "agrees"
    CONTINUES = "continues"
    UNCLOSED = "unclosed"
    RESTARTED = "restarted"
    CUT = "cut"
    COMPACTION = "compaction"
    WEB = "web"
    SIDE_CALLS = "side-calls"
    UNPRICED = "unpriced"
    PRICES = "prices"
    LOWER_BOUND = "lower-bound"
    SILENT = "silent"
    LARGER = "larger"


class DifferenceReason(Struct, frozen=True):
    """One reason for a difference, and the part of it that it accounts for.

    `proven` where that part was found to be equal to something else that is known; otherwise it is what is left.
    """

    cause: DifferenceCause
    amount: Decimal
    words: str
    proven: bool = False


class ModelTokens(Struct, frozen=True):
    """Tokens of one model: those reported, those computed, or how many more were reported."""

    model: str
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    web_searches: int = 0

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """The counts without the model."""
        return self.input, self.output, self.cache_write, self.cache_read, self.web_searches

    def minus(self, other: ModelTokens | None) -> ModelTokens:
        """How many more these are."""
        if other is None:
            return self
        return ModelTokens(self.model, *(mine - its for mine, its in zip(self.counts, other.counts, strict=True)))


class CostState(Struct, frozen=True):
    """A session's total as Claude Code wrote it down when a run closed.

    `costs` is what it says each model cost; `began` is the start (in milliseconds) that a continued total keeps.
    """

    place: Place
    session: str | None
    amount: Decimal
    is_floor: bool = False
    tokens: tuple[ModelTokens, ...] = ()
    costs: tuple[tuple[str, Decimal], ...] = ()
    began: str | None = None


class ReportedSession(Struct, frozen=True):
    """One session's reported amount, and how it goes together with the computed one.

    `difference` is reported less computed. `is_floor`: Claude Code did not know the price of a model, either. `tokens`
    are the differences by model, where there are any. `why` has one reason or more; their amounts add up to the
    difference, but for what floats lose.
    """

    session: str
    project: str
    place: Place
    source: ReportedSource
    reported: Decimal
    computed: Decimal
    why: tuple[DifferenceReason, ...]
    charges: int = 0
    is_floor: bool = False
    tokens: tuple[ModelTokens, ...] = ()

    @property
    def difference(self) -> Decimal:
        """Reported less computed."""
        return EXACT.subtract(self.reported, self.computed)

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return EXACT.abs(self.difference) <= TOLERANCE

    @property
    def is_explained(self) -> bool:
        """Whether nothing here says that counting may have gone wrong."""
        return all(why.cause is not DifferenceCause.LARGER for why in self.why)


class ReportedDay(Struct, frozen=True):
    """A day as `stats-cache.json` has it, whose transcripts are gone: all of them, or some (`is_partly`).

    Its figures are never added to any total. `tokens` are by model, with or without the cache (`with_cache`) as that
    version of the program counted them. What is `left` is in the ledger, counted alike.
    """

    home: str
    date: str
    messages: int = 0
    sessions: int = 0
    calls: int = 0
    tokens: tuple[tuple[str, int], ...] = ()
    with_cache: bool = False
    is_partly: bool = False
    left_charges: int = 0
    left_sessions: int = 0
    left_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """The tokens of all models."""
        return sum(number for _, number in self.tokens)


class ReportedUsage(Struct, frozen=True):
    """All that Claude Code reports about the sessions of a ledger, and about days that are gone.

    `silent` is how many of the ledger's sessions report no amount, and `silent_computed` what they cost.
    """

    sessions: tuple[ReportedSession, ...] = ()
    silent: int = 0
    silent_computed: Decimal = Decimal(0)
    swept: tuple[ReportedDay, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def reported(self) -> Decimal:
        """What the sessions that report an amount report."""
        return sum_amounts(session.reported for session in self.sessions)

    @property
    def computed(self) -> Decimal:
        """What those sessions come to by the ledger."""
        return sum_amounts(session.computed for session in self.sessions)

    @property
    def difference(self) -> Decimal:
        """Reported less computed, over those sessions."""
        return EXACT.subtract(self.reported, self.computed)

    @property
    def by_cause(self) -> dict[DifferenceCause, Decimal]:
        """The difference by its causes."""
        return sum_by_cause(why for session in self.sessions for why in session.why)

    @property
    def agreeing(self) -> int:
        """How many sessions agree."""
        return sum(session.agrees for session in self.sessions)

    @property
    def causes(self) -> Counter[DifferenceCause]:
        """How many sessions each cause is named for."""
        return Counter(cause for session in self.sessions for cause in {why.cause for why in session.why})


def sum_by_cause(reasons: Iterable[DifferenceReason]) -> dict[DifferenceCause, Decimal]:
    """The amounts of reasons, added up by cause."""
    sums: dict[DifferenceCause, Decimal] = {}
    for why in reasons:
        sums[why.cause] = EXACT.add(sums.get(why.cause, Decimal(0)), why.amount)
    return sums
