"""Tests of the context: the window at each request, cache breaks with their causes, turns and limits."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.context_rows import at, cached_call, cached_reply, context_of, only_break, usage
from tests.thread.state_rows import session_of
from tests.thread.test_requests import PARAMS, SHAPE, digest, request_row, shape_row
from tests.thread.test_thread_properties import ROWS
from tests.transcripts import Part, Pen, Row, call, chain, meta, prompt, reply, transcript

from threadline.errors import BadQuery, NotFound
from threadline.load import read
from threadline.model.context import BreakCause, Context
from threadline.model.places import Place
from threadline.model.session import Session
from threadline.thread import analyze_context

LONG = "claude-opus-5[1m]"


def test_message_is_one_request_with_its_most_complete_row() -> None:
    """Rows that share an id count once, by the row with the greatest output. The time is the first row's."""
    early, late = usage(30_000, 500, output=1), usage(30_000, 500, output=90)
    rows = [row for row in transcript(reply("a", "b")) if isinstance(row, dict)]
    rows[0]["message"]["usage"], rows[1]["message"]["usage"] = late, early
    (window,) = context_of(*rows).windows
    assert (window.prompt, window.cache_read, window.cache_write_5m, window.uncached, window.output) == (
        30_502,
        30_000,
        500,
        2,
        90,
    )
    assert (window.place.line, window.counted.line, window.number) == (2, 2, 1)
    assert window.hit_share == pytest.approx(30_000 / 30_502)


def test_empty_rows_of_a_gateway_do_not_count() -> None:
    """Rows whose counters are all 0 belong to the message, and another row has the numbers."""
    rows = [row for row in transcript(reply("a", "b", "c")) if isinstance(row, dict)]
    for row, counts in zip(rows, (usage(0, input_=0, output=0), {}, usage(900, input_=100, output=7)), strict=True):
        row["message"]["usage"] = counts
    (window,) = context_of(*rows).windows
    assert (window.prompt, window.output, window.counted.line) == (1_000, 7, 4)


def test_colliding_id_is_two_requests() -> None:
    """If a gateway uses an id twice, requests are distinguished by their prompt counts."""
    same = {"id": "msg_20251030084941"}
    context = context_of(
        cached_reply(100, 10, message=same), cached_reply(200, 10, message=same), cached_reply(200, 10, message=same)
    )
    assert [window.prompt for window in context.windows] == [112, 212]


def test_synthetic_replies_are_not_requests() -> None:
    """Neither are notices of failed requests. A reply without usage is a request of size 0."""
    synthetic = reply("No response requested.", message={"model": "<synthetic>"})
    failed = reply("API Error", isApiErrorMessage=True)
    silent = reply("x", message={"usage": None})
    context = context_of(synthetic, failed, silent, cached_reply(0, 5_000))
    assert [(window.has_usage, window.prompt, window.hit_share) for window in context.windows] == [
        (False, 0, None),
        (True, 5_002, 0.0),
    ]
    assert [(turn.requests, turn.window) for turn in context.turns] == [(2, 5_002)]


def test_cache_writes_without_a_lifetime_are_five_minute_writes() -> None:
    """Cache writes are split by lifetime. The rest is for five minutes."""
    split = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}
    counts = {"cache_creation_input_tokens": 100, "cache_creation": split}
    late = {"cache_creation_input_tokens": 0, "cache_creation": split}
    context = context_of(reply("a", message={"usage": counts}), reply("b", message={"usage": late}))
    assert [(window.cache_write_5m, window.cache_write_1h) for window in context.windows] == [(80, 20), (10, 20)]


# Causes of breaks


def test_first_and_well_cached_requests_are_not_breaks() -> None:
    """A request that reads nearly everything from the cache is not a break."""
    context = context_of(
        cached_reply(0, 50_000), cached_reply(50_000, 900), cached_reply(47_000, 4_000), cached_reply(49_500, 100)
    )
    assert context.breaks == ()
    assert context.hit_share == pytest.approx((50_000 + 47_000 + 49_500) / (50_002 + 50_902 + 51_002 + 49_602))


