"""Explain in words why a line of a transcript counted, and why its copies did not."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.account.rates import Rates
from threadline.model.charges import Charge, Flag
from threadline.model.receipts import LineCounts
from threadline.model.sightings import MAX_PLACEHOLDER_OUTPUT, Sighting, lacks_final_usage

TRANSCRIPT_CHANGED = "the transcript has changed since it was counted: this line no longer tells of the message"
"""Why a line that was counted a moment ago has no counts now."""
_ORIGINAL = "the original"


def why_counted(charge: Charge, lines: int, *, same: bool = False) -> str:
    """Why the line that counted did, out of so many; `same` is whether all of them say the same."""
    if charge.part:
        return f"the {charge.part}'s pass within this line"
    if lines == 1:
        return "the only line"
    told = f"tells most of {lines} lines"
    if same:
        told = f"all {lines} lines say the same" if lines > 2 else "both lines say the same"  # noqa: PLR2004 - both
    is_copy = charge.counted.origin.transcript != charge.owner.origin.transcript
    return f"{told}, though it is a copy" if is_copy else told


def why_not_counted(charge: Charge, sighting: Sighting, counts: LineCounts) -> str:
    """Why another line did not count, by what it says itself."""
    less = _count_difference(charge, counts)
    where = _copy_relation(charge, sighting)
    if where and less:
        return f"{where}; {less}"
    same = "says the same"
    return f"{where}, which {same}" if where == _ORIGINAL else where or less or same


def _count_difference(charge: Charge, counts: LineCounts) -> str:
    told = _whole_message(charge)
    if not any(counts.sent) and not counts.output and (any(told.sent) or told.output):
        return "all its counters are zero: the stream had only begun"
    if not any(counts.sent) and any(told.sent):
        return "tells nothing of what was sent: the stream had only begun"
    if counts.output < told.output:
        early = counts.output <= MAX_PLACEHOLDER_OUTPUT or counts.stop_reason is None
        what = f"output {counts.output:,} is a placeholder" if early else f"output {counts.output:,} is less"
        return f"{what}, the counted line says {told.output:,}"
    if counts.output > told.output:  # only where an agent's progress says more than the agent itself
        return f"output {counts.output:,} is not the agent's own figure, which is {told.output:,}"
    if counts.sent != told.sent:
        return "what it says was sent differs, but its uuid is that of a line of the message"
    return ""


def _copy_relation(charge: Charge, sighting: Sighting) -> str:
    """What the transcript is to the message, where it is another than the one that counted."""
    counted, origin = charge.counted, sighting.origin
    if sighting.repeated and not counted.repeated:
        return "an agent's progress repeats it"
    if origin.transcript == counted.origin.transcript:
        return ""
    if sighting is charge.owner or origin.transcript == charge.owner.origin.transcript:
        return f"{_ORIGINAL}, of which a copy tells more" if _is_more_complete(counted, sighting) else _ORIGINAL
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
    """The message as the counted line has it, where the charge itself is but a pass of it."""
    counted = charge.counted
    for sighting in charge.sightings:
        if sighting.rows is counted.rows:  # a pass is made of the sighting that it is in
            return sighting
    return counted


def is_still_as_counted(charge: Charge, counts: LineCounts) -> bool:
    """Whether the line that counted still says what was counted."""
    whole = _whole_message(charge)
    return (counts.sent, counts.output) == (whole.sent, whole.output)


def charge_notes(charge: Charge, rates: Rates, calls: int = 1) -> Iterator[str]:
    """What is special about a charge, in sentences. `calls` is how many calls there are under its id."""
    if charge.is_lower_bound:
        yield f"Output is a lower bound: {_why_lower_bound(charge)}."
    if charge.rate is None:
        yield f"It has no price: {_why_unpriced(charge, rates)}. Its tokens count, its amount is left out."
    if charge.part == "advisor":
        yield "An advisor's pass: it is not in the message's own counts, and is charged on its own."
    elif charge.part:
        yield "A pass by another model: it is part of the line's counts, and is charged by its own model."
    if charge.origin.side:
        yield f"A side agent ({charge.agent}) spent it: Claude Code, for compaction, side questions or suggestions."
    if calls > 1:
        yield f"One of {calls} calls under this id: neither an entry's uuid nor what was sent makes them one."
    if Flag.TIMELESS in charge.flags:
        yield "No line of it tells a time: it stands where the line before does."
    if charge.counted.repeated:
        yield "Only an agent's progress tells of it: the agent's own transcript is gone."
    if charge.reported is not None and not charge.part:
        yield f"Claude Code said then that it cost {charge.reported:f} USD (costUSD)."


def _why_lower_bound(charge: Charge) -> str:
    version = charge.counted.origin.version
    if not charge.counted.stopped and lacks_final_usage(version):
        return f"version {version} did not write the final count"
    return f"{charge.output:,} tokens cannot hold what it says; the final count was never written"


def _why_unpriced(charge: Charge, rates: Rates) -> str:
    model = charge.model
    if not model:
        return "no line names its model"
    if rates.model(model) is None:
        return f"there is no model {model!r} among the prices (see threadline prices, and --prices FILE)"
    if charge.counted.speed == "fast":
        return f"no price of fast mode is known for {model!r} on that day"
    return f"no price of {model!r} is known for that day"


def _short_id(session: str | None) -> str:
    return (session or "(none)")[:8]
