"""Tests of what fills a window: categories, what is measured or estimated, and what was dropped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.context_rows import amounts, cached_call, cached_reply, context_of, is_measured, usage
from tests.thread.state_rows import session_of
from tests.transcripts import SESSION, Row, call, chain, prompt, reply

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


def test_first_request_contains_the_system_prompt() -> None:
    """What it sent beyond what the transcript shows is the system prompt and the tools."""
    context = context_of(prompt("w" * 3_800), cached_reply(0, 20_000, input_=0))
    assert (context.window, context.measured) == (20_000, True)
    assert amounts(context) == {
        "system": 20_000 - 1_000 - estimate_tokens("go", 3.8),
        "prompt": 1_000 + estimate_tokens("go", 3.8),
    }
    assert not is_measured(context, ContextCategory.SYSTEM)


def test_single_result_is_measured() -> None:
    """The reply has the size of its output, and the rest of the difference is the result."""
    text = "line\n" * 400
    context = context_of(cached_call(0, 20_000, "Read", "/a", text, output=60), cached_reply(20_000, 760, input_=2))
    assert amounts(context)["call"] == 60
    assert amounts(context)["result:Read"] == 700
    assert is_measured(context, ContextCategory.CALL)
    assert is_measured(context, ContextCategory.RESULT, "Read")


def test_several_results_at_once_are_estimated() -> None:
    """Results of two tools share their difference in proportion, to the token."""
    uses: list[Row] = [{"type": "tool_use", "id": f"t{name}", "name": name, "input": {}} for name in ("Bash", "Grep")]
    results = [
        prompt([{"type": "tool_result", "tool_use_id": f"t{name}", "content": "x" * size}])
        for name, size in (("Bash", 2_800), ("Grep", 8_400))
    ]
    context = context_of(
        reply(*uses, message={"usage": usage(0, 20_000, output=40)}), *results, cached_reply(20_000, 4_041)
    )
    assert amounts(context)["call"] == 40
    assert (amounts(context)["result:Bash"], amounts(context)["result:Grep"]) == (1_000, 3_001)
    assert not is_measured(context, ContextCategory.RESULT, "Grep")


def test_placeholder_output_is_not_a_size() -> None:
    """Old versions write an output of 1. Then reply and result share their difference."""
    context = context_of(
        cached_call(0, 20_000, "Bash", "e" * 2_800, "x" * 2_800, output=1), cached_reply(20_000, 2_000)
    )
    assert amounts(context)["call"] == pytest.approx(1_000, rel=0.1)
    assert not is_measured(context, ContextCategory.RESULT, "Bash")


def test_size_that_the_transcript_does_not_explain_is_unseen() -> None:
    """The difference is far larger than what was added."""
    context = context_of(cached_call(0, 20_000, "Bash", "ls", "x" * 280, output=20), cached_reply(20_000, 9_000))
    assert amounts(context)["result:Bash"] == 400  # twice the estimate, and a reminder's size
    assert amounts(context)["unseen"] == 9_000 - 20 - 400
    empty = context_of(cached_reply(0, 9_000, output=0), cached_reply(9_000, 700, "x", output=0))
    assert sum(amounts(empty).values()) == empty.window


def test_injected_text_has_a_kind() -> None:
    """Attachments, reminders, notices and skills are distinguished from prompts."""
    context = context_of(
        prompt("<system-reminder>Be brief.</system-reminder>Sort the shelf"),
        prompt("Base directory for this skill: /s\n" + "w" * 900, isMeta=True),
        prompt("<task-notification>done</task-notification>"),
        chain("attachment", attachment={"type": "nested_memory", "path": "/w/CLAUDE.md", "content": "m" * 900}),
        chain("attachment", attachment={"type": "queued_command", "prompt": "and dust it", "commandMode": "prompt"}),
        chain("attachment", attachment={"type": "never_seen", "text": "t" * 280}),
        chain("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["s" * 90_000]}),
        chain("attachment", attachment={"type": "hook_success", "hookEvent": "PostToolUse", "stdout": "o" * 900}),
        chain("attachment", attachment={"type": "date", "date": "x"}, rendered=[{"content": "d" * 760}]),
        chain("attachment", attachment={"type": "edited_text_file"}, rendered=[{"content": "d" * 560}]),
        cached_reply(0, 50_000),
    )
    names = {part.name for part in context.filling if part.category is ContextCategory.INJECTED}
    assert names == {"system-reminder", "skill", "task-notification", "nested_memory", "never_seen", "date"} | {
        "edited_text_file"
    }
    assert (amounts(context)["injected:date"], amounts(context)["injected:edited_text_file"]) == (200, 200)
    assert amounts(context)["prompt"] == sum(
        estimate_tokens(part, 3.8) for part in ("go", "Sort the shelf", "and dust it")
    )


def test_image_has_a_fixed_estimate() -> None:
    """Its bytes do not determine its tokens, wherever it is."""
    shot = call("Read", "/a.png", [{"type": "text", "text": "seen"}, PICTURE], message={"usage": usage(0, 20_000)})
    context = context_of(
        prompt([PICTURE, {"type": "text", "text": "look"}]), shot, cached_reply(20_000, 1_600, output=9)
    )
    assert IMAGE_TOKENS < amounts(context)["image"] <= 2 * IMAGE_TOKENS + 200
    assert amounts(context)["result:Read"] < 50


def test_compaction_empties_the_window() -> None:
    """Afterwards, only the summary, what was preserved and what came later fill it."""
    pre = [cached_call(0, 90_000, "Bash", "ls", "x" * 9_000), cached_reply(90_000, 4_000)]
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    summary = prompt("s" * 3_800, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    context = context_of(*pre, boundary, summary, cached_reply(16_000, 4_000, input_=0))
    assert amounts(context) == {"system": 19_000, "summary": 1_000}
    before = context_of(*pre, boundary, summary, cached_reply(16_000, 4_000), at=Place(f"{SESSION}.jsonl", 4))
    assert (before.window, "result:Bash" in amounts(before), "summary" in amounts(before)) == (94_002, True, False)


def test_preserved_entries_stay_after_a_compaction() -> None:
    """The boundary names them."""
    session = session_of(prompt("k" * 3_800), cached_reply(0, 90_000))
    preserved = session.main.entries[1].uuid
    metadata = {"trigger": "auto", "preservedMessages": {"anchorUuid": "x", "uuids": [preserved]}}
    boundary = chain("system", subtype="compact_boundary", parentUuid=None, compactMetadata=metadata)
    summary = prompt("s" * 3_800, isCompactSummary=True)
    context = context_of(
        prompt("k" * 3_800), cached_reply(0, 90_000), boundary, summary, cached_reply(16_000, 4_000, input_=0)
    )
    assert amounts(context) == {"system": 18_000, "summary": 1_000, "prompt": 1_000}


def test_shrinking_window_loses_thinking_first() -> None:
    """Thinking of earlier turns is dropped, nothing else gets smaller, and the loss is reported."""
    thought = {"type": "thinking", "thinking": "t" * 11_400, "signature": ""}
    more = [cached_call(24_000, 100, "Read", "/b", "y" * 2_800, output=20), cached_reply(24_100, 1_080), prompt("on")]
    begin = [reply(thought, "ok", message={"usage": usage(0, 20_000, output=3_100)}), prompt("and"), *more]
    before, after = context_of(*begin), context_of(*begin, cached_reply(16_000, 7_300))
    assert amounts(before)["thinking"] == pytest.approx(3_000, rel=0.5)
    assert amounts(after)["result:Read"] == amounts(before)["result:Read"]
    assert amounts(after).get("thinking", 0) < amounts(before)["thinking"]
    assert after.dropped > 0
    assert sum(amounts(after).values()) == after.window == 23_302


def test_nearly_empty_window_still_sums() -> None:
    """No amount becomes negative."""
    context = context_of(
        cached_call(0, 90_000, "Bash", "ls", "x" * 9_000),
        cached_reply(90_000, 4_000),
        prompt("on"),
        cached_reply(0, 40, input_=0),
    )
    assert sum(amounts(context).values()) == context.window == 40
    assert all(tokens > 0 for tokens in amounts(context).values())


def test_everything_is_estimated_without_usage() -> None:
    """The window is the sum of what is visible, and not measured."""
    context = context_of(cached_call(0, 0, "Bash", "ls", "x" * 2_800), reply("ok", message={"usage": None}), turn=1)
    estimated = context_of(reply("w" * 3_800, message={"usage": usage(0, 0, input_=0, output=0)}))
    assert context.measured
    assert (estimated.measured, estimated.window, amounts(estimated)["reply"]) == (
        False,
        1_000 + estimate_tokens("go", 3.8),
        1_000,
    )
    assert "system" not in amounts(estimated)


def test_estimates_are_scaled_by_measurements() -> None:
    """If a model counts half as much again, the first prompt is scaled like everything after it."""
    rows: list[Any] = [prompt("w" * 3_800)]
    size = 20_000
    for _ in range(4):
        rows.append(cached_call(size, 0, "Bash", "ls", "x" * 2_800, output=20))
        size += 1_520
    context = context_of(*rows, cached_reply(size, 0))
    assert amounts(context)["prompt"] == pytest.approx(1_500, rel=0.03)


def test_window_at_a_place_or_turn() -> None:
    """It is that of the last request at or before the place, or of the turn's last request."""
    parts = [
        cached_call(0, 20_000, "Read", "/a", "x" * 900),
        cached_reply(20_000, 400),
        prompt("on"),
        cached_reply(20_400, 90),
    ]
    session = session_of(*parts)
    assert analyze_context(session).window == 20_492
    assert [analyze_context(session, turn=number).window for number in (1, 2)] == [20_402, 20_492]
    assert [analyze_context(session, at=Place(f"{SESSION}.jsonl", line)).window for line in (2, 3, 4, 5)] == [
        20_002,
        20_002,
        20_402,
        20_402,
    ]
    start = analyze_context(session, at=Place(f"{SESSION}.jsonl", 1))
    assert (start.window, start.measured, start.place) == (estimate_tokens("go", 3.8), False, None)


