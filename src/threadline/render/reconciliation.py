"""Reported amounts as sentences, and as a record for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from threadline.model.rate import plain_number
from threadline.model.reported import Cause, Reported, ReportedDay, ReportedSession, Source, Tokens, Why
from threadline.render.figures import count
from threadline.render.terminal_text import plain

_FEWEST = Decimal("0.01")

CAUSES: dict[Cause, str] = {
    Cause.AGREES: "the same to the last digit",
    Cause.CONTINUES: "the total continues that of another session",
    Cause.UNCLOSED: "a run did not write its total",
    Cause.RESTARTED: "the total began again at nothing",
    Cause.CUT: "a reply broke off, and Claude Code counts nothing of it",
    Cause.COMPACTION: "calls of compactions are in no assistant row",
    Cause.WEB: "web searches or fetches are counted by one side only",
    Cause.SIDE_CALLS: "side calls are in no transcript",
    Cause.UNPRICED: "no price is known for a model",
    Cause.PRICES: "Claude Code took other prices",
    Cause.LOWER_BOUND: "the final output of messages was never written down",
    Cause.SILENT: "messages have no amount of their own",
    Cause.LARGER: "more was computed than reported, and nothing says why: please report this",
}
CACHE_FAULTS = (
    "These days are from Claude Code's own statistics (stats-cache.json) and in no total: it left agents out before "
    "2.1.89 and the cache before 2.1.221, counts no cost, and may count a message more than once."
)


def lines(told: Reported, *, swept: bool = True) -> list[str]:
    """What is reported and how it goes together with what was computed, a sentence a line.

    `swept`: also the days of which nothing but the statistics is left.
    """
    return [*_sessions(told), *(_days(told) if swept else ())]


def session_lines(one: ReportedSession) -> list[str]:
    """One session's reported amount and every reason for its difference, a sentence a line."""
    floor = ", at least" if one.is_floor else ""
    head = f"Claude Code reports {usd(one.reported)}{floor} ({one.source.value}, {plain(str(one.place))}); "
    if one.agrees and all(why.cause is Cause.AGREES for why in one.why):
        return [f"{head}computed is the same, to the last digit."]
    less = "more" if one.difference > 0 else "less"
    told = [f"{head}computed is {usd(one.computed)}: {usd(one.difference.copy_abs())} {less} is reported."]
    return told + [f"{signed(why.amount)}: {plain(why.words)}." for why in one.why]


def record(told: Reported) -> dict[str, Any]:
    """All of it for a program; amounts are exact, as text."""
    return {
        "reported": exact(told.reported),
        "computed": exact(told.computed),
        "difference": exact(told.difference),
        "sessions": [session_record(one) for one in told.sessions],
        "agreeing": told.agreeing,
        "silent": {"sessions": told.silent, "computed": exact(told.silent_computed)},
        "causes": {cause.value: exact(amount) for cause, amount in told.by_cause.items()},
        **swept_record(told.swept),
        "problems": [str(problem) for problem in told.problems],
    }


def swept_record(days: Iterable[ReportedDay]) -> dict[str, Any]:
    """The days of which only statistics are left, for a program."""
    some = tuple(days)
    return {
        "swept": [_day_record(one) for one in some if not one.is_partly],
        "partly_swept": [_day_record(one) for one in some if one.is_partly],
    }


def session_record(one: ReportedSession) -> dict[str, Any]:
    """One session for a program."""
    return {
        "session": one.session,
        "project": one.project,
        "place": str(one.place),
        "source": one.source.value,
        "reported": exact(one.reported),
        "is_floor": one.is_floor,
        "computed": exact(one.computed),
        "charges": one.charges,
        "difference": exact(one.difference),
        "agrees": one.agrees,
        "why": [_why_record(why) for why in one.why],
        "tokens": [_tokens_record(tokens) for tokens in one.tokens],
    }


