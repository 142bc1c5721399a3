"""The ledger of an index is the one that is made without it: every sum, every charge, every line behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.account import ledger_cases
from tools.demo import write

import threadline
from threadline.account import KEY_DESCRIPTIONS, Ledger, Rates, load_rates
from threadline.account.totals import time_zone
from threadline.find import homes, look
from threadline.index import Index, refresh_index
from threadline.index.ledger import IndexedCharges
from threadline.model.ledger import Charge
from threadline.reports import fill_agent_types

ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Monrovia")
NESTS = [
    *(("project", "model"), ("day", "model"), ("session", "hour", "part"), ("agent", "skill"), ("week", "home")),
    *(("tool", "day"), ("session", "tool"), ("hour", "tool", "model")),
]


@contextmanager
def indexed(path: Path, *paths: Path, rates: Rates | None = None) -> Iterator[Ledger]:
    """The ledger of an index that is up to date."""
    refresh_index(path, homes(*paths), jobs=1)
    with Index.open(path) as index:
        yield index.ledger(rates)


def told(charge: Charge) -> tuple[Any, ...]:
    """All that can be known of a charge."""
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


def all_told(ledger: Ledger) -> list[tuple[Any, ...]]:
    """The charges of a ledger, in some order."""
    return sorted(map(told, ledger), key=repr)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, Ledger]]:
    """The ledger of a made-up home with forks, continuations and agents, without and with an index."""
    folder = tmp_path_factory.mktemp("ledger")
    write(folder / "home", megabytes=3)
    with indexed(folder / "index.sqlite", folder / "home") as found:
        yield threadline.ledger(folder / "home"), found


def test_every_charge_is_the_same(ledgers: tuple[Ledger, Ledger]) -> None:
    """With its amount, its rate, and every line that was counted or set aside."""
    plain, found = ledgers
    assert len(found) == len(plain)
    assert all_told(found) == all_told(plain)
    assert any(one.is_copied for one in found)


@pytest.mark.parametrize("zone", ZONES)
def test_every_sum_is_the_same(ledgers: tuple[Ledger, Ledger], zone: str) -> None:
    """By every key and nests of them, in the same order, wherever days begin."""
    plain, found = ledgers
    for names in [(), *((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"), *NESTS]:
        assert found.by(*names, zone=zone) == plain.by(*names, zone=zone)
    assert found.total == plain.total


def test_sums_need_no_charges(ledgers: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked by keys is answered by the sums that the index keeps."""
    monkeypatch.setattr(IndexedCharges, "_build", None)
    plain, found = ledgers
    anew = found.where(since="2000-01-01")
    assert anew.total == plain.total
    assert len(anew.charges) == len(plain)
    assert anew.by("day", "model") == plain.by("day", "model")


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
def test_any_choice_has_the_same_sums(  # noqa: PLR0917 - what hypothesis gives
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
    """Of a time that begins and ends anywhere, of projects, models and sessions, and of some of those."""
    plain, found = (
        ledger.where(since=since, until=until, project=project, model=model, session=session).where(since=again)
        for ledger in ledgers
    )
    assert found.by(*names, zone=zone) == plain.by(*names, zone=zone)
    assert (found.total, len(found)) == (plain.total, len(plain))


def test_a_choices_charges_are_the_same(ledgers: tuple[Ledger, Ledger]) -> None:
    """Those of a session or a day are made without the others, and are what they are among all."""
    plain, found = ledgers
    sessions = {one.session for one in plain if one.is_copied} | {next(iter(plain)).session}
    for session in sessions:
        assert all_told(found.where(session=session)) == all_told(plain.where(session=session))
    for row in plain.by("day").rows[:3]:
        day = row.keys["day"]
        assert all_told(found.where(since=day, until=day)) == all_told(plain.where(since=day, until=day))


def test_a_choice_of_ones_own_is_the_same(ledgers: tuple[Ledger, Ledger]) -> None:
    """A function is asked about real charges, as are keys of one's own."""
    plain, found = (ledger.where(lambda charge: charge.output % 2 == 0, since="2025-02-01") for ledger in ledgers)
    assert all_told(found) == all_told(plain)
    extra = {"size": lambda charge: str(len(str(charge.output)))}
    assert ledgers[1].by("size", extra=extra) == ledgers[0].by("size", extra=extra)


@pytest.mark.parametrize("hours", [5, 1, 0.5])
@pytest.mark.parametrize("since", [None, "2025-07-08T02:37:11.500Z"])
def test_windows_are_the_same(ledgers: tuple[Ledger, Ledger], hours: float, since: str | None) -> None:
    """Of any length, with their sums, gaps, and the one that is running."""
    plain, found = (ledger.where(since=since) for ledger in ledgers)
    last = max(one.timestamp for one in plain if one.timestamp is not None)
    for now in (last, last + timedelta(minutes=3), last + timedelta(days=3)):
        made = plain.windows(now=now, hours=hours)
        assert found.windows(now=now, hours=hours) == made
    assert len(made) > 1
    assert found.timeless == plain.timeless


def test_models_of_one_moment_are_in_one_order(tmp_path: Path) -> None:
    """Charges of the same time have none: a window then names its models by the alphabet, with an index and without."""
    folder = tmp_path / "home" / "projects" / "-a"
    folder.mkdir(parents=True)
    for number, model in enumerate(("model-c", "model-a", "model-b")):
        usage = f'{{"id": "msg_{9 - number}", "model": "{model}", "usage": {{"input_tokens": 1, "output_tokens": 1}}}}'
        line = f'{{"type": "assistant", "timestamp": "2026-11-01T10:00:00.000Z", "message": {usage}}}\n'
        (folder / f"{number}1234567-89ab-4cde-8f01-23456789abcd.jsonl").write_text(line)
    now = datetime(2026, 11, 2, tzinfo=UTC)
    with indexed(tmp_path / "index.sqlite", tmp_path / "home") as found:
        for ledger in (threadline.ledger(tmp_path / "home"), found):
            (window,) = ledger.windows(now=now)
            assert window.models == ("model-a", "model-b", "model-c")


def test_what_receipts_ask_for_is_the_same(ledgers: tuple[Ledger, Ledger]) -> None:
    """The charges of a session, a transcript, a message, a day, without making all of them."""
    plain, found = ledgers
    assert found.sessions == plain.sessions
    copied = next(one for one in plain if one.is_copied)
    paths = sorted({seen.origin.transcript for seen in copied.sightings})
    for session, some in ((copied.session, ()), (None, paths[:1]), (copied.session, paths), (None, ())):
        assert _same(found.holding(session, some), plain.holding(session, some))
    start = copied.message[:6]
    assert found.messages(start) == plain.messages(start)
    assert found.messages("no such") == []
    ids = {copied.message, next(iter(plain)).message, "no such"}
    assert _same(found.of_messages(ids), plain.of_messages(ids))
    assert _same(found.of_sessions({copied.session}), plain.of_sessions({copied.session}))
    for zone in map(time_zone, ZONES):
        day = plain.by("day", zone=zone)[-1].keys["day"]
        assert _same(found.of_day(day, zone), plain.of_day(day, zone))


def _same(some: Sequence[Charge], others: Sequence[Charge]) -> bool:
    return sorted(map(told, some), key=repr) == sorted(map(told, others), key=repr)


def test_types_of_agents_are_the_same(ledgers: tuple[Ledger, Ledger]) -> None:
    """As rows name them, and where they do not, as the file beside the transcript does."""
    plain, found = ledgers
    home = next(iter(plain)).origin.home
    fill_agent_types([look(home)], found)
    for names in (("agent-type",), ("agent-type", "day"), ("session", "agent-type")):
        assert found.by(*names) == plain.by(*names)
        some = found.where(model="opus"), plain.where(model="opus")
        assert some[0].by(*names) == some[1].by(*names)
    types = {one.origin.agent_type for one in plain}
    assert {one.origin.agent_type for one in found} == types
    assert len(types) > 1


def test_other_prices_are_applied(tmp_path: Path) -> None:
    """What an index charges by does not bind who asks with a price file."""
    home = tmp_path / "home"
    write(home, megabytes=1)
    prices = tmp_path / "prices.json"
    prices.write_text(
        '{"schema": 1, "models": {"claude-sonnet-4-20250514": {"periods": [{"input": 7, "output": 11,'
        ' "cache_write_5m": 1, "cache_write_1h": 2, "cache_read": 3}]}}}'
    )
    table = load_rates(prices)
    plain = threadline.ledger(home, prices=table)
    path = tmp_path / "index.sqlite"
    with indexed(path, home) as same, indexed(path, home, rates=table) as found:
        assert found.by("day", "model") == plain.by("day", "model")
        assert all_told(found) == all_told(plain)
        assert same.total == threadline.ledger(home).total


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", ledger_cases.CASES)
def test_every_case_is_the_same(case: str, tmp_path: Path) -> None:
    """The homes that the rule was made by, one claim each."""
    plain = ledger_cases.ledger(case)
    with indexed(tmp_path / "index.sqlite", *ledger_cases.homes(case)) as found:
        assert all_told(found) == all_told(plain)
        for names in [
            (),
            *((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"),
            *permutations(("day", "hour", "model")),
        ]:
            for zone in ZONES:
                assert found.by(*names, zone=zone) == plain.by(*names, zone=zone)
        for since in ("2025-07-01T10:43:45.885Z", "2026-10-08"):
            assert found.where(since=since).total == plain.where(since=since).total


REAL = Path(__file__).parents[3] / "shared/corpus/home"


@pytest.mark.real
@pytest.mark.skipif(not REAL.exists(), reason="there is no real corpus beside the project")
def test_the_real_corpus_is_the_same(tmp_path: Path) -> None:
    """All of its charges and sums."""
    plain = threadline.ledger(REAL)
    with indexed(tmp_path / "index.sqlite", REAL) as found:
        assert (len(found), str(found.total.amount)) == (len(plain), str(plain.total.amount))
        assert found.total.charges == 5_277
        for names in [*((name,) for name in KEY_DESCRIPTIONS if name != "agent-type"), *NESTS]:
            for zone in ZONES:
                assert found.by(*names, zone=zone) == plain.by(*names, zone=zone)
        assert all_told(found) == all_told(plain)
