"""Count every message and every call once across all machines, with the rules of one machine.

A lake has the sightings of every transcript. Transcripts that share a message's key, directly or through others, form
a group; a group's charges depend on nothing outside it. So a build computes the charges of the groups that changed,
and they equal those of one ledger of everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from threadline import __version__
from threadline.account import AgentResults, Ledger, Rates, ledger_from_sightings, with_origin
from threadline.lake.columns import arrow_table
from threadline.lake.tables import CHARGES, NO_DAY
from threadline.model.homes import Home, Transcript, TranscriptKind
from threadline.model.ledger import Charge
from threadline.model.places import AgentId, SessionId
from threadline.model.tables import import_library
from threadline.model.times import parse_timestamp
from threadline.model.usage import Sighting, decode_sightings
from threadline.union_find import UnionFind

SIGHTING_COLUMNS = (
    *("transcript_id", "transcript", "home", "label", "project", "session", "agent", "mtime_ns", "packed"),
    *("person", "machine", "source", "batch", "day"),
)
KEY_COLUMNS = ("transcript_id", "source", "keys", "summaries", "days", "day")
COPY_COLUMNS = ("call", "entry_id", "transcript_id", "transcript", "machine", "line", "message", "day")
"""The columns of `calls` by which copies are found."""
Row = Mapping[str, Any]


class LakeLedger:
    """The ledger of transcripts of a lake. `row_of` returns the row of `sightings` that a charge is owned by."""

    def __init__(self, rows: Iterable[Row], rates: Rates) -> None:
        ordered = sorted(rows, key=lambda row: (row["home"], row["machine"], row["transcript"]))
        homes = dict.fromkeys((row["home"], row["machine"]) for row in ordered)
        self._ranks = {home: rank for rank, home in enumerate(homes)}
        self._rows: dict[str, Row] = {}
        self._agents = AgentResults()
        self.ledger: Ledger = ledger_from_sightings(self._sightings(ordered), rates, missing=self._agents)

    def row_of(self, charge: Charge) -> Row:
        """Where a charge was spent."""
        return self._rows[charge.origin.transcript]

    def _sightings(self, rows: Iterable[Row]) -> Iterator[Sighting]:
        for row in rows:
            read = decode_sightings(row["packed"])
            transcript = Transcript(
                Path(row["transcript"]),
                Home(Path(row["home"]), "lake"),
                "",
                TranscriptKind.MAIN if row["agent"] is None else TranscriptKind.AGENT,
                0,
                row["mtime_ns"],
                session=SessionId(row["session"]),
                agent=AgentId(row["agent"]) if row["agent"] is not None else None,
            )
            self._agents.add(read, transcript, row["project"], _no_line)
            rank = self._ranks[row["home"], row["machine"]]
            sightings = with_origin(read, transcript, row["project"], _no_line, rank)
            # Machines may have the same paths.
            key = f"{row['transcript']}\0{row['machine']}"
            for origin in read.origins:
                origin.transcript, origin.machine, origin.home_name = key, row["label"], row["home"]
                origin.home = row["home"]
            self._rows[key] = row
            yield from sightings


def _no_line(_offset: int) -> int:
    """Lines of a lake's transcripts are not numbered."""
    return 0


def affected_transcripts(keys: Any, changed: Collection[str]) -> set[int]:
    """The transcripts whose charges and calls may differ: those of changed sources, and all that share keys with them.

    `keys` is an Arrow table of `sightings` before and after the change, with the columns `KEY_COLUMNS`.
    """
    starts = {
        transcript
        for transcript, source in zip(*(keys.column(name).to_pylist() for name in KEY_COLUMNS[:2]), strict=True)
        if source in changed
    }
    groups = UnionFind()
    numbers: dict[int, int] = {}
    first_with: dict[int, int] = {}
    for transcript, key in shared_keys(keys):
        number = numbers.get(transcript)
        if number is None:
            number = numbers[transcript] = groups.add()
        groups.union(first_with.setdefault(key, number), number)
    roots = {groups.find(numbers[transcript]) for transcript in starts if transcript in numbers}
    return starts | {transcript for transcript, number in numbers.items() if groups.find(number) in roots}


