"""Context: the window at each request, cache breaks with their causes, turns and limits."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.context_rows import at, called, only_break, said, told, usage
from tests.thread.state_rows import session_of
from tests.thread.test_requests import PARAMS, SHAPE, digest, request, shape
from tests.thread.test_thread_laws import ROWS
from tests.transcripts import Part, Pen, Row, call, chain, meta, prompt, reply, transcript

from threadline.errors import BadQuery, NotFound
from threadline.load import read
from threadline.model.context import BreakCause, Context
from threadline.model.places import Place
from threadline.model.session import Session
from threadline.thread import analyze_context

LONG = "claude-opus-5[1m]"


def test_a_message_is_one_request_with_its_best_row() -> None:
    """Rows that share an id count once, by the row with the greatest output; the time is the first row's."""
    early, late = usage(30_000, 500, output=1), usage(30_000, 500, output=90)
    rows = [row for row in transcript(reply("a", "b")) if isinstance(row, dict)]
    rows[0]["message"]["usage"], rows[1]["message"]["usage"] = late, early
    (one,) = told(*rows).windows
    assert (one.prompt, one.cache_read, one.cache_write_5m, one.uncached, one.output) == (30_502, 30_000, 500, 2, 90)
    assert (one.place.line, one.counted.line, one.number) == (2, 2, 1)
    assert one.hit_share == pytest.approx(30_000 / 30_502)


def test_a_gateways_empty_rows_give_way() -> None:
    """Rows of a message with all counters 0 are its rows all the same; the one that counts has the numbers."""
    rows = [row for row in transcript(reply("a", "b", "c")) if isinstance(row, dict)]
    for row, counts in zip(rows, (usage(0, input_=0, output=0), {}, usage(900, input_=100, output=7)), strict=True):
        row["message"]["usage"] = counts
    (one,) = told(*rows).windows
    assert (one.prompt, one.output, one.counted.line) == (1_000, 7, 4)


def test_a_colliding_id_is_two_requests() -> None:
    """A gateway gives the same id twice: where the prompts' counts differ, the requests do."""
    same = {"id": "msg_20251030084941"}
    found = told(said(100, 10, message=same), said(200, 10, message=same), said(200, 10, message=same))
    assert [window.prompt for window in found.windows] == [112, 212]


def test_what_no_model_said_is_no_request() -> None:
    """What the program wrote itself and notices of failed requests are no requests; missing usage is one of no size."""
    made_up = reply("No response requested.", message={"model": "<synthetic>"})
    failed = reply("API Error", isApiErrorMessage=True)
    silent = reply("x", message={"usage": None})
    found = told(made_up, failed, silent, said(0, 5_000))
    assert [(window.has_usage, window.prompt, window.hit_share) for window in found.windows] == [
        (False, 0, None),
        (True, 5_002, 0.0),
    ]
    assert [(turn.requests, turn.window) for turn in found.turns] == [(2, 5_002)]


def test_writes_that_the_split_leaves_out_are_short_ones() -> None:
    """Cache writes are split by lifetime; what the split does not tell is for five minutes."""
    split = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}
    counts = {"cache_creation_input_tokens": 100, "cache_creation": split}
    late = {"cache_creation_input_tokens": 0, "cache_creation": split}
    found = told(reply("a", message={"usage": counts}), reply("b", message={"usage": late}))
    assert [(window.cache_write_5m, window.cache_write_1h) for window in found.windows] == [(80, 20), (10, 20)]


# Causes of breaks


def test_the_first_request_is_no_break_and_a_good_one_neither() -> None:
    """Nothing could have been read by the first; one that reads nearly all that was there is no break."""
    found = told(said(0, 50_000), said(50_000, 900), said(47_000, 4_000), said(49_500, 100))
    assert found.breaks == ()
    assert found.hit_share == pytest.approx((50_000 + 47_000 + 49_500) / (50_002 + 50_902 + 51_002 + 49_602))


def test_a_small_shortfall_is_no_break() -> None:
    """Some hundreds of tokens less are the ordinary loss, however large their share."""
    assert told(said(0, 2_400), said(500, 2_000)).breaks == ()


