"""The ledger from the index equals the one from the transcripts: every sum, every charge, every line behind it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.account import ledger_cases
from tests.account.generated_transcripts import pseudo_random_text
from tests.transcripts import SESSION, call, prompt, transcript
from tests.transcripts import write as write_transcript
from tools.demo import write

import threadline
from threadline.account import KEY_DESCRIPTIONS, Ledger, Rates, load_rates
from threadline.find import homes
from threadline.index import Index, refresh_index
from threadline.index.ledger import IndexedCharges
from threadline.model.homes import Homes
from threadline.model.ledger import Charge
from threadline.model.times import parse_zone

ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Monrovia")
NESTS = [
    *(("project", "model"), ("day", "model"), ("session", "hour", "part"), ("agent", "skill"), ("week", "home")),
    *(("tool", "day"), ("session", "tool"), ("hour", "tool", "model")),
]


@contextmanager
def indexed(path: Path, *paths: Path, rates: Rates | None = None) -> Iterator[Ledger]:
    """The ledger of a refreshed index."""
    refresh_index(path, homes(*paths), jobs=1)
    with Index.open(path) as index:
        yield index.ledger(rates)


def charge_fields(charge: Charge) -> tuple[Any, ...]:
    """All fields of a charge."""
    origin = charge.origin
    return (
        charge.message,
        charge.part,
        charge.owner.time,
        charge.model,
        (charge.input, charge.output, charge.cache_write_5m, charge.cache_write_1h, charge.cache_read),
        charge.web_searches,
        charge.amount,
        charge.rate,
        charge.reported,
        (charge.session, charge.agent, charge.project, origin.home, origin.version, origin.git_branch, origin.skill),
        charge.flags,
        sorted(charge.calls),
        charge.place,
        sorted(charge.set_aside, key=repr),
    )


def all_charges(ledger: Ledger) -> list[tuple[Any, ...]]:
    """The charges of a ledger in a fixed order."""
    return sorted(map(charge_fields, ledger), key=repr)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, Ledger]]:
    """The ledger of a demo home with forks, continuations and agents, without and with an index."""
    folder = tmp_path_factory.mktemp("ledger")
    write(folder / "home", megabytes=3)
    with indexed(folder / "index.sqlite", folder / "home") as indexed_ledger:
        yield threadline.ledger(folder / "home"), indexed_ledger


def test_charges_are_equal(ledgers: tuple[Ledger, Ledger]) -> None:
    """With the amount, the rate, and every line that was counted or set aside."""
    plain, indexed_ledger = ledgers
    assert len(indexed_ledger) == len(plain)
    assert all_charges(indexed_ledger) == all_charges(plain)
    assert any(charge.is_copied for charge in indexed_ledger)


@pytest.mark.parametrize("zone", ZONES)
def test_sums_are_equal(ledgers: tuple[Ledger, Ledger], zone: str) -> None:
    """By every key and combinations of them, in the same order, in any time zone."""
    plain, indexed_ledger = ledgers
    for names in [(), *((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"), *NESTS]:
        assert indexed_ledger.by(*names, zone=zone) == plain.by(*names, zone=zone)
    assert indexed_ledger.total == plain.total


def test_sums_need_no_charges(ledgers: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by key come from the totals in the index."""
    monkeypatch.setattr(IndexedCharges, "_build", None)
    plain, indexed_ledger = ledgers
    filtered = indexed_ledger.where(since="2000-01-01")
    assert filtered.total == plain.total
    assert len(filtered.charges) == len(plain)
    assert filtered.by("day", "model") == plain.by("day", "model")


MOMENTS = st.one_of(
    st.none(),
    st.integers(0, 800 * 24 * 60 * 60 * 1000).map(
        lambda ms: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    ),
    st.integers(0, 800 * 96).map(lambda quarters: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * quarters)),
    st.integers(0, 800).map(lambda days: (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=days)).date()),
)


@given(
    since=MOMENTS,
    until=MOMENTS,
    project=st.sampled_from([None, "", "A", "work", "no such"]),
    model=st.sampled_from([None, "", "SONNET", "opus-4", "no such"]),
    session=st.sampled_from([None, "", "0", "5", "c", "no such"]),
    names=st.sampled_from(
        [(), ("day",), ("model", "hour"), ("session",), ("project", "month"), ("tool",), ("day", "tool")]
    ),
    zone=st.sampled_from(ZONES),
    again=MOMENTS,
)
def test_sums_of_any_filter_are_equal(  # noqa: PLR0917 - what hypothesis gives
    ledgers: tuple[Ledger, Ledger],
    since: Any,
    until: Any,
    project: str | None,
    model: str | None,
    session: str | None,
    names: tuple[str, ...],
    zone: str,
    again: Any,
) -> None:
    """For any period, project, model and session, and filters of filters."""
    plain, indexed_ledger = (
        # One at a time: a ledger may be empty, but a single range may not end before it starts.
        ledger.where(since=since, project=project, model=model, session=session).where(until=until).where(since=again)
        for ledger in ledgers
    )
    assert indexed_ledger.by(*names, zone=zone) == plain.by(*names, zone=zone)
    assert (indexed_ledger.total, len(indexed_ledger)) == (plain.total, len(plain))


