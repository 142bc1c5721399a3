"""Read what sessions recorded about a file, in order of time, each call once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from threadline.errors import Error
from threadline.insight.blame.history import OwnedFact
from threadline.insight.blame.origins import Origin
from threadline.load import Session, backup_reader, read
from threadline.model.homes import Homes
from threadline.model.insight.blame import BlamedLine
from threadline.model.places import CallId, SessionId
from threadline.thread import FileFact, file_facts


def read_owned_facts(
    transcripts: Iterable[str],
    homes: Homes,
    has_path: Callable[[str], bool],
    owners: dict[CallId, tuple[str, SessionId | None]],
) -> tuple[list[OwnedFact], list[str]]:
    """Return the facts of sessions, by their main transcripts, and the transcripts that cannot be read.

    Forks and resumed sessions contain copies of calls. `owners` says which transcript a call is taken from, and what
    session it belongs to; other calls are taken from the first transcript that has them.
    """
    owners = dict(owners)
    ordered: list[tuple[float, int, int, OwnedFact]] = []
    unreadable: list[str] = []
    seen: set[tuple[object, ...]] = set()
    for number, transcript in enumerate(dict.fromkeys(transcripts)):
        try:
            session = read(transcript, continued=False, homes=homes)
        except Error:
            unreadable.append(transcript)
            continue
        origins: dict[tuple[CallId, str], Origin | None] = {}
        prompts = {turn.number: turn.act.text if turn.act is not None else None for turn in session.turns}
        has_rewinds = bool(session.branches)
        for position, fact in enumerate(file_facts(session, has_path, backup_reader(session))):
            origin = None
            if fact.call is not None:
                owner, session_id = owners.setdefault(fact.call.id, (transcript, session.id))
                if owner != transcript:
                    continue
                key = (fact.call.id, fact.path)
                if key not in origins:
                    origins[key] = _origin(session, session_id, fact, prompts)
                origin = origins[key]
            else:
                copy = (fact.kind, fact.path, fact.time, fact.content)
                if copy in seen:
                    continue
                seen.add(copy)
            cwd = fact.call.entry.cwd if fact.call is not None else None
            ordered.append((fact.time, number, position, OwnedFact(fact, origin, cwd, has_rewinds)))
    ordered.sort(key=lambda row: row[:3])
    return [row[3] for row in ordered], unreadable


def _origin(
    session: Session, session_id: SessionId | None, fact: FileFact, prompts: dict[int, str | None]
) -> Origin | None:
    call = fact.call
    if call is None:
        return None
    return BlamedLine(
        line=0,
        text="",
        known=True,
        session=session_id or session.id,
        turn=call.turn,
        prompt=prompts.get(call.turn) if call.turn is not None else None,
        model=call.entry.message.model if call.entry.message is not None else None,
        agent=fact.evidence.agent,
        time=call.answer.timestamp if call.answer is not None else call.timestamp,
        tool=call.tool,
        call=call.id,
        place=fact.evidence.place,
        path=fact.path or None,
    )
