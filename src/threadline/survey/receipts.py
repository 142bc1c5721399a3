"""Receipts: the charges that were asked for, with every line that tells of them read once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from threadline.account.calendar import Calendar
from threadline.account.ledger import Ledger
from threadline.account.reasons import CHANGED, is_as_counted, notes, why_counted, why_not
from threadline.model.charge import Charge
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.receipt import Item, LineCounts, Mention, Receipt, rate_sums
from threadline.model.sighting import Sighting
from threadline.parse.mentions import Compacted, Mentioned, mentions
from threadline.survey.absences import absences
from threadline.survey.asked import Asked

_Read = dict[str, Mentioned]
_WHOLE = ("session", "day", "agent")


def receipt(ledger: Ledger, asked: Asked, *, progress: Callable[[str], None] | None = None) -> Receipt:
    """The receipt of what was asked for. `progress` is told each transcript when it has been read once more."""
    read = _read(asked, progress)
    calls = _calls(ledger, asked)
    problems: list[Problem] = []
    items = tuple(
        Item(
            charge,
            tuple(_mentions(charge, read, problems)),
            asked.is_here(charge),
            tuple(notes(charge, ledger.rates, calls[charge.message])),
        )
        for charge in asked.charges
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
        digest=ledger.rates.digest,
    )


def _read(asked: Asked, progress: Callable[[str], None] | None) -> _Read:
    """The transcripts that tell of the charges, each read once for all the lines that are wanted of it."""
    wanted: dict[str, set[int]] = {}
    for charge in asked.charges:
        for seen in charge.sightings:
            wanted.setdefault(seen.origin.transcript, set()).update(seen.offsets)
    read: _Read = {}
    for path, lines in wanted.items():
        read[path] = mentions(path, lines)
        if progress is not None:
            progress(path)
    return read


def _calls(ledger: Ledger, asked: Asked) -> Counter[str]:
    """How many calls there are under the ids of these charges."""
    ids = {one.message for one in asked.charges}
    return Counter(one.message for one in ledger if one.message in ids and not one.part)


def _mentions(charge: Charge, read: _Read, problems: list[Problem]) -> Iterator[Mention]:
    """Every line that tells of a charge, in the order of transcripts and lines; of a pass only the one it is in."""
    places = [(one, offset) for one in _by_owner(charge) for offset in one.offsets]
    marked = False
    for sighting, offset in places:
        counts_here = not marked and sighting.rows is charge.counted.rows and offset == charge.counted.offset
        marked |= counts_here
        if charge.part and not counts_here:
            continue
        origin = sighting.origin
        place = Place(origin.transcript, origin.lines(offset), offset)
        found = read[place.transcript]
        counts = _counts(charge, sighting, found.counts.get((offset, charge.message), ()), counted=counts_here)
        if counts is None:
            why = CHANGED if found.gone is None else f"could not be read again: {found.gone}"
            problems.append(Problem(ProblemKind.CHANGED, place, why, recovered=False))
        else:
            why = why_counted(charge, len(places)) if counts_here else why_not(charge, sighting, counts)
        yield Mention(place, origin.session, origin.agent, counts, counts_here, why)


def _by_owner(charge: Charge) -> list[Sighting]:
    """The sightings, those in the owner's transcript first."""
    own = charge.owner.origin.transcript
    return sorted(charge.sightings, key=lambda one: (one.origin.transcript != own, one.origin.began, one.offsets[0]))


def _counts(
    charge: Charge, sighting: Sighting, told: list[LineCounts] | tuple[()], *, counted: bool
) -> LineCounts | None:
    """The counts of a line that belong to a sighting: a line of two glued rows tells of the message twice."""
    for one in told:
        if one.sent == sighting.sent and (not counted or is_as_counted(charge, one)):
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
