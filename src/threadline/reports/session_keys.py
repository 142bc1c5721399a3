"""The keys of `usage --by` that need the sessions themselves: `thread` and `turn`.

They read every session with one of the charges, so they are used only on request (tests/cli/test_cli_usage.py guards
that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from threadline.account import TurnTable
from threadline.errors import Error
from threadline.load import read
from threadline.model.entries import AssistantEntry
from threadline.model.homes import Found, Home, Transcript, TranscriptKind
from threadline.model.ledger import NONE, Charge
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.thread import build_history, split_inline_agents

_MAIN_THREAD, _LEFT_BRANCH, _AGENT, _SIDE_AGENT = "main thread", "left branch", "agent", "side agent"

_AbandonedRows = Mapping[str, frozenset[str]]
"""For each main transcript, the uuids of rows on abandoned branches."""


def thread_key(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Callable[[Charge], str]:
    """Return the key function `thread` for these charges.

    `progress` is called with the size of each transcript that was read.
    """
    paths = {sighting.origin.transcript for charge in charges for sighting in charge.sightings}
    transcripts = {
        str(transcript.path): transcript
        for home in found
        for transcript in home.transcripts
        if transcript.kind is TranscriptKind.MAIN and str(transcript.path) in paths
    }
    rows = {
        str(transcript.path): abandoned
        for transcript, abandoned in map_transcripts(
            _read_abandoned_rows, transcripts.values(), jobs=jobs, progress=progress
        )
    }
    return lambda charge: _thread_of_charge(charge, rows)


def _read_abandoned_rows(transcript: Transcript) -> frozenset[str]:
    """Return the rows of a main transcript that have a reply on an abandoned branch."""
    try:
        transcript_entries = list(entries(transcript.path))
    except Error:
        return frozenset()  # the ledger reports it
    main_entries, inline = split_inline_agents(transcript_entries)
    history = build_history(main_entries, transcript=transcript_entries if inline else None)
    return frozenset(
        entry.uuid
        for branch in history.branches
        for entry in branch.entries
        if isinstance(entry, AssistantEntry) and entry.uuid is not None
    )


def _thread_of_charge(charge: Charge, rows: _AbandonedRows) -> str:
    """Return what a charge was spent on: an abandoned branch if all its rows in main conversations are on one."""
    origin = charge.origin
    if origin.side:
        return _SIDE_AGENT
    if origin.agent is not None:
        return _AGENT
    main_rows = [
        (sighting.origin.transcript, uuid)
        for sighting in charge.sightings
        if sighting.origin.agent is None
        for uuid in sighting.uuids
    ]
    is_left = bool(main_rows) and all(uuid in rows.get(transcript, ()) for transcript, uuid in main_rows)
    return _LEFT_BRANCH if is_left else _MAIN_THREAD


_NO_TURNS = TurnTable({}, {})


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
        turn, _agent = self._tables.get(charge.session or "", _NO_TURNS).locate(charge)
        return str(turn) if turn is not None else NONE


def turn_key(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TurnKey:
    """Return the key function `turn` for these charges. `progress` is as in `thread_key`."""
    found = list(found)
    sessions = {charge.session for charge in charges}
    transcripts: dict[str, Transcript] = {}
    for home in found:
        for transcript in home.transcripts:
            if transcript.kind is TranscriptKind.MAIN and transcript.session in sessions:
                transcripts.setdefault(str(transcript.session), transcript)
    read_turns = partial(_read_turns, homes=tuple(home.home for home in found))
    tables = map_transcripts(read_turns, transcripts.values(), jobs=jobs, progress=progress)
    return TurnKey({str(transcript.session): table for transcript, table in tables})


def _read_turns(transcript: Transcript, homes: Sequence[Home]) -> TurnTable:
    try:
        return TurnTable.of(read(transcript.path, continued=False, homes=homes))
    except Error:
        return _NO_TURNS  # the ledger reports it
