"""What changes in transcripts changes what it has to, and no sum drifts: charges are always those made anew."""

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
from tests.index.test_ledger import all_told
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
    """The index is what the transcripts are: its ledger, its sums, and nothing that is left over."""
    refresh_index(index, homes(home), jobs=1)
    plain = threadline.ledger(home, jobs=1)
    with Index.open(index) as opened:
        connection = opened.connection
        found = opened.ledger()
        assert all_told(found) == all_told(plain)
        assert found.by("day", "session") == plain.by("day", "session")
        assert _kept(connection) == plain_rows(plain)
        names = ", ".join(("quarter", "origin_id", "rate_id", *COUNTS))
        kept = connection.execute(f"SELECT {names} FROM spent ORDER BY 1, 2, 3").fetchall()  # noqa: S608 - our own
        assert kept == connection.execute(REGROUPED).fetchall()
        for asked in UNREFERRED:
            assert connection.execute(asked).fetchall() == []


def _kept(connection: sqlite3.Connection) -> list[Any]:
    asked = (
        "SELECT message, part, c.session, c.agent, c.model, timestamp, input, output, lower_bound, copied, path"
        " FROM charges c JOIN transcripts USING(transcript_id)"
    )
    return sorted(connection.execute(asked), key=repr)


def plain_rows(ledger: threadline.Ledger) -> list[Any]:
    """The rows that the charges of a ledger are in the index."""
    rows = (
        (
            *(one.message, one.part, one.session, one.agent, one.model, one.owner.time, one.input, one.output),
            *(int(one.is_lower_bound), int(one.is_copied), one.origin.transcript),
        )
        for one in ledger
    )
    return sorted(rows, key=repr)


class Growing:
    """A home that is changed step by step."""

    def __init__(self, home: Path, made: list[GeneratedTranscript]) -> None:
        self.home = home
        self.made = made
        self.ends = [max(1, len(one.rows) // 2) for one in made]
        self.titles = 0
        for number in range(len(made)):
            self._write(number)

    def _path(self, number: int) -> Path:
        return self.home / "projects" / self.made[number].name

    def _write(self, number: int, *, mode: str = "w", rows: tuple[Row, ...] | None = None) -> None:
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows or self.made[number].rows[: self.ends[number]]))

    def append(self, number: int, size: int) -> None:
        """More rows of a transcript, if there are any."""
        begin = self.ends[number]
        self.ends[number] = min(len(self.made[number].rows), begin + 1 + size)
        if begin < self.ends[number] and self._path(number).exists():
            self._write(number, mode="a", rows=self.made[number].rows[begin : self.ends[number]])

    def title(self, number: int, _size: int) -> None:
        """A row that a copy made before does not have: what is shared is spread further here from then on."""
        if self._path(number).exists():
            self.titles += 1
            self._write(number, mode="a", rows=({**TITLE, "aiTitle": "x" * self.titles},))

    def fork(self, number: int, size: int) -> None:
        """A copy of what there is so far, which may say so, or have new uuids; it may go on, too."""
        source = self.made[number]
        short = GeneratedTranscript(source.session, source.agent, source.rows[: self.ends[number]], source.folder)
        copy = copy_transcript(short, len(self.made), forked=size == 1, new_uuids=size == 2)
        more = tuple(
            {
                **row,
                "uuid": pseudo_random_text(copy.session, row["uuid"]),
                "message": {**row["message"], "id": pseudo_random_text(copy.session, at)},
            }
            for at, row in enumerate(copy.rows)
        )
        self.made.append(GeneratedTranscript(copy.session, copy.agent, copy.rows + more, copy.folder))
        self.ends.append(len(copy.rows))
        self._write(len(self.made) - 1)

    def delete(self, number: int, _size: int) -> None:
        """The transcript is gone."""
        self._path(number).unlink(missing_ok=True)

    def rewrite(self, number: int, size: int) -> None:
        """The transcript is written anew, with other ids."""
        old = self.made[number]
        rows = tuple(
            {**row, "message": {**row["message"], "id": pseudo_random_text("new", row["message"]["id"], size)}}
            for row in old.rows
        )
        self.made[number] = GeneratedTranscript(old.session, old.agent, rows, old.folder)
        self._write(number)

    def move(self, number: int, size: int) -> None:
        """The transcript is moved to another project."""
        before = self._path(number)
        old = self.made[number]
        self.made[number] = GeneratedTranscript(old.session, old.agent, old.rows, f"-work-{size}-{number}")
        self._path(number).parent.mkdir(parents=True, exist_ok=True)
        if before.exists():
            before.rename(self._path(number))


STEPS = ("append", "append", "append", "title", "fork", "fork", "delete", "rewrite", "move")


