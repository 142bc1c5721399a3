"""Calls: each tool use once, with its result or the reason why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each
from tests.thread.rows import read, result, told, use
from tests.transcripts import Row, call, chain, meta, prompt, reply, transcript

from threadline.model.calls import Call, Outcome
from threadline.model.results import ShellResult
from threadline.thread import find_acts, find_calls, find_notifications, split_into_turns
from threadline.thread.calls import exit_code

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
STOP = REJECTED + "STOP what you are doing and wait for the user to tell you how to proceed."
SAID = REJECTED + "To tell you how to proceed, the user said:\nmain is opened elsewhere"
NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention to it."


def one(tool: str, content: Any, own: Any = None, *, error: bool | None = None, **fields: Any) -> Call:
    """The call of a transcript with one result."""
    block = result(content) if error is None else result(content, is_error=error)
    row = {} if own is None else {"toolUseResult": own}
    (made,) = find_calls(told(reply(use(tool)), prompt([block], **row, **fields)))
    return made


@for_each(
    "made, outcome, evidence",
    [
        (one("Bash", "a", {"stdout": "a", "stderr": "", "interrupted": False}), Outcome.OK, "a result"),
        (one("Bash", "Error: no, all is well", {"stdout": "Error: no"}, error=False), Outcome.OK, "a result"),
        (one("Bash", "cat: <tool_use_error>", {"stdout": "<tool_use_error>"}), Outcome.OK, "a result"),
        (one("Read", "Error: one thing in the file"), Outcome.OK, "a result"),
        (one("Bash", "Exit code 1", "Error: Exit code 1", error=True), Outcome.ERROR, "is_error"),
        (one("Read", "<tool_use_error>no file</tool_use_error>"), Outcome.ERROR, "<tool_use_error>"),
        (
            one("Read", "File does not exist.", "Error: File does not exist."),
            Outcome.ERROR,
            "a string in place of its result",
        ),
        (one("LS", "- /a", "- /a"), Outcome.OK, "a result"),
        (one("TodoRead", "[]", "[]"), Outcome.OK, "a result"),
        (one("ExitPlanMode", "User has approved your plan.", "approved"), Outcome.OK, "a result"),
        (one("mcp__x__y", '{"n":1}', '{"n":1}'), Outcome.OK, "a result"),
        (one("TaskUpdate", "?", {"success": False, "taskId": "9"}), Outcome.ERROR, "success is false in its result"),
        (one("Bash", "", {"stdout": "", "interrupted": True}), Outcome.INTERRUPTED, "interrupted in its result"),
        (one("Bash", "", {"stdout": "", "timedOutAfterMs": 5}), Outcome.INTERRUPTED, "timedOutAfterMs in its result"),
        (
            one("Task", "", {"totalTokens": 1, "wasInterrupted": True}),
            Outcome.INTERRUPTED,
            "wasInterrupted in its result",
        ),
        (one("Bash", STOP, "User rejected tool use", error=True), Outcome.DENIED, None),
        (one("Bash", STOP), Outcome.DENIED, None),
        (one("Bash", "no", "Error: no", error=True, toolDenialKind="user-rejected"), Outcome.DENIED, None),
        (one("Bash", "?", "?", error=True, toolDenialKind="interrupted"), Outcome.INTERRUPTED, None),
        (one("Bash", "?", error=True, permissionDecision={"decision": "reject"}), Outcome.DENIED, None),
        (
            one("Write", "Claude requested permissions to write to /a, but …", "Error: …", error=True),
            Outcome.DENIED,
            None,
        ),
        (one("Bash", "PreToolUse:Bash hook error: [x]: no", "Error: …", error=True), Outcome.DENIED, None),
        (one("Bash", "[Request interrupted by user for tool use]", error=True), Outcome.INTERRUPTED, None),
        (one("Bash", STOP, {"stdout": STOP, "stderr": ""}), Outcome.OK, "a result"),
    ],
)
def test_outcome_rests_on_evidence(made: Call, outcome: Outcome, evidence: str | None) -> None:
    """How a call ended is told by flags, by the shape of its result and by the program's own sentences."""
    assert made.outcome is outcome
    assert evidence is None or made.evidence == evidence
    assert made.evidence