def test_an_uncached_model_never_breaks() -> None:
    """Where nothing was ever written or read, nothing can break."""
    assert told(*(said(0, 0, input_=size) for size in (20_000, 30_000, 40_000))).breaks == ()


def test_another_model() -> None:
    """Each model has a cache of its own; that comes before anything else that may have happened."""
    found = only_break(said(0, 40_000, after=1), said(0, 41_000, after=200, message={"model": "claude-haiku-4-5"}))
    assert (found.cause, found.shortfall, found.rewritten) == (BreakCause.MODEL, 40_000, 40_000)
    assert "claude-haiku-4-5" in found.evidence


def test_a_compaction() -> None:
    """A boundary between two requests; what is sent anew is no more than what the smaller window holds."""
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    summary = prompt("Summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    found = only_break(said(0, 150_000, after=1), boundary, summary, said(16_000, 12_000, after=90))
    assert (found.cause, found.expected, found.shortfall) == (BreakCause.COMPACTION, 150_000, 134_000)
    assert found.rewritten == 12_002
    assert "line 3" in found.evidence


def test_old_results_that_were_blanked() -> None:
    """A micro-compaction changes what was sent before, and breaks the cache as well."""
    blanked = chain("system", subtype="microcompact_boundary", microcompactMetadata={"tokensSaved": 9})
    found = only_break(said(0, 90_000), blanked, said(16_000, 60_000))
    assert (found.cause, "blanked" in found.evidence) == (BreakCause.COMPACTION, True)


def test_a_rewind() -> None:
    """The next prompt hangs off an older entry: the conversation went back."""

    def back(pen: Pen) -> Any:
        pen.parent = first
        yield from prompt("no, rather")(pen)

    pen = Pen()
    rows = transcript(prompt("go"), said(0, 20_000), pen=pen)
    first = pen.parent
    rows += transcript(prompt("on"), said(20_000, 9_000), said(29_000, 9_000), back, said(20_000, 500), pen=pen)
    found = only_break(*rows[1:])
    assert (found.cause, found.expected, found.cache_read) == (BreakCause.BRANCH, 38_000, 20_000)
    assert "back by 2 requests" in found.evidence


@pytest.mark.parametrize(
    ("minutes", "hour", "cause"),
    [
        (6, False, BreakCause.IDLE),
        (4, False, BreakCause.UNKNOWN),
        (50, True, BreakCause.UNKNOWN),
        (61, True, BreakCause.IDLE),
    ],
)
def test_idle_past_the_lifetime(minutes: float, hour: bool, cause: BreakCause) -> None:
    """A gap longer than what was written is kept: five minutes or an hour, by what was written before."""
    found = only_break(said(0, 40_000, after=1, hour=hour), said(0, 40_000, after=1 + minutes))
    assert (found.cause, found.gap) == (cause, timedelta(minutes=minutes))


def test_the_lifetime_is_that_of_the_last_write() -> None:
    """A request that wrote nothing says nothing of the lifetime; one that says what it asked for does."""
    kept = only_break(said(0, 40_000, after=1, hour=True), said(40_000, after=2), said(0, 40_000, after=40))
    assert kept.cause is BreakCause.UNKNOWN
    asked = only_break(said(0, 40_000, after=1, promptCacheRequested="5m", hour=True), said(0, 40_000, after=40))
    assert asked.cause is BreakCause.IDLE


@pytest.mark.parametrize("moment", [None, "never", at(-50)])
def test_without_a_time_nobody_was_idle(moment: str | None) -> None:
    """Where a time is missing or runs backwards there is no gap, and no claim of one."""
    found = only_break(said(0, 40_000, after=1), said(0, 40_000, timestamp=moment))
    assert (found.cause, found.gap) == (BreakCause.UNKNOWN, None)


def test_tools_that_came_or_went() -> None:
    """A row that tells of other tools; a first list of them is no change."""
    first = chain("attachment", attachment={"type": "deferred_tools_delta", "addedNames": ["A"], "isInitial": True})
    assert only_break(said(0, 40_000), first, said(9_000, 31_000)).cause is BreakCause.UNKNOWN
    delta = chain("attachment", attachment={"type": "deferred_tools_delta", "addedNames": list("ABCDEF")})
    found = only_break(said(0, 40_000), delta, said(9_000, 31_000))
    assert found.cause is BreakCause.TOOLS
    assert found.evidence.endswith("added: A, B, C, D and 2 more")


def test_requests_as_they_were_sent_tell_of_tools_and_settings() -> None:
    """Where the transcript holds the requests, their shapes and parameters are compared."""
    other = {**SHAPE, "tools": [{"name": "Read"}]}
    thinking = {**PARAMS, "thinking": {"type": "disabled"}}

    def asked(**fields: Any) -> list[Part]:
        first: list[Part] = [shape(), shape(other), request("r1", []), said(0, 40_000, requestRef="r1")]
        return [*first, request("r2", [], **fields), said(0, 40_000, requestRef="r2")]

    tools = only_break(*asked(shapeHash=digest(other)))
    assert (tools.cause, tools.evidence.split("; ")[1:]) == (BreakCause.TOOLS, ["added: Read", "removed: Bash"])
    assert only_break(*asked(params=thinking)).cause is BreakCause.SETTINGS
    assert only_break(*asked()).cause is BreakCause.UNKNOWN


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"effort": "low"}, {"effort": "high"}, "effort was low"),
        ({"message": {"usage": {**usage(0, 40_000), "speed": "fast"}}}, {}, None),
    ],
)
def test_other_settings(before: Row, after: Row, word: str | None) -> None:
    """Another effort is a cause; what only one of the two tells is none."""
    rows = reply("a", **{"message": {"usage": usage(0, 40_000)}, **before})
    found = only_break(rows, reply("b", message={"usage": usage(0, 40_000)}, **after))
    assert found.cause is (BreakCause.SETTINGS if word else BreakCause.UNKNOWN)
    assert (word or "does not show why") in found.evidence


