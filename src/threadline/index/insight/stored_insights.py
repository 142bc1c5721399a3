"""Store what caused the costs of sessions and which of them were avoidable, and answer from that.

The rows of a session are valid as long as its transcripts and their charges are as they were: each transcript is stored
with its state. Rows are written with the prices of the index; questions with other prices are not answered from here.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import ChargeFilter
from threadline.errors import IndexBusy, Unreadable
from threadline.index.store import (
    decode_path,
    encode_path,
    open_for_writing,
    open_read_only,
    read_generation,
    storable_text,
)
from threadline.index.totals import ChargeTotals
from threadline.insight import GROUP_KEYS, CauseGroup, CauseTotals, group_rows, merge_groups
from threadline.model.context import BreakCause
from threadline.model.homes import Homes
from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.insight.waste import Waste, WasteLimits
from threadline.model.ledger import Charge, sum_amounts
from threadline.model.places import AgentId, Place, SessionId
from threadline.model.text import format_decimal

if TYPE_CHECKING:
    from threadline.insight import SessionInsight

_NO_FILTER = ChargeFilter()
_STORED_KEYS = tuple(key for key in GROUP_KEYS if key != "project")
_Figures = tuple[int, ...]


class StoredSession(Struct, frozen=True):
    """A session whose costs were attributed: its number, the paths of its main transcript and of all, its project."""

    number: int
    main: str
    transcripts: frozenset[str]
    project: str


class InsightSelection(Struct, frozen=True):
    """The sessions with selected charges.

    `whole` are those that are stored and whose charges are all selected, `partial` those with other charges as well.
    `unknown` are the paths of transcripts with selected charges whose session is not stored, or not as it is now.
    `is_outdated` says that sessions are stored which have changed since, also if they have no charges any more.
    """

    whole: tuple[StoredSession, ...]
    partial: tuple[StoredSession, ...]
    unknown: frozenset[str]
    is_outdated: bool = False


def select_insights(connection: sqlite3.Connection, homes: Homes, selection: ChargeFilter) -> InsightSelection:
    """Find the sessions that a filter selects, and which of them are stored as they are now."""
    every = _figures_by_path(connection, homes, _NO_FILTER)
    selected = every if selection == _NO_FILTER else _figures_by_path(connection, homes, selection)
    current, outdated = _compare_stored(connection, _transcript_states(connection, every))
    whole: list[StoredSession] = []
    partial: list[StoredSession] = []
    for number, main, project in connection.execute(_SELECT_MAINS):
        paths = current.get(number, frozenset())
        figures = _add_figures(selected[path] for path in paths if path in selected)
        if any(figures):
            session = StoredSession(number, decode_path(main), paths, decode_path(project))
            is_whole = figures == _add_figures(every[path] for path in paths if path in every)
            (whole if is_whole else partial).append(session)
    unknown = selected.keys() - set().union(*current.values())
    return InsightSelection(tuple(whole), tuple(partial), frozenset(unknown), is_outdated=bool(outdated))


def _compare_stored(
    connection: sqlite3.Connection, states: Mapping[str, tuple[int, str]]
) -> tuple[dict[int, frozenset[str]], list[int]]:
    """The numbers and transcripts of the sessions that are stored as they are now, and the numbers of the others."""
    sessions: dict[int, dict[str, str]] = {}
    for number, path, state in connection.execute(_SELECT_PARTS):
        sessions.setdefault(number, {})[decode_path(path)] = state
    current = {
        number: frozenset(parts)
        for number, parts in sessions.items()
        if all(path in states and states[path][1] == state for path, state in parts.items())
    }
    return current, [number for number in sessions if number not in current]


_SELECT_PARTS = (
    "SELECT s.insight_id, t.path, s.state FROM insight_transcripts s LEFT JOIN transcripts t USING(transcript_id)"
)
_SELECT_MAINS = """SELECT i.insight_id, t.path, COALESCE(p.path, p.folder) FROM insights i
JOIN transcripts t USING(transcript_id) JOIN projects p USING(project_id)"""


def _figures_by_path(connection: sqlite3.Connection, homes: Homes, selection: ChargeFilter) -> dict[str, _Figures]:
    """What the transcripts own of the selected charges: their number and their tokens by kind."""
    figures: dict[str, _Figures] = {}
    for ((path,), rate), counts in ChargeTotals(connection, homes, selection, {}).by(("transcript",), UTC).items():
        # Charges without a price are counted separately: with a price, they would have other causes.
        both = (*counts, 0) if rate is not None else (*counts, counts[0])
        before = figures.get(path)
        figures[path] = both if before is None else _add_figures((before, both))
    return figures


def _add_figures(figures: Iterable[_Figures]) -> _Figures:
    return tuple(map(sum, zip(*figures, strict=True)))


def _transcript_states(connection: sqlite3.Connection, figures: Mapping[str, _Figures]) -> dict[str, tuple[int, str]]:
    """The number and the state of each transcript, by its path."""
    states: dict[str, tuple[int, str]] = {}
    for number, stored, *content in connection.execute(
        "SELECT transcript_id, path, size, read_to, checksum FROM transcripts"
    ):
        path = decode_path(stored)
        states[path] = number, " ".join(map(str, (*content, *figures.get(path, ()))))
    return states


class StoredCauses:
    """The causes of stored sessions, as a `CauseSource`."""

    def __init__(self, connection: sqlite3.Connection, sessions: Iterable[StoredSession]) -> None:
        self._connection = connection
        self._projects = {session.number: session.project for session in sessions}
        self._numbers = json.dumps(list(self._projects))

    def totals(self) -> CauseTotals:
        """Return the sums."""
        unpriced, measured, missed = self._connection.execute(
            f"SELECT SUM(unpriced), SUM(measured), SUM(missed) FROM insights WHERE insight_id IN {_NUMBERS}",  # noqa: S608 - our own words
            (self._numbers,),
        ).fetchone()
        groups = list(self.groups("session"))
        amount = sum_amounts(group.amount for group in groups)
        return CauseTotals(
            amount, sum(group.causes > 0 for group in groups), unpriced or 0, measured or 0, missed or 0.0
        )

    def groups(self, by: str) -> Iterator[CauseGroup]:
        """Return the causes of each session added up by a key."""
        key = "session" if by == "project" else by
        for (
            number,
            session,
            value,
            causes,
            tokens,
            requests,
            write,
            read,
            output,
            estimated,
        ) in self._connection.execute(_SELECT_SUMS, (key, self._numbers)):
            yield CauseGroup(
                self._projects[number] if by == "project" else value,
                causes,
                tokens,
                requests,
                Decimal(write),
                Decimal(read),
                Decimal(output),
                bool(estimated),
                session if by in {"turn", "session"} else None,
            )

    def rows(self, limit: int | None) -> Iterator[CostCause]:
        """Return the causes, largest amount first. Those of a session are stored in this order."""
        rank = f"AND c.number < {limit}" if limit is not None else ""
        statement = _SELECT_CAUSES.format(rank=rank, limit=-1 if limit is None else limit)
        for number, session, kind, label, path, line, offset, length, *rest in self._connection.execute(
            statement, (self._numbers,)
        ):
            tokens, requests, write, read, output, estimated, agent, turn, name, file, server, call = rest
            yield CostCause(
                CauseKind(kind),
                label,
                Place(decode_path(path), line, offset, length) if path is not None else None,
                tokens,
                requests,
                Decimal(write),
                Decimal(read),
                Decimal(output),
                bool(estimated),
                AgentId(agent) if agent is not None else None,
                turn,
                name,
                file,
                server,
                call,
                SessionId(session) if session is not None else None,
                self._projects[number],
            )


_NUMBERS = "(SELECT value FROM json_each(?))"
_SELECT_SUMS = f"""SELECT s.insight_id, i.session, s.value, s.causes, s.tokens, s.requests, s.write, s.read, s.output,
    s.estimated FROM cause_sums s JOIN insights i USING(insight_id) WHERE s.key = ? AND s.insight_id IN {_NUMBERS}"""  # noqa: S608 - our own words
_SELECT_CAUSES = f"""SELECT c.insight_id, i.session, c.kind, c.label, t.path, c.line, c.offset, c.length, c.tokens,
    c.requests, c.write, c.read, c.output, c.estimated, c.agent, c.turn, c.name, c.file, c.server, c.call