def test_feedback_is_the_persons_own_words() -> None:
    """The words after "the user said:" are kept, without the note that newer versions add; a button says nothing."""
    assert one("Bash", SAID, "Error: …", error=True).feedback == "main is opened elsewhere"
    assert one("Bash", SAID + NOTE, "Error: …", error=True).feedback == "main is opened elsewhere"
    assert one("Bash", STOP, error=True).feedback is None
    assert one("Bash", STOP, error=True, userFeedback="later").feedback == "later"
    assert one("Bash", "the user said: hi").feedback is None
    clarify = REJECTED + "To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n…"
    assert one("AskUserQuestion", clarify, error=True).feedback is None


INTERRUPT = prompt([{"type": "text", "text": "[Request interrupted by user for tool use]"}])


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        ([], Outcome.PENDING),
        ([meta("mode", mode="plan"), chain("system", subtype="turn_duration")], Outcome.PENDING),
        ([INTERRUPT], Outcome.INTERRUPTED),
        ([INTERRUPT, prompt("again")], Outcome.INTERRUPTED),
        ([prompt("x", interruptedMessageId="msg_1")], Outcome.INTERRUPTED),
        ([prompt("again")], Outcome.LOST),
        ([reply("so")], Outcome.LOST),
    ],
)
def test_a_call_without_a_result_says_why(after: list[Any], outcome: Outcome) -> None:
    """Pending while nothing follows, interrupted when an interrupt does, lost when the conversation went on."""
    (made,) = find_calls(told(reply("I look", use("Bash")), *after))
    assert (made.outcome, made.answer, made.output, made.result) == (outcome, None, "", None)


def test_parallel_calls_do_not_hide_each_others_end() -> None:
    """Of two calls of one reply, one has a result: the other is pending, or interrupted, but not lost."""
    parts = [reply(use("Bash", id_="a"), use("Read", id_="b")), prompt([result("x", "b")])]
    assert [call.outcome for call in find_calls(told(*parts))] == [Outcome.PENDING, Outcome.OK]
    assert [call.outcome for call in find_calls(told(*parts, INTERRUPT))] == [Outcome.INTERRUPTED, Outcome.OK]
    assert [call.outcome for call in find_calls(told(*parts, reply("go on")))] == [Outcome.LOST, Outcome.OK]


def test_a_reply_cut_off_while_it_came_is_interrupted() -> None:
    """The row itself says that it was aborted."""
    (made,) = find_calls(told(reply(use("Bash"), isAbortedMidStream=True), reply("so")))
    assert (made.outcome, made.evidence) == (Outcome.INTERRUPTED, "isAbortedMidStream")


def test_rows_written_again_count_once_and_the_last_counts() -> None:
    """The same row twice, and the same tool use on two rows of a message, are one call."""
    rows = transcript(prompt("go"), reply(use("Bash", {"command": "ls"})), prompt([result("a")]))
    first = rows[1]
    assert isinstance(first, dict)
    again = {**first, "message": {**first["message"], "content": [use("Bash", {"command": "pwd"})]}}
    (made,) = find_calls(read(*rows, again))
    assert made.input == {"command": "pwd"}
    twice = told(reply(use("Bash", {"command": "ls"}), use("Bash", {"command": "ls -a"})), prompt([result("a")]))
    (made,) = find_calls(twice)
    assert (made.input, made.output) == ({"command": "ls -a"}, "a")


def test_a_result_may_stand_before_its_call_and_in_another_turn() -> None:
    """Calls and results are paired by id, wherever they stand; the turn is the call's."""
    entries = told(prompt([result("early", "a")]), reply(use("Bash", id_="a"), use("Bash", id_="b")))
    entries += read(*transcript(prompt("next"), prompt([result("late", "b")])))
    made = find_calls(entries, turns=split_into_turns(entries, find_acts(entries)))
    assert [(one.output, one.turn) for one in made] == [("early", 1), ("late", 1)]


