"""What a receipt is asked for: the charges of a session, an agent, a message, a day or a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import tzinfo

from msgspec import Struct

from threadline.account.ledger import Ledger
from threadline.errors import Ambiguous, NotFound
from threadline.model.charge import Charge
from threadline.model.found import Transcript

_SHOWN = 8
_LONG = 100
_LEAST = 4


class Asked(Struct, frozen=True):
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

    def is_here(self, charge: Charge) -> bool:
        """Whether a charge is counted here."""
        if self.session is not None and charge.session != self.session:
            return False
        return self.agent is None or charge.agent == self.agent


def of_session(ledger: Ledger, session: str, transcripts: Collection[str] = ()) -> Asked:
    """All that a session holds: what it spent, and copies of what others did. `transcripts` are its files."""
    return Asked("session", session, _in_order(ledger.holding(session, transcripts)), session=session)


def of_transcript(ledger: Ledger, transcript: Transcript) -> Asked:
    """All that the session of a main transcript holds, or the agent whose own transcript it is."""
    path = str(transcript.path)
    if transcript.agent is not None:
        return of_agent(ledger, transcript.agent, path)
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
    return of_session(ledger, named, (path,))


def of_agent(ledger: Ledger, agent: str, transcript: str) -> Asked:
    """All that one agent's transcript holds."""
    held = _in_order(ledger.holding(transcripts=(transcript,)))
    own = [one.session for one in held if one.agent == agent]
    return Asked("agent", agent, held, session=own[0] if own else None, agent=agent)


def of_message(ledger: Ledger, text: str) -> Asked:
    """A message by its id or the start of it; all calls there are under that id.

    Raises:
        NotFound: no message has such an id.
        Ambiguous: several have; the text lists them.
    """
    found = messages(ledger, text)
    if not found:
        raise NotFound(f"No message has an id that starts with {text[:_LONG]!r}.")
    if len(found) > 1:
        shown = "\n".join(f"  {one}" for one in found[:_SHOWN])
        more = f"\n  and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        raise Ambiguous(f"{len(found):,} messages have an id that starts with {text[:_LONG]!r}:\n{shown}{more}")
    (name,) = found
    return Asked("message", name, _in_order(ledger.of_messages((name,))))


def messages(ledger: Ledger, text: str) -> list[str]:
    """The ids of messages that start so; the one that is so where there is one."""
    found = ledger.messages(text)
    if text in found:
        return [text]
    return found if len(text) >= _LEAST else []


def of_day(ledger: Ledger, day: str, zone: tzinfo) -> Asked:
    """All that was spent on a day in a time zone."""
    return Asked("day", day, _in_order(ledger.of_day(day, zone)), day=day, zone=zone)


def of_place(ledger: Ledger, transcript: str, line: int) -> Asked:
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
    return Asked("place", f"{transcript}:{line}", _in_order(found))


def _in_order(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    return tuple(sorted(charges, key=lambda one: (one.owner.time, one.message, one.part, one.model or "")))
