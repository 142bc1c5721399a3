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

from threadline.account.prices import normalise_model_id
from threadline.account.rates import Rates
from threadline.model.charges import EXACT, Charge, format_decimal
from threadline.model.reconciliation import TOLERANCE, CostState, DifferenceCause, DifferenceReason, ModelTokens
from threadline.model.totals import sum_amounts

_WEB_TOOLS = ("WebSearch", "WebFetch")
_TOKEN_KINDS = ("input", "output", "cache write", "cache read", "web searches")


class AncestorSession(Struct, frozen=True):
    """A session whose total another may go on from: its totals, and what was copied of it."""

    session: str
    states: tuple[CostState, ...] = ()
    copied: tuple[Charge, ...] = ()


def explain_total(
    parts: Sequence[Run], ancestors: Sequence[AncestorSession], compactions: Callable[[], Sequence[int]], rates: Rates
) -> list[DifferenceReason]:
    """Why the last total is another than all charges of its session; `agrees` where it is not.

    `compactions` gives where the transcript was compacted, and is asked only where something differs.
    """
    found: list[DifferenceReason] = []
    for run in parts:
        if run.state is None:
            if run.charges and EXACT.abs(run.computed) > TOLERANCE:
                found.append(_explain_unclosed_end(run))
        else:
            found += _RunDifference(
                run, run.state, ancestors if run.before is None else (), compactions, rates
            ).reasons()
    return found or [DifferenceReason(DifferenceCause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _explain_unclosed_end(run: Run) -> DifferenceReason:
    many = format_count(len(run.charges), "message")
    verb = "comes" if len(run.charges) == 1 else "come"
    return DifferenceReason(
        DifferenceCause.UNCLOSED,
        EXACT.minus(run.computed),
        f"{many} {verb} after the last total: that run has not written its own",
        proven=True,
    )


class _RunDifference:
    """One run: what its total grew by, less what its charges cost, taken apart until nothing is left."""

    def __init__(
        self,
        run: Run,
        state: CostState,
        ancestors: Sequence[AncestorSession],
        compactions: Callable[[], Sequence[int]],
        rates: Rates,
    ) -> None:
        name = model_namer(rates)
        self._run, self._state, self._ancestors, self._name, self._rates = run, state, ancestors, name, rates
        self._compactions = compactions
        self._said = reported_tokens(state, name)
        self._known = tokens_by_model(run.charges, name)
        for token in reported_tokens(run.before, name).values():
            self._known[token.model] = add_tokens(self._known.get(token.model), token)
        base = run.before.amount if run.before is not None else Decimal(0)
        self._left = EXACT.subtract(EXACT.subtract(state.amount, base), run.computed)

    def reasons(self) -> Iterator[DifferenceReason]:
        """The reasons, each as soon as it is found; what is left in the end has the least sure one."""
        for look in (
            self._restarted,
            self._unpriced,
            self._continues,
            self._prices,
            self._fees,
            self._cut,
            self._unclosed,
        ):
            if EXACT.abs(self._left) <= TOLERANCE:
                return
            why = look()
            if why is not None:
                self._left = EXACT.subtract(self._left, why.amount)
                yield why
        if self._left > TOLERANCE:
            yield self._unseen()
        elif EXACT.minus(self._left) > TOLERANCE:
            words = "computed is larger, and nothing here says why: a message may be counted twice, or a price differ"
            yield DifferenceReason(DifferenceCause.LARGER, self._left, f"{words}{self._differing()}")

    def _restarted(self) -> DifferenceReason | None:
        before = self._run.before
        if before is None or not before.amount:
            return None
        alone = EXACT.add(self._left, before.amount)
        if EXACT.abs(alone) > TOLERANCE and self._state.amount >= before.amount:
            return None
        for token in before.tokens:
            model = self._name(token.model)
            self._known[model] = self._known[model].minus(ModelTokens(model, *token.counts))
        return DifferenceReason(
            DifferenceCause.RESTARTED,
            EXACT.minus(before.amount),
            f"the total began again at nothing, after it had stood at {format_amount(before.amount)}",
            proven=EXACT.abs(alone) <= TOLERANCE,
        )

    def _unpriced(self) -> DifferenceReason | None:
        models = {self._name(charge.model or "") for charge in self._run.charges if charge.rate is None}
        if not models:
            return None
        cost = sum_amounts(cost for model, cost in self._costs().items() if model in models)
        guess = "its own guess" if self._state.is_floor else "a price"
        words = f"no price is known for {join_words(sorted(models))}; Claude Code took {guess}"
        return DifferenceReason(DifferenceCause.UNPRICED, cost, words, proven=True)

    def _costs(self) -> dict[str, Decimal]:
        """What each model is said to have cost in this run."""
        costs: dict[str, Decimal] = {}
        before = self._run.before.costs if self._run.before is not None else ()
        for model, cost in (*self._state.costs, *((model, EXACT.minus(cost)) for model, cost in before)):
            costs[self._name(model)] = EXACT.add(costs.get(self._name(model), Decimal(0)), cost)
        return costs

    def _continues(self) -> DifferenceReason | None:
        for ancestor in self._ancestors:
            for state in reversed(ancestor.states):
                if EXACT.abs(EXACT.subtract(self._left, state.amount)) <= TOLERANCE and state.amount:
                    return self._goes_on(ancestor, state)
        for ancestor in self._ancestors:
            kin = [one for one in ancestor.states if one.began == self._state.began and 0 < one.amount <= self._left]
            if kin:
                return self._goes_on(ancestor, kin[-1])
            copied = total_amount(ancestor.copied)
            if copied and copied <= EXACT.add(self._left, TOLERANCE):
                words = f"continues the total of session {ancestor.session} (--fork-session), whose messages it holds"
                for model, tokens in tokens_by_model(ancestor.copied, self._name).items():
                    self._known[model] = add_tokens(self._known.get(model), tokens)
                return DifferenceReason(
                    DifferenceCause.CONTINUES,
                    copied,
                    words,
                    proven=EXACT.abs(EXACT.subtract(self._left, copied)) <= TOLERANCE,
                )
        return None

    def _goes_on(self, ancestor: AncestorSession, state: CostState) -> DifferenceReason:
        for model, tokens in reported_tokens(state, self._name).items():
            self._known[model] = add_tokens(self._known.get(model), tokens)
        how = " (--fork-session)" if ancestor.copied else ""
        words = f"continues the total of session {ancestor.session}{how}, which stood at {format_amount(state.amount)}"
        exact = EXACT.abs(EXACT.subtract(self._left, state.amount)) <= TOLERANCE
        return DifferenceReason(DifferenceCause.CONTINUES, state.amount, words, proven=exact)

    def _prices(self) -> DifferenceReason | None:
        priced = [charge for charge in self._run.charges if charge.rate is not None]
        if not self._said or token_surplus(self._said, self._known) or not priced:
            return None
        words = f"the tokens agree, the prices do not{self._differing()}"
        for told, otherwise in (
            ("Claude Code priced an hour in the cache as five minutes", amount_at_5m_price(priced)),
            ("Claude Code priced long prompts as short ones", amount_without_long_context(priced, self._rates)),
        ):
            off = EXACT.subtract(otherwise, total_amount(priced))
            if EXACT.abs(EXACT.subtract(self._left, off)) <= TOLERANCE:
                words = f"{told}{self._differing()}"
        return DifferenceReason(DifferenceCause.PRICES, self._left, words, proven=True)

    def _differing(self) -> str:
        told = []
        for model, cost in self._costs().items():
            own = total_amount(charge for charge in self._run.charges if self._name(charge.model or "") == model)
            if EXACT.abs(EXACT.subtract(cost, own)) > TOLERANCE:
                told.append(f"{model} {format_amount(cost)} reported, {format_amount(own)} computed")
        return f" ({'; '.join(told)})" if told else ""

    def _fees(self) -> DifferenceReason | None:
        searches = -sum(model_tokens.web_searches for model_tokens in token_surplus(self._said, self._known))
        fee = next((charge.rate.web_search for charge in self._run.charges if charge.rate is not None), Decimal(0))
        fees = EXACT.multiply(fee, searches)
        if searches <= 0 or fees > EXACT.subtract(TOLERANCE, self._left):
            return None
        return DifferenceReason(
            DifferenceCause.WEB,
            EXACT.minus(fees),
            missing_fee_text(searches),
            proven=EXACT.abs(EXACT.add(self._left, fees)) <= TOLERANCE,
        )

    def _cut(self) -> DifferenceReason | None:
        broken = [charge for charge in self._run.charges if not charge.counted.stopped]
        if not broken or EXACT.abs(EXACT.add(self._left, total_amount(broken))) > TOLERANCE:
            return None
        many = "1 reply that broke off" if len(broken) == 1 else f"{len(broken):,} replies that broke off"
        return DifferenceReason(
            DifferenceCause.CUT,
            self._left,
            f"Claude Code counts nothing of {many}; what was sent is counted here",
            proven=True,
        )

    def _unclosed(self) -> DifferenceReason | None:
        """Whether the first messages of the run, up to some message, are what the total lacks."""
        lacking = self._left
        for number, charge in enumerate(self._run.charges, 1):
            lacking = EXACT.add(lacking, charge.amount or Decimal(0))
            if EXACT.abs(lacking) <= TOLERANCE:
                many = format_count(number, "message")
                words = f"{many} of a run that ended without writing its total: it was ended, or it crashed"
                return DifferenceReason(DifferenceCause.UNCLOSED, self._left, words, proven=True)
            if lacking > TOLERANCE:
                return None
        return None

    def _unseen(self) -> DifferenceReason:
        """What is in the total and in no transcript."""
        start, end = self._run.span
        compacted = sum(start < offset < end for offset in self._compactions())
        calls = Counter(
            name for charge in self._run.charges if not charge.part for name in charge.calls if name in _WEB_TOOLS
        )
        web = [f"{name} ({number:,})" for name, number in calls.items()]
        tokens = describe_tokens(token_surplus(self._said, self._known))
        if compacted:
            also = f", and the side calls of {join_words(web)}" if web else ""
            words = (
                f"the calls of {format_count(compacted, 'compaction')} (/compact) are in no assistant row{also}{tokens}"
            )
            return DifferenceReason(DifferenceCause.COMPACTION, self._left, words)
        if web:
            return DifferenceReason(
                DifferenceCause.WEB, self._left, f"the side calls of {join_words(web)} are in no transcript{tokens}"
            )
        lower = sum(charge.is_lower_bound for charge in self._run.charges)
        if lower:
            words = f"the final output of {format_count(lower, 'message')} is in no transcript{tokens}"
            return DifferenceReason(DifferenceCause.LOWER_BOUND, self._left, words)
        words = f"side calls that are in no transcript (titles, summaries, classifiers){tokens}"
        return DifferenceReason(DifferenceCause.SIDE_CALLS, self._left, words)


def missing_fee_text(searches: int) -> str:
    """That the fee for searches is missing, in words."""
    return f"the fee for {searches:,} web {'search' if searches == 1 else 'searches'} is not in it"


def describe_tokens(differences: Sequence[ModelTokens]) -> str:
    """Token differences in words, to follow a sentence; nothing where there are none."""
    told = [f"{model_tokens.model} {_describe_counts(model_tokens)}" for model_tokens in differences]
    return f": {'; '.join(told)}" if told else ""


def _describe_counts(model_tokens: ModelTokens) -> str:
    return ", ".join(
        f"{number:+,} {kind}" for kind, number in zip(_TOKEN_KINDS, model_tokens.counts, strict=True) if number
    )


def format_amount(amount: Decimal) -> str:
    """An amount with all its digits, without an exponent."""
    return f"{format_decimal(amount)} USD"


def format_count(number: int, noun: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_words(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


ModelNamer = Callable[[str], str]
"""The one name of a model that has many."""


class Run(Struct, frozen=True):
    """One run of the program, as far as totals tell: from the one `before` to `state`, which it closed with.

    `state` is None for what came after the last total. `charges` are in the order of time.
    """

    state: CostState | None
    before: CostState | None
    charges: tuple[Charge, ...]

    @property
    def computed(self) -> Decimal:
        """What its charges cost."""
        return total_amount(self.charges)

    @property
    def span(self) -> tuple[int, float]:
        """Where in the transcript it stands, in bytes."""
        start = self.before.place.offset if self.before is not None else 0
        return start, self.state.place.offset if self.state is not None else float("inf")


def split_into_runs(states: Sequence[CostState], charges: Iterable[Charge]) -> list[Run]:
    """A session's charges parted by its totals, which stand in one transcript, in file order.

    The main agent's stand before or after a total. An agent's stand in another file, and belong to the last run whose
    first message is not later.
    """
    transcript = states[-1].place.transcript
    ends = [state.place.offset for state in states]
    parted: list[list[Charge]] = [[] for _ in range(len(states) + 1)]
    elsewhere: list[Charge] = []
    for charge in charges:
        offset = first_offset(charge, transcript)
        if offset is None:
            elsewhere.append(charge)
        else:
            parted[bisect_left(ends, offset)].append(charge)
    begun = [(min(one.owner.time for one in some), at) for at, some in enumerate(parted) if some]
    times = [time for time, _ in begun]
    for charge in elsewhere:
        after = bisect_right(times, charge.owner.time) - 1
        parted[begun[after][1] if after >= 0 else 0].append(charge)
    made = []
    for at, some in enumerate(parted):
        ordered = tuple(sorted(some, key=lambda one: one.owner.time))
        state = states[at] if at < len(states) else None
        made.append(Run(state, states[at - 1] if at else None, ordered))
    return made


def first_offset(charge: Charge, transcript: str) -> int | None:
    """Where a transcript first tells of a charge; None where it does not."""
    found = [sighting.offsets[0] for sighting in charge.sightings if sighting.origin.transcript == transcript]
    return min(found, default=None)


def total_amount(charges: Iterable[Charge]) -> Decimal:
    """What charges cost; those without a price are left out."""
    return sum_amounts(charge.amount for charge in charges if charge.amount is not None)


def tokens_by_model(charges: Iterable[Charge], name: ModelNamer) -> dict[str, ModelTokens]:
    """The tokens of charges by model."""
    sums: dict[str, ModelTokens] = {}
    for charge in charges:
        model = name(charge.model or "")
        counts = ModelTokens(
            model, charge.input, charge.output, charge.cache_write, charge.cache_read, charge.web_searches
        )
        sums[model] = add_tokens(sums.get(model), counts)
    return sums


def reported_tokens(state: CostState | None, name: ModelNamer) -> dict[str, ModelTokens]:
    """The tokens of a total by model: several names of one model are added up."""
    sums: dict[str, ModelTokens] = {}
    for token in state.tokens if state is not None else ():
        model = name(token.model)
        sums[model] = add_tokens(sums.get(model), ModelTokens(model, *token.counts))
    return sums


def token_surplus(said: dict[str, ModelTokens], known: dict[str, ModelTokens]) -> tuple[ModelTokens, ...]:
    """How many more tokens were said than are known, by model; only models that differ."""
    names = dict.fromkeys([*said, *known])
    differences = (said.get(model, ModelTokens(model)).minus(known.get(model)) for model in names)
    return tuple(difference for difference in differences if any(difference.counts))


def add_tokens(model_tokens: ModelTokens | None, other: ModelTokens) -> ModelTokens:
    """Tokens of one model added up."""
    if model_tokens is None:
        return other
    return ModelTokens(
        model_tokens.model, *(mine + its for mine, its in zip(model_tokens.counts, other.counts, strict=True))
    )


def amount_at_5m_price(charges: Iterable[Charge]) -> Decimal:
    """What charges would cost if an hour in the cache were priced as five minutes are, as old versions did."""
    total = Decimal(0)
    for charge in charges:
        if charge.amount is not None and charge.rate is not None:
            dearer = EXACT.subtract(charge.rate.cache_write_1h, charge.rate.cache_write_5m)
            extra = EXACT.multiply(dearer, charge.cache_write_1h)
            total = EXACT.add(total, EXACT.subtract(charge.amount, EXACT.scaleb(extra, -6)))
    return total


def amount_without_long_context(charges: Iterable[Charge], rates: Rates) -> Decimal:
    """What charges would cost if a long prompt cost no more than a short one."""
    total = Decimal(0)
    for charge in charges:
        counted, rate = charge.counted, charge.rate
        if rate is not None and rate.long_context is not None:
            mode = {"speed": counted.speed, "geo": counted.geo, "tier": counted.tier}
            rate = rates.rate(counted.model, charge.owner.time[:10], 0, **mode)
        total = EXACT.add(total, replace(charge, rate=rate).amount or Decimal(0))
    return total


def model_namer(rates: Rates) -> ModelNamer:
    """The one name of each model, by the rates that know it."""
    return lambda model: rates.model(model) or normalise_model_id(model)


def explain_row_amounts(charges: Sequence[Charge]) -> list[DifferenceReason]:
    """Why amounts on rows (`costUSD`) come to another sum than the charges; `agrees` where they do not."""
    found: list[DifferenceReason] = []
    silent = [charge for charge in charges if charge.reported is None]
    if total_amount(silent):
        words = f"{format_count(len(silent), 'message')} without an amount on a row"
        found.append(DifferenceReason(DifferenceCause.SILENT, EXACT.minus(total_amount(silent)), words, proven=True))
    differing = [
        charge for charge in charges if charge.reported is not None and EXACT.abs(_row_difference(charge)) > TOLERANCE
    ]
    groups: dict[DifferenceCause, list[Charge]] = {}
    for charge in differing:
        groups.setdefault(_row_cause(charge), []).append(charge)
    for cause, some in groups.items():
        off = sum_amounts(map(_row_difference, some))
        found.append(
            DifferenceReason(
                cause, off, _describe_rows(cause, some, off), proven=cause is not DifferenceCause.LOWER_BOUND
            )
        )
    return found or [DifferenceReason(DifferenceCause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _row_cause(charge: Charge) -> DifferenceCause:
    """Why a row's amount is another than its charge's."""
    if charge.rate is None:
        return DifferenceCause.UNPRICED
    without_fee = EXACT.add(_row_difference(charge), EXACT.multiply(charge.rate.web_search, charge.web_searches))
    if EXACT.abs(without_fee) <= TOLERANCE:
        return DifferenceCause.WEB
    return DifferenceCause.LOWER_BOUND if charge.is_lower_bound and without_fee > 0 else DifferenceCause.PRICES


def _describe_rows(cause: DifferenceCause, some: Sequence[Charge], off: Decimal) -> str:
    many = format_count(len(some), "message")
    if cause is DifferenceCause.UNPRICED:
        return f"no price is known for {join_words(sorted({charge.model or '' for charge in some}))}"
    if cause is DifferenceCause.WEB:
        return missing_fee_text(sum(charge.web_searches for charge in some))
    if cause is DifferenceCause.LOWER_BOUND:
        return f"the final output of {many} is in no transcript"
    if EXACT.abs(EXACT.subtract(off, EXACT.subtract(amount_at_5m_price(some), total_amount(some)))) <= TOLERANCE:
        return f"Claude Code priced an hour in the cache as five minutes, in {many}"
    return f"Claude Code took other prices for {many}"


def _row_difference(charge: Charge) -> Decimal:
    return EXACT.subtract(charge.reported or Decimal(0), charge.amount or Decimal(0))