def _sessions(told: Reported) -> Iterator[str]:
    if not told.sessions:
        yield f"No session reports an amount{_silent(told)}."
        return
    many = count(len(told.sessions), "session")
    verb = "reports" if len(told.sessions) == 1 else "report"
    yield (
        f"{many} {verb} {usd(told.reported)}; computed for the same: {usd(told.computed)}, "
        f"a difference of {signed(told.difference)}."
    )
    amounts, numbers = told.by_cause, told.causes
    for cause, words in CAUSES.items():
        if cause in numbers:
            part = f", {signed(amounts[cause])}" if cause is not Cause.AGREES else ""
            yield f"{words[0].upper()}{words[1:]}: {count(numbers[cause], 'session')}{part}."
    if told.silent:
        report = "reports" if told.silent == 1 else "report"
        yield f"{count(told.silent, 'session')} {report} nothing; computed for these: {usd(told.silent_computed)}."
    if any(one.source is Source.COST_STATE and one.is_floor for one in told.sessions):
        yield "Where Claude Code does not know a model's price, what it reports is only the least."
    for problem in told.problems:
        yield f"Not read: {plain(str(problem))}."


def _silent(told: Reported) -> str:
    return f"; computed for {count(told.silent, 'session')}: {usd(told.silent_computed)}" if told.silent else ""


def _days(told: Reported) -> Iterator[str]:
    gone = [one for one in told.swept if not one.is_partly]
    partly = [one for one in told.swept if one.is_partly]
    if gone:
        many = count(len(gone), "day")
        yield f"Of {many} every transcript is gone; Claude Code's statistics still have: {_sum(gone)}."
        yield from map(_day, gone)
    if partly:
        yield f"Of {count(len(partly), 'day')} some transcripts may be gone:"
        yield from map(_day, partly)
    if told.swept:
        yield CACHE_FAULTS


def _sum(days: list[ReportedDay]) -> str:
    messages, sessions = sum(one.messages for one in days), sum(one.sessions for one in days)
    tokens = sum(one.total_tokens for one in days)
    return f"{count(messages, 'message')}, {count(sessions, 'session')}, {count(tokens, 'token')}"


def _day(one: ReportedDay) -> str:
    cached = "with the cache" if one.with_cache else "without the cache"
    models = ", ".join(f"{plain(model)} {number:,}" for model, number in one.tokens)
    tokens = f", {count(one.total_tokens, 'token')} {cached} ({models})" if models else ""
    acts = f"{count(one.messages, 'message')}, {count(one.sessions, 'session')}, {count(one.calls, 'call')}"
    left = ""
    if one.is_partly:
        what = f"{count(one.left_charges, 'charge')}, {count(one.left_sessions, 'session')}"
        left = f"; left: {what}, {count(one.left_tokens, 'token')}"
    return f"{one.date}: {acts}{tokens}{left}."


def _why_record(why: Why) -> dict[str, Any]:
    return {"cause": why.cause.value, "amount": exact(why.amount), "words": why.words, "proven": why.proven}


def _tokens_record(tokens: Tokens) -> dict[str, Any]:
    return {name: getattr(tokens, name) for name in Tokens.__struct_fields__}


def _day_record(one: ReportedDay) -> dict[str, Any]:
    made: dict[str, Any] = {name: getattr(one, name) for name in ReportedDay.__struct_fields__}
    made["tokens"] = dict(one.tokens)
    del made["is_partly"]
    left = {name.removeprefix("left_"): made.pop(name) for name in tuple(made) if name.startswith("left_")}
    return made | ({"left": left} if one.is_partly else {})


def exact(amount: Decimal) -> str:
    """An amount with every digit it has, and no exponent."""
    return plain_number(amount)


def usd(amount: Decimal) -> str:
    """`12.34 USD`; a small amount keeps four digits that count.

    >>> usd(Decimal("1234.5")), usd(Decimal("0.00422884")), usd(Decimal(0))
    ('1,234.50 USD', '0.004229 USD', '0 USD')
    """
    if not amount:
        return "0 USD"
    if amount.copy_abs() >= _FEWEST:
        return f"{amount:,.2f} USD"
    digits = 3 - amount.adjusted()
    return f"{plain_number(Decimal(f'{amount:.{digits}f}'))} USD"


def signed(amount: Decimal) -> str:
    """`+0.01 USD`, `-12.34 USD`, `0 USD`."""
    return f"{'+' if amount > 0 else ''}{usd(amount)}"
