"""Amounts that Claude Code reports itself, compared with computed ones, and the reasons for differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.ledger import EXACT, sum_amounts
from threadline.model.places import Place, Problem

TOLERANCE = Decimal("1e-9")
"""Claude Code adds floats, threadline adds exactly. No token costs this little, so a smaller difference is rounding."""


class ReportedSource(StrEnum):
    """Where an amount was reported.

    In the session's total, on rows of the conversation as a total by model (according to one description), or on the
    rows of messages (up to about 1.0.8).
    """

    COST_STATE = "cost-state"
    MODEL_USAGE = "modelUsage"
    COST_USD = "costUSD"


class DifferenceCause(StrEnum):
    """Why a reported amount differs from the computed one.

    `continues`: the total continues another session's. `unclosed`: a run ended without writing its total, or has not
    ended yet. `restarted`: the total started again at zero. `cut`: an interrupted reply, which Claude Code does not
    count. `compaction` and `web`: calls for these are in no transcript. `side-calls`: other calls that are in no
    transcript. `unpriced`: no price is known for a model. `prices`: the tokens are the same, the prices are not.
    `lower-bound`: the transcript does not contain the final output. `silent`: messages without a reported amount.
    `larger`: more was computed than reported, and nothing explains it.
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

    `proven` says that this part equals another known amount. Otherwise it is the remainder.
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
        """Return the difference of the counts."""
        if other is None:
            return self
        return ModelTokens(self.model, *(left - right for left, right in zip(self.counts, other.counts, strict=True)))


class CostState(Struct, frozen=True):
    """A session's total as Claude Code wrote it when a run closed, or on a row of the conversation (`source`).

    `costs` is the reported cost of each model. `began` is the start (in milliseconds) that a continued total keeps.
    """

    place: Place
    session: str | None
    amount: Decimal
    is_floor: bool = False
    tokens: tuple[ModelTokens, ...] = ()
    costs: tuple[tuple[str, Decimal], ...] = ()
    began: str | None = None
    source: ReportedSource = ReportedSource.COST_STATE


class ReportedSession(Struct, frozen=True):
    """One session's reported amount, compared with the computed one.

    `difference` is reported minus computed. `is_floor`: Claude Code did not know the price of a model, either.
    `tokens` are the differences by model, if any. `why` has one or more reasons. Their amounts add up to the
    difference, except for rounding of floats.
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
        """Reported minus computed."""
        return EXACT.subtract(self.reported, self.computed)

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return EXACT.abs(self.difference) <= TOLERANCE


class ReportedDay(Struct, frozen=True):
    """A day in `stats-cache.json` whose transcripts were deleted: all of them, or some (`is_partly`).

    Its figures are never added to any total. `tokens` are by model, with or without the cache (`with_cache`), as that
    version of Claude Code counted them. The `left_` figures are those of the ledger, counted the same way.
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
    """Everything that Claude Code reports about the sessions of a ledger, and about days whose transcripts are deleted.

    `silent` is how many of the ledger's sessions report no amount, and `silent_computed` is what they cost.
    """

    sessions: tuple[ReportedSession, ...] = ()
    silent: int = 0
    silent_computed: Decimal = Decimal(0)
    swept: tuple[ReportedDay, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def reported(self) -> Decimal:
        """The reported amount, over the sessions that report one."""
        return sum_amounts(session.reported for session in self.sessions)

    @property
    def computed(self) -> Decimal:
        """The computed amount of those sessions."""
        return sum_amounts(session.computed for session in self.sessions)

    @property
    def difference(self) -> Decimal:
        """Reported minus computed, over those sessions."""
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
        """How many sessions each cause applies to."""
        return Counter(cause for session in self.sessions for cause in {why.cause for why in session.why})


def sum_by_cause(reasons: Iterable[DifferenceReason]) -> dict[DifferenceCause, Decimal]:
    """Add up the amounts of reasons by cause."""
    sums: dict[DifferenceCause, Decimal] = {}
    for why in reasons:
        sums[why.cause] = EXACT.add(sums.get(why.cause, Decimal(0)), why.amount)
    return sums