def test_small_shortfall_is_not_a_break() -> None:
    """Some hundreds of tokens less are normal, however large their share."""
    assert context_of(cached_reply(0, 2_400), cached_reply(500, 2_000)).breaks == ()


def test_model_without_cache_has_no_breaks() -> None:
    """If nothing was ever written or read, nothing can break."""
    assert context_of(*(cached_reply(0, 0, input_=size) for size in (20_000, 30_000, 40_000))).breaks == ()


def test_break_by_another_model() -> None:
    """Each model has its own cache. This cause takes precedence over all others."""
    cache_break = only_break(
        cached_reply(0, 40_000, after=1), cached_reply(0, 41_000, after=200, message={"model": "claude-haiku-4-5"})
    )
    assert (cache_break.cause, cache_break.shortfall, cache_break.rewritten) == (BreakCause.MODEL, 40_000, 40_000)
    assert "claude-haiku-4-5" in cache_break.evidence


def test_break_by_a_compaction() -> None:
    """A boundary is between two requests. No more is sent again than the smaller window has."""
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    summary = prompt("Summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    cache_break = only_break(
        cached_reply(0, 150_000, after=1), boundary, summary, cached_reply(16_000, 12_000, after=90)
    )
    assert (cache_break.cause, cache_break.expected, cache_break.shortfall) == (BreakCause.COMPACTION, 150_000, 134_000)
    assert cache_break.rewritten == 12_002
    assert "line 3" in cache_break.evidence


def test_evidence_names_a_line_as_places_do() -> None:
    """A line number has no thousands separators: it can be passed to `--at`."""
    notices = [chain("system", subtype="informational") for _ in range(1_000)]
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    cache_break = only_break(cached_reply(0, 150_000), *notices, boundary, cached_reply(16_000, 12_000))
    assert "line 1003" in cache_break.evidence


def test_break_by_a_micro_compaction() -> None:
    """Blanking old results changes what was sent before."""
    blanked = chain("system", subtype="microcompact_boundary", microcompactMetadata={"tokensSaved": 9})
    cache_break = only_break(cached_reply(0, 90_000), blanked, cached_reply(16_000, 60_000))
    assert (cache_break.cause, "blanked" in cache_break.evidence) == (BreakCause.COMPACTION, True)


def test_break_by_a_rewind() -> None:
    """The next prompt continues an older entry."""

    def rewind(pen: Pen) -> Any:
        pen.parent = first
        yield from prompt("no, rather")(pen)

    pen = Pen()
    rows = transcript(prompt("go"), cached_reply(0, 20_000), pen=pen)
    first = pen.parent
    rows += transcript(
        prompt("on"),
        cached_reply(20_000, 9_000),
        cached_reply(29_000, 9_000),
        rewind,
        cached_reply(20_000, 500),
        pen=pen,
    )
    cache_break = only_break(*rows[1:])
    assert (cache_break.cause, cache_break.expected, cache_break.cache_read) == (BreakCause.BRANCH, 38_000, 20_000)
    assert "back by 2 requests" in cache_break.evidence


@pytest.mark.parametrize(
    ("minutes", "hour", "cause"),
    [
        (6, False, BreakCause.IDLE),
        (4, False, BreakCause.UNKNOWN),
        (50, True, BreakCause.UNKNOWN),
        (61, True, BreakCause.IDLE),
    ],
)
def test_break_by_idle_time(minutes: float, hour: bool, cause: BreakCause) -> None:
    """The gap is longer than the lifetime of what was written: five minutes or an hour."""
    cache_break = only_break(cached_reply(0, 40_000, after=1, hour=hour), cached_reply(0, 40_000, after=1 + minutes))
    assert (cache_break.cause, cache_break.gap) == (cause, timedelta(minutes=minutes))