def test_missing_ids_are_paired_by_the_row_they_hang_off() -> None:
    """A tool use without an id has an id made for it, the same each time, and finds its result by the parent row."""
    entries = told(reply(use("Bash", id_=None)), prompt([result("a", None)]))
    (made,) = find_calls(entries)
    assert (made.outcome, made.output) == (Outcome.OK, "a")
    assert [call.id for call in find_calls(entries)] == [made.id]
    (alone,) = find_calls(told(reply(use("Bash", id_=None)), reply("so")))
    assert alone.outcome is Outcome.LOST


def test_tools_the_api_runs_have_their_results_in_the_reply() -> None:
    """A server tool's use and result stand in assistant rows; an object with an error code is an error."""
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]}
    failed = {"type": "web_search_tool_result", "tool_use_id": "s2", "content": {"error_code": "max_uses_exceeded"}}
    asked = [use("web_search", id_=name, kind="server_tool_use") for name in ("s1", "s2")]
    made = find_calls(told(reply(asked[0], found, asked[1], failed, "so")))
    assert [(one.tool, one.outcome) for one in made] == [("web_search", Outcome.OK), ("web_search", Outcome.ERROR)]
    assert made[0].answer is not None
    assert made[0].result is None


def test_a_gateway_may_put_plain_results_into_the_reply() -> None:
    """A `tool_result` in an assistant row is a result all the same."""
    (made,) = find_calls(told(reply(use("Bash"), result("a"))))
    assert (made.outcome, made.output) == (Outcome.OK, "a")


def test_foreign_rows_are_no_calls() -> None:
    """Top-level `tool_use` and `tool_result` rows, and results of calls that are not there, make none."""
    foreign: list[Row] = [{"type": "tool_use", "tool": {"name": "Bash"}}, {"type": "tool_result", "result": {}}]
    assert find_calls(read(*foreign, *transcript(prompt([result("a", "gone")])))) == []


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (one("Bash", "x", {"stdout": "x", "persistedOutputPath": "/h/tool-results/a.txt"}), "/h/tool-results/a.txt"),
        (
            one("Grep", "<persisted-output>\nOutput too large (141KB). Full output saved to: /h/t/b.txt\n\nPreview"),
            "/h/t/b.txt",
        ),
        (one("Bash", "Full output saved to: /h/t/c.txt", {"stdout": ""}), None),
    ],
)
def test_persisted_output_is_named(made: Call, path: str | None) -> None:
    """The file that output was put into is told by the result, or by the stub in its place."""
    assert made.persisted == (Path(path) if path else None)


@pytest.mark.parametrize(
    ("made", "agent"),
    [
        (one("Task", "done", {"status": "completed", "agentId": "ab94da7", "content": []}), "ab94da7"),
        (one("Agent", "Spawned", {"status": "teammate_spawned", "agent_id": "ann@team", "name": "ann"}), "ann@team"),
        (one("Agent", "see agentId: x\nagentId: quoted\n…\nagentId: a1b2 (use SendMessage)"), "a1b2"),
        (one("Bash", "agentId: a1b2", {"stdout": "agentId: a1b2"}), None),
        (one("Agent", "agentless"), None),
    ],
)
def test_the_agent_that_a_call_started(made: Call, agent: str | None) -> None:
    """Its id stands in the result, or in the last line of the text that names one."""
    assert made.started == agent


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (one("Bash", "Exit code 127\nnot found", "Error: …", error=True), 127),
        (one("Bash", "it said Exit code 1", {"stdout": ""}), None),
        (one("BashOutput", "", {"shellId": "1", "exitCode": 3}), 3),
        (one("BashOutput", "<status>completed</status>\n<exit_code>2</exit_code>"), 2),
        (one("TaskOutput", "", {"retrieval_status": "success", "task": {"task_id": "b", "exitCode": 4}}), 4),
    ],
)
def test_exit_code(made: Call, code: int | None) -> None:
    """The exit code is told in the text or in the result of whoever asked for the output."""
    assert exit_code(made) == code


