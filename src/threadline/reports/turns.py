"""Find the turn that each charge was spent on, for `usage --by turn`.

This reads every session with one of the charges, so it is done only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from threadline.account import TurnTable
from threadline.errors import Error
from threadline.load import read
from threadline.model.homes import Found, Home, Transcript, TranscriptKind
from threadline.model.ledger import NONE, Charge
from threadline.parallel import map_transcripts

_EMPTY = TurnTable({}, {})


class TurnKey:
    """The key function `turn`: the number of a charge's turn, or `(none)`. `prompts` are the turns' prompts.

    A prompt's key is the session and the turn; the session is empty if there is only one.
    """

    def __init__(self, tables: dict[str, TurnTable]) -> None:
        self._tables = tables
        self.prompts = {
            (session, str(number)): prompt
            for session, table in tables.items()
            for number, prompt in table.prompts.items()
        }
        if len(tables) == 1:  # then rows need not name the session
            self.prompts |= {("", turn): prompt for (_session, turn), prompt in self.prompts.items()}

    def __call__(self, charge: Charge) -> str:
        """The value of the key for a charge."""
        turn, _agent = self._tables.get(charge.session or "", _EMPTY).locate(charge)
        return str(turn) if turn is not None else NONE


def turn_key(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TurnKey:
    """Return the key function `turn` for these charges. `progress` is called with the size of each transcript read."""
    found = list(found)
    sessions = {charge.session for charge in charges}
    transcripts: dict[str, Transcript] = {}
    for home in found:
        for transcript in home.transcripts:
            if transcript.kind is TranscriptKind.MAIN and transcript.session in sessions:
                transcripts.setdefault(str(transcript.session), transcript)
    tables: dict[str, TurnTable] = {}
    read_turns = partial(_read_turns, homes=tuple(home.home for home in found))
    for transcript, table in map_transcripts(read_turns, transcripts.values(), jobs=jobs):
        tables[str(transcript.session)] = table
        if progress is not None:
            progress(transcript.size)
    return TurnKey(tables)


def _read_turns(transcript: Transcript, homes: Sequence[Home]) -> TurnTable:
    try:
        return TurnTable.of(read(transcript.path, continued=False, homes=homes))
    except Error:
        return _EMPTY  # the ledger reports it
