"""Receipts: select charges by session, agent, message, day or line, and re-read every line behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import tzinfo

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import (
    TRANSCRIPT_CHANGED,
    Calendar,
    Ledger,
    charge_notes,
    is_still_as_counted,
    why_counted,
    why_not_counted,
)
from threadline.errors import Ambiguous, NotFound
from threadline.model.charges import Charge
from threadline.model.homes import Found, Transcript
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.receipts import LineCounts, Mention, Receipt, ReceiptGap, ReceiptItem, sum_by_rate
from threadline.model.reconciliation import ReportedSession
from threadline.model.sightings import Sighting
from threadline.parse import CompactionBoundary, Mentions, read_mentions
from threadline.reports.reconciliation import reconcile

_TranscriptLines = dict[str, Mentions]
_WHOLE_KINDS = ("session", "day", "agent")


def build_receipt(ledger: Ledger, asked: ReceiptQuery, found: Iterable[Found] = ()) -> Receipt:
    """The receipt of what was asked for. Of a session in the homes `found`, also what Claude Code reports of it."""
    read = _read_transcripts(asked)
    calls = _calls_per_message(ledger, asked)
    problems: list[Problem] = []
    items = tuple(
        ReceiptItem(
            charge,
            tuple(_lines_of_charge(charge, read, problems)),
            asked.includes(charge),
            tuple(charge_notes(charge, ledger.rates, calls[charge.message])),
        )
        for charge in sorted(asked.charges, key=lambda charge: not asked.includes(charge))
    )
    here = [item.charge for item in items if item.here]
    problems += _damaged_lines(asked, read)
    own = {sighting.origin.transcript for charge in here for sighting in charge.sightings}
    problems += (problem for problem in ledger.problems if asked.kind == "day" or problem.place.transcript in own)
    return Receipt(
        kind=asked.kind,
        name=asked.name,
        items=items,
        rates=tuple(sum_by_rate(here)),
        total=Ledger(here, ledger.rates).total,
        missing=tuple(missing_costs(here, _selected_compactions(asked, read), problems)),
        reported=_reported_cost(ledger, asked, found, read),
        digest=ledger.rates.digest,
    )


def _read_transcripts(asked: ReceiptQuery) -> _TranscriptLines:
    """The transcripts that tell of the charges, each read once for all the lines that are wanted of it."""
    wanted: dict[str, set[int]] = {}
    for charge in asked.charges:
        for seen in charge.sightings:
            wanted.setdefault(seen.origin.transcript, set()).update(seen.offsets)
    return {path: read_mentions(path, offsets) for path, offsets in wanted.items()}


def _calls_per_message(ledger: Ledger, asked: ReceiptQuery) -> Counter[str]:
    """How many calls there are under the ids of these charges."""
    ids = {charge.message for charge in asked.charges}
    return Counter(message.message for message in ledger.of_messages(ids) if not message.part)


def _lines_of_charge(charge: Charge, read: _TranscriptLines, problems: list[Problem]) -> Iterator[Mention]:
    """Every line that tells of a charge, those of the owner first; of a pass only the one it is in."""
    places = [(one, offset) for one in _owner_first(charge) for offset in one.offsets]
    told = [_line_counts(charge, one, offset, read) for one, offset in places]
    same = len({(one.sent, one.output) if one is not None else None for one in told}) == 1
    marked = False
    for (sighting, offset), counts in zip(places, told, strict=True):
        is_counted = not marked and _is_counted(charge, sighting, offset)
        marked |= is_counted
        if charge.part and not is_counted:
            continue
        origin = sighting.origin
        place = Place(origin.transcript, origin.lines(offset), offset)
        if counts is None:
            gone = read[origin.transcript].gone
            why = TRANSCRIPT_CHANGED if gone is None else f"could not be read again: {gone}"
            problems.append(Problem(ProblemKind.CHANGED, place, why, recovered=False))
        elif is_counted:
            why = why_counted(charge, len(places), same=same)
        else:
            why = why_not_counted(charge, sighting, counts)
        yield Mention(place, origin.session, origin.agent, counts, is_counted, why)


def _owner_first(charge: Charge) -> list[Sighting]:
    """The sightings, those in the owner's transcript first."""
    own = charge.owner.origin.transcript
    return sorted(
        charge.sightings,
        key=lambda sighting: (sighting.origin.transcript != own, sighting.origin.began, sighting.offsets[0]),
    )


def _is_counted(charge: Charge, sighting: Sighting, offset: int) -> bool:
    # A pass is made of the sighting that it is in, and shares its rows.
    return sighting.rows is charge.counted.rows and offset == charge.counted.offset