def test_a_call_gives_its_result_typed_and_its_duration() -> None:
    """A call knows its result by tool, and the time from its row to the result's."""
    (made,) = find_calls(told(call("Bash", "ls", result="a", details={"stdout": "a"})))
    assert isinstance(made.result, ShellResult)
    assert made.duration is not None
    assert made.duration.total_seconds() == 1


NOTICE = (
    "<task-notification>\n<task-id>a1b2</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n<output-file>/t/o</output-file>"
    '\n<status>completed</status>\n<summary>Agent "a &amp; b" completed</summary>\n<result>so <status>x</status>'
    "</result>\n<usage><total_tokens>12</total_tokens><tool_uses>3</tool_uses></usage>\n</task-notification>"
)


def test_a_notification_is_read_whole() -> None:
    """Its parts are read outside of the result, which may hold anything."""
    (notice,) = find_notifications(told(prompt(NOTICE)))
    assert (notice.task, notice.call, notice.status) == ("a1b2", "toolu_1", "completed")
    assert (notice.summary, notice.result) == ('Agent "a & b" completed', "so <status>x</status>")
    assert (notice.output_file, notice.usage) == ("/t/o", {"total_tokens": 12, "tool_uses": 3})


def test_notifications_count_once() -> None:
    """What was queued and then given to the model, in a user row or an attachment, is one notification."""
    queued = meta("queue-operation", operation="enqueue", content=NOTICE)
    left = meta("queue-operation", operation="remove", content=NOTICE)
    attached = chain("attachment", attachment={"type": "queued_command", "prompt": NOTICE})
    assert [notification.entry.kind for notification in find_notifications(told(queued, left, attached))] == [
        "attachment"
    ]
    assert [notification.entry.kind for notification in find_notifications(told(queued, prompt(NOTICE)))] == ["user"]
    assert [notification.entry.kind for notification in find_notifications(told(queued))] == ["queue-operation"]
    assert len(find_notifications(told(queued, queued, prompt(NOTICE), prompt(NOTICE), queued))) == 3


@pytest.mark.parametrize("text", ["see " + NOTICE, "<task-notification>" * 9, "<task-notification>\n<task-id>a"])
def test_a_person_may_quote_a_notification(text: str) -> None:
    """Text that merely holds one, or half of one, tells nothing."""
    assert find_notifications(told(prompt(text))) == []


IDS = st.sampled_from([None, "a", "b", "c"])
BLOCKS = st.one_of(
    st.builds(use, st.sampled_from(["Bash", "Task", "", "LS"]), id_=IDS),
    st.builds(result, st.sampled_from([None, "x", STOP, ["y"], [{"type": "text", "text": "z"}]]), IDS),
    st.just({"type": "text", "text": "[Request interrupted by user]"}),
)
ROWS = st.builds(
    lambda kind, uuid, parent, blocks, own: {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "message": {"id": uuid, "content": blocks},
        "toolUseResult": own,
    },
    st.sampled_from(["user", "assistant", "tool_use", "system"]),
    IDS,
    IDS,
    st.lists(BLOCKS, max_size=3),
    st.sampled_from([None, "x", [], {"agentId": 1}, {"stdout": 1}, 7]),
)


@given(st.lists(ROWS, max_size=12))
def test_any_rows_give_each_tool_use_once(rows: list[Row]) -> None:
    """Whatever the rows, no call comes twice, none is missing, and the same come each time."""
    entries = read(*rows)
    made = find_calls(entries)
    ids = [one.id for one in made]
    named = {block.get("id") for row in rows if row["type"] == "assistant" for block in row["message"]["content"]}
    assert len(ids) == len(set(ids))
    assert named - {None} <= set(ids)
    assert [repr(call) for call in find_calls(entries)] == [repr(one) for one in made]
