"""What fills a window: categories, what is measured, what is an estimate, and what left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.context_rows import amounts, called, measured, said, told, usage
from tests.thread.state_rows import session_of
from tests.transcripts import Row, call, chain, prompt, reply

from threadline.model.context import ContextCategory, ContextWindow
from threadline.model.places import Place
from threadline.thread import analyze_context
from threadline.thread.context.filling import (
    IMAGE_TOKENS,
    Piece,
    WindowFiller,
    WindowStep,
    estimate_tokens,
    share_out,
    text_bytes,
)

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 90_000}}


def test_the_first_prompt_is_system_and_what_is_seen() -> None:
    """What the first request sent beyond what the transcript shows is the system prompt and the tools."""
    found = told(prompt("w" * 3_800), said(0, 20_000, input_=0))
    assert (found.window, found.measured) == (20_000, True)
    assert amounts(found) == {
        "system": 20_000 - 1_000 - estimate_tokens("go", 3.8),
        "prompt": 1_000 + estimate_tokens("go", 3.8),
    }
    assert not measured(found, ContextCategory.SYSTEM)


def test_a_result_alone_is_measured() -> None:
    """A call and its result: the reply is as large as its output, the rest of the difference is the result."""
    text = "line\n" * 400
    found = told(called(0, 20_000, "Read", "/a", text, output=60), said(20_000, 760, input_=2))
    assert amounts(found)["call"] == 60
    assert amounts(found)["result:Read"] == 700
    assert measured(found, ContextCategory.CALL)
    assert measured(found, ContextCategory.RESULT, "Read")


def test_several_things_at_once_are_estimates() -> None:
    """Results of two tools that came together share their difference in proportion, to the token."""
    uses: list[Row] = [{"type": "tool_use", "id": f"t{name}", "name": name, "input": {}} for name in ("Bash", "Grep")]
    results = [
        prompt([{"type": "tool_result", "tool_use_id": f"t{name}", "content": "x" * size}])
        for name, size in (("Bash", 2_800), ("Grep", 8_400))
    ]
    found = told(reply(*uses, message={"usage": usage(0, 20_000, output=40)}), *results, said(20_000, 4_041))
    assert amounts(found)["call"] == 40
    assert (amounts(found)["result:Bash"], amounts(found)["result:Grep"]) == (1_000, 3_001)
    assert not measured(found, ContextCategory.RESULT, "Grep")


def test_a_placeholder_is_not_taken_for_a_size() -> None:
    """Old versions write an output of 1: then reply and result share their difference."""
    found = told(called(0, 20_000, "Bash", "e" * 2_800, "x" * 2_800, output=1), said(20_000, 2_000))
    assert amounts(found)["call"] == pytest.approx(1_000, rel=0.1)
    assert not measured(found, ContextCategory.RESULT, "Bash")


def test_what_the_transcript_does_not_show_is_said_so() -> None:
    """A difference far larger than what was added: the rest is not in the transcript."""
    found = told(called(0, 20_000, "Bash", "ls", "x" * 280, output=20), said(20_000, 9_000))
    assert amounts(found)["result:Bash"] == 400  # twice the estimate, and a reminder's size
    assert amounts(found)["unseen"] == 9_000 - 20 - 400
    nothing = told(said(0, 9_000, output=0), said(9_000, 700, "x", output=0))
    assert sum(amounts(nothing).values()) == nothing.window


def test_injected_text_has_its_kind() -> None:
    """Attachments, reminders, notices and skills are told apart from prompts, and by kind."""
    found = told(
        prompt("<system-reminder>Be brief.</system-reminder>Sort the shelf"),
        prompt("Base directory for this skill: /s\n" + "w" * 900, isMeta=True),
        prompt("<task-notification>done</task-notification>"),
        chain("attachment", attachment={"type": "nested_memory", "path": "/w/CLAUDE.md", "content": "m" * 900}),
        chain("attachment", attachment={"type": "queued_command", "prompt": "and dust it", "commandMode": "prompt"}),
        chain("attachment", attachment={"type": "never_seen", "text": "t" * 280}),
        chain("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["s" * 90_000]}),
        chain("attachment", attachment={"type": "hook_success", "hookEvent": "PostToolUse", "stdout": "o" * 900}),
        chain("attachment", attachment={"type": "date", "date": "x"}, rendered=[{"content": "d" * 560}]),
        said(0, 50_000),
    )
    names = {one.name for one in found.filling if one.category is ContextCategory.INJECTED}
    assert names == {"system-reminder", "skill", "task-notification", "nested_memory", "never_seen", "date"}
    assert amounts(found)["injected:date"] == 200
    assert amounts(found)["prompt"] == sum(estimate_tokens(one, 3.8) for one in ("go", "Sort the shelf", "and dust it"))


def test_an_image_is_a_fixed_estimate() -> None:
    """The bytes of a picture say nothing of its tokens, wherever it stands."""
    shot = call("Read", "/a.png", [{"type": "text", "text": "seen"}, PICTURE], message={"usage": usage(0, 20_000)})
    found = told(prompt([PICTURE, {"type": "text", "text": "look"}]), shot, said(20_000, 1_600, output=9))
    assert IMAGE_TOKENS < amounts(found)["image"] <= 2 * IMAGE_TOKENS + 200
    assert amounts(found)["result:Read"] < 50


def test_a_compaction_begins_anew() -> None:
    """After a compaction only the summary, what stays and what came since fill the window."""
    pre = [called(0, 90_000, "Bash", "ls", "x" * 9_000), said(90_000, 4_000)]
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    summary = prompt("s" * 3_800, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    found = told(*pre, boundary, summary, said(16_000, 4_000, input_=0))
    assert amounts(found) == {"system": 19_000, "summary": 1_000}
    early = told(*pre, boundary, summary, said(16_000, 4_000), at=Place(".jsonl", 4))
    assert (early.window, "result:Bash" in amounts(early), "summary" in amounts(early)) == (94_002, True, False)


def test_what_a_compaction_kept_stays() -> None:
    """Entries that a boundary names as preserved are in the window after it."""
    session = session_of(prompt("k" * 3_800), said(0, 90_000))
    kept = session.main.entries[1].uuid
    told_of = {"trigger": "auto", "preservedMessages": {"anchorUuid": "x", "uuids": [kept]}}
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata=told_of)
    summary = prompt("s" * 3_800, isCompactSummary=True)
    found = told(prompt("k" * 3_800), said(0, 90_000), boundary, summary, said(16_000, 4_000, input_=0))
    assert amounts(found) == {"system": 18_000, "summary": 1_000, "prompt": 1_000}


def test_a_window_that_shrinks_loses_thinking_first() -> None:
    """Thinking of earlier turns leaves the window: nothing else gets smaller, and the loss is told."""
    thought = {"type": "thinking", "thinking": "t" * 11_400, "signature": ""}
    more = [called(24_000, 100, "Read", "/b", "y" * 2_800, output=20), said(24_100, 1_080), prompt("on")]
    begin = [reply(thought, "ok", message={"usage": usage(0, 20_000, output=3_100)}), prompt("and"), *more]
    before, after = told(*begin), told(*begin, said(16_000, 7_300))
    assert amounts(before)["thinking"] == pytest.approx(3_000, rel=0.5)
    assert amounts(after)["result:Read"] == amounts(before)["result:Read"]
    assert amounts(after).get("thinking", 0) < amounts(before)["thinking"]
    assert after.dropped > 0
    assert sum(amounts(after).values()) == after.window == 23_302


def test_a_window_that_nearly_vanishes_still_sums() -> None:
    """However much is gone, nothing becomes less than nothing."""
    found = told(called(0, 90_000, "Bash", "ls", "x" * 9_000), said(90_000, 4_000), prompt("on"), said(0, 40, input_=0))
    assert sum(amounts(found).values()) == found.window == 40
    assert all(tokens > 0 for tokens in amounts(found).values())


def test_without_usage_all_is_an_estimate() -> None:
    """Where no usage tells any size, the window is the sum of what is seen, and is said to be an estimate."""
    found = told(called(0, 0, "Bash", "ls", "x" * 2_800), reply("ok", message={"usage": None}), turn=1)
    zero = told(reply("w" * 3_800, message={"usage": usage(0, 0, input_=0, output=0)}))
    assert found.measured
    assert (zero.measured, zero.window, amounts(zero)["reply"]) == (False, 1_000 + estimate_tokens("go", 3.8), 1_000)
    assert "system" not in amounts(zero)


def test_estimates_follow_what_the_session_measures() -> None:
    """A model that counts half as much again: what is seen of the first prompt is scaled like all that came later."""
    rows: list[Any] = [prompt("w" * 3_800)]
    size = 20_000
    for _ in range(4):
        rows.append(called(size, 0, "Bash", "ls", "x" * 2_800, output=20))
        size += 1_520
    found = told(*rows, said(size, 0))
    assert amounts(found)["prompt"] == pytest.approx(1_500, rel=0.03)


def test_at_a_place_or_a_turn() -> None:
    """The window of the last request at or before a place, or of a turn's last; also on a branch that was left."""
    parts = [called(0, 20_000, "Read", "/a", "x" * 900), said(20_000, 400), prompt("on"), said(20_400, 90)]
    session = session_of(*parts)
    assert analyze_context(session).window == 20_492
    assert [analyze_context(session, turn=number).window for number in (1, 2)] == [20_402, 20_492]
    assert [analyze_context(session, at=Place(".jsonl", line)).window for line in (2, 3, 4, 5)] == [
        20_002,
        20_002,
        20_402,
        20_402,
    ]
    start = analyze_context(session, at=Place(".jsonl", 1))
    assert (start.window, start.measured, start.place) == (estimate_tokens("go", 3.8), False, None)


