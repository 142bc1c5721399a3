"""Compare the costs that Claude Code reported with the computed ones, and explain the difference.

A session's reported totals split it into runs. For each run the difference is taken apart cause by cause, the surest
first, until nothing is left. A cause is proven only if it explains the remaining amount exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import Rates
from threadline.model.ledger import EXACT, Charge, sum_amounts
from threadline.model.reported_costs import TOLERANCE, CostState, DifferenceCause, DifferenceReason, ModelTokens
from threadline.model.text import count, format_amount

_WEB_TOOLS = ("WebSearch", "WebFetch")
_TOKEN_KINDS = ("input", "output", "cache write", "cache read", "web searches")


class AncestorSession(Struct, frozen=True):
    """A session whose total another may continue: its totals, and the charges copied from it."""

    session: str
    states: tuple[CostState, ...] = ()
    copied: tuple[Charge, ...] = ()


def explain_total(
    runs: Sequence[Run], ancestors: Sequence[AncestorSession], compactions: Callable[[], Sequence[int]], rates: Rates
) -> list[DifferenceReason]:
    """Explain why the last total differs from the charges of its session; the only reason is `agrees` if it does not.

    `compactions` returns the offsets at which the transcript was compacted. It is called only if something differs.
    """
    reasons: list[DifferenceReason] = []
    for run in runs:
        if run.state is None:
            if run.charges and EXACT.abs(run.computed) > TOLERANCE:
                reasons.append(_explain_unclosed_end(run))
        else:
            reasons += _RunDifference(
                run, run.state, ancestors if run.before is None else (), compactions, rates
            ).reasons()
    return reasons or [DifferenceReason(DifferenceCause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _explain_unclosed_end(run: Run) -> DifferenceReason:
    messages = count(len(run.charges), "message")
    verb = "comes" if len(run.charges) == 1 else "come"
    return DifferenceReason(
        DifferenceCause.UNCLOSED,
        EXACT.minus(run.computed),
        f"{messages} {verb} after the last total: that run has not written one",
        proven=True,
    )


class _RunDifference:
    """The difference of one run: what its total grew by, less what its charges cost. Reasons reduce it to nothing."""

    def __init__(
        self,
        run: Run,
        state: CostState,
        ancestors: Sequence[AncestorSession],
        compactions: Callable[[], Sequence[int]],
        rates: Rates,
    ) -> None:
        name = rates.model_name
        self._run, self._state, self._ancestors, self._name, self._rates = run, state, ancestors, name, rates
        self._compactions = compactions
        self._reported = reported_tokens(state, name)
        self._computed = tokens_by_model(run.charges, name)
        for token in reported_tokens(run.before, name).values():
            self._computed[token.model] = add_tokens(self._computed.get(token.model), token)
        base = run.before.amount if run.before is not None else Decimal(0)
        self._unexplained = EXACT.subtract(EXACT.subtract(state.amount, base), run.computed)

    def reasons(self) -> Iterator[DifferenceReason]:
        """Yield the reasons, surest first. What is left at the end gets the least certain one."""
        for explain in (
            self._restarted,
            self._unpriced,
            self._continues_total,
            self._prices,
            self._fees,
            self._aborted,
            self._unclosed,
        ):
            if EXACT.abs(self._unexplained) <= TOLERANCE:
                return
            reason = explain()
            if reason is not None:
                self._unexplained = EXACT.subtract(self._unexplained, reason.amount)
                yield reason
        if self._unexplained > TOLERANCE:
            yield self._unseen()
        elif EXACT.minus(self._unexplained) > TOLERANCE:
            words = "the computed amount is larger: a message may be counted twice, or a price may differ"
            yield DifferenceReason(DifferenceCause.LARGER, self._unexplained, f"{words}{self._differing()}")

    def _restarted(self) -> DifferenceReason | None:
        before = self._run.before
        if before is None or not before.amount:
            return None
        without_base = EXACT.add(self._unexplained, before.amount)
        if EXACT.abs(without_base) > TOLERANCE and self._state.amount >= before.amount:
            return None
        for token in before.tokens:
            model = self._name(token.model)
            self._computed[model] = self._computed[model].minus(ModelTokens(model, *token.counts))
        return DifferenceReason(
            DifferenceCause.RESTARTED,
            EXACT.minus(before.amount),
            f"the total restarted at zero, after {format_amount(before.amount, exact=True)}",
            proven=EXACT.abs(without_base) <= TOLERANCE,
        )

    def _unpriced(self) -> DifferenceReason | None:
        models = {self._name(charge.model or "") for charge in self._run.charges if charge.rate is None}
        if not models:
            return None
        cost = sum_amounts(cost for model, cost in self._costs().items() if model in models)
        guess = "its own guess" if self._state.is_floor else "a price"
        words = f"no price is known for {join_words(sorted(models))}; Claude Code used {guess}"
        return DifferenceReason(DifferenceCause.UNPRICED, cost, words, proven=True)

    def _costs(self) -> dict[str, Decimal]:
        """Return what each model is reported to have cost in this run."""
        costs: dict[str, Decimal] = {}
        before = self._run.before.costs if self._run.before is not None else ()
        for model, cost in (*self._state.costs, *((model, EXACT.minus(cost)) for model, cost in before)):
            costs[self._name(model)] = EXACT.add(costs.get(self._name(model), Decimal(0)), cost)
        return costs

    def _continues_total(self) -> DifferenceReason | None:
        for ancestor in self._ancestors:
            for state in reversed(ancestor.states):
                if EXACT.abs(EXACT.subtract(self._unexplained, state.amount)) <= TOLERANCE and state.amount:
                    return self._continuation(ancestor, state)
        for ancestor in self._ancestors:
            earlier = [
                state
                for state in ancestor.states
                if state.began == self._state.began and 0 < state.amount <= self._unexplained
            ]
            if earlier:
                return self._continuation(ancestor, earlier[-1])
            copied = total_amount(ancestor.copied)
            if copied and copied <= EXACT.add(self._unexplained, TOLERANCE):
                words = (
                    f"continues the total of session {ancestor.session} (--fork-session), whose messages it contains"
                )
                for model, tokens in tokens_by_model(ancestor.copied, self._name).items():
                    self._computed[model] = add_tokens(self._computed.get(model), tokens)
                return DifferenceReason(
                    DifferenceCause.CONTINUES,
                    copied,
                    words,
                    proven=EXACT.abs(EXACT.subtract(self._unexplained, copied)) <= TOLERANCE,
                )
        return None

    def _continuation(self, ancestor: AncestorSession, state: CostState) -> DifferenceReason:
        for model, tokens in reported_tokens(state, self._name).items():
            self._computed[model] = add_tokens(self._computed.get(model), tokens)
        how = " (--fork-session)" if ancestor.copied else ""
        total = format_amount(state.amount, exact=True)
        words = f"continues the total of session {ancestor.session}{how}, which was {total}"
        exact = EXACT.abs(EXACT.subtract(self._unexplained, state.amount)) <= TOLERANCE
        return DifferenceReason(DifferenceCause.CONTINUES, state.amount, words, proven=exact)

    def _prices(self) -> DifferenceReason | None:
        priced = [charge for charge in self._run.charges if charge.rate is not None]
        if not self._reported or token_surplus(self._reported, self._computed) or not priced:
            return None
        words = f"the tokens agree, the prices do not{self._differing()}"
        for cause, otherwise in (
            ("Claude Code priced an hour in the cache as five minutes", amount_at_5m_price(priced)),
            ("Claude Code priced long prompts as short ones", amount_without_long_context(priced, self._rates)),
        ):
            off = EXACT.subtract(otherwise, total_amount(priced))
            if EXACT.abs(EXACT.subtract(self._unexplained, off)) <= TOLERANCE:
                words = f"{cause}{self._differing()}"
        return DifferenceReason(DifferenceCause.PRICES, self._unexplained, words, proven=True)

    def _differing(self) -> str:
        parts = []
        for model, cost in self._costs().items():
            computed = total_amount(charge for charge in self._run.charges if self._name(charge.model or "") == model)
            if EXACT.abs(EXACT.subtract(cost, computed)) > TOLERANCE:
                amounts = [format_amount(amount, exact=True) for amount in (cost, computed)]
                parts.append(f"{model} {amounts[0]} reported, {amounts[1]} computed")
        return f" ({'; '.join(parts)})" if parts else ""

    def _fees(self) -> DifferenceReason | None:
        searches = -sum(model_tokens.web_searches for model_tokens in token_surplus(self._reported, self._computed))
        fee = next((charge.rate.web_search for charge in self._run.charges if charge.rate is not None), Decimal(0))
        fees = EXACT.multiply(fee, searches)
        if searches <= 0 or fees > EXACT.subtract(TOLERANCE, self._unexplained):
            return None
        return DifferenceReason(
            DifferenceCause.WEB,
            EXACT.minus(fees),
            missing_fee_text(searches),
            proven=EXACT.abs(EXACT.add(self._unexplained, fees)) <= TOLERANCE,
        )

    def _aborted(self) -> DifferenceReason | None:
        aborted = [charge for charge in self._run.charges if not charge.counted.stopped]
        if not aborted or EXACT.abs(EXACT.add(self._unexplained, total_amount(aborted))) > TOLERANCE:
            return None
        replies = "1 aborted reply" if len(aborted) == 1 else f"{len(aborted):,} aborted replies"
        return DifferenceReason(
            DifferenceCause.CUT,
            self._unexplained,
            f"Claude Code does not count {replies}; their input is counted here",
            proven=True,
        )

    def _unclosed(self) -> DifferenceReason | None:
        """Check whether the first messages of the run, up to some message, are what the total lacks."""
        lacking = self._unexplained
        for number, charge in enumerate(self._run.charges, 1):
            lacking = EXACT.add(lacking, charge.amount or Decimal(0))
            if EXACT.abs(lacking) <= TOLERANCE:
                messages = count(number, "message")
                words = f"{messages} of a run that ended without writing its total: it was killed, or it crashed"
                return DifferenceReason(DifferenceCause.UNCLOSED, self._unexplained, words, proven=True)
            if lacking > TOLERANCE:
                return None
        return None

    def _unseen(self) -> DifferenceReason:
        """Explain what is in the total and in no transcript."""
        start, end = self._run.span
        compacted = sum(start < offset < end for offset in self._compactions())
        calls = Counter(
            name for charge in self._run.charges if not charge.part for name in charge.calls if name in _WEB_TOOLS
        )
        web = [f"{name} ({number:,})" for name, number in calls.items()]
        tokens = describe_tokens(token_surplus(self._reported, self._computed))
        if compacted:
            also = f", and the side calls of {join_words(web)}" if web else ""
            words = f"the calls of {count(compacted, 'compaction')} (/compact) are in no transcript{also}{tokens}"
            return DifferenceReason(DifferenceCause.COMPACTION, self._unexplained, words)
        if web:
            return DifferenceReason(
                DifferenceCause.WEB,
                self._unexplained,
                f"the side calls of {join_words(web)} are in no transcript{tokens}",
            )
        lower = sum(charge.is_lower_bound for charge in self._run.charges)
        if lower:
            words = f"the final output of {count(lower, 'message')} is in no transcript{tokens}"
            return DifferenceReason(DifferenceCause.LOWER_BOUND, self._unexplained, words)
        words = f"side calls that are in no transcript (titles, summaries, classifiers){tokens}"
        return DifferenceReason(DifferenceCause.SIDE_CALLS, self._unexplained, words)


def missing_fee_text(searches: int) -> str:
    """Say that the fee for searches is missing."""
    return f"the fee for {searches:,} web {'search' if searches == 1 else 'searches'} is not included"


def describe_tokens(differences: Sequence[ModelTokens]) -> str:
    """Describe token differences, to follow a sentence; empty if there are none."""
    parts = [f"{model_tokens.model} {_describe_counts(model_tokens)}" for model_tokens in differences]
    return f": {'; '.join(parts)}" if parts else ""


def _describe_counts(model_tokens: ModelTokens) -> str:
    return ", ".join(
        f"{number:+,} {kind}" for kind, number in zip(_TOKEN_KINDS, model_tokens.counts, strict=True) if number
    )


def join_words(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


ModelNamer = Callable[[str], str]
"""Maps every id of a model to one name."""


class Run(Struct, frozen=True):
    """One run of Claude Code, according to the totals: from the total `before` to `state`, its last one.

    `state` is None for what came after the last total. `charges` are sorted by time.
    """

    state: CostState | None
    before: CostState | None
    charges: tuple[Charge, ...]

    @property
    def computed(self) -> Decimal:
        """The cost of its charges."""
        return total_amount(self.charges)

    @property
    def span(self) -> tuple[int, float]:
        """Its range in the transcript, in bytes."""
        start = self.before.place.offset if self.before is not None else 0
        return start, self.state.place.offset if self.state is not None else float("inf")


def split_into_runs(states: Sequence[CostState], charges: Iterable[Charge]) -> list[Run]:
    """Split a session's charges by its totals, which are in one transcript, in file order.

    Charges of the main agent come before or after a total in the file. An agent's are in another file, and belong to
    the last run whose first message is not later.
    """
    transcript = states[-1].place.transcript
    ends = [state.place.offset for state in states]
    groups: list[list[Charge]] = [[] for _ in range(len(states) + 1)]
    elsewhere: list[Charge] = []
    for charge in charges:
        offset = first_offset(charge, transcript)
        if offset is None:
            elsewhere.append(charge)
        else:
            groups[bisect_left(ends, offset)].append(charge)
    starts = [(min(charge.owner.time for charge in group), number) for number, group in enumerate(groups) if group]
    times = [time for time, _ in starts]
    for charge in elsewhere:
        after = bisect_right(times, charge.owner.time) - 1
        groups[starts[after][1] if after >= 0 else 0].append(charge)
    runs = []
    for number, group in enumerate(groups):
        ordered = tuple(sorted(group, key=lambda charge: charge.owner.time))
        state = states[number] if number < len(states) else None
        runs.append(Run(state, states[number - 1] if number else None, ordered))
    return runs


def first_offset(charge: Charge, transcript: str) -> int | None:
    """Return where a transcript first mentions a charge; None if it does not."""
    offsets = [sighting.offsets[0] for sighting in charge.sightings if sighting.origin.transcript == transcript]
    return min(offsets, default=None)


def total_amount(charges: Iterable[Charge]) -> Decimal:
    """Return what charges cost, without those that have no price."""
    return sum_amounts(charge.amount for charge in charges if charge.amount is not None)


def tokens_by_model(charges: Iterable[Charge], name: ModelNamer) -> dict[str, ModelTokens]:
    """Add up the tokens of charges by model."""
    sums: dict[str, ModelTokens] = {}
    for charge in charges:
        model = name(charge.model or "")
        counts = ModelTokens(
            model, charge.input, charge.output, charge.cache_write, charge.cache_read, charge.web_searches
        )
        sums[model] = add_tokens(sums.get(model), counts)
    return sums


def reported_tokens(state: CostState | None, name: ModelNamer) -> dict[str, ModelTokens]:
    """Return the tokens of a total by model. Several names of one model are added up."""
    sums: dict[str, ModelTokens] = {}
    for token in state.tokens if state is not None else ():
        model = name(token.model)
        sums[model] = add_tokens(sums.get(model), ModelTokens(model, *token.counts))
    return sums


def token_surplus(reported: dict[str, ModelTokens], computed: dict[str, ModelTokens]) -> tuple[ModelTokens, ...]:
    """Return how many more tokens were reported than computed, for the models that differ."""
    names = dict.fromkeys([*reported, *computed])
    differences = (reported.get(model, ModelTokens(model)).minus(computed.get(model)) for model in names)
    return tuple(difference for difference in differences if any(difference.counts))


def add_tokens(model_tokens: ModelTokens | None, other: ModelTokens) -> ModelTokens:
    """Add up tokens of one model."""
    if model_tokens is None:
        return other
    return ModelTokens(
        model_tokens.model, *(left + right for left, right in zip(model_tokens.counts, other.counts, strict=True))
    )


def amount_at_5m_price(charges: Iterable[Charge]) -> Decimal:
    """Return what charges would cost if an hour in the cache had the price of five minutes, as in old versions."""
    total = Decimal(0)
    for charge in charges:
        if charge.amount is not None and charge.rate is not None:
            surcharge = EXACT.subtract(charge.rate.cache_write_1h, charge.rate.cache_write_5m)
            extra = EXACT.multiply(surcharge, charge.cache_write_1h)
            total = EXACT.add(total, EXACT.subtract(charge.amount, EXACT.scaleb(extra, -6)))
    return total


def amount_without_long_context(charges: Iterable[Charge], rates: Rates) -> Decimal:
    """Return what charges would cost if long prompts cost no more than short ones."""
    total = Decimal(0)
    for charge in charges:
        counted, rate = charge.counted, charge.rate
        if rate is not None and rate.long_context is not None:
            mode = {"speed": counted.speed, "geo": counted.geo, "tier": counted.tier}
            rate = rates.rate(counted.model, charge.owner.time[:10], 0, **mode)
        total = EXACT.add(total, replace(charge, rate=rate).amount or Decimal(0))
    return total


def explain_row_amounts(charges: Sequence[Charge]) -> list[DifferenceReason]:
    """Explain why the amounts on rows (`costUSD`) differ from the charges; `agrees` if they do not."""
    reasons: list[DifferenceReason] = []
    unreported = [charge for charge in charges if charge.reported is None]
    if total_amount(unreported):
        words = f"{count(len(unreported), 'message')} without an amount on a row"
        reasons.append(
            DifferenceReason(DifferenceCause.SILENT, EXACT.minus(total_amount(unreported)), words, proven=True)
        )
    differing = [
        charge for charge in charges if charge.reported is not None and EXACT.abs(_row_difference(charge)) > TOLERANCE
    ]
    groups: dict[DifferenceCause, list[Charge]] = {}
    for charge in differing:
        groups.setdefault(_row_cause(charge), []).append(charge)
    for cause, group in groups.items():
        off = sum_amounts(map(_row_difference, group))
        reasons.append(
            DifferenceReason(
                cause, off, _describe_rows(cause, group, off), proven=cause is not DifferenceCause.LOWER_BOUND
            )
        )
    return reasons or [DifferenceReason(DifferenceCause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _row_cause(charge: Charge) -> DifferenceCause:
    """Return why a row's amount differs from its charge's."""
    if charge.rate is None:
        return DifferenceCause.UNPRICED
    without_fee = EXACT.add(_row_difference(charge), EXACT.multiply(charge.rate.web_search, charge.web_searches))
    if EXACT.abs(without_fee) <= TOLERANCE:
        return DifferenceCause.WEB
    return DifferenceCause.LOWER_BOUND if charge.is_lower_bound and without_fee > 0 else DifferenceCause.PRICES


def _describe_rows(cause: DifferenceCause, charges: Sequence[Charge], off: Decimal) -> str:
    messages = count(len(charges), "message")
    if cause is DifferenceCause.UNPRICED:
        return f"no price is known for {join_words(sorted({charge.model or '' for charge in charges}))}"
    if cause is DifferenceCause.WEB:
        return missing_fee_text(sum(charge.web_searches for charge in charges))
    if cause is DifferenceCause.LOWER_BOUND:
        return f"the final output of {messages} is in no transcript"
    if EXACT.abs(EXACT.subtract(off, EXACT.subtract(amount_at_5m_price(charges), total_amount(charges)))) <= TOLERANCE:
        return f"Claude Code priced an hour in the cache as five minutes, in {messages}"
    return f"Claude Code used other prices for {messages}"


def _row_difference(charge: Charge) -> Decimal:
    return EXACT.subtract(charge.reported or Decimal(0), charge.amount or Decimal(0))
