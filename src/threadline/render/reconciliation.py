"""Explain differences between reported and computed costs in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from threadline.model.reported_costs import DifferenceCause, ReportedDay, ReportedSession, ReportedSource, ReportedUsage
from threadline.model.text import count, format_amount
from threadline.render.text import plain

_CENT = Decimal("0.01")

CAUSE_DESCRIPTIONS: dict[DifferenceCause, str] = {
    DifferenceCause.AGREES: "equal to the last digit",
    DifferenceCause.CONTINUES: "the total continues that of another session",
    DifferenceCause.UNCLOSED: "a run did not write its total",
    DifferenceCause.RESTARTED: "the total was reset to zero",
    DifferenceCause.CUT: "a reply was cut off, and Claude Code does not count it",
    DifferenceCause.COMPACTION: "the API calls of compactions have no assistant row",
    DifferenceCause.WEB: "web searches or fetches are counted by one side only",
    DifferenceCause.SIDE_CALLS: "side calls are not in any transcript",
    DifferenceCause.UNPRICED: "no price is known for a model",
    DifferenceCause.PRICES: "Claude Code used other prices",
    DifferenceCause.LOWER_BOUND: "the final output count of messages was never written",
    DifferenceCause.SILENT: "messages have no amount of their own",
    DifferenceCause.LARGER: "more was computed than reported, for an unknown reason: please report this",
}
STATISTICS_CAVEAT = (
    "These days come from Claude Code's statistics (stats-cache.json) and are not included in any total. The "
    "statistics leave out agents before 2.1.89 and the cache before 2.1.221, have no costs, and may count a message "
    "more than once."
)


def reconciliation_lines(usage: ReportedUsage) -> list[str]:
    """Sentences about reported costs and their differences from computed costs, one per line.

    They include days whose transcripts were deleted, and that only the statistics still list.
    """
    return [*_summary_lines(usage), *_deleted_day_lines(usage)]


def reported_session_lines(session: ReportedSession) -> list[str]:
    """Sentences about one session's reported cost and every reason for a difference, one per line."""
    floor = ", at least" if session.is_floor else ""
    source = f"{session.source.value}, {plain(str(session.place))}"
    head = f"Claude Code reports {format_amount(session.reported)}{floor} ({source}); "
    if session.agrees and all(why.cause is DifferenceCause.AGREES for why in session.why):
        return [f"{head}the computed amount is equal to the last digit."]
    less = "more" if session.difference > 0 else "less"
    gap = format_amount(session.difference.copy_abs())
    verdict = f"{head}the computed amount is {format_amount(session.computed)}. The reported amount is {gap} {less}."
    return [verdict, *(f"{format_amount(why.amount, signed=True)}: {plain(why.words)}." for why in session.why)]


def _summary_lines(usage: ReportedUsage) -> Iterator[str]:
    if not usage.sessions:
        yield f"No session reports an amount{_unreported_note(usage)}."
        return
    total = count(len(usage.sessions), "session")
    verb = "reports" if len(usage.sessions) == 1 else "report"
    yield (
        f"{total} {verb} {format_amount(usage.reported)}. "
        f"Computed for the same sessions: {format_amount(usage.computed)}, "
        f"a difference of {format_amount(usage.difference, signed=True)}."
    )
    amounts, numbers = usage.by_cause, usage.causes
    for cause, words in CAUSE_DESCRIPTIONS.items():
        if cause in numbers:
            part = f", {format_amount(amounts[cause], signed=True)}" if cause is not DifferenceCause.AGREES else ""
            yield f"{words[0].upper()}{words[1:]}: {count(numbers[cause], 'session')}{part}."
    if usage.silent:
        report = "reports" if usage.silent == 1 else "report"
        computed = format_amount(usage.silent_computed)
        yield f"{count(usage.silent, 'session')} {report} no amount. Computed for these: {computed}."
    if any(session.source is ReportedSource.COST_STATE and session.is_floor for session in usage.sessions):
        yield "If Claude Code does not know a model's price, the amount that it reports is a lower bound."
    for problem in usage.problems:
        yield f"Cannot read {plain(str(problem))}."


def _unreported_note(usage: ReportedUsage) -> str:
    return (
        f"; computed for {count(usage.silent, 'session')}: {format_amount(usage.silent_computed)}"
        if usage.silent
        else ""
    )


def _deleted_day_lines(usage: ReportedUsage) -> Iterator[str]:
    gone = [day for day in usage.swept if not day.is_partly]
    partly = [day for day in usage.swept if day.is_partly]
    if gone:
        total = count(len(gone), "day")
        yield f"All transcripts of {total} were deleted. Claude Code's statistics still list {_describe_totals(gone)}."
        yield from map(_describe_day, gone)
    if partly:
        yield f"Some transcripts of {count(len(partly), 'day')} may have been deleted:"
        yield from map(_describe_day, partly)
    if usage.swept:
        yield STATISTICS_CAVEAT


def _describe_totals(days: list[ReportedDay]) -> str:
    messages, sessions = (
        sum(day.messages for day in days),
        sum(day.sessions for day in days),
    )
    tokens = sum(day.total_tokens for day in days)
    return f"{count(messages, 'message')}, {count(sessions, 'session')}, {count(tokens, 'token')}"


def _describe_day(day: ReportedDay) -> str:
    cached = "with the cache" if day.with_cache else "without the cache"
    models = ", ".join(f"{plain(model)} {number:,}" for model, number in day.tokens)
    tokens = f", {count(day.total_tokens, 'token')} {cached} ({models})" if models else ""
    counts = ((day.messages, "message"), (day.sessions, "session"), (day.calls, "call"))
    acts = ", ".join(count(number, noun) for number, noun in counts)
    left = ""
    if day.is_partly:
        what = f"{count(day.left_charges, 'charge')}, {count(day.left_sessions, 'session')}"
        left = f"; remaining: {what}, {count(day.left_tokens, 'token')}"
    return f"{day.date}: {acts}{tokens}{left}."
