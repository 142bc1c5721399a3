"""Find charges that were spent on abandoned branches, for `usage --by thread`.

This reads every session with one of the charges, so it is done only on request (tests/cli/test_cli_usage.py guards
that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from threadline.errors import Error
from threadline.model.entries import AssistantEntry
from threadline.model.homes import Found, Transcript, TranscriptKind
from threadline.model.ledger import Charge
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.thread import build_history, split_inline_agents

MAIN_THREAD, LEFT_BRANCH, AGENT, SIDE_AGENT = "main thread", "left branch", "agent", "side agent"

AbandonedRows = Mapping[str, frozenset[str]]
"""For each main transcript, the uuids of rows on abandoned branches."""


def thread_key(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Callable[[Charge], str]:
    """Return the key function `thread` for these charges.

    `progress` is called with the size of each transcript read.
    """
    rows = read_abandoned_rows(found, charges, jobs=jobs, progress=progress)
    return lambda charge: thread_of_charge(charge, rows)


def read_abandoned_rows(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> AbandonedRows:
    """Return the rows on abandoned branches, for every main transcript that contains one of the charges."""
    paths = {sighting.origin.transcript for charge in charges for sighting in charge.sightings}
    transcripts = {
        str(transcript.path): transcript
        for home in found
        for transcript in home.transcripts
        if transcript.kind is TranscriptKind.MAIN and str(transcript.path) in paths
    }
    rows: dict[str, frozenset[str]] = {}
    for transcript, abandoned in map_transcripts(abandoned_rows_of, transcripts.values(), jobs=jobs):
        if abandoned:
            rows[str(transcript.path)] = abandoned
        if progress is not None:
            progress(transcript.size)
    return rows


def abandoned_rows_of(transcript: Transcript) -> frozenset[str]:
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


def thread_of_charge(charge: Charge, rows: AbandonedRows) -> str:
    """Return what a charge was spent on: an abandoned branch if all its rows in main conversations are on one."""
    origin = charge.origin
    if origin.side:
        return SIDE_AGENT
    if origin.agent is not None:
        return AGENT
    main_rows = [
        (sighting.origin.transcript, uuid)
        for sighting in charge.sightings
        if sighting.origin.agent is None
        for uuid in sighting.uuids
    ]
    is_left = bool(main_rows) and all(uuid in rows.get(transcript, ()) for transcript, uuid in main_rows)
    return LEFT_BRANCH if is_left else MAIN_THREAD
