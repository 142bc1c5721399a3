"""When transcripts were active in a period: their spans of work, prompts and calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from threadline.index.schema import PREFERRED_COPY_SQL
from threadline.index.store import TYPED_SQL, decode_path, encode_path
from threadline.model.calls import Outcome
from threadline.model.times import parse_timestamp

# Times in another zone or format sort up to a day away; they are compared exactly afterwards.
_MARGIN = timedelta(days=1)
_OF_TRANSCRIPTS = """FROM json_each(?) j CROSS JOIN transcripts t ON t.transcript_id = j.value
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id"""
_SELECT_TIMES = f"SELECT t.transcript_id, e.timestamp {_OF_TRANSCRIPTS} WHERE e.timestamp BETWEEN ? AND ?"
_SELECT_CALLS = f"""SELECT t.transcript_id, c.outcome, COUNT(*) {_OF_TRANSCRIPTS}
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    WHERE c.moment BETWEEN ? AND ? AND NOT EXISTS({PREFERRED_COPY_SQL}) GROUP BY 1, 2"""
_SELECT_PROMPTS = f"""SELECT r.transcript_id, e.timestamp FROM json_each(?) j
    CROSS JOIN prompt_rows r ON r.transcript_id = j.value
    CROSS JOIN entries e ON e.transcript_id = r.transcript_id AND e.line = r.line AND e.offset = r.offset
    WHERE {TYPED_SQL.format("r")} AND e.timestamp BETWEEN ? AND ?"""  # noqa: S608 - our own names
_FAILURES = frozenset({str(Outcome.ERROR)})


class TranscriptActivity(Struct):
    """What happened in a transcript in a period: the times of its entries, and how many prompts and calls it has."""

    times: list[datetime]
    prompts: int = 0
    calls: int = 0
    failed_calls: int = 0


def transcript_activity(
    connection: sqlite3.Connection, paths: Collection[str], since: datetime, until: datetime
) -> dict[str, TranscriptActivity]:
    """Return the activity of transcripts in a period, by their paths."""
    encoded = {encode_path(path) for path in paths}
    numbers = {
        number: decode_path(path)
        for number, path in connection.execute("SELECT transcript_id, path FROM transcripts")
        if path in encoded
    }
    id_list = json.dumps(list(numbers))
    activity = {number: TranscriptActivity([]) for number in numbers}
    texts = (id_list, _sortable(since, -_MARGIN), _sortable(until, _MARGIN))
    for number, timestamp in connection.execute(_SELECT_TIMES, texts):
        moment = parse_timestamp(timestamp)
        if moment is not None and since <= moment <= until:
            activity[number].times.append(moment)
    for number, timestamp in connection.execute(_SELECT_PROMPTS, texts):
        moment = parse_timestamp(timestamp)
        activity[number].prompts += moment is not None and since <= moment <= until
    seconds = (id_list, int(since.timestamp()), int(until.timestamp()))
    for number, outcome, count in connection.execute(_SELECT_CALLS, seconds):
        activity[number].calls += count
        activity[number].failed_calls += count if outcome in _FAILURES else 0
    return {path: activity[number] for number, path in numbers.items()}


def _sortable(moment: datetime, margin: timedelta) -> str:
    try:
        shifted = (moment + margin).astimezone(UTC)
    except OverflowError:
        shifted = moment.astimezone(UTC)
    return shifted.replace(tzinfo=None).isoformat(timespec="milliseconds")