@given(transcripts(), st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 3)), max_size=8))
def test_after_every_change_charges_are_those_made_anew(
    made: list[GeneratedTranscript], steps: list[tuple[str, int, int]]
) -> None:
    """Appends, titles, forks that go on, deletions, rewritten ids, moves: whoever owns a message then, owns it here."""
    with TemporaryDirectory(prefix="threadline-spending-") as top:
        growing = Growing(Path(top, "home"), made)
        check(Path(top, "index.sqlite"), growing.home)
        for name, number, size in steps:
            getattr(growing, name)(number % len(growing.made), size)
            check(Path(top, "index.sqlite"), growing.home)


def test_a_line_appended_beside_a_fork_charges_that_line(tmp_path: Path) -> None:
    """What else the two share keeps its owner, and is not looked at."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    first = GeneratedTranscript("5e551011-0000-4000-8000-000000000001", None, tuple(_reply(at) for at in range(40)))
    growing = Growing(home, [first])
    growing.ends = [20]
    growing._write(0)
    growing.fork(0, 0)
    check(index, home)
    growing.append(0, 0)
    growing.append(1, 0)
    check(index, home)
    for number in (0, 1):
        growing.append(number, 0)
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
def test_a_time_comes_back_as_it_was_written(time: Any, millis: bool) -> None:
    """Whatever it is; and those that are written as usual sort as numbers as they do as text."""
    text = time if isinstance(time, str) else f"{time.isoformat(timespec='milliseconds' if millis else 'auto')}Z"
    assert decode_time(encode_time(text)) == text
    later = encode_time("2026-01-05T09:00:00.000Z")
    kept = encode_time(text)
    if isinstance(kept, int) and isinstance(later, int):
        assert (kept < later) == (text < "2026-01-05T09:00:00.000Z")


IDS = (
    st.text("abcdef0123456789-_XYZé", max_size=40) | st.uuids().map(str) | st.uuids().map(lambda one: str(one).upper())
)
CALLS = st.text("abcXYZ019_-+/=", min_size=24, max_size=24).map(lambda text: f"toolu_{text}") | IDS


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**9), IDS), min_size=1, max_size=4, unique_by=lambda row: row[0]),
    calls=st.lists(st.tuples(CALLS, st.sampled_from(["Bash", "mcp__x__y z", ""])), max_size=3),
    rare=st.tuples(st.sampled_from([None, "fast", ""]), st.booleans(), st.integers(0, 3)),
    passes=st.sampled_from([None, [], [UsagePass("advisor_message", "m", 1, 2)]]),
    stopped=st.booleans(),
)
def test_a_sighting_comes_back_as_it_was_packed(
    rows: list[tuple[int, str]],
    calls: list[tuple[str, str]],
    rare: tuple[str | None, bool, int],
    passes: list[UsagePass] | None,
    stopped: bool,
) -> None:
    """With every id, of whatever kind, and all that is seldom there."""
    rows.sort()
    speed, repeated, searches = rare
    told = Sighting(
        *("key", 0, "model", "time", rows[-1][0], 1, 2, 12, 5, 7, 9, stopped),
        " ".join(f"{offset} {id_}" for offset, id_ in rows),
        [f"{id_} {name}" for id_, name in calls],
        web_searches=searches,
        speed=speed,
        is_repeat=repeated,
        passes=passes,
    )
    assert restore_sighting(decode_sighting(encode_sighting(told)), "key", "model", "time", rows[0][0]) == told


def test_views_tell_of_messages_and_charges(tmp_path: Path) -> None:
    """What people may query is what the ledger tells."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    write(home, megabytes=1)
    refresh_index(index, homes(home))
    ledger = threadline.ledger(home)
    with Index.open(index) as opened:
        connection = opened.connection
        told = connection.execute("SELECT id, output, charges, entries, transcripts FROM messages").fetchall()
        amounts = connection.execute("SELECT message, timestamp, amount FROM charges").fetchall()
    by_id: dict[str, list[threadline.Charge]] = {}
    for one in ledger:
        by_id.setdefault(one.message, []).append(one)
    assert sorted(told) == sorted(
        (
            message,
            sum(one.output for one in some),
            len(some),
            len({(seen.origin.transcript, at) for one in some for seen in one.sightings for at in seen.offsets}),
            len({seen.origin.transcript for one in some for seen in one.sightings}),
        )
        for message, some in by_id.items()
    )
    assert sorted(amounts) == sorted(
        (
            one.message,
            one.owner.time,
            format(one.amount, "f").rstrip("0").rstrip(".") if one.amount is not None else None,
        )
        for one in ledger
    )


@pytest.mark.parametrize("prices", ["other"])
def test_other_prices_charge_everything_anew(tmp_path: Path, prices: str) -> None:
    """When threadline ships other prices, no amount of before is left."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    write(home, megabytes=1)
    refresh_index(index, homes(home))
    with closing(sqlite3.connect(index)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'prices'", (prices,))
        connection.execute("UPDATE rates SET output = '1'")
        connection.execute("UPDATE charged SET amount = '1'")
        connection.commit()
    check(index, home)