def test_cache_lifetime_is_that_of_the_last_write() -> None:
    """A request that wrote nothing has no lifetime. The requested lifetime takes precedence."""
    unexplained = only_break(
        cached_reply(0, 40_000, after=1, hour=True), cached_reply(40_000, after=2), cached_reply(0, 40_000, after=40)
    )
    assert unexplained.cause is BreakCause.UNKNOWN
    idle = only_break(
        cached_reply(0, 40_000, after=1, promptCacheRequested="5m", hour=True), cached_reply(0, 40_000, after=40)
    )
    assert idle.cause is BreakCause.IDLE


@pytest.mark.parametrize("moment", [None, "never", at(-50)])
def test_missing_time_is_not_idle_time(moment: str | None) -> None:
    """If a time is missing or runs backwards, there is no gap."""
    cache_break = only_break(cached_reply(0, 40_000, after=1), cached_reply(0, 40_000, timestamp=moment))
    assert (cache_break.cause, cache_break.gap) == (BreakCause.UNKNOWN, None)


def test_break_by_changed_tools() -> None:
    """A row reports other tools. The initial list is not a change."""
    first = chain("attachment", attachment={"type": "deferred_tools_delta", "addedNames": ["A"], "isInitial": True})
    assert only_break(cached_reply(0, 40_000), first, cached_reply(9_000, 31_000)).cause is BreakCause.UNKNOWN
    delta = chain("attachment", attachment={"type": "deferred_tools_delta", "addedNames": list("ABCDEF")})
    cache_break = only_break(cached_reply(0, 40_000), delta, cached_reply(9_000, 31_000))
    assert cache_break.cause is BreakCause.TOOLS
    assert cache_break.evidence.endswith("added: A, B, C, D and 2 more")


def test_recorded_requests_show_changed_tools_and_settings() -> None:
    """If the transcript has the requests, their shapes and parameters are compared."""
    other = {**SHAPE, "tools": [{"name": "Read"}]}
    thinking = {**PARAMS, "thinking": {"type": "disabled"}}

    def session_parts(**fields: Any) -> list[Part]:
        first: list[Part] = [
            shape_row(),
            shape_row(other),
            request_row("r1", []),
            cached_reply(0, 40_000, requestRef="r1"),
        ]
        return [*first, request_row("r2", [], **fields), cached_reply(0, 40_000, requestRef="r2")]

    tools = only_break(*session_parts(shapeHash=digest(other)))
    assert (tools.cause, tools.evidence.split("; ")[1:]) == (BreakCause.TOOLS, ["added: Read", "removed: Bash"])
    assert only_break(*session_parts(params=thinking)).cause is BreakCause.SETTINGS
    assert only_break(*session_parts()).cause is BreakCause.UNKNOWN


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"effort": "low"}, {"effort": "high"}, "effort was low"),
        ({"message": {"usage": {**usage(0, 40_000), "speed": "fast"}}}, {}, None),
    ],
)
def test_break_by_changed_settings(before: Row, after: Row, word: str | None) -> None:
    """Another effort is a cause. A setting that only one of the two has is not."""
    rows = reply("a", **{"message": {"usage": usage(0, 40_000)}, **before})
    cache_break = only_break(rows, reply("b", message={"usage": usage(0, 40_000)}, **after))
    assert cache_break.cause is (BreakCause.SETTINGS if word else BreakCause.UNKNOWN)
    assert (word or "does not show why") in cache_break.evidence


def test_break_by_changed_thinking() -> None:
    """Prompts request more or less thinking."""
    less, more = ({"thinkingMetadata": {"maxThinkingTokens": size}} for size in (0, 31_999))
    cache_break = only_break(
        prompt("a", **less), cached_reply(0, 40_000), prompt("b", **more), cached_reply(9_000, 31_000)
    )
    assert (cache_break.cause, "31999" in cache_break.evidence) == (BreakCause.SETTINGS, True)


