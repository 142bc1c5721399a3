"""Reported and computed held against each other: by what a total differs, and why, as far as evidence goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from threadline.account.rates import Rates
from threadline.account.runs import (
    Run,
    amount_of,
    hours_as_minutes,
    long_as_short,
    more,
    naming,
    plus,
    tokens_of,
    tokens_said,
)
from threadline.model.charge import Charge
from threadline.model.rate import EXACT, plain_number
from threadline.model.reported import TOLERANCE, Cause, CostState, Tokens, Why
from threadline.model.sum import added

_WEB = ("WebSearch", "WebFetch")
_KINDS = ("input", "output", "cache write", "cache read", "web searches")


class Ancestor(Struct, frozen=True):
    """A session whose total another may go on from: its totals, and what was copied of it."""

    session: str
    states: tuple[CostState, ...] = ()
    copied: tuple[Charge, ...] = ()


def reasons(
    parts: Sequence[Run], ancestors: Sequence[Ancestor], compactions: Callable[[], Sequence[int]], rates: Rates
) -> list[Why]:
    """Why the last total is another than all charges of its session; `agrees` where it is not.

    `compactions` gives where the transcript was compacted, and is asked only where something differs.
    """
    found: list[Why] = []
    for run in parts:
        if run.state is None:
            if run.charges and EXACT.abs(run.computed) > TOLERANCE:
                found.append(_unclosed_end(run))
        else:
            found += _Step(run, run.state, ancestors if run.before is None else (), compactions, rates).reasons()
    return found or [Why(Cause.AGREES, Decimal(0), "agrees to the last digit", proven=True)]


def _unclosed_end(run: Run) -> Why:
    many = count_of(len(run.charges), "message")
    verb = "comes" if len(run.charges) == 1 else "come"
    return Why(
        Cause.UNCLOSED,
        EXACT.minus(run.computed),
        f"{many} {verb} after the last total: that run has not written its own",
        proven=True,
    )


class _Step:
    """One run: what its total grew by, less what its charges cost, taken apart until nothing is left."""

    def __init__(
        self,
        run: Run,
        state: CostState,
        ancestors: Sequence[Ancestor],
        compactions: Callable[[], Sequence[int]],
        rates: Rates,
    ) -> None:
        name = naming(rates)
        self._run, self._state, self._ancestors, self._name, self._rates = run, state, ancestors, name, rates
        self._compactions = compactions
        self._said = tokens_said(state, name)
        self._known = tokens_of(run.charges, name)
        for one in tokens_said(run.before, name).values():
            self._known[one.model] = plus(self._known.get(one.model), one)
        base = run.before.amount if run.before is not None else Decimal(0)
        self._left = EXACT.subtract(EXACT.subtract(state.amount, base), run.computed)

    def reasons(self) -> Iterator[Why]:
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
            yield Why(Cause.LARGER, self._left, f"{words}{self._differing()}")

    def _restarted(self) -> Why | None:
        before = self._run.before
        if before is None or not before.amount:
            return None
        alone = EXACT.add(self._left, before.amount)
        if EXACT.abs(alone) > TOLERANCE and self._state.amount >= before.amount:
            return None
        for one in before.tokens:
            model = self._name(one.model)
            self._known[model] = self._known[model].less(Tokens(model, *one.counts))
        return Why(
            Cause.RESTARTED,
            EXACT.minus(before.amount),
            f"the total began again at nothing, after it had stood at {money(before.amount)}",
            proven=EXACT.abs(alone) <= TOLERANCE,
        )

    def _unpriced(self) -> Why | None:
        models = {self._name(one.model or "") for one in self._run.charges if one.rate is None}
        if not models:
            return None
        cost = added(cost for model, cost in self._costs().items() if model in models)
        guess = "its own guess" if self._state.is_floor else "a price"
        words = f"no price is known for {list_of(sorted(models))}; Claude Code took {guess}"
        return Why(Cause.UNPRICED, cost, words, proven=True)

    def _costs(self) -> dict[str, Decimal]:
        """What each model is said to have cost in this run."""
        costs: dict[str, Decimal] = {}
        before = self._run.before.costs if self._run.before is not None else ()
        for model, cost in (*self._state.costs, *((model, EXACT.minus(cost)) for model, cost in before)):
            costs[self._name(model)] = EXACT.add(costs.get(self._name(model), Decimal(0)), cost)
        return costs

    def _continues(self) -> Why | None:
        for ancestor in self._ancestors:
            for state in reversed(ancestor.states):
                if EXACT.abs(EXACT.subtract(self._left, state.amount)) <= TOLERANCE and state.amount:
                    return self._goes_on(ancestor, state)
        for ancestor in self._ancestors:
            kin = [one for one in ancestor.states if one.began == self._state.began and 0 < one.amount <= self._left]
            if kin:
                return self._goes_on(ancestor, kin[-1])
            copied = amount_of(ancestor.copied)
            if copied and copied <= EXACT.add(self._left, TOLERANCE):
                words = f"continues the total of session {ancestor.session} (--fork-session), whose messages it holds"
                for model, tokens in tokens_of(ancestor.copied, self._name).items():
                    self._known[model] = plus(self._known.get(model), tokens)
                return Why(
                    Cause.CONTINUES, copied, words, proven=EXACT.abs(EXACT.subtract(self._left, copied)) <= TOLERANCE
                )
        return None

    def _goes_on(self, ancestor: Ancestor, state: CostState) -> Why:
        for model, tokens in tokens_said(state, self._name).items():
            self._known[model] = plus(self._known.get(model), tokens)
        how = " (--fork-session)" if ancestor.copied else ""
        words = f"continues the total of session {ancestor.session}{how}, which stood at {money(state.amount)}"
        exact = EXACT.abs(EXACT.subtract(self._left, state.amount)) <= TOLERANCE
        return Why(Cause.CONTINUES, state.amount, words, proven=exact)

    def _prices(self) -> Why | None:
        priced = [one for one in self._run.charges if one.rate is not None]
        if not self._said or more(self._said, self._known) or not priced:
            return None
        words = f"the tokens agree, the prices do not{self._differing()}"
        for told, otherwise in (
            ("Claude Code priced an hour in the cache as five minutes", hours_as_minutes(priced)),
            ("Claude Code priced long prompts as short ones", long_as_short(priced, self._rates)),
        ):
            off = EXACT.subtract(otherwise, amount_of(priced))
            if EXACT.abs(EXACT.subtract(self._left, off)) <= TOLERANCE:
                words = f"{told}{self._differing()}"
        return Why(Cause.PRICES, self._left, words, proven=True)

    def _differing(self) -> str:
        told = []
        for model, cost in self._costs().items():
            own = amount_of(one for one in self._run.charges if self._name(one.model or "") == model)
            if EXACT.abs(EXACT.subtract(cost, own)) > TOLERANCE:
                told.append(f"{model} {money(cost)} reported, {money(own)} computed")
        return f" ({'; '.join(told)})" if told else ""

    def _fees(self) -> Why | None:
        searches = -sum(one.web_searches for one in more(self._said, self._known))
        fee = next((one.rate.web_search for one in self._run.charges if one.rate is not None), Decimal(0))
        fees = EXACT.multiply(fee, searches)
        if searches <= 0 or fees > EXACT.subtract(TOLERANCE, self._left):
            return None
        return Why(
            Cause.WEB, EXACT.minus(fees), no_fee(searches), proven=EXACT.abs(EXACT.add(self._left, fees)) <= TOLERANCE
        )

    def _cut(self) -> Why | None:
        broken = [one for one in self._run.charges if not one.counted.stopped]
        if not broken or EXACT.abs(EXACT.add(self._left, amount_of(broken))) > TOLERANCE:
            return None
        many = "1 reply that broke off" if len(broken) == 1 else f"{len(broken):,} replies that broke off"
        return Why(
            Cause.CUT, self._left, f"Claude Code counts nothing of {many}; what was sent is counted here", proven=True
        )

    def _unclosed(self) -> Why | None:
        """Whether the first messages of the run, up to some message, are what the total lacks."""
        lacking = self._left
        for number, charge in enumerate(self._run.charges, 1):
            lacking = EXACT.add(lacking, charge.amount or Decimal(0))
            if EXACT.abs(lacking) <= TOLERANCE:
                many = count_of(number, "message")
                words = f"{many} of a run that ended without writing its total: it was ended, or it crashed"
                return Why(Cause.UNCLOSED, self._left, words, proven=True)
            if lacking > TOLERANCE:
                return None
        return None

    def _unseen(self) -> Why:
        """What is in the total and in no transcript."""
        start, end = self._run.span
        compacted = sum(start < offset < end for offset in self._compactions())
        calls = Counter(name for one in self._run.charges if not one.part for name in one.calls if name in _WEB)
        web = [f"{name} ({number:,})" for name, number in calls.items()]
        tokens = described(more(self._said, self._known))
        if compacted:
            also = f", and the side calls of {list_of(web)}" if web else ""
            words = f"the calls of {count_of(compacted, 'compaction')} (/compact) are in no assistant row{also}{tokens}"
            return Why(Cause.COMPACTION, self._left, words)
        if web:
            return Why(Cause.WEB, self._left, f"the side calls of {list_of(web)} are in no transcript{tokens}")
        lower = sum(one.is_lower_bound for one in self._run.charges)
        if lower:
            words = f"the final output of {count_of(lower, 'message')} is in no transcript{tokens}"
            return Why(Cause.LOWER_BOUND, self._left, words)
        words = f"side calls that are in no transcript (titles, summaries, classifiers){tokens}"
        return Why(Cause.SIDE_CALLS, self._left, words)


def no_fee(searches: int) -> str:
    """That the fee for searches is missing, in words."""
    return f"the fee for {searches:,} web {'search' if searches == 1 else 'searches'} is not in it"


def described(differences: Sequence[Tokens]) -> str:
    """Token differences in words, to follow a sentence; nothing where there are none."""
    told = [f"{one.model} {_counts(one)}" for one in differences]
    return f": {'; '.join(told)}" if told else ""


def _counts(one: Tokens) -> str:
    return ", ".join(f"{number:+,} {kind}" for kind, number in zip(_KINDS, one.counts, strict=True) if number)


def money(amount: Decimal) -> str:
    """An amount with all its digits, without an exponent."""
    return f"{plain_number(amount)} USD"


def count_of(number: int, noun: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def list_of(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
