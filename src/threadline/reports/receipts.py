"""Receipts: select charges by session, agent, message, day or line, and re-read every line behind them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import tzinfo

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import Calendar, Ledger, Rates
from threadline.errors import Ambiguous, Error, NotFound
from threadline.model.homes import Found, Transcript
from threadline.model.ledger import Charge, Flag, MissingAgent
from threadline.model.places import Place, Problem, ProblemKind, is_uuid
from threadline.model.receipts import LineCounts, Mention, Receipt, ReceiptGap, ReceiptItem, sum_by_rate
from threadline.model.reported_costs import ReportedSession
from threadline.model.text import count, format_amount
from threadline.model.times import in_zone
from threadline.model.usage import MAX_PLACEHOLDER_OUTPUT, Sighting, lacks_final_usage
from threadline.parse import CompactionBoundary, Mentions, decode_rows, find_lines, read_mentions
from threadline.reports.reconciliation import reconcile
from threadline.reports.usage import describe_missing_agents

_TranscriptLines = dict[str, Mentions]
_WHOLE_KINDS = ("session", "day", "agent")


def build_receipt(ledger: Ledger, query: ReceiptQuery, found: Iterable[Found] = ()) -> Receipt:
    """Build the receipt for a query. For a session in the homes `found`, it includes what Claude Code reports."""
    read = _read_transcripts(query)
    calls = _calls_per_message(ledger, query)
    problems: list[Problem] = []
    items = tuple(
        ReceiptItem(
            charge,
            tuple(_lines_of_charge(charge, read, problems)),
            query.includes(charge),
            tuple(charge_notes(charge, ledger.rates, calls[charge.message])),
        )
        for charge in sorted(query.charges, key=lambda charge: not query.includes(charge))
    )
    here = [item.charge for item in items if item.here]
    problems += _damaged_lines(query, read)
    transcripts = {sighting.origin.transcript for charge in here for sighting in charge.sightings}
    problems += (
        problem for problem in ledger.problems if query.kind == "day" or problem.place.transcript in transcripts
    )
    return Receipt(
        kind=query.kind,
        name=query.name,
        items=items,
        rates=tuple(sum_by_rate(here)),
        total=Ledger(here, ledger.rates).total,
        missing=tuple(
            missing_costs(here, _selected_compactions(query, read), problems, _selected_agents(query, ledger))
        ),
        reported=_reported_cost(ledger, query, found, read),
        digest=ledger.rates.digest,
    )


def sort_by_amount(receipt: Receipt) -> Receipt:
    """The same receipt with the most expensive messages first. Messages that others own stay last."""
    items = sorted(receipt.items, key=lambda item: (not item.here, -(item.charge.amount or 0)))
    return replace(receipt, items=tuple(items))


def _selected_agents(query: ReceiptQuery, ledger: Ledger) -> list[MissingAgent]:
    """The agents without a transcript that a session started, or that were started on a day."""
    if query.kind == "session":
        return [agent for agent in ledger.missing_agents if agent.session == query.session]
    if query.kind != "day" or query.zone is None:
        return []
    zone = query.zone
    return [
        agent
        for agent in ledger.missing_agents
        if agent.timestamp is not None and in_zone(agent.timestamp, zone).date().isoformat() == query.day
    ]


def _read_transcripts(query: ReceiptQuery) -> _TranscriptLines:
    """Read the transcripts that contain the charges, each once for all the lines that are needed."""
    offsets_by_path: dict[str, set[int]] = {}
    for charge in query.charges:
        for sighting in charge.sightings:
            offsets_by_path.setdefault(sighting.origin.transcript, set()).update(sighting.offsets)
    return {path: read_mentions(path, offsets) for path, offsets in offsets_by_path.items()}


def _calls_per_message(ledger: Ledger, query: ReceiptQuery) -> Counter[str]:
    """Count the calls under the ids of these charges."""
    ids = {charge.message for charge in query.charges}
    return Counter(charge.message for charge in ledger.of_messages(ids) if not charge.part)


def _lines_of_charge(charge: Charge, read: _TranscriptLines, problems: list[Problem]) -> Iterator[Mention]:
    """Yield every line that mentions a charge, the owner's first; for a pass, only the line it is in."""
    places = [(sighting, offset) for sighting in _owner_first(charge) for offset in sighting.offsets]
    all_counts = [_line_counts(charge, sighting, offset, read) for sighting, offset in places]
    same = len({(counts.sent, counts.output) if counts is not None else None for counts in all_counts}) == 1
    has_counted = False
    for (sighting, offset), counts in zip(places, all_counts, strict=True):
        is_counted = not has_counted and _is_counted(charge, sighting, offset)
        has_counted |= is_counted
        if charge.part and not is_counted:
            continue
        origin = sighting.origin
        place = Place(origin.transcript, origin.lines(offset), offset)
        if counts is None:
            unreadable = read[origin.transcript].unreadable
            why = _TRANSCRIPT_CHANGED if unreadable is None else f"could not be read again: {unreadable}"
            problems.append(Problem(ProblemKind.CHANGED, place, why, recovered=False))
        elif is_counted:
            why = why_counted(charge, len(places), same=same)
        else:
            why = why_not_counted(charge, sighting, counts)
        yield Mention(place, origin.session, origin.agent, counts, is_counted, why)


