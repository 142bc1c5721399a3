"""Tests of what a session's cost is attributed to."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.context_rows import cached_call, cached_reply, usage
from tests.transcripts import SESSION, Part, chain, lines, prompt, reply, transcript

from threadline import read
from threadline.insight import GROUP_KEYS, attribute_costs, group_rows
from threadline.insight import attribution as attribution_module
from threadline.model.context import ContextCategory
from threadline.model.insight.attribution import Attribution, CauseKind, CostCause
from threadline.thread import WindowFiller, WindowStep

# Sonnet: USD per token.
INPUT, WRITE, HOUR, READ, OUTPUT = (Decimal(price) / 1_000_000 for price in ("3", "3.75", "6", "0.3", "15"))


def why(*parts: Part, agents: dict[str, list[Part]] | None = None, parent: str | None = None) -> Attribution:
    """Attribute the cost of a session of these parts, which may follow an entry of another transcript."""
    with TemporaryDirectory() as folder:
        main = Path(folder) / f"{SESSION}.jsonl"
        main.write_bytes(lines(*transcript(prompt("go", parentUuid=parent), *parts)))
        for name, agent_parts in (agents or {}).items():
            path = main.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [
                {**row, "agentId": name, "isSidechain": True}
                for row in transcript(*agent_parts)
                if isinstance(row, dict)
            ]
            path.write_bytes(lines(*rows))
        session = read(main, continued=False)
        attribution = attribute_costs(session, session.ledger)
        assert attribution.amount == (session.ledger.total.amount or 0)
        return attribution


def only(attribution: Attribution, kind: str, name: str | None = None) -> CostCause:
    """The only cause of a kind."""
    (row,) = (row for row in attribution.rows if row.kind == kind and (name is None or row.name == name))
    return row


def test_result_pays_for_every_request_that_carries_it() -> None:
    """Written once, then read by two requests."""
    found = why(
        cached_call(0, 20_000, "Read", {"file_path": "/a/data.json"}, "line\n" * 400, output=60),
        cached_reply(20_000, 760, input_=0, output=40),
        prompt("next"),
        cached_reply(20_760, 50, input_=0, output=40),
        prompt("next"),
        cached_reply(20_810, 50, input_=0, output=40),
    )
    row = only(found, "result")
    assert (row.tokens, row.requests, row.estimated) == (698, 3, False)
    assert (row.write, row.read, row.output) == (698 * WRITE, 698 * READ * 2, Decimal(0))
    assert (row.label, row.file, row.name, row.turn) == ("Result of Read /a/data.json", "/a/data.json", "Read", 1)


def test_reply_pays_for_being_written_and_carried() -> None:
    """Its output, then the cache."""
    found = why(
        prompt("a"), cached_reply(0, 20_000, "x" * 380, input_=0, output=100), prompt("b"),
        cached_reply(20_000, 110, "y", input_=0, output=7),
    )  # fmt: skip
    first = next(row for row in found.rows if row.kind is CauseKind.REPLY and row.tokens == 100)
    assert (first.output, first.write, first.requests) == (100 * OUTPUT, 100 * WRITE, 1)


def test_everything_is_written_again_after_a_cache_break() -> None:
    """The system prompt pays for both writes."""
    found = why(cached_reply(0, 20_000, input_=0), prompt("next"), cached_reply(0, 20_100, input_=0, after=20))
    system = only(found, "system")
    assert system.write == system.tokens * 2 * WRITE
    assert system.read == 0


def test_writes_for_an_hour_cost_more() -> None:
    """At their own price."""
    found = why(cached_reply(0, 20_000, input_=0, hour=True))
    system = only(found, "system")
    assert system.write == system.tokens * HOUR


def test_uncached_end_falls_on_the_last_pieces() -> None:
    """What comes after the cached part pays the price of plain input."""
    found = why(cached_reply(0, 20_000, input_=0, output=5), prompt("z" * 4_000), cached_reply(20_000, 5, input_=1_000))
    late = max((row for row in found.rows if row.kind is CauseKind.PROMPT), key=lambda row: row.tokens)
    assert late.write == late.tokens * INPUT


def test_compaction_ends_what_it_replaces() -> None:
    """After it, the summary is carried, not the result."""
    found = why(
        cached_call(0, 20_000, "Read", {"file_path": "/a"}, "line\n" * 400, output=60),
        cached_reply(20_000, 760, input_=0),
        chain(
            "system", subtype="compact_boundary", content="", compactMetadata={"trigger": "auto", "preTokens": 20_770}
        ),
        prompt("s" * 3_800, isCompactSummary=True),
        cached_reply(0, 19_000, input_=0),
    )
    assert only(found, "result").requests == 1
    assert only(found, "summary").requests == 1


def test_agents_pay_for_themselves() -> None:
    """Their rows name the agent."""
    found = why(
        cached_call(0, 9_000, "Agent", {"prompt": "p"}, "done"),
        agents={"a1": [prompt("p"), cached_reply(0, 3_000, input_=0)]},
    )
    assert {row.agent for row in found.rows} == {None, "a1"}
    groups = {group.key: group.amount for group in group_rows(found.rows, "agent")}
    assert sum(groups.values()) == found.amount


def test_abandoned_branch_pays_for_its_requests() -> None:
    """Both continuations carry what is before the fork."""
    found = why(
        cached_reply(0, 20_000, input_=0, uuid="r1"),
        prompt("first", parentUuid="r1"),
        cached_reply(20_000, 20, input_=0),
        prompt("second", parentUuid="r1"),
        cached_reply(20_000, 20, input_=0),
    )
    assert only(found, "system").requests == 3


def test_request_without_a_known_prompt_is_a_cause_by_itself() -> None:
    """Nothing is lost if the window's size is unknown."""
    found = why(reply("a", message={"usage": {"input_tokens": 0, "output_tokens": 9}}))
    row = only(found, "other")
    assert (row.amount, row.output, row.requests) == (9 * OUTPUT, 9 * OUTPUT, 1)
    assert len(found.rows) == 1