def test_break_by_a_restart() -> None:
    """The version changed, or a hook ran that runs when a session is resumed."""
    upgraded = only_break(cached_reply(0, 40_000), cached_reply(9_000, 31_000, version="2.1.240"))
    assert (upgraded.cause, "2.1.240" in upgraded.evidence) == (BreakCause.RESTART, True)
    hook = {"type": "hook_success", "hookName": "SessionStart:resume", "hookEvent": "SessionStart", "content": ""}
    resumed = only_break(cached_reply(0, 40_000), chain("attachment", attachment=hook), cached_reply(9_000, 31_000))
    assert (resumed.cause, "resumed" in resumed.evidence) == (BreakCause.RESTART, True)


# Turns and limits


def test_turns_have_their_requests() -> None:
    """Each turn has its last window, the largest, its growth, and its share of cached tokens."""
    context = context_of(
        cached_call(0, 20_000, "Bash", "ls", "x"),
        cached_reply(20_000, 5_000),
        prompt("on"),
        cached_reply(0, 25_000, after=30),
        prompt("<command-name>/cost</command-name>"),
    )
    assert [(turn.number, turn.requests, turn.window, turn.largest, turn.growth) for turn in context.turns] == [
        (1, 2, 25_002, 25_002, 25_002),
        (2, 1, 25_002, 25_002, 0),
        (3, 0, None, None, None),
    ]
    assert context.turns[0].hit_share == pytest.approx(20_000 / 45_004)
    assert [(turn.rewritten, [each.cause for each in turn.breaks]) for turn in context.turns] == [
        (0, []),
        (25_000, [BreakCause.IDLE]),
        (0, []),
    ]
    assert context.turns[0].share == pytest.approx(25_002 / 200_000)


@pytest.mark.parametrize(
    ("parts", "limit", "word"),
    [
        ([cached_reply(0, 9_000)], 200_000, "no evidence"),
        ([cached_reply(0, 200_001)], 1_000_000, "request 1"),
        ([cached_reply(0, 3_000_000)], 3_000_002, "request 1"),
        ([cached_reply(0, 9_000, message={"model": LONG})], 1_000_000, "[1m]"),
        ([cached_reply(0, 9_000, requestedModel=LONG)], 1_000_000, "[1m]"),
        (
            [cached_reply(0, 9_000), meta("cost-state", modelUsage={"claude-sonnet-4-5-20250929[1m]": {}})],
            1_000_000,
            "totals",
        ),
        (
            [
                cached_reply(0, 9_000),
                meta("cost-state", modelUsage={"claude-sonnet-4-5-20250929": {"contextWindow": 128_000}}),
            ],
            128_000,
            "totals",
        ),
    ],
)
def test_limit_and_its_reason(parts: list[Part], limit: int, word: str) -> None:
    """It is 200,000 tokens, unless a larger prompt was sent or the transcript names another limit."""
    context = context_of(*parts)
    assert context.limit is not None
    assert (context.limit.tokens, word in context.limit.why) == (limit, True)


def test_agents_have_their_own_context() -> None:
    """It is selected by the agent's id, or by a place in its transcript."""
    session = session_of(
        cached_call(0, 9_000, "Agent", "look", "done"), agents={"a1": [prompt("look"), cached_reply(0, 3_000)]}
    )
    assert [window.prompt for window in analyze_context(session).windows] == [9_002]
    agent_context = analyze_context(session, "a1")
    assert (agent_context.agent, agent_context.window) == ("a1", 3_002)
    assert analyze_context(session, at=Place("agent-a1.jsonl", 2)) == agent_context
    with pytest.raises(NotFound, match="no agent 'a2'"):
        analyze_context(session, "a2")
    with pytest.raises(NotFound, match="main agent"):
        analyze_context(session, "a1", Place(f"{session.id}.jsonl", 2))