def _owner_first(charge: Charge) -> list[Sighting]:
    """Return the sightings, those in the owner's transcript first."""
    transcript = charge.owner.origin.transcript
    return sorted(
        charge.sightings,
        key=lambda sighting: (sighting.origin.transcript != transcript, sighting.origin.began, sighting.offsets[0]),
    )


def _is_counted(charge: Charge, sighting: Sighting, offset: int) -> bool:
    # A pass is made from the sighting it is in, and shares its rows.
    return sighting.rows is charge.counted.rows and offset == charge.counted.offset


def _line_counts(charge: Charge, sighting: Sighting, offset: int, read: _TranscriptLines) -> LineCounts | None:
    """Return the counts of a line if they are still the counted ones. Rows on one line may mention a message twice."""
    is_counted = _is_counted(charge, sighting, offset)
    for counts in read[sighting.origin.transcript].counts.get((offset, charge.message), ()):
        if counts.sent == sighting.sent and (not is_counted or is_still_as_counted(charge, counts)):
            return counts
    return None


def _damaged_lines(query: ReceiptQuery, read: _TranscriptLines) -> Iterator[Problem]:
    """Yield damaged lines of the transcripts that the query covers completely."""
    if query.kind not in _WHOLE_KINDS:
        return
    for path in dict.fromkeys(charge.owner.origin.transcript for charge in query.charges if query.includes(charge)):
        yield from read[path].problems


def _selected_compactions(query: ReceiptQuery, read: _TranscriptLines) -> list[CompactionBoundary]:
    if query.kind not in _WHOLE_KINDS:
        return []
    calendar = Calendar(query.zone) if query.zone is not None else Calendar()
    sessions = {s.origin.transcript: s.origin.session for charge in query.charges for s in charge.sightings}
    unique = {
        (compaction.uuid, compaction.timestamp): compaction
        for path, mentions in read.items()
        for compaction in mentions.compactions
        if query.session is None or sessions.get(path) == query.session
    }
    return [
        compaction
        for compaction in unique.values()
        if query.day is None or calendar.day(compaction.timestamp or "") == query.day
    ]


def _reported_cost(
    ledger: Ledger, query: ReceiptQuery, found: Iterable[Found], read: _TranscriptLines
) -> ReportedSession | None:
    """Return what Claude Code reports that a session cost, from the transcripts with its messages."""
    if query.kind != "session":
        return None
    homes = [
        replace(
            home,
            transcripts=tuple(transcript for transcript in home.transcripts if str(transcript.path) in read),
            side_files=(),
        )
        for home in found
    ]
    # The total may continue that of a session which this one has copies of.
    sessions = {charge.session for charge in query.charges}
    compared = reconcile(homes, Ledger(ledger.of_sessions(sessions), ledger.rates), jobs=1)
    return next((session for session in compared.sessions if session.session == query.session), None)


_MAX_SHOWN = 8
_MAX_ID_SHOWN = 100
_MIN_ID_LENGTH = 4


class ReceiptQuery(Struct, frozen=True):
    """A selection of charges. Charges of another `session` or `agent` are shown, but not counted.

    `day` and `zone` are set for a day. `folder` is set for a session whose name other projects may have, too.
    """

    kind: str
    name: str
    charges: tuple[Charge, ...]
    session: str | None = None
    agent: str | None = None
    day: str | None = None
    zone: tzinfo | None = None
    folder: str | None = None

    def includes(self, charge: Charge) -> bool:
        """Whether a charge is counted here."""
        if self.folder is not None and not charge.owner.origin.transcript.startswith(self.folder):
            return False
        if self.session is not None and charge.session != self.session:
            return False
        return self.agent is None or charge.agent == self.agent