def test_other_thinking() -> None:
    """Prompts that ask for more or less thinking."""
    less, more = ({"thinkingMetadata": {"maxThinkingTokens": size}} for size in (0, 31_999))
    found = only_break(prompt("a", **less), said(0, 40_000), prompt("b", **more), said(9_000, 31_000))
    assert (found.cause, "31999" in found.evidence) == (BreakCause.SETTINGS, True)


def test_another_version_or_a_new_start() -> None:
    """Claude Code was restarted: another version, or a hook that runs when a session is resumed."""
    newer = only_break(said(0, 40_000), said(9_000, 31_000, version="2.1.240"))
    assert (newer.cause, "2.1.240" in newer.evidence) == (BreakCause.RESTART, True)
    hook = {"type": "hook_success", "hookName": "SessionStart:resume", "hookEvent": "SessionStart", "content": ""}
    again = only_break(said(0, 40_000), chain("attachment", attachment=hook), said(9_000, 31_000))
    assert (again.cause, "resumed" in again.evidence) == (BreakCause.RESTART, True)


# Turns and limits


def test_turns_hold_their_requests() -> None:
    """Each turn has its window at the end, the largest, what it grew by, and its share of cached tokens."""
    found = told(
        called(0, 20_000, "Bash", "ls", "x"),
        said(20_000, 5_000),
        prompt("on"),
        said(0, 25_000, after=30),
        prompt("<command-name>/cost</command-name>"),
    )
    assert [(turn.number, turn.requests, turn.window, turn.largest, turn.growth) for turn in found.turns] == [
        (1, 2, 25_002, 25_002, 25_002),
        (2, 1, 25_002, 25_002, 0),
        (3, 0, None, None, None),
    ]
    assert found.turns[0].hit_share == pytest.approx(20_000 / 45_004)
    assert [(turn.rewritten, [each.cause for each in turn.breaks]) for turn in found.turns] == [
        (0, []),
        (25_000, [BreakCause.IDLE]),
        (0, []),
    ]
    assert found.turns[0].share == pytest.approx(25_002 / 200_000)