def test_invalid_queries_are_errors() -> None:
    """A missing place or turn, and both at once."""
    session = session_of(cached_reply(0, 9_000))
    with pytest.raises(NotFound, match="the session has 1 turn"):
        analyze_context(session, turn=7)
    with pytest.raises(NotFound, match="has no entry at"):
        analyze_context(session, at=Place("x.jsonl", 9))
    with pytest.raises(BadQuery, match="not both"):
        analyze_context(session, at=Place("x.jsonl", 9), turn=1)


# Laws

_COUNT: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, 1, 10, 2_500, 40_000, 210_000, 2**53, 2**70, -5, 1.5, "9", [], {}]
)
_USAGE = (
    st.none()
    | st.just("lost")
    | st.fixed_dictionaries(
        {},
        optional={
            "input_tokens": _COUNT,
            "output_tokens": _COUNT,
            "cache_read_input_tokens": _COUNT,
            "cache_creation_input_tokens": _COUNT,
            "cache_creation": st.none()
            | st.fixed_dictionaries({"ephemeral_5m_input_tokens": _COUNT, "ephemeral_1h_input_tokens": _COUNT}),
        },
    )
)


def _rows_with_usage(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw(ROWS)
    for row in rows:
        if row["type"] == "assistant":
            row["message"] = {**row["message"], "usage": draw(_USAGE)}
    return rows


def _check_context(context: Context, session: Session) -> None:
    assert sum(part.tokens for part in context.filling) == context.window
    assert all(part.tokens > 0 and 0 <= part.measured <= part.tokens for part in context.filling)
    hits = [*(window.hit_share for window in context.windows), *(turn.hit_share for turn in context.turns)]
    assert all(hit is None or 0 <= hit <= 1 for hit in hits)
    assert [window.number for window in context.windows] == list(range(1, len(context.windows) + 1))
    agent = session.agent(context.agent)
    assert agent is not None
    assert [turn.number for turn in context.turns] == [turn.number for turn in agent.turns]
    assert sum(turn.requests for turn in context.turns) == len(context.windows)
    assert [part for turn in context.turns for part in turn.breaks] == list(context.breaks)
    assert all(0 <= part.rewritten <= part.shortfall <= part.expected for part in context.breaks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to write transcripts to."""
    return tmp_path_factory.mktemp("context")


@given(rows=st.composite(_rows_with_usage)(), data=st.data())
def test_any_rows_have_a_context(folder: Path, rows: list[dict[str, Any]], data: st.DataObject) -> None:
    """For any graph and usage, amounts sum to the window, each request is in one turn, and the result is stable."""
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = read(path, continued=False)
    for agent in (session.main, *session.agents):
        _check_context(analyze_context(session, agent.id), session)
        assert analyze_context(session, agent.id) == analyze_context(session, agent.id)
        if agent.entries:
            place = data.draw(st.sampled_from(agent.entries)).place
            _check_context(analyze_context(session, at=place), session)
        if agent.turns:
            _check_context(
                analyze_context(session, agent.id, turn=data.draw(st.sampled_from(agent.turns)).number), session
            )


@pytest.mark.slow
@pytest.mark.parametrize("ids", [{}, {"id": "msg_20251030084941"}], ids=["unique", "shared"])
def test_time_is_linear_in_the_requests(ids: dict[str, str]) -> None:
    """Eight times the requests, each a cache break, take less than twenty times as long, even if all share an id."""

    def seconds(size: int) -> float:
        parts = [call("Bash", "ls", "x", message={"usage": usage(0, 9_000 + at), **ids}) for at in range(size)]
        session = session_of(*parts)
        start = time.process_time()
        assert len(analyze_context(session).breaks) == size - 1
        return time.process_time() - start

    short = min(seconds(300) for _ in range(3))
    assert min(seconds(2_400) for _ in range(2)) < 20 * short
