"""Explain in words why a line of a transcript counted, and why its copies did not."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.account.rates import Rates
from threadline.model.ledger import Charge, Flag
from threadline.model.receipts import LineCounts
from threadline.model.usage import MAX_PLACEHOLDER_OUTPUT, Sighting, lacks_final_usage

TRANSCRIPT_CHANGED = "the transcript has changed since it was counted: this line no longer contains the message"
"""Why a line that was counted has no counts now."""
_ORIGINAL = "the original"


def why_counted(charge: Charge, lines: int, *, same: bool = False) -> str:
    """Explain why the counted line counts, out of `lines` lines. `same` says that all of them have equal counts."""
    if charge.part:
        return f"the {charge.part}'s pass within this line"
    if lines == 1:
        return "the only line"
    reason = f"the most complete of {lines} lines"
    if same:
        reason = f"all {lines} lines are equal" if lines > 2 else "both lines are equal"  # noqa: PLR2004 - both
    is_copy = charge.counted.origin.transcript != charge.owner.origin.transcript
    return f"{reason}, though it is a copy" if is_copy else reason


def why_not_counted(charge: Charge, sighting: Sighting, counts: LineCounts) -> str:
    """Explain why another line does not count, from its own content."""
    less = _count_difference(charge, counts)
    where = _copy_relation(charge, sighting)
    if where and less:
        return f"{where}; {less}"
    return f"{where}, with the same counts" if where == _ORIGINAL else where or less or "has the same counts"


def _count_difference(charge: Charge, counts: LineCounts) -> str:
    counted = _whole_message(charge)
    if not any(counts.sent) and not counts.output and (any(counted.sent) or counted.output):
        return "all its counters are zero: the stream had only begun"
    if not any(counts.sent) and any(counted.sent):
        return "has no input counts: the stream had only begun"
    if counts.output < counted.output:
        early = counts.output <= MAX_PLACEHOLDER_OUTPUT or counts.stop_reason is None
        what = f"output {counts.output:,} is a placeholder" if early else f"output {counts.output:,} is less"
        return f"{what}, the counted line has {counted.output:,}"
    if counts.output > counted.output:  # only if an agent's progress has more than the agent itself
        return f"output {counts.output:,} is not the agent's own figure, which is {counted.output:,}"
    if counts.sent != counted.sent:
        return "its input counts differ, but its uuid is that of a line of the message"
    return ""


def _copy_relation(charge: Charge, sighting: Sighting) -> str:
    """Describe how a transcript other than the counted one relates to the message."""
    counted, origin = charge.counted, sighting.origin
    if sighting.is_repeat and not counted.is_repeat:
        return "a repeat in an agent's progress"
    if origin.transcript == counted.origin.transcript:
        return ""
    if sighting is charge.owner or origin.transcript == charge.owner.origin.transcript:
        return f"{_ORIGINAL}, but a copy is more complete" if _is_more_complete(counted, sighting) else _ORIGINAL
    if origin.side:
        return f"a copy that side agent {origin.agent} began with"
    if origin.session != charge.session:
        way = "a fork, session" if origin.forked else "session"
        return f"a copy in {way} {_short_id(origin.session)}"
    return f"a copy in agent {origin.agent}" if origin.agent else "a copy in another transcript of the session"


def _is_more_complete(sighting: Sighting, other: Sighting) -> bool:
    return (sighting.output, sighting.prompt_tokens, sighting.stopped) > (
        other.output,
        other.prompt_tokens,
        other.stopped,
    )


def _whole_message(charge: Charge) -> Sighting:
    """Return the message as the counted line has it, for a charge that is only a pass of it."""
    counted = charge.counted
    for sighting in charge.sightings:
        if sighting.rows is counted.rows:  # a pass is made from the sighting it is in
            return sighting
    return counted


def is_still_as_counted(charge: Charge, counts: LineCounts) -> bool:
    """Whether the counted line still has the counts that were counted."""
    whole = _whole_message(charge)
    return (counts.sent, counts.output) == (whole.sent, whole.output)


def charge_notes(charge: Charge, rates: Rates, calls: int = 1) -> Iterator[str]:
    """Yield what is special about a charge, in sentences. `calls` is the number of calls under its id."""
    if charge.is_lower_bound:
        yield f"Output is a lower bound: {_why_lower_bound(charge)}."
    if charge.rate is None:
        yield f"No price: {_why_unpriced(charge, rates)}. Its tokens are counted, its amount is not."
    if charge.part == "advisor":
        yield "An advisor's pass: it is not included in the message's own counts and is charged separately."
    elif charge.part:
        yield "A pass by another model: it is included in the line's counts and is charged at that model's price."
    if charge.origin.side:
        yield f"Spent by a side agent ({charge.agent}): Claude Code, for compaction, side questions or suggestions."
    if calls > 1:
        yield f"One of {calls} calls with this id: they share neither an entry's uuid nor their input counts."
    if Flag.TIMELESS in charge.flags:
        yield "None of its lines has a time: the time of the line before is used."
    if charge.counted.is_repeat:
        yield "Known only from an agent's progress: the agent's own transcript is gone."
    if charge.reported is not None and not charge.part:
        yield f"Claude Code reported {charge.reported:f} USD for it (costUSD)."


def _why_lower_bound(charge: Charge) -> str:
    version = charge.counted.origin.version
    if not charge.counted.stopped and lacks_final_usage(version):
        return f"version {version} did not write the final count"
    return f"{charge.output:,} tokens are too few for its text; the final count was never written"


def _why_unpriced(charge: Charge, rates: Rates) -> str:
    model = charge.model
    if not model:
        return "no line names its model"
    if rates.model(model) is None:
        return f"the price list has no model {model!r} (see threadline prices, and --prices FILE)"
    if charge.counted.speed == "fast":
        return f"the fast-mode price of {model!r} on that day is unknown"
    return f"the price of {model!r} on that day is unknown"


def _short_id(session: str | None) -> str:
    return (session or "(none)")[:8]