FROM insights i CROSS JOIN cause_rows c ON c.insight_id = i.insight_id {{rank}}
LEFT JOIN transcripts t ON t.transcript_id = c.transcript_id
WHERE i.insight_id IN {_NUMBERS}
ORDER BY CAST(c.amount AS REAL) DESC, COALESCE(t.path || ':' || c.line, 'None'), c.kind, c.label,
    COALESCE(i.session, ''), c.insight_id, c.number LIMIT {{limit}}"""  # noqa: S608 - our own words


def read_waste(
    connection: sqlite3.Connection, sessions: Iterable[StoredSession], limits: WasteLimits
) -> Iterator[Waste]:
    """Yield the avoidable costs of stored sessions, without most of what is below the limits."""
    projects = {session.number: session.project for session in sessions}
    paths = {
        number: decode_path(path) for number, path in connection.execute("SELECT transcript_id, path FROM transcripts")
    }
    for (
        number,
        session,
        detector,
        label,
        evidence,
        advice,
        places,
        tokens,
        amount,
        estimated,
        agent,
        turn,
        cause,
    ) in connection.execute(
        _SELECT_WASTE, (json.dumps(list(projects)), float(limits.min_amount) - _ROUNDING, limits.min_tokens)
    ):
        yield Waste(
            detector,
            session,
            label,
            evidence,
            tuple(Place(paths[transcript], *where) for transcript, *where in json.loads(places)),
            tokens,
            Decimal(amount),
            bool(estimated),
            advice,
            agent,
            turn,
            projects[number],
            BreakCause(cause) if cause is not None else None,
        )


_ROUNDING = 1e-9  # USD: what a sum of floating-point numbers may be wrong by; amounts are compared exactly afterwards
_SELECT_WASTE = f"""SELECT f.insight_id, i.session, f.detector, f.label, f.evidence, f.advice, f.places, f.tokens,
    f.amount, f.estimated, f.agent, f.turn, f.cause