def test_agents_prompt_is_a_prompt() -> None:
    """In its window, although no person wrote it."""
    session = session_of(
        cached_call(0, 9_000, "Agent", "x", "y"), agents={"a1": [prompt("w" * 3_800), cached_reply(0, 3_000, input_=0)]}
    )
    assert amounts(analyze_context(session, "a1")) == {"system": 2_000, "prompt": 1_000}


# Laws


@given(weights=st.lists(st.integers(1, 2**40), min_size=1), tokens=st.integers(0, 2**54))
def test_shares_sum_to_the_total(weights: list[int], tokens: int) -> None:
    """They are whole, non-negative tokens, each within one of its exact share."""
    shares = share_out(weights, tokens)
    assert sum(shares) == tokens
    total = sum(weights)
    assert all(abs(part * total - tokens * weight) < total for part, weight in zip(shares, weights, strict=True))


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
    """Whatever is added or dropped, and no amount is negative."""
    filler = WindowFiller(scale)
    for number, (size, output, pieces) in enumerate(steps, 1):
        place = Place("a.jsonl", number)
        filler.step(WindowStep(ContextWindow(number, None, place, place, 1, uncached=size, output=output), pieces))
        filling = filler.filling()
        assert sum(part.tokens for part in filling) == size
        assert all(part.tokens > 0 and 0 <= part.measured <= part.tokens for part in filling)


@pytest.mark.slow
def test_size_of_a_deep_value_needs_no_recursion() -> None:
    """Characters outside ASCII count by their bytes."""
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert text_bytes(deep) == 1
    assert (text_bytes("字"), text_bytes("\ud800"), text_bytes({"a": [1, None, "bc"]})) == (3, 3, 4 + 8 + 2)