def test_charges_of_a_filter_are_equal(ledgers: tuple[Ledger, Ledger]) -> None:
    """The charges of a session or a day are loaded without the others, and are the same as among all."""
    plain, indexed_ledger = ledgers
    sessions = {charge.session for charge in plain if charge.is_copied} | {next(iter(plain)).session}
    for session in sessions:
        assert all_charges(indexed_ledger.where(session=session)) == all_charges(plain.where(session=session))
    for row in plain.by("day").rows[:3]:
        day = row.keys["day"]
        assert all_charges(indexed_ledger.where(since=day, until=day)) == all_charges(plain.where(since=day, until=day))


def test_custom_filters_and_keys_are_equal(ledgers: tuple[Ledger, Ledger]) -> None:
    """A custom function gets real charges, and so do custom keys."""
    plain, indexed_ledger = (
        ledger.where(lambda charge: charge.output % 2 == 0, since="2025-02-01") for ledger in ledgers
    )
    assert all_charges(indexed_ledger) == all_charges(plain)
    extra = {"size": lambda charge: str(len(str(charge.output)))}
    assert ledgers[1].by("size", extra=extra) == ledgers[0].by("size", extra=extra)


@pytest.mark.parametrize("hours", [5, 1, 0.5])
@pytest.mark.parametrize("since", [None, "2025-07-08T02:37:11.500Z"])
def test_windows_are_equal(ledgers: tuple[Ledger, Ledger], hours: float, since: str | None) -> None:
    """Of any length, with their sums, gaps, and the current one."""
    plain, indexed_ledger = (ledger.where(since=since) for ledger in ledgers)
    last = max(charge.timestamp for charge in plain if charge.timestamp is not None)
    for now in (last, last + timedelta(minutes=3), last + timedelta(days=3)):
        windows = plain.windows(now=now, hours=hours)
        assert indexed_ledger.windows(now=now, hours=hours) == windows
    assert len(windows) > 1
    assert indexed_ledger.timeless == plain.timeless


def test_models_of_simultaneous_charges_are_sorted(tmp_path: Path) -> None:
    """If charges have the same time, a window lists their models alphabetically, with an index and without."""
    folder = tmp_path / "home" / "projects" / "-a"
    folder.mkdir(parents=True)
    for number, model in enumerate(("model-c", "model-a", "model-b")):
        usage = f'{{"id": "msg_{9 - number}", "model": "{model}", "usage": {{"input_tokens": 1, "output_tokens": 1}}}}'
        line = f'{{"type": "assistant", "timestamp": "2026-11-01T10:00:00.000Z", "message": {usage}}}\n'
        (folder / f"{number}1234567-89ab-4cde-8f01-23456789abcd.jsonl").write_text(line)
    now = datetime(2026, 11, 2, tzinfo=UTC)
    with indexed(tmp_path / "index.sqlite", tmp_path / "home") as indexed_ledger:
        for ledger in (threadline.ledger(tmp_path / "home"), indexed_ledger):
            (window,) = ledger.windows(now=now)
            assert window.models == ("model-a", "model-b", "model-c")


def test_charges_for_receipts_are_equal(ledgers: tuple[Ledger, Ledger]) -> None:
    """The charges of a session, a transcript, a message or a day, without loading all of them."""
    plain, indexed_ledger = ledgers
    assert indexed_ledger.sessions == plain.sessions
    copied = next(charge for charge in plain if charge.is_copied)
    paths = sorted({sighting.origin.transcript for sighting in copied.sightings})
    for session, transcripts in ((copied.session, ()), (None, paths[:1]), (copied.session, paths), (None, ())):
        assert _are_equal(indexed_ledger.holding(session, transcripts), plain.holding(session, transcripts))
    start = copied.message[:6]
    assert indexed_ledger.messages(start) == plain.messages(start)
    assert indexed_ledger.messages("no such") == []
    ids = {copied.message, next(iter(plain)).message, "no such"}
    assert _are_equal(indexed_ledger.of_messages(ids), plain.of_messages(ids))
    assert _are_equal(indexed_ledger.of_sessions({copied.session}), plain.of_sessions({copied.session}))
    for zone in map(parse_zone, ZONES):
        day = plain.by("day", zone=zone)[-1].keys["day"]
        assert _are_equal(indexed_ledger.of_day(day, zone), plain.of_day(day, zone))


