"""Tests of costs and waste across sessions: exact sums, the same answers with and without an index, no traces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.index.content import without_secure_delete
from tests.opened_files import OpenedFiles
from tests.thread.context_rows import cached_call, cached_reply
from tests.transcripts import START, Pen, lines, prompt, reply, transcript, write

import threadline
from threadline import locks
from threadline.account import load_rates
from threadline.archive import Archive
from threadline.index import refresh_index
from threadline.insight import DETECTORS, GROUP_KEYS, CauseGroup
from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.insight.waste import WasteLimits

TEXT = "line of text\n" * 300
IDS = [f"5e551011-0000-4000-8000-00000000000{number}" for number in range(4)]
ALL = WasteLimits(large_output=500, min_amount=Decimal(0))


def session_rows(number: int, start: datetime, *, word: str = "file") -> list[Any]:
    """Rows of a session with a file that is read twice."""
    read = {"file_path": f"/work/{word}.py"}
    return transcript(
        prompt(f"read the {word}"),
        cached_call(0, 20_000, "Read", read, TEXT, output=60),
        cached_call(20_000, 900, "Read", read, TEXT, output=60),
        cached_reply(20_900, 900, input_=0, output=40 + number),
        prompt("next"),
        cached_reply(21_800, 50, input_=0, output=40),
        pen=Pen(IDS[number], start, cwd=f"/work/project-{number}"),
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three sessions on three days, and a fourth that is a copy of the first and goes on."""
    home = tmp_path / "home"
    for number in range(3):
        rows = session_rows(number, START + timedelta(days=number))
        write(home / f"projects/-work-project-{number}/{IDS[number]}.jsonl", *rows)
    copied = [{**row, "sessionId": IDS[3]} for row in session_rows(0, START)]
    pen = Pen(IDS[3], START + timedelta(days=5))
    pen.parent = copied[-1]["uuid"]
    more = transcript(prompt("go on"), cached_reply(0, 22_000, input_=0), pen=pen)
    write(home / f"projects/-work-project-0/{IDS[3]}.jsonl", *copied, *more)
    return home


@pytest.fixture
def archive(home: Path, tmp_path: Path) -> Iterator[Archive]:
    """An archive with an index."""
    with threadline.open(home, index=tmp_path / "index.sqlite", keep=False, tz="UTC") as archive:
        yield archive


def without_index(home: Path) -> Archive:
    """The same archive without an index."""
    return threadline.open(home, index=False, keep=False, tz="UTC")


SELECTIONS: list[dict[str, Any]] = [
    {},
    {"since": START + timedelta(days=1)},
    {"since": START + timedelta(seconds=5)},  # within the first session
    {"since": START + timedelta(seconds=3), "until": START + timedelta(days=1, seconds=4)},
    {"project": "PROJECT-1"},
    {"project": "project-0", "until": START + timedelta(days=1)},
]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_sums_are_those_of_the_ledger(archive: Archive, home: Path, selection: dict[str, Any]) -> None:
    """To the last digit: of all rows and of the groups of each key, with an index and without."""
    expected = archive.ledger(**selection).total.amount
    for source in (archive, without_index(home)):
        causes = source.causes(**selection)
        assert causes.amount == expected
        assert sum(cause.amount for cause in causes) == expected
        for key in GROUP_KEYS:
            assert sum(group.amount for group in causes.by(key)) == expected, key


def _digits(parts: Iterable[CostCause | CauseGroup]) -> list[str]:
    """Parts with every digit of their amounts: `0.0` and `0` are equal, but JSON shows the difference."""
    return [f"{part} {part.write} {part.read} {part.output} {part.amount}" for part in parts]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_index_gives_the_same_answers(archive: Archive, home: Path, selection: dict[str, Any]) -> None:
    """All rows, groups and findings are equal, also when they come from the tables a second time."""
    read = without_index(home)
    for _ in range(2):
        stored, expected = archive.causes(**selection), read.causes(**selection)
        assert _digits(stored) == _digits(expected)
        assert stored.largest(3) == list(expected)[:3]
        assert (stored.sessions, stored.unpriced) == (expected.sessions, expected.unpriced)
        assert stored.error == pytest.approx(expected.error)
        for key in GROUP_KEYS:
            assert _digits(stored.by(key)) == _digits(expected.by(key))
        assert archive.waste(limits=ALL, **selection) == read.waste(limits=ALL, **selection)
        assert archive.waste(limits=ALL, **selection).total == expected.amount


def test_groups_have_the_amounts_of_usage(archive: Archive) -> None:
    """By session and project, they are those of the ledger: a copied message counts once."""
    causes, ledger = archive.causes(), archive.ledger()
    for key in ("session", "project"):
        assert {group.key: group.amount for group in causes.by(key)} == {
            row.keys[key]: row.amount for row in ledger.by(key)
        }