def query_session(ledger: Ledger, session: str, transcripts: Collection[str] = ()) -> ReceiptQuery:
    """Select what a session contains: what it spent, and copies of what others spent. `transcripts` are its files."""
    return ReceiptQuery("session", session, _sort_charges(ledger.holding(session, transcripts)), session=session)


def query_transcript(ledger: Ledger, transcript: Transcript) -> ReceiptQuery:
    """Select what the session of a main transcript contains, or the agent whose own transcript it is."""
    path = str(transcript.path)
    if transcript.agent is not None:
        return query_agent(ledger, transcript.agent, path)
    name: str = transcript.session or transcript.path.stem
    query = query_session(ledger, name, (path,))
    if is_uuid(name):
        return query
    folder = f"{transcript.path.parent}{os.sep}"
    own = (c for c in query.charges if any(s.origin.transcript.startswith(folder) for s in c.sightings))
    return replace(query, charges=tuple(own), folder=folder)


def query_agent(ledger: Ledger, agent: str, transcript: str) -> ReceiptQuery:
    """Select what one agent's transcript contains."""
    charges = _sort_charges(ledger.holding(transcripts=(transcript,)))
    own = [charge.session for charge in charges if charge.agent == agent]
    return ReceiptQuery("agent", agent, charges, session=own[0] if own else None, agent=agent)


def query_message(ledger: Ledger, text: str) -> ReceiptQuery:
    """Select a message by its id or the start of it, with all calls under that id.

    Raises:
        NotFound: no message has such an id.
        Ambiguous: several have; the message lists them.
    """
    ids = match_message_ids(ledger, text)
    if not ids:
        raise NotFound(f"No message has an id that starts with {text[:_MAX_ID_SHOWN]!r}.")
    if len(ids) > 1:
        shown = "\n".join(f"  {id_}" for id_ in ids[:_MAX_SHOWN])
        more = f"\n  and {len(ids) - _MAX_SHOWN:,} more" if len(ids) > _MAX_SHOWN else ""
        raise Ambiguous(f"{len(ids):,} messages have an id that starts with {text[:_MAX_ID_SHOWN]!r}:\n{shown}{more}")
    (name,) = ids
    return ReceiptQuery("message", name, _sort_charges(ledger.of_messages((name,))))


def match_message_ids(ledger: Ledger, text: str) -> list[str]:
    """Return the message ids that start with a text; only the id itself if there is one."""
    ids = ledger.messages(text)
    if text in ids:
        return [text]
    return ids if len(text) >= _MIN_ID_LENGTH else []


def find_messages_of_request(found: Iterable[Found], request: str) -> list[str]:
    """Return the messages that answer a request, by the start of its id, from the lines that contain it."""
    messages: set[str] = set()
    for transcript in (transcript for home in found for transcript in home.transcripts):
        with suppress(Error):
            for matches in find_lines(transcript.path, request.encode()):
                for _, rows in decode_rows(transcript.path, matches):
                    messages.update(
                        (row.message.id if row.message is not None else None) or row.request_id
                        for row in rows
                        if row.request_id is not None and row.request_id.startswith(request)
                    )
    return sorted(messages)


def query_day(ledger: Ledger, day: str, zone: tzinfo) -> ReceiptQuery:
    """Select what was spent on a day in a time zone."""
    return ReceiptQuery("day", day, _sort_charges(ledger.of_day(day, zone)), day=day, zone=zone)


def query_line(ledger: Ledger, transcript: str, line: int) -> ReceiptQuery:
    """Select the message that a line belongs to.

    Raises:
        NotFound: the line has no usage; the message names the nearest one that has.
    """
    nearest: tuple[int, int] | None = None
    charges: list[Charge] = []
    for charge in ledger.holding(transcripts=(transcript,)):
        for sighting in charge.sightings:
            if sighting.origin.transcript == transcript:
                lines = sighting.lines
                if line in lines:
                    charges.append(charge)
                    break
                nearest = min([*((abs(number - line), number) for number in lines), *((nearest,) if nearest else ())])
    if not charges:
        hint = f". The nearest line with usage is {nearest[1]}" if nearest is not None else ""
        raise NotFound(f"Line {line} of {transcript!r} has no usage{hint}.")
    return ReceiptQuery("place", f"{transcript}:{line}", _sort_charges(charges))