FROM waste_rows f JOIN insights i USING(insight_id)
WHERE f.insight_id IN {_NUMBERS} AND CAST(f.amount AS REAL) >= ? AND f.tokens >= ?"""  # noqa: S608 - our own words


class NewInsight(Struct, frozen=True):
    """The insight into a session, to be stored: the paths of its main transcript and of all, and the insight."""

    main: str
    transcripts: frozenset[str]
    insight: SessionInsight


def store_insights(index: Path, homes: Homes, generation: str, insights: Sequence[NewInsight]) -> bool:
    """Store the insights into sessions, as they were in this generation of the index. Delete those that are outdated.

    Returns False if nothing was stored, because the index has changed since, or cannot be written now.
    """
    try:
        with open_for_writing(index) as connection:
            connection.execute("BEGIN IMMEDIATE")
            is_unsettled = connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None
            if is_unsettled or read_generation(connection) != generation:
                connection.execute("ROLLBACK")
                return False
            writer = _InsightWriter(connection, homes)
            writer.delete_outdated()
            for insight in insights:
                writer.write(insight)
            connection.execute("COMMIT")
    except (IndexBusy, Unreadable):
        return False
    return True


class _InsightWriter:
    def __init__(self, connection: sqlite3.Connection, homes: Homes) -> None:
        self._connection = connection
        self._states = _transcript_states(connection, _figures_by_path(connection, homes, _NO_FILTER))

    def delete_outdated(self) -> None:
        """Delete what is stored about sessions that have changed since: the SQL tables would add up to too much."""
        _current, outdated = _compare_stored(self._connection, self._states)
        delete = "DELETE FROM insight_transcripts WHERE insight_id = ?"
        self._connection.executemany(delete, [(number,) for number in outdated])

    def write(self, new: NewInsight) -> None:
        """Replace what is stored about a session."""
        execute = self._connection.execute
        for path in new.transcripts:
            execute("DELETE FROM insight_transcripts WHERE transcript_id = ?", (self._number(path),))
        attribution = new.insight.attribution
        missed = (attribution.error or 0.0) * attribution.measured
        cursor = execute(
            "INSERT INTO insights VALUES(NULL, ?, ?, ?, ?, ?)",
            (
                self._number(new.main),
                storable_text(attribution.session),
                attribution.unpriced,
                attribution.measured,
                missed,
            ),
        )
        number = cursor.lastrowid or 0
        many = self._connection.executemany
        many(
            "INSERT INTO insight_transcripts VALUES(?, ?, ?)",
            [
                (self._states[path][0], number, self._states[path][1])
                for path in new.transcripts
                if path in self._states
            ],
        )
        many(_INSERT_CAUSE, [(number, *self._cause(at, cause)) for at, cause in enumerate(attribution.rows)])
        many(_INSERT_SUM, [row for key in _STORED_KEYS for row in self._sums(number, key, attribution.rows)])
        many(_INSERT_WASTE, [(number, *self._waste(at, waste)) for at, waste in enumerate(new.insight.waste)])

    def _number(self, path: str) -> int | None:
        known = self._states.get(path)
        return known[0] if known is not None else None

    def _place(self, place: Place | None) -> tuple[int | None, ...]:
        number = self._number(place.transcript) if place is not None else None
        return (number, place.line, place.offset, place.length) if place is not None and number else (None,) * 4

    def _cause(self, at: int, cause: CostCause) -> tuple[object, ...]:
        texts = (cause.name, cause.file, cause.server, cause.call)
        return (
            at,
            str(cause.kind),
            storable_text(cause.label),
            *self._place(cause.place),
            cause.tokens,
            cause.requests,
            *map(format_decimal, (cause.write, cause.read, cause.output, cause.amount)),
            cause.estimated,
            storable_text(cause.agent),
            cause.turn,
            *map(storable_text, texts),
        )

    @staticmethod
    def _sums(number: int, key: str, rows: Sequence[CostCause]) -> Iterator[tuple[object, ...]]:
        groups = (replace(group, key=storable_text(group.key), session=None) for group in group_rows(rows, key))
        for group in merge_groups(groups):
            amounts = map(format_decimal, (group.write, group.read, group.output))
            yield key, number, group.key, group.causes, group.tokens, group.requests, *amounts, group.estimated

    def _waste(self, at: int, waste: Waste) -> tuple[object, ...]:
        places = [self._place(place) for place in waste.places if self._number(place.transcript) is not None]
        return (
            at,
            waste.detector,
            *map(storable_text, (waste.label, waste.evidence, waste.advice)),
            json.dumps(places),
            waste.tokens,
            format_decimal(waste.amount),
            waste.estimated,
            storable_text(waste.agent),
            waste.turn,
            waste.cause,
        )


_INSERT_CAUSE = f"INSERT INTO cause_rows VALUES({', '.join('?' * 21)})"
_INSERT_SUM = f"INSERT INTO cause_sums VALUES({', '.join('?' * 10)})"
_INSERT_WASTE = f"INSERT INTO waste_rows VALUES({', '.join('?' * 13)})"
_OWN_MESSAGES = """(SELECT DISTINCT s.message_id FROM transcripts t
CROSS JOIN sightings s ON s.transcript_id = t.transcript_id WHERE t.path IN ({0}))"""


class OwnedCharges:
    """Reads the charges that transcripts own. Each process opens a connection of its own: it may be forked."""

    def __init__(self, index: Path, homes: Homes) -> None:
        self._index = index
        self._homes = homes
        self._process = 0
        self._connection: sqlite3.Connection | None = None

    def __call__(self, transcripts: Collection[str]) -> list[Charge]:
        """Return the charges of these transcripts, by their paths."""
        from threadline.account import shipped_rates  # noqa: PLC0415 - loads the prices, which stored answers do without
        from threadline.index.charges import rebuild_charges  # noqa: PLC0415 - loads the reader, the same

        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = open_read_only(self._index), os.getpid()
        messages = _OWN_MESSAGES.format(", ".join("?" * len(transcripts)))
        charges = rebuild_charges(
            self._connection,
            messages,
            [encode_path(path) for path in transcripts],
            homes=self._homes,
            rates=shipped_rates(),
            types={},
        )
        return [charge for charge in charges if charge.origin.transcript in transcripts]