def test_causes_are_lines_in_the_same_order(tmp_path: Path) -> None:
    """With an index and without: the cause of a fee is its line, and equal amounts are in the order of sessions."""
    home = tmp_path / "home"
    (home / "projects").mkdir(parents=True)
    with threadline.open(home, index=tmp_path / "index.sqlite", keep=False) as archive, without_index(home) as other:
        for number in (1, 0):
            pen = Pen(IDS[number], START, cwd="/work/app")
            usage = {"input_tokens": 9, "output_tokens": 1, "server_tool_use": {"web_search_requests": 1}}
            rows = transcript(prompt("go"), reply("yes", message={"id": f"msg_{number}", "usage": usage}), pen=pen)
            write(home / f"projects/-work-app/{IDS[number]}.jsonl", *rows)
            archive.close()
            causes = archive.causes().largest(99)
        assert causes == other.causes().largest(99)
        assert [str(cause.place)[-2:] for cause in causes if cause.kind is CauseKind.SEARCH] == [":2", ":2"]


def test_keys_that_cannot_be_stored_lose_no_amount(tmp_path: Path) -> None:
    """Two names with halves of surrogate pairs become the same in the index: their sums are added up."""
    reads = [cached_call(0, 20_000, "Read", {"file_path": f"/a{half}"}, "x") for half in "\ud83d\ud83e"]
    rows = transcript(prompt("read"), *reads, cached_reply(20_000, 90), pen=Pen(IDS[0]))
    home = tmp_path / "home"
    write(home / f"projects/-a/{IDS[0]}.jsonl", *(json.dumps(row).encode() + b"\n" for row in rows))
    with threadline.open(home, index=tmp_path / "index.sqlite", keep=False) as archive:
        causes = archive.causes()
        for key in GROUP_KEYS:
            assert sum(group.amount for group in causes.by(key)) == archive.ledger().total.amount, key