def _sort_charges(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    return tuple(
        sorted(charges, key=lambda charge: (charge.owner.time, charge.message, charge.part, charge.model or ""))
    )


_UNRECORDED_CALLS = {
    "WebFetch": "each page was summarised by a small model, in a call that no transcript contains",
    "WebSearch": "each ran in a call of its own, which no transcript contains; only the fee is counted",
}
_MAX_MODELS_NAMED = 3


def missing_costs(
    charges: Sequence[Charge],
    compactions: Sequence[CompactionBoundary],
    problems: Sequence[Problem],
    agents: Sequence[MissingAgent] = (),
) -> Iterator[ReceiptGap]:
    """Yield what these charges are known to lack; last comes what is always missing."""
    lower = sum(1 for charge in charges if charge.is_lower_bound)
    if lower:
        subject = "1 output is a lower bound" if lower == 1 else f"{lower:,} outputs are lower bounds"
        yield ReceiptGap("lower-bound", f"{subject}: the final count was never written", lower)
    yield from _unpriced_charges(charges)
    if problems:
        subject = "1 line or transcript" if len(problems) == 1 else f"{len(problems):,} lines or transcripts"
        yield ReceiptGap(
            "problems", f"{subject} could not be read", len(problems), tuple(problem.place for problem in problems)
        )
    if agents:
        text = describe_missing_agents(agents).removesuffix(".")
        yield ReceiptGap("agents", text, len(agents), tuple(agent.place for agent in agents))
    yield from _compaction_costs(charges, compactions)
    calls = Counter(name for charge in charges if not charge.part for name in charge.calls)
    for tool, text in _UNRECORDED_CALLS.items():
        if calls[tool]:
            yield ReceiptGap(tool, f"{count(calls[tool], f'{tool} call')}: {text}", calls[tool])
    text = "Claude Code's own side calls are in no transcript: titles, summaries, hooks, classifiers"
    yield ReceiptGap("side-calls", text)


def _unpriced_charges(charges: Sequence[Charge]) -> Iterator[ReceiptGap]:
    models = Counter(charge.model or "(none)" for charge in charges if charge.rate is None)
    if models:
        names = ", ".join(f"{model} ({number:,})" for model, number in models.most_common(_MAX_MODELS_NAMED))
        more = f" and {count(len(models) - _MAX_MODELS_NAMED, 'model')} more" if len(models) > _MAX_MODELS_NAMED else ""
        total = models.total()
        have = "has" if total == 1 else "have"
        yield ReceiptGap("unpriced", f"{count(total, 'charge')} {have} no price: {names}{more}", total)


def _compaction_costs(charges: Sequence[Charge], compactions: Sequence[CompactionBoundary]) -> Iterator[ReceiptGap]:
    if not compactions:
        return
    sent = sum(boundary.tokens for boundary in compactions)
    size = f"; they sent about {sent:,} tokens" if sent else ""
    counted = sum(1 for charge in charges if (charge.agent or "").startswith("acompact"))
    own = f"; {count(counted, 'charge')} of side agents for compaction are counted" if counted else ""
    text = f"{count(len(compactions), 'compaction')}: the calls for summaries are in no transcript{size}{own}"
    yield ReceiptGap("compactions", text, len(compactions))


_TRANSCRIPT_CHANGED = "the transcript has changed since it was counted: this line no longer contains the message"
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
        reason = f"all {lines} lines have the same counts" if lines > 2 else "both lines have the same counts"  # noqa: PLR2004 - both
    is_copy = charge.counted.origin.transcript != charge.owner.origin.transcript
    return f"{reason}, though it is a copy" if is_copy else reason


def why_not_counted(charge: Charge, sighting: Sighting, counts: LineCounts) -> str:
    """Explain why another line does not count, from its own content."""
    less = _count_difference(charge, counts)
    where = _copy_relation(charge, sighting)
    if where and less:
        return f"{where}; {less}"
    return (
        f"{where}, with the same counts" if where == _ORIGINAL else where or less or "same counts as the counted line"
    )


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
        return f"a copy in session {_short_id(origin.session)}"
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
    message = _whole_message(charge)
    return (counts.sent, counts.output) == (message.sent, message.output)


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
        yield f"Claude Code reported {format_amount(charge.reported, exact=True)} for it (costUSD)."


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
