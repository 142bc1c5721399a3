"""Charges in the index equal those of a rebuilt index after every change, and no total drifts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.account.generated_transcripts import (
    GeneratedTranscript,
    Row,
    copy_transcript,
    pseudo_random_text,
    transcripts,
)
from tests.index.test_ledger import all_charges
from tools.demo import write

import threadline
from threadline.account import COUNTS
from threadline.find import homes
from threadline.index import Index, refresh_index
from threadline.index.sightings import decode_sighting, encode_sighting, restore_sighting
from threadline.index.store import decode_time, encode_time
from threadline.model.usage import Sighting, UsagePass

REGROUPED = """
SELECT CASE typeof(time) WHEN 'integer' THEN time / 900000 ELSE time END, origin_id, rate_id, SUM(part IS NULL),
    SUM(input), SUM(output), SUM(cache_write_5m), SUM(cache_write_1h), SUM(cache_read), SUM(web_searches),
    SUM(lower_bound), SUM(part IS NOT NULL)
FROM charged GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
UNREFERRED = (
    "SELECT origin_id FROM origins WHERE origin_id NOT IN (SELECT origin_id FROM sightings)",
    "SELECT message_id FROM message_ids WHERE message_id NOT IN (SELECT message_id FROM sightings)",
    "SELECT message_id FROM charged WHERE message_id NOT IN (SELECT message_id FROM sightings)",
    "SELECT message_id FROM ties WHERE message_id NOT IN (SELECT message_id FROM sightings)",
    "SELECT message_id FROM stale",
)
TITLE = {"type": "ai-title", "aiTitle": "a row that a copy does not have", "sessionId": "0"}


def check(index: Path, home: Path) -> None:
    """The index equals the transcripts: its ledger, its totals, and no leftover rows."""
    refresh_index(index, homes(home), jobs=1)
    plain = threadline.ledger(home, jobs=1)
    with Index.open(index) as opened:
        connection = opened.connection
        ledger = opened.ledger()
        assert all_charges(ledger) == all_charges(plain)
        assert ledger.by("day", "session") == plain.by("day", "session")
        assert _charge_rows(connection) == ledger_rows(plain)
        names = ", ".join(("quarter", "origin_id", "rate_id", *COUNTS))
        totals = connection.execute(f"SELECT {names} FROM spent ORDER BY 1, 2, 3").fetchall()  # noqa: S608 - our own
        assert totals == connection.execute(REGROUPED).fetchall()
        for query in UNREFERRED:
            assert connection.execute(query).fetchall() == []


def _charge_rows(connection: sqlite3.Connection) -> list[Any]:
    query = (
        "SELECT message, part, c.session, c.agent, c.model, timestamp, input, output, lower_bound, copied, path"
        " FROM charges c JOIN transcripts USING(transcript_id)"
    )
    return sorted(connection.execute(query), key=repr)


def ledger_rows(ledger: threadline.Ledger) -> list[Any]:
    """The charges of a ledger as rows of the index."""
    rows = (
        (
            *(
                charge.message,
                charge.part,
                charge.session,
                charge.agent,
                charge.model,
                charge.owner.time,
                charge.input,
                charge.output,
            ),
            *(int(charge.is_lower_bound), int(charge.is_copied), charge.origin.transcript),
        )
        for charge in ledger
    )
    return sorted(rows, key=repr)