def shared_keys(keys: Any) -> Iterator[tuple[int, int]]:
    """The keys that several transcripts have, as pairs of a transcript and a number for the key."""
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    lists = keys.column("keys").combine_chunks()
    transcripts = keys.column("transcript_id").combine_chunks().take(compute.list_parent_indices(lists))
    codes = compute.dictionary_encode(lists.flatten()).indices
    pairs = pa.table({"transcript": transcripts, "key": codes}).group_by(["transcript", "key"]).aggregate([])
    counts = compute.value_counts(pairs.column("key").combine_chunks())
    several = counts.field("values").filter(compute.greater(counts.field("counts"), 1))
    shared = pairs.filter(compute.is_in(pairs.column("key"), several))
    yield from zip(shared.column("transcript").to_pylist(), shared.column("key").to_pylist(), strict=True)


def charge_rows(rows: Iterable[Row], rates: Rates) -> Any:
    """The charges of transcripts, given by rows of `sightings`, as an Arrow table."""
    lake = LakeLedger(rows, rates)
    charges = lake.ledger.charges
    origins, counts = [charge.origin for charge in charges], [charge.counted for charge in charges]
    owners = [lake.row_of(charge) for charge in charges]
    times = [parse_timestamp(charge.owner.time) for charge in charges]
    columns: dict[str, list[Any]] = {
        "message": [charge.message for charge in charges],
        "part": [charge.part for charge in charges],
        "model": [charge.model for charge in charges],
        "timestamp": times,
        "is_side": [int(origin.side) for origin in origins],
        "web_searches": [charge.web_searches for charge in charges],
        "amount": [charge.amount for charge in charges],
        "lower_bound": [int(charge.is_lower_bound) for charge in charges],
        "copied": [int(charge.is_copied) for charge in charges],
        "service_tier": [charge.service_tier for charge in charges],
        "parser_version": [__version__] * len(charges),
        "day": [
            time.date() if time is not None else row["day"] or NO_DAY for time, row in zip(times, owners, strict=True)
        ],
    }
    for name in ("session", "agent", "agent_type", "project", "version", "git_branch", "skill"):
        columns[name] = [getattr(origin, name) for origin in origins]
    for name in ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read"):
        columns[name] = [getattr(counted, name) for counted in counts]
    for name in ("transcript_id", "home", "person", "machine", "source", "batch"):
        columns[name] = [row[name] for row in owners]
    return arrow_table(CHARGES, columns)


def find_copies(calls: Any, charges: Any) -> set[tuple[int, str]]:
    """The calls that are copies, by entry and id, of Arrow tables of calls and of charges.

    Forks, resumed sessions and other machines repeat calls. The copy in the transcript that the call's message is
    charged to counts, or else the first by path, machine and line: the rule of the index (`PREFERRED_COPY_SQL`).
    `charges` has the columns `message` and `transcript_id`. Only calls that occur twice are compared.
    """
    compute = import_library("pyarrow.compute", "lake")
    counts = calls.group_by("call").aggregate([("entry_id", "count_distinct")])
    repeated = counts.filter(compute.greater(counts["entry_id_count_distinct"], 1))["call"]
    rows = filter_rows(calls, "call", repeated.to_pylist()).to_pylist()
    of_messages = filter_rows(charges, "message", {row["message"] for row in rows} - {None})
    owners = {(charge["message"], charge["transcript_id"]) for charge in of_messages.to_pylist()}
    chosen: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        is_owner = (row["message"], row["transcript_id"]) in owners
        rank = (not is_owner, row["transcript"], row["machine"], row["line"], row["entry_id"])
        chosen[row["call"]] = min(rank, chosen.get(row["call"], rank))
    return {(row["entry_id"], row["call"]) for row in rows if row["entry_id"] != chosen[row["call"]][-1]}


def filter_rows(table: Any, column: str, values: Iterable[Any], *, invert: bool = False) -> Any:
    """The rows of an Arrow table with one of these values in a column, or with `invert` the others."""
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    matches = compute.is_in(table[column], value_set=pa.array(list(values), table.schema.field(column).type))
    return table.filter(compute.invert(matches) if invert else matches)