@pytest.mark.parametrize(
    ("parts", "limit", "word"),
    [
        ([said(0, 9_000)], 200_000, "no evidence"),
        ([said(0, 200_001)], 1_000_000, "request 1"),
        ([said(0, 3_000_000)], 3_000_002, "request 1"),
        ([said(0, 9_000, message={"model": LONG})], 1_000_000, "[1m]"),
        ([said(0, 9_000, requestedModel=LONG)], 1_000_000, "[1m]"),
        ([said(0, 9_000), meta("cost-state", modelUsage={"claude-sonnet-4-5-20250929[1m]": {}})], 1_000_000, "totals"),
        (
            [said(0, 9_000), meta("cost-state", modelUsage={"claude-sonnet-4-5-20250929": {"contextWindow": 128_000}})],
            128_000,
            "totals",
        ),
    ],
)
def test_the_limit_and_why(parts: list[Part], limit: int, word: str) -> None:
    """200,000 tokens, unless a larger prompt was sent or the transcript names another limit."""
    found = told(*parts)
    assert found.limit is not None
    assert (found.limit.tokens, word in found.limit.why) == (limit, True)


def test_agents_have_their_own() -> None:
    """An agent's requests are its own; a place in its transcript asks for them, and its name does."""
    session = session_of(called(0, 9_000, "Agent", "look", "done"), agents={"a1": [prompt("look"), said(0, 3_000)]})
    assert [window.prompt for window in analyze_context(session).windows] == [9_002]
    mine = analyze_context(session, "a1")
    assert (mine.agent, mine.window) == ("a1", 3_002)
    assert analyze_context(session, at=Place("agent-a1.jsonl", 2)) == mine
    with pytest.raises(NotFound, match="no agent 'a2'"):
        analyze_context(session, "a2")
    with pytest.raises(NotFound, match="main agent"):
        analyze_context(session, "a1", Place(f"{session.id}.jsonl", 2))


def test_wrong_questions_are_sentences() -> None:
    """A place or a turn that is not there, and both at once."""
    session = session_of(said(0, 9_000))
    with pytest.raises(NotFound, match="turns are 1 to 1"):
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


def _with_usage(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw(ROWS)
    for row in rows:
        if row["type"] == "assistant":
            row["message"] = {**row["message"], "usage": draw(_USAGE)}
    return rows


def _check(found: Context, session: Session) -> None:
    assert sum(one.tokens for one in found.filling) == found.window
    assert all(one.tokens > 0 and 0 <= one.measured <= one.tokens for one in found.filling)
    hits = [*(window.hit_share for window in found.windows), *(turn.hit_share for turn in found.turns)]
    assert all(hit is None or 0 <= hit <= 1 for hit in hits)
    assert [window.number for window in found.windows] == list(range(1, len(found.windows) + 1))
    agent = session.agent(found.agent)
    assert agent is not None
    assert [turn.number for turn in found.turns] == [turn.number for turn in agent.turns]
    assert sum(turn.requests for turn in found.turns) == len(found.windows)
    assert [one for turn in found.turns for one in turn.breaks] == list(found.breaks)
    assert all(0 <= one.rewritten <= one.shortfall <= one.expected for one in found.breaks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to write transcripts into."""
    return tmp_path_factory.mktemp("context")


@given(rows=st.composite(_with_usage)(), data=st.data())
def test_any_rows_have_a_context(folder: Path, rows: list[dict[str, Any]], data: st.DataObject) -> None:
    """Whatever the graph and the usage: amounts sum to the window, each request is in one turn, the same each time."""
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = read(path, continued=False)
    for agent in (session.main, *session.agents):
        _check(analyze_context(session, agent.id), session)
        assert analyze_context(session, agent.id) == analyze_context(session, agent.id)
        if agent.entries:
            place = data.draw(st.sampled_from(agent.entries)).place
            _check(analyze_context(session, at=place), session)
        if agent.turns:
            _check(analyze_context(session, agent.id, turn=data.draw(st.sampled_from(agent.turns)).number), session)


@pytest.mark.slow
def test_time_grows_with_the_session() -> None:
    """Four times the requests, each a cache break, take no more than some ten times as long."""

    def seconds(size: int) -> float:
        parts = [call("Bash", "ls", "x", message={"usage": usage(0, 9_000)}) for _ in range(size)]
        session = session_of(*parts)
        start = time.perf_counter()
        assert len(analyze_context(session).breaks) == size - 1
        return time.perf_counter() - start

    short = min(seconds(300) for _ in range(3))
    assert min(seconds(1_200) for _ in range(2)) < 12 * short