@pytest.mark.parametrize("by", list(GROUP_KEYS))
def test_groups_sum_to_the_amount(by: str) -> None:
    """Whatever they are grouped by."""
    found = why(
        cached_call(0, 20_000, "mcp__x__get", {"path": "/a"}, "line\n" * 400), cached_reply(20_000, 760), prompt("n")
    )
    assert sum(group.amount for group in group_rows(found.rows, by)) == found.amount


_SIZES = st.integers(0, 30_000)
_STEP = st.tuples(
    _SIZES, _SIZES, _SIZES, st.integers(0, 5_000), st.booleans(), st.text("ab \n", max_size=40), st.integers(0, 8)
)


@given(steps=st.lists(_STEP, min_size=1, max_size=8))
def test_rows_sum_to_the_amount(steps: list[Any]) -> None:
    """For any sequence of requests and rewinds, however little their counts agree with the transcript."""
    parts: list[Part] = []
    for at, (read_, written, input_, output, hour, text, back) in enumerate(steps):
        message = {"usage": usage(read_, written, input_=input_, output=output, hour=hour)}
        parts.append(cached_call(read_, written, "Read", {"file_path": "/a"}, text, output=output))
        parts.append(reply(text or "x", message=message, uuid=f"r{at}"))
        parts.append(prompt(text or "x", parentUuid=f"r{max(0, at - back)}"))
    why(*parts)


def test_conversation_that_began_elsewhere_is_no_system_prompt() -> None:
    """The first request of a continued transcript carries what is in another; a small rest is the system prompt."""
    large = cached_reply(0, 280_000, input_=0)
    assert only(why(large, parent="5e551011-1111-4000-8000-000000000001"), "unseen").tokens > 270_000
    assert only(why(large), "system").tokens > 270_000
    small = why(cached_reply(0, 20_000, input_=0), parent="5e551011-1111-4000-8000-000000000001")
    assert only(small, "system").tokens > 19_000


def test_request_that_carries_several_parts_of_a_cause_counts_once() -> None:
    """What the transcript does not explain is one cause, as large as all its parts."""
    found = why(
        cached_reply(0, 20_000, input_=0, output=40),
        prompt("next"),
        cached_reply(20_000, 9_000, input_=0, output=40),
        prompt("next"),
        cached_reply(29_000, 9_000, input_=0, output=40),
    )
    unseen = only(found, "unseen")
    assert unseen.requests == 2
    assert unseen.tokens > 17_000


def test_branches_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests before a fork are not followed again for each branch."""
    steps: list[int] = []
    step = WindowFiller.step

    def count_step(filler: WindowFiller, window_step: WindowStep) -> None:
        steps.append(window_step.window.number)
        step(filler, window_step)

    monkeypatch.setattr(WindowFiller, "step", count_step)
    number = 30
    parts: list[Part] = []
    for at in range(number):
        parts += (cached_reply(1_000 * at, 1_000, input_=0, uuid=f"r{at}"), prompt("first", parentUuid=f"r{at}"))
        parts += (cached_reply(1_000 * at + 1_000, 20, input_=0), prompt("second", parentUuid=f"r{at}"))
    assert only(why(*parts), "system").requests == 2 * number
    assert sorted(steps) == list(range(1, 2 * number + 1))


@pytest.mark.parametrize("thinking", [False, True])
def test_windows_smaller_than_their_pieces_take_linear_time(monkeypatch: pytest.MonkeyPatch, *, thinking: bool) -> None:
    """Each request drops what was added before, or nothing; slices that do not change are not touched."""
    prices: list[int] = []
    price = attribution_module._price

    def count_price(tokens: int, rate: Decimal) -> Decimal:
        prices.append(tokens)
        return price(tokens, rate)

    monkeypatch.setattr(attribution_module, "_price", count_price)
    counts = []
    for number in (40, 80):
        prices.clear()
        blocks = ({"type": "thinking", "thinking": "t" * 400, "signature": ""}, "word " * 40)
        why(*(cached_reply(1_000 + 9 * at, 0, *blocks[not thinking :], input_=0) for at in range(number)))
        counts.append(len(prices))
    assert counts[1] < 2.5 * counts[0]


def test_every_part_of_a_window_is_a_kind_of_cause() -> None:
    """Under the same name."""
    assert {category: CauseKind(category) for category in ContextCategory} == {
        category: CauseKind[category.name] for category in ContextCategory
    }


def test_rows_sum_to_the_amount_of_every_case() -> None:
    """Every session of the case folders."""
    mains = [
        path
        for folder in ("corpus", "sessions")
        for path in sorted((Path(__file__).parents[1] / folder).rglob("*.jsonl"))
        if "subagents" not in path.parts and not path.name.startswith(("agent-", "history"))
    ]
    assert len(mains) > 100
    for path in mains:
        session = read(path)
        ledger = session.ledger
        assert attribute_costs(session, ledger).amount == (ledger.total.amount or 0), path