@pytest.mark.parametrize("number", [0, 3])
def test_session_has_the_rows_of_the_period(
    archive: Archive, home: Path, number: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The causes and findings of one session, with its project, are those among the causes and findings of all."""
    rows = [cause for cause in archive.causes() if cause.session == IDS[number]]
    assert list(archive.attribution(IDS[number]).rows) == rows
    assert {cause.project for cause in rows} == {"/work/project-0"}
    findings = [finding for finding in archive.waste(limits=ALL) if finding.session == IDS[number]]
    assert list(archive.session_waste(IDS[number], limits=ALL)) == findings
    run = CliRunner(capfdbinary)
    why, waste = (["why"], ["waste", "--min", "0", "--large-output", "500"])
    for command, key in ((why, "rows"), (waste, None)):
        whole, single = (
            json.loads(run(*command, *selection, "--json", "--home", home).out)
            for selection in (["--since", "2020-01-01"], [IDS[number]])
        )
        expected = [row for row in (whole[key] if key else whole) if row["session"] == IDS[number]]
        assert (single[key] if key else single) == expected


def test_turns_of_two_sessions_are_two_groups(archive: Archive) -> None:
    """Each names its session."""
    groups = [group for group in archive.causes().by("turn") if group.key == "1"]
    assert {group.session for group in groups} == set(IDS)


def test_changed_session_is_attributed_again(archive: Archive, home: Path) -> None:
    """Only the transcript that grew has other causes."""
    before = archive.causes().amount
    archive.close()
    path = home / f"projects/-work-project-1/{IDS[1]}.jsonl"
    pen = Pen(IDS[1], START + timedelta(days=1, minutes=1))
    with path.open("ab") as file:
        file.write(lines(*transcript(prompt("more"), cached_reply(21_900, 100, input_=0), pen=pen)))
    after = archive.causes()
    assert after.amount == archive.ledger().total.amount
    assert after.amount > before
    assert list(after) == list(without_index(home).causes())


def test_deleted_session_leaves_no_trace(archive: Archive, home: Path, tmp_path: Path) -> None:
    """Neither in the tables nor in the bytes of the file."""
    with without_secure_delete():
        path = home / f"projects/-work-project-2/{IDS[2]}.jsonl"
        write(path, *session_rows(2, START, word="platypus"))
        assert any(cause.file == "/work/platypus.py" for cause in archive.causes())
        archive.close()
        path.unlink()
        archive.refresh()
        assert archive.causes().amount == archive.ledger().total.amount
        assert archive.sql("SELECT COUNT(*) AS n FROM causes WHERE file LIKE '%platypus%'") == [{"n": 0}]
        assert archive.sql("SELECT COUNT(DISTINCT insight_id) AS n FROM cause_sums") == [{"n": 3}]
        archive.close()
    content = b"".join(file.read_bytes() for file in tmp_path.glob("index.sqlite*"))
    assert b"platypus" not in content


def test_session_without_charges_any_more_is_not_in_the_tables(archive: Archive, home: Path) -> None:
    """The charges of a copy are the original's once that is there again. The copy itself did not change."""
    copy = home / f"projects/-work-project-0/{IDS[3]}.jsonl"
    original = home / f"projects/-work-project-0/{IDS[0]}.jsonl"
    rows = original.read_bytes()
    copy.write_bytes(rows.replace(IDS[0].encode(), IDS[3].encode()))
    original.unlink()
    assert len(archive.sql("SELECT DISTINCT session FROM causes")) == 3
    original.write_bytes(rows)
    archive.close()
    sums = {row["session"]: row["sum"] for row in archive.sql("SELECT session, SUM(amount) sum FROM causes GROUP BY 1")}
    spent = {row.keys["session"]: float(row.amount or 0) for row in archive.ledger().by("session")}
    assert sums == pytest.approx(spent)
    assert IDS[3] not in sums


def test_other_prices_are_not_those_of_the_index(archive: Archive, tmp_path: Path) -> None:
    """The amounts are those of the ledger with the same price file."""
    archive.causes()
    file = tmp_path / "prices.json"
    rate = {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 7e-6,
        "litellm_provider": "anthropic",
        "mode": "chat",
    }
    file.write_text(json.dumps({"claude-sonnet-4-5-20250929": rate}))
    rates = load_rates(file)
    expected = archive.ledger(rates).total.amount
    assert expected != archive.ledger().total.amount
    assert archive.causes(prices=rates).amount == expected
    assert archive.waste(prices=rates).total == expected
    assert archive.causes().amount == archive.ledger().total.amount


def test_index_that_cannot_be_written_gives_the_same_answers(
    archive: Archive, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are then computed each time."""
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.1)
    archive.open_index()
    with locks.hold_lock(tmp_path / "index.sqlite.lock"):
        assert list(archive.causes()) == list(without_index(home).causes())
        assert archive.sql("SELECT COUNT(*) AS n FROM causes") == [{"n": 0}]


def test_limits_narrow_what_is_stored(archive: Archive, home: Path) -> None:
    """Every limit and choice of detectors gives the same as looking for it in the transcripts."""
    read = without_index(home)
    for limits in (WasteLimits(), ALL, WasteLimits(300, Decimal(0)), WasteLimits(500, Decimal(0), 800, 3)):
        for detectors in ((), ("unchanged-file",), tuple(DETECTORS)[:2]):
            assert archive.waste(limits=limits, detectors=detectors) == read.waste(limits=limits, detectors=detectors)


def test_stored_answers_read_no_transcript(archive: Archive, home: Path, opened: OpenedFiles) -> None:
    """Once the tables are filled, no transcript is opened to answer from them."""
    for path in home.rglob("*.jsonl"):
        os.utime(path, (path.stat().st_mtime - 60,) * 2)  # a file that was just written is compared by its bytes
    opened.folder = str(home)
    archive.store_insights()
    assert any(path.endswith(".jsonl") for path in opened.paths)
    expected = archive.causes().by("tool")
    opened.paths.clear()
    assert archive.causes().by("tool") == expected
    assert archive.waste().total == archive.causes().amount
    archive.store_insights()
    assert [path for path in opened.paths if path.endswith(".jsonl")] == []


def test_sql_fills_the_tables(archive: Archive) -> None:
    """A query that names them gets all rows; their amounts are those of the sessions."""
    rows = archive.sql("SELECT session, SUM(amount) AS amount FROM causes GROUP BY session")
    expected = {row.keys["session"]: float(row.amount or 0) for row in archive.ledger().by("session")}
    assert {row["session"]: row["amount"] for row in rows} == pytest.approx(expected)
    assert archive.sql("SELECT COUNT(*) AS n FROM waste")[0]["n"] > 0


def test_nothing_is_stored_if_the_index_changes_meanwhile(
    archive: Archive, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before a refresh must not count as the state after it."""
    index = archive.open_index()
    select = index.select_insights
    path = home / f"projects/-work-project-1/{IDS[1]}.jsonl"

    def select_and_grow(selection: Any) -> Any:
        chosen = select(selection)
        if path.stat().st_size < 100_000:
            with path.open("ab") as file:
                file.write(lines(*transcript(prompt("x" * 100_000), pen=Pen(IDS[1], START + timedelta(days=2)))))
            refresh_index(archive.index, archive.homes)
        return chosen

    monkeypatch.setattr(index, "select_insights", select_and_grow)
    assert archive.causes().amount == archive.ledger().total.amount
    assert archive.connection.execute("SELECT COUNT(*) FROM insights").fetchone() == (0,)


def test_every_key_of_a_period_on_the_command_line(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Rows sum to the amount, which is that of `usage` with the same options."""
    run = CliRunner(capfdbinary)
    options = ("--since", "2026-01-05", "--until", "2026-01-06", "--tz", "UTC", "--home", str(home))
    total = Decimal(str(run("usage", *options, "--json").json["total"]["amount"]))
    for key in (None, *GROUP_KEYS):
        document = run("why", *options, "--json", *(("--by", key) if key else ())).json
        assert Decimal(str(document["amount"])) == total
        assert sum(Decimal(str(row["amount"])) for row in document["rows"]) == total, key
    table = run("why", *options).out
    assert "2 sessions" in table
    assert "share" in run("waste", *options, "--min", "0").out
    assert run("why", IDS[0], *options).code == 2
    assert run("why", "--since", "2030-01-01", "--home", str(home)).code == 1
