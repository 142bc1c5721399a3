"""Tell which charges were spent on abandoned branches, for `usage --by thread`.

Needs every session that holds one of the charges, so it is read only on request (tests/cli/test_cli_usage.py guards
that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from threadline.errors import Error
from threadline.model.charges import Charge
from threadline.model.entries import AssistantEntry
from threadline.model.homes import Found, Transcript, TranscriptKind
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.thread import build_history, split_inline_agents

MAIN_THREAD, LEFT_BRANCH, AGENT, SIDE_AGENT = "main thread", "left branch", "agent", "side agent"

AbandonedRows = Mapping[str, frozenset[str]]
"""Of each main transcript, the rows that stand on a branch that was left, by their uuids."""


def thread_key(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Callable[[Charge], str]:
    """The key `thread` for these charges: what each was spent on. `progress` is told the bytes of what is read."""
    rows = read_abandoned_rows(found, charges, jobs=jobs, progress=progress)
    return lambda charge: thread_of_charge(charge, rows)


def read_abandoned_rows(
    found: Iterable[Found],
    charges: Iterable[Charge],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> AbandonedRows:
    """The rows on branches that were left, of every main transcript that tells of one of the charges."""
    wanted = {sighting.origin.transcript for charge in charges for sighting in charge.sightings}
    transcripts = {
        str(one.path): one
        for home in found
        for one in home.transcripts
        if one.kind is TranscriptKind.MAIN and str(one.path) in wanted
    }
    rows: dict[str, frozenset[str]] = {}
    for transcript, some in map_transcripts(abandoned_rows_of, transcripts.values(), jobs=jobs):
        if some:
            rows[str(transcript.path)] = some
        if progress is not None:
            progress(transcript.size)
    return rows


def abandoned_rows_of(transcript: Transcript) -> frozenset[str]:
    """The rows of a main transcript with a reply that stands on a branch that was left."""
    try:
        whole = list(entries(transcript.path))
    except Error:
        return frozenset()  # the ledger has told of it
    own, inside = split_inline_agents(whole)
    made = build_history(own, transcript=whole if inside else None)
    return frozenset(
        entry.uuid
        for branch in made.branches
        for entry in branch.entries
        if isinstance(entry, AssistantEntry) and entry.uuid is not None
    )


def thread_of_charge(charge: Charge, rows: AbandonedRows) -> str:
    """What a charge was spent on. It is a left branch's where every row that a main conversation has of it is."""
    origin = charge.origin
    if origin.side:
        return SIDE_AGENT
    if origin.agent is not None:
        return AGENT
    told = [
        (sighting.origin.transcript, uuid)
        for sighting in charge.sightings
        if sighting.origin.agent is None
        for uuid in sighting.uuids
    ]
    is_left = bool(told) and all(uuid in rows.get(transcript, ()) for transcript, uuid in told)
    return LEFT_BRANCH if is_left else MAIN_THREAD