def test_a_subagents_prompt_is_one() -> None:
    """What an agent was asked is a prompt in its window, though no person wrote it."""
    session = session_of(
        called(0, 9_000, "Agent", "x", "y"), agents={"a1": [prompt("w" * 3_800), said(0, 3_000, input_=0)]}
    )
    assert amounts(analyze_context(session, "a1")) == {"system": 2_000, "prompt": 1_000}


# Laws

_KEYS = st.tuples(st.sampled_from(list(ContextCategory)), st.sampled_from([None, "a", "b"]))


@given(weights=st.dictionaries(_KEYS, st.integers(1, 2**40), min_size=1), tokens=st.integers(0, 2**54))
def test_shares_sum_to_what_is_shared(weights: dict[Any, int], tokens: int) -> None:
    """Whole tokens, none less than nothing, each within one of its exact share."""
    given_out = share_out(weights, tokens)
    assert sum(given_out.values()) == tokens
    total = sum(weights.values())
    assert all(abs(part * total - tokens * weights[key]) < total for key, part in given_out.items())


_PIECES = st.lists(
    st.builds(
        Piece, st.sampled_from(list(ContextCategory)), st.none() | st.just("x"), st.integers(0, 9_000), st.booleans()
    ),
    max_size=5,
)


@given(
    steps=st.lists(st.tuples(st.integers(1, 300_000), st.integers(0, 9_000), _PIECES), min_size=1),
    scale=st.floats(0.5, 2),
)
def test_amounts_always_sum_to_the_window(steps: list[tuple[int, int, list[Piece]]], scale: float) -> None:
    """Whatever comes and goes, what fills the window sums to its size, and nothing is less than nothing."""
    filler = WindowFiller(scale)
    for number, (size, output, pieces) in enumerate(steps, 1):
        place = Place("a.jsonl", number)
        filler.step(WindowStep(ContextWindow(number, None, place, place, 1, uncached=size, output=output), pieces))
        filling = filler.filling()
        assert sum(one.tokens for one in filling) == size
        assert all(one.tokens > 0 and 0 <= one.measured <= one.tokens for one in filling)


@pytest.mark.slow
def test_a_value_is_measured_without_recursion() -> None:
    """However deep a value is nested; characters beyond ASCII count by their bytes."""
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert text_bytes(deep) == 1
    assert (text_bytes("字"), text_bytes("\ud800"), text_bytes({"a": [1, None, "bc"]})) == (3, 3, 4 + 8 + 2)