def _line_counts(charge: Charge, sighting: Sighting, offset: int, read: _TranscriptLines) -> LineCounts | None:
    """The counts of a line, if it still tells of the message what was counted; glued rows may tell of it twice."""
    is_counted = _is_counted(charge, sighting, offset)
    for one in read[sighting.origin.transcript].counts.get((offset, charge.message), ()):
        if one.sent == sighting.sent and (not is_counted or is_still_as_counted(charge, one)):
            return one
    return None


def _damaged_lines(asked: ReceiptQuery, read: _TranscriptLines) -> Iterator[Problem]:
    """Damaged lines of the transcripts that are wholly asked for; others' are not this receipt's."""
    if asked.kind not in _WHOLE_KINDS:
        return
    own = {charge.owner.origin.transcript for charge in asked.charges if asked.includes(charge)}
    for path in own:
        yield from read[path].problems


def _selected_compactions(asked: ReceiptQuery, read: _TranscriptLines) -> list[CompactionBoundary]:
    if asked.kind not in _WHOLE_KINDS:
        return []
    calendar = Calendar(asked.zone) if asked.zone is not None else Calendar()
    every = {
        (compaction.uuid, compaction.timestamp): compaction
        for found in read.values()
        for compaction in found.compactions
    }
    return [
        one
        for one in every.values()
        if (asked.session is None or one.session_id == asked.session)
        and (asked.day is None or calendar.day(one.timestamp or "") == asked.day)
    ]


def _reported_cost(
    ledger: Ledger, asked: ReceiptQuery, found: Iterable[Found], read: _TranscriptLines
) -> ReportedSession | None:
    """What Claude Code says that a session cost, by the transcripts that hold its messages."""
    if asked.kind != "session":
        return None
    few = [
        replace(one, transcripts=tuple(each for each in one.transcripts if str(each.path) in read), side_files=())
        for one in found
    ]
    # A total may go on from that of a session which this one has copies of.
    sessions = {charge.session for charge in asked.charges}
    told = reconcile(few, Ledger(ledger.of_sessions(sessions), ledger.rates), jobs=1)
    return next((session for session in told.sessions if session.session == asked.session), None)


_MAX_SHOWN = 8
_MAX_ID_SHOWN = 100
_MIN_ID_LENGTH = 4


class ReceiptQuery(Struct, frozen=True):
    """Which charges are asked for. `session` and `agent` are whose: what another owns is shown and not counted.

    `day` and `zone` are those of a day.
    """

    kind: str
    name: str
    charges: tuple[Charge, ...]
    session: str | None = None
    agent: str | None = None
    day: str | None = None
    zone: tzinfo | None = None

    def includes(self, charge: Charge) -> bool:
        """Whether a charge is counted here."""
        if self.session is not None and charge.session != self.session:
            return False
        return self.agent is None or charge.agent == self.agent


def query_session(ledger: Ledger, session: str, transcripts: Collection[str] = ()) -> ReceiptQuery:
    """All that a session holds: what it spent, and copies of what others did. `transcripts` are its files."""
    return ReceiptQuery("session", session, _sort_charges(ledger.holding(session, transcripts)), session=session)


def query_transcript(ledger: Ledger, transcript: Transcript) -> ReceiptQuery:
    """All that the session of a main transcript holds, or the agent whose own transcript it is."""
    path = str(transcript.path)
    if transcript.agent is not None:
        return query_agent(ledger, transcript.agent, path)
    named: str = transcript.session or transcript.path.stem
    if named not in ledger.sessions:
        # The name of the file is not the session's: what most of its lines say is.
        told = Counter(
            seen.origin.session
            for one in ledger.holding(transcripts=(path,))
            for seen in one.sightings
            if seen.origin.transcript == path
        )
        named = next(
            (session for session, _ in told.most_common() if session is not None), named or transcript.path.stem
        )
    return query_session(ledger, named, (path,))


def query_agent(ledger: Ledger, agent: str, transcript: str) -> ReceiptQuery:
    """All that one agent's transcript holds."""
    held = _sort_charges(ledger.holding(transcripts=(transcript,)))
    own = [charge.session for charge in held if charge.agent == agent]
    return ReceiptQuery("agent", agent, held, session=own[0] if own else None, agent=agent)


def query_message(ledger: Ledger, text: str) -> ReceiptQuery:
    """A message by its id or the start of it; all calls there are under that id.

    Raises:
        NotFound: no message has such an id.
        Ambiguous: several have; the text lists them.
    """
    found = match_message_ids(ledger, text)
    if not found:
        raise NotFound(f"No message has an id that starts with {text[:_MAX_ID_SHOWN]!r}.")
    if len(found) > 1:
        shown = "\n".join(f"  {one}" for one in found[:_MAX_SHOWN])
        more = f"\n  and {len(found) - _MAX_SHOWN:,} more" if len(found) > _MAX_SHOWN else ""
        raise Ambiguous(f"{len(found):,} messages have an id that starts with {text[:_MAX_ID_SHOWN]!r}:\n{shown}{more}")
    (name,) = found
    return ReceiptQuery("message", name, _sort_charges(ledger.of_messages((name,))))


