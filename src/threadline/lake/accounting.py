"""Count every message once across all machines, with the same code as on one machine.

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
from threadline.lake.rows import arrow_table
from threadline.lake.tables import CHARGES, NO_DAY, column_names
from threadline.model.homes import Home, Transcript, TranscriptKind
from threadline.model.ledger import Charge
from threadline.model.places import AgentId, SessionId
from threadline.model.times import parse_timestamp
from threadline.model.usage import Sighting, decode_sightings
from threadline.union_find import UnionFind

SIGHTING_COLUMNS = (
    *("transcript_id", "transcript", "home", "label", "project", "session", "agent", "mtime_ns", "packed"),
    *("person", "machine", "source", "batch", "day"),
)
KEY_COLUMNS = ("transcript_id", "source", "keys")
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


def affected_transcripts(keys: Iterable[Row], changed: Collection[str]) -> set[int]:
    """The transcripts whose charges may differ: those of changed sources, and all that share keys with them.

    `keys` are the rows of `sightings` before and after the change, with the columns `KEY_COLUMNS`.
    """
    groups = UnionFind()
    numbers: dict[int, int] = {}
    first_with: dict[str, int] = {}
    starts: set[int] = set()
    for row in keys:
        number = numbers.get(row["transcript_id"])
        if number is None:
            number = numbers[row["transcript_id"]] = groups.add()
        if row["source"] in changed:
            starts.add(number)
        for key in row["keys"]:
            groups.union(first_with.setdefault(key, number), number)
    roots = {groups.find(number) for number in starts}
    return {transcript for transcript, number in numbers.items() if groups.find(number) in roots}


def charge_rows(rows: Iterable[Row], rates: Rates) -> Any:
    """The charges of transcripts, given by rows of `sightings`, as an Arrow table."""
    lake = LakeLedger(rows, rates)
    return arrow_table(CHARGES, [_charge_row(charge, lake.row_of(charge)) for charge in lake.ledger.charges])


def _charge_row(charge: Charge, row: Row) -> tuple[Any, ...]:
    origin, counted = charge.origin, charge.counted
    timestamp = parse_timestamp(charge.owner.time)
    values = {
        "message": charge.message,
        "part": charge.part,
        "transcript_id": row["transcript_id"],
        "session": origin.session,
        "agent": origin.agent,
        "agent_type": origin.agent_type,
        "project": origin.project,
        "home": row["home"],
        "model": charge.model,
        "timestamp": timestamp,
        "version": origin.version,
        "git_branch": origin.git_branch,
        "skill": origin.skill,
        "is_side": int(origin.side),
        "input": counted.input,
        "output": counted.output,
        "cache_write_5m": counted.cache_write_5m,
        "cache_write_1h": counted.cache_write_1h,
        "cache_read": counted.cache_read,
        "web_searches": charge.web_searches,
        "amount": charge.amount,
        "lower_bound": int(charge.is_lower_bound),
        "copied": int(charge.is_copied),
        "service_tier": charge.service_tier,
        "person": row["person"],
        "machine": row["machine"],
        "source": row["source"],
        "parser_version": __version__,
        "batch": row["batch"],
        "day": timestamp.date() if timestamp is not None else row["day"] or NO_DAY,
    }
    return tuple(values[name] for name in column_names(CHARGES))