class ChangedHome:
    """A home that is changed step by step."""

    def __init__(self, home: Path, transcripts: list[GeneratedTranscript]) -> None:
        self.home = home
        self.transcripts = transcripts
        self.ends = [max(1, len(transcript.rows) // 2) for transcript in transcripts]
        self.titles = 0
        for number in range(len(transcripts)):
            self._write(number)

    def _path(self, number: int) -> Path:
        return self.home / "projects" / self.transcripts[number].name

    def _write(self, number: int, *, mode: str = "w", rows: tuple[Row, ...] | None = None) -> None:
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(
                "".join(json.dumps(row) + "\n" for row in rows or self.transcripts[number].rows[: self.ends[number]])
            )

    def append(self, number: int, size: int) -> None:
        """Append more rows of a transcript, if there are any."""
        begin = self.ends[number]
        self.ends[number] = min(len(self.transcripts[number].rows), begin + 1 + size)
        if begin < self.ends[number] and self._path(number).exists():
            self._write(number, mode="a", rows=self.transcripts[number].rows[begin : self.ends[number]])

    def title(self, number: int, _size: int) -> None:
        """Append a row that an earlier copy does not have, so that this transcript has more than the copy."""
        if self._path(number).exists():
            self.titles += 1
            self._write(number, mode="a", rows=({**TITLE, "aiTitle": "x" * self.titles},))

    def fork(self, number: int, size: int) -> None:
        """Copy the rows so far, perhaps with a fork marker or new uuids. The copy may continue."""
        source = self.transcripts[number]
        short = GeneratedTranscript(source.session, source.agent, source.rows[: self.ends[number]], source.folder)
        copy = copy_transcript(short, len(self.transcripts), forked=size == 1, new_uuids=size == 2)
        more = tuple(
            {
                **row,
                "uuid": pseudo_random_text(copy.session, row["uuid"]),
                "message": {**row["message"], "id": pseudo_random_text(copy.session, at)},
            }
            for at, row in enumerate(copy.rows)
        )
        self.transcripts.append(GeneratedTranscript(copy.session, copy.agent, copy.rows + more, copy.folder))
        self.ends.append(len(copy.rows))
        self._write(len(self.transcripts) - 1)

    def delete(self, number: int, _size: int) -> None:
        """Delete a transcript."""
        self._path(number).unlink(missing_ok=True)

    def rewrite(self, number: int, size: int) -> None:
        """Rewrite a transcript with other ids."""
        old = self.transcripts[number]
        rows = tuple(
            {**row, "message": {**row["message"], "id": pseudo_random_text("new", row["message"]["id"], size)}}
            for row in old.rows
        )
        self.transcripts[number] = GeneratedTranscript(old.session, old.agent, rows, old.folder)
        self._write(number)

    def move(self, number: int, size: int) -> None:
        """Move a transcript to another project."""
        before = self._path(number)
        old = self.transcripts[number]
        self.transcripts[number] = GeneratedTranscript(old.session, old.agent, old.rows, f"-work-{size}-{number}")
        self._path(number).parent.mkdir(parents=True, exist_ok=True)
        if before.exists():
            before.rename(self._path(number))


STEPS = ("append", "append", "append", "title", "fork", "fork", "delete", "rewrite", "move")


@pytest.mark.slow
@given(transcripts(), st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 3)), max_size=8))
def test_charges_equal_the_ledgers_after_every_change(
    generated: list[GeneratedTranscript], steps: list[tuple[str, int, int]]
) -> None:
    """Appends, titles, forks that continue, deletions, rewritten ids, moves: owners of messages are the ledger's."""
    with TemporaryDirectory(prefix="threadline-spending-") as top:
        changed = ChangedHome(Path(top, "home"), generated)
        check(Path(top, "index.sqlite"), changed.home)
        for name, number, size in steps:
            getattr(changed, name)(number % len(changed.transcripts), size)
            check(Path(top, "index.sqlite"), changed.home)