def _are_equal(charges: Sequence[Charge], others: Sequence[Charge]) -> bool:
    return sorted(map(charge_fields, charges), key=repr) == sorted(map(charge_fields, others), key=repr)


def test_types_of_agents_are_equal(ledgers: tuple[Ledger, Ledger]) -> None:
    """From the rows, or else from the file beside the transcript."""
    plain, indexed_ledger = ledgers
    for names in (("agent-type",), ("agent-type", "day"), ("session", "agent-type")):
        assert indexed_ledger.by(*names) == plain.by(*names)
        filtered = indexed_ledger.where(model="opus"), plain.where(model="opus")
        assert filtered[0].by(*names) == filtered[1].by(*names)
    types = {charge.origin.agent_type for charge in plain}
    assert {charge.origin.agent_type for charge in indexed_ledger} == types
    assert len(types) > 1


def test_missing_agents_are_found_in_linear_time(tmp_path: Path) -> None:
    """Four times as many agents take about four times as many steps, with transcripts or without."""

    def steps(count: int, *, is_missing: bool) -> int:
        home = tmp_path / f"{count}-{is_missing}"
        path = home / "projects" / "-a" / f"{SESSION}.jsonl"
        agents = [f"a{pseudo_random_text('agent', number)[:16]}" for number in range(count)]
        calls = [call("Agent", "go", "ok", details={"agentId": agent, "status": "completed"}) for agent in agents]
        write_transcript(path, *transcript(prompt("hi"), *calls))
        for agent in [] if is_missing else agents:
            rows = transcript(prompt("go", agentId=agent, isSidechain=True))
            write_transcript(path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl", *rows)
        index = home / "index.sqlite"
        refresh_index(index, homes(home), jobs=1)
        ticks: list[None] = []
        with closing(sqlite3.connect(index)) as connection:
            connection.set_progress_handler(lambda: ticks.append(None), 20)
            missing = IndexedCharges(connection, Homes(homes(home))).missing_agents()
        assert len(missing) == (count if is_missing else 0)
        return len(ticks)

    for is_missing in (False, True):
        assert steps(200, is_missing=is_missing) < 8 * steps(50, is_missing=is_missing)


def test_applies_other_prices(tmp_path: Path) -> None:
    """A price file overrides the prices in the index."""
    home = tmp_path / "home"
    write(home, megabytes=1)
    prices = tmp_path / "prices.json"
    prices.write_text(
        '{"schema": 1, "models": {"claude-sonnet-4-20250514": {"periods": [{"input": 7, "output": 11,'
        ' "cache_write_5m": 1, "cache_write_1h": 2, "cache_read": 3}]}}}'
    )
    rates = load_rates(prices)
    plain = threadline.ledger(home, prices=rates)
    path = tmp_path / "index.sqlite"
    with indexed(path, home) as default, indexed(path, home, rates=rates) as indexed_ledger:
        assert indexed_ledger.by("day", "model") == plain.by("day", "model")
        assert all_charges(indexed_ledger) == all_charges(plain)
        assert default.total == threadline.ledger(home).total


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", ledger_cases.CASES)
def test_case_homes_are_equal(case: str, tmp_path: Path) -> None:
    """The case homes of the deduplication rule."""
    plain = ledger_cases.ledger(case)
    with indexed(tmp_path / "index.sqlite", *ledger_cases.homes(case)) as indexed_ledger:
        assert all_charges(indexed_ledger) == all_charges(plain)
        for names in [
            (),
            *((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"),
            *permutations(("day", "hour", "model")),
        ]:
            for zone in ZONES:
                assert indexed_ledger.by(*names, zone=zone) == plain.by(*names, zone=zone)
        for since in ("2025-07-01T10:43:45.885Z", "2026-10-08"):
            assert indexed_ledger.where(since=since).total == plain.where(since=since).total


REAL = Path(__file__).parents[3] / "shared/corpus/home"


@pytest.mark.real
@pytest.mark.skipif(not REAL.exists(), reason="there is no real corpus beside the project")
def test_the_real_corpus_is_equal(tmp_path: Path) -> None:
    """All of its charges and sums."""
    plain = threadline.ledger(REAL)
    with indexed(tmp_path / "index.sqlite", REAL) as indexed_ledger:
        assert (len(indexed_ledger), str(indexed_ledger.total.amount)) == (len(plain), str(plain.total.amount))
        assert indexed_ledger.total.charges == 5_277
        for names in [*((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"), *NESTS]:
            for zone in ZONES:
                assert indexed_ledger.by(*names, zone=zone) == plain.by(*names, zone=zone)
        assert all_charges(indexed_ledger) == all_charges(plain)