def match_message_ids(ledger: Ledger, text: str) -> list[str]:
    """The ids of messages that start so; the one that is so where there is one."""
    found = ledger.messages(text)
    if text in found:
        return [text]
    return found if len(text) >= _MIN_ID_LENGTH else []


def query_day(ledger: Ledger, day: str, zone: tzinfo) -> ReceiptQuery:
    """All that was spent on a day in a time zone."""
    return ReceiptQuery("day", day, _sort_charges(ledger.of_day(day, zone)), day=day, zone=zone)


def query_line(ledger: Ledger, transcript: str, line: int) -> ReceiptQuery:
    """The message that a line belongs to.

    Raises:
        NotFound: the line tells no usage; the text names the nearest one that does.
    """
    nearest: tuple[int, int] | None = None
    found: list[Charge] = []
    for charge in ledger.holding(transcripts=(transcript,)):
        for seen in charge.sightings:
            if seen.origin.transcript == transcript:
                lines = seen.lines
                if line in lines:
                    found.append(charge)
                    break
                nearest = min([*((abs(one - line), one) for one in lines), *((nearest,) if nearest else ())])
    if not found:
        hint = f"; the nearest line that does is {nearest[1]}" if nearest is not None else ""
        raise NotFound(f"Line {line} of {transcript!r} tells no usage{hint}.")
    return ReceiptQuery("place", f"{transcript}:{line}", _sort_charges(found))


def _sort_charges(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    return tuple(
        sorted(charges, key=lambda charge: (charge.owner.time, charge.message, charge.part, charge.model or ""))
    )


_UNRECORDED_CALLS = {
    "WebFetch": "each page was summarised by a small model, in a call that no transcript holds",
    "WebSearch": "each ran in a call of its own, which no transcript holds; only the fee is counted",
}
_MAX_MODELS_NAMED = 3


def missing_costs(
    here: Sequence[Charge], compactions: Sequence[CompactionBoundary], problems: Sequence[Problem]
) -> Iterator[ReceiptGap]:
    """What these charges are known to lack, what is always missing last."""
    lower = sum(1 for charge in here if charge.is_lower_bound)
    if lower:
        told = "1 output is a lower bound" if lower == 1 else f"{lower:,} outputs are lower bounds"
        yield ReceiptGap("lower-bound", f"{told}: the final count was never written", lower)
    yield from _unpriced_charges(here)
    if problems:
        told = "1 line or transcript" if len(problems) == 1 else f"{len(problems):,} lines or transcripts"
        yield ReceiptGap(
            "problems", f"{told} could not be read", len(problems), tuple(problem.place for problem in problems)
        )
    yield from _compaction_costs(here, compactions)
    made = Counter(name for charge in here if not charge.part for name in charge.calls)
    for tool, text in _UNRECORDED_CALLS.items():
        if made[tool]:
            yield ReceiptGap(tool, f"{_count_noun(made[tool], f'{tool} call')}: {text}", made[tool])
    text = "calls that Claude Code makes on the side are in no transcript: titles, summaries, hooks, classifiers"
    yield ReceiptGap("side-calls", text)


def _unpriced_charges(here: Sequence[Charge]) -> Iterator[ReceiptGap]:
    models = Counter(charge.model or "(none)" for charge in here if charge.rate is None)
    if models:
        named = ", ".join(f"{model} ({number:,})" for model, number in models.most_common(_MAX_MODELS_NAMED))
        more = (
            f" and {_count_noun(len(models) - _MAX_MODELS_NAMED, 'model')} more"
            if len(models) > _MAX_MODELS_NAMED
            else ""
        )
        count = models.total()
        told = "1 charge has" if count == 1 else f"{count:,} charges have"
        yield ReceiptGap("unpriced", f"{told} no price: {named}{more}", count)


def _compaction_costs(here: Sequence[Charge], compactions: Sequence[CompactionBoundary]) -> Iterator[ReceiptGap]:
    if not compactions:
        return
    sent = sum(boundary.tokens for boundary in compactions)
    size = f"; about {sent:,} tokens were sent for that" if sent else ""
    told = sum(1 for charge in here if (charge.agent or "").startswith("acompact"))
    own = f"; {_count_noun(told, 'charge')} of side agents for it counted" if told else ""
    text = f"{_count_noun(len(compactions), 'compaction')}: what wrote the summary is in no entry{size}{own}"
    yield ReceiptGap("compactions", text, len(compactions))


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