def test_a_line_appended_beside_a_fork_charges_only_that_line(tmp_path: Path) -> None:
    """Other shared messages keep their owner and are not charged again."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    first = GeneratedTranscript("5e551011-0000-4000-8000-000000000001", None, tuple(_reply(at) for at in range(40)))
    changed = ChangedHome(home, [first])
    changed.ends = [20]
    changed._write(0)
    changed.fork(0, 0)
    check(index, home)
    changed.append(0, 0)
    changed.append(1, 0)
    check(index, home)
    for number in (0, 1):
        changed.append(number, 0)
        assert refresh_index(index, homes(home)).charges == 1
    check(index, home)


def _reply(at: int) -> Row:
    return {
        "type": "assistant",
        "uuid": pseudo_random_text("row", at),
        "sessionId": "5e551011-0000-4000-8000-000000000001",
        "timestamp": f"2026-01-05T09:{at:02}:00.000Z",
        "message": {
            "id": f"msg_01{pseudo_random_text('reply', at)}",
            "model": "claude-sonnet-5",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": at + 1, "output_tokens": 20},
        },
    }


@given(st.datetimes() | st.text(max_size=30) | st.integers(0, 10**13).map(decode_time), st.booleans())
def test_times_survive_encoding(time: Any, millis: bool) -> None:
    """Any time is decoded as it was written, and usual times sort as numbers as they do as text."""
    text = time if isinstance(time, str) else f"{time.isoformat(timespec='milliseconds' if millis else 'auto')}Z"
    assert decode_time(encode_time(text)) == text
    reference = encode_time("2026-01-05T09:00:00.000Z")
    encoded = encode_time(text)
    if isinstance(encoded, int) and isinstance(reference, int):
        assert (encoded < reference) == (text < "2026-01-05T09:00:00.000Z")


IDS = (
    st.text("abcdef0123456789-_XYZé", max_size=40)
    | st.uuids().map(str)
    | st.uuids().map(lambda uuid: str(uuid).upper())
)
CALLS = st.text("abcXYZ019_-+/=", min_size=24, max_size=24).map(lambda text: f"toolu_{text}") | IDS


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**9), IDS), min_size=1, max_size=4, unique_by=lambda row: row[0]),
    calls=st.lists(st.tuples(CALLS, st.sampled_from(["Bash", "mcp__x__y z", ""])), max_size=3),
    optional=st.tuples(st.sampled_from([None, "fast", ""]), st.booleans(), st.integers(0, 3)),
    passes=st.sampled_from([None, [], [UsagePass("advisor_message", "m", 1, 2)]]),
    stopped=st.booleans(),
)
def test_sightings_survive_encoding(
    rows: list[tuple[int, str]],
    calls: list[tuple[str, str]],
    optional: tuple[str | None, bool, int],
    passes: list[UsagePass] | None,
    stopped: bool,
) -> None:
    """With every id, of whatever kind, and all optional fields."""
    rows.sort()
    speed, repeated, searches = optional
    sighting = Sighting(
        *("key", 0, "model", "time", rows[-1][0], 1, 2, 12, 5, 7, 9, stopped),
        " ".join(f"{offset} {id_}" for offset, id_ in rows),
        [f"{id_} {name}" for id_, name in calls],
        web_searches=searches,
        speed=speed,
        is_repeat=repeated,
        passes=passes,
    )
    assert restore_sighting(decode_sighting(encode_sighting(sighting)), "key", "model", "time", rows[0][0]) == sighting


def test_views_agree_with_the_ledger(tmp_path: Path) -> None:
    """The documented views agree with the ledger."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    write(home, megabytes=1)
    refresh_index(index, homes(home))
    ledger = threadline.ledger(home)
    with Index.open(index) as opened:
        connection = opened.connection
        messages = connection.execute("SELECT id, output, charges, entries, transcripts FROM messages").fetchall()
        amounts = connection.execute("SELECT message, timestamp, amount FROM charges").fetchall()
    by_id: dict[str, list[threadline.Charge]] = {}
    for charge in ledger:
        by_id.setdefault(charge.message, []).append(charge)
    assert sorted(messages) == sorted(
        (
            message,
            sum(charge.output for charge in charges),
            len(charges),
            len(
                {
                    (sighting.origin.transcript, offset)
                    for charge in charges
                    for sighting in charge.sightings
                    for offset in sighting.offsets
                }
            ),
            len({sighting.origin.transcript for charge in charges for sighting in charge.sightings}),
        )
        for message, charges in by_id.items()
    )
    assert sorted(amounts) == sorted(
        (
            charge.message,
            charge.owner.time,
            format(charge.amount, "f").rstrip("0").rstrip(".") if charge.amount is not None else None,
        )
        for charge in ledger
    )


@pytest.mark.parametrize("prices", ["other"])
def test_new_prices_charge_everything_again(tmp_path: Path, prices: str) -> None:
    """If threadline ships other prices, no old amount remains."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    write(home, megabytes=1)
    refresh_index(index, homes(home))
    with closing(sqlite3.connect(index)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'prices'", (prices,))
        connection.execute("UPDATE rates SET output = '1'")
        connection.execute("UPDATE charged SET amount = '1'")
        connection.commit()
    check(index, home)
