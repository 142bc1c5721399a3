"""Receipts: the charges that were asked for, with every line that tells of them read once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from threadline.account.calendar import Calendar
from threadline.account.ledger import Ledger
from threadline.account.reasons import CHANGED, is_as_counted, notes, why_counted, why_not
from threadline.model.charge import Charge
from threadline.model.found import Found
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.receipt import Item, LineCounts, Mention, Receipt, rate_sums
from threadline.model.reported import ReportedSession
from threadline.model.sighting import Sighting
from threadline.parse.mentions import Compacted, Mentioned, mentions
from threadline.survey.absences import absences
from threadline.survey.asked import Asked
from threadline.survey.reported import reported

_Read = dict[str, Mentioned]
_WHOLE = ("session", "day", "agent")


def receipt(ledger: Ledger, asked: Asked, found: Iterable[Found] = ()) -> Receipt:
    """The receipt of what was asked for. Of a session in the homes `found`, also what Claude Code reports of it."""
    read = _read(asked)
    calls = _calls(ledger, asked)
    problems: list[Problem] = []
    items = tuple(
        Item(
            charge,
            tuple(_mentions(charge, read, problems)),
            asked.is_here(charge),
            tuple(notes(charge, ledger.rates, calls[charge.message])),
        )
        for charge in sorted(asked.charges, key=lambda one: not asked.is_here(one))
    )
    here = [one.charge for one in items if one.here]
    problems += _damage(asked, read)
    own = {one.origin.transcript for charge in here for one in charge.sightings}
    problems += (one for one in ledger.problems if asked.kind == "day" or one.place.transcript in own)
    return Receipt(
        kind=asked.kind,
        name=asked.name,
        items=items,
        rates=tuple(rate_sums(here)),
        total=Ledger(here, ledger.rates).total,
        missing=tuple(absences(here, _compactions(asked, read), problems)),
        reported=_reported(ledger, asked, found, read),
        digest=ledger.rates.digest,
    )


def _read(asked: Asked) -> _Read:
    """The transcripts that tell of the charges, each read once for all the lines that are wanted of it."""
    wanted: dict[str, set[int]] = {}
    for charge in asked.charges:
        for seen in charge.sightings:
            wanted.setdefault(seen.origin.transcript, set()).update(seen.offsets)
    return {path: mentions(path, offsets) for path, offsets in wanted.items()}


def _calls(ledger: Ledger, asked: Asked) -> Counter[str]:
    """How many calls there are under the ids of these charges."""
    ids = {one.message for one in asked.charges}
    return Counter(one.message for one in ledger.of_messages(ids) if not one.part)


def _mentions(charge: Charge, read: _Read, problems: list[Problem]) -> Iterator[Mention]:
    """Every line that tells of a charge, those of the owner first; of a pass only the one it is in."""
    places = [(one, offset) for one in _by_owner(charge) for offset in one.offsets]
    told = [_counts(charge, one, offset, read) for one, offset in places]
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
            why = CHANGED if gone is None else f"could not be read again: {gone}"
            problems.append(Problem(ProblemKind.CHANGED, place, why, recovered=False))
        elif is_counted:
            why = why_counted(charge, len(places), same=same)
        else:
            why = why_not(charge, sighting, counts)
        yield Mention(place, origin.session, origin.agent, counts, is_counted, why)


def _by_owner(charge: Charge) -> list[Sighting]:
    """The sightings, those in the owner's transcript first."""
    own = charge.owner.origin.transcript
    return sorted(charge.sightings, key=lambda one: (one.origin.transcript != own, one.origin.began, one.offsets[0]))


def _is_counted(charge: Charge, sighting: Sighting, offset: int) -> bool:
    # A pass is made of the sighting that it is in, and shares its rows.
    return sighting.rows is charge.counted.rows and offset == charge.counted.offset


def _counts(charge: Charge, sighting: Sighting, offset: int, read: _Read) -> LineCounts | None:
    """The counts of a line, if it still tells of the message what was counted; glued rows may tell of it twice."""
    is_counted = _is_counted(charge, sighting, offset)
    for one in read[sighting.origin.transcript].counts.get((offset, charge.message), ()):
        if one.sent == sighting.sent and (not is_counted or is_as_counted(charge, one)):
            return one
    return None


def _damage(asked: Asked, read: _Read) -> Iterator[Problem]:
    """Damaged lines of the transcripts that are wholly asked for; others' are not this receipt's."""
    if asked.kind not in _WHOLE:
        return
    own = {charge.owner.origin.transcript for charge in asked.charges if asked.is_here(charge)}
    for path in own:
        yield from read[path].problems


def _compactions(asked: Asked, read: _Read) -> list[Compacted]:
    if asked.kind not in _WHOLE:
        return []
    calendar = Calendar(asked.zone) if asked.zone is not None else Calendar()
    every = {(one.uuid, one.timestamp): one for found in read.values() for one in found.compactions}
    return [
        one
        for one in every.values()
        if (asked.session is None or one.session_id == asked.session)
        and (asked.day is None or calendar.day(one.timestamp or "") == asked.day)
    ]


def _reported(ledger: Ledger, asked: Asked, found: Iterable[Found], read: _Read) -> ReportedSession | None:
    """What Claude Code says that a session cost, by the transcripts that hold its messages."""
    if asked.kind != "session":
        return None
    few = [
        replace(one, transcripts=tuple(each for each in one.transcripts if str(each.path) in read), side_files=())
        for one in found
    ]
    # A total may go on from that of a session which this one has copies of.
    sessions = {one.session for one in asked.charges}
    told = reported(few, Ledger(ledger.of_sessions(sessions), ledger.rates), jobs=1)
    return next((one for one in told.sessions if one.session == asked.session), None)
