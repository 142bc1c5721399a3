"""Tests of calls: each tool use once, with its result or the reason why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each
from tests.thread.rows import decode_rows, entries_of, tool_result, tool_use
from tests.transcripts import Row, call, chain, meta, prompt, reply, transcript

from threadline.model.calls import Call, Outcome
from threadline.model.results import ShellResult
from threadline.thread import exit_code, find_acts, find_calls, find_notifications, split_into_turns

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
STOP = REJECTED + "STOP what you are doing and wait for the user to tell you how to proceed."
SAID = REJECTED + "To tell you how to proceed, the user said:\nmain is opened elsewhere"
NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention to it."


def call_with(tool: str, content: Any, details: Any = None, *, error: bool | None = None, **fields: Any) -> Call:
    """Return the call of a transcript with one result."""
    block = tool_result(content) if error is None else tool_result(content, is_error=error)
    row = {} if details is None else {"toolUseResult": details}
    (call,) = find_calls(entries_of(reply(tool_use(tool)), prompt([block], **row, **fields)))
    return call


@for_each(
    "call, outcome, evidence",
    [
        (call_with("Bash", "a", {"stdout": "a", "stderr": "", "interrupted": False}), Outcome.OK, "a result"),
        (call_with("Bash", "Error: no, all is well", {"stdout": "Error: no"}, error=False), Outcome.OK, "a result"),
        (call_with("Bash", "cat: <tool_use_error>", {"stdout": "<tool_use_error>"}), Outcome.OK, "a result"),
        (call_with("Read", "Error: one thing in the file"), Outcome.OK, "a result"),
        (call_with("Bash", "Exit code 1", "Error: Exit code 1", error=True), Outcome.ERROR, "is_error"),
        (call_with("Read", "<tool_use_error>no file</tool_use_error>"), Outcome.ERROR, "<tool_use_error>"),
        (
            call_with("Read", "File does not exist.", "Error: File does not exist."),
            Outcome.ERROR,
            "a string in place of its result",
        ),
        (call_with("LS", "- /a", "- /a"), Outcome.OK, "a result"),
        (call_with("TodoRead", "[]", "[]"), Outcome.OK, "a result"),
        (call_with("ExitPlanMode", "User has approved your plan.", "approved"), Outcome.OK, "a result"),
        (call_with("mcp__x__y", '{"n":1}', '{"n":1}'), Outcome.OK, "a result"),
        (
            call_with("TaskUpdate", "?", {"success": False, "taskId": "9"}),
            Outcome.ERROR,
            "success is false in its result",
        ),
        (call_with("Bash", "", {"stdout": "", "interrupted": True}), Outcome.INTERRUPTED, "interrupted in its result"),
        (
            call_with("Bash", "", {"stdout": "", "timedOutAfterMs": 5}),
            Outcome.INTERRUPTED,
            "timedOutAfterMs in its result",
        ),
        (
            call_with("Task", "", {"totalTokens": 1, "wasInterrupted": True}),
            Outcome.INTERRUPTED,
            "wasInterrupted in its result",
        ),
        (call_with("Bash", STOP, "User rejected tool use", error=True), Outcome.DENIED, None),
        (call_with("Bash", STOP), Outcome.DENIED, None),
        (call_with("Bash", "no", "Error: no", error=True, toolDenialKind="user-rejected"), Outcome.DENIED, None),
        (call_with("Bash", "?", "?", error=True, toolDenialKind="interrupted"), Outcome.INTERRUPTED, None),
        (call_with("Bash", "?", error=True, permissionDecision={"decision": "reject"}), Outcome.DENIED, None),
        (
            call_with("Write", "Claude requested permissions to write to /a, but …", "Error: …", error=True),
            Outcome.DENIED,
            None,
        ),
        (call_with("Bash", "PreToolUse:Bash hook error: [x]: no", "Error: …", error=True), Outcome.DENIED, None),
        (call_with("Bash", "[Request interrupted by user for tool use]", error=True), Outcome.INTERRUPTED, None),
        (call_with("Bash", STOP, {"stdout": STOP, "stderr": ""}), Outcome.OK, "a result"),
    ],
)
def test_outcome_has_evidence(call: Call, outcome: Outcome, evidence: str | None) -> None:
    """The outcome comes from flags, from the shape of the result and from the program's own sentences."""
    assert call.outcome is outcome
    assert evidence is None or call.evidence == evidence
    assert call.evidence


def test_feedback_is_the_users_text() -> None:
    """The text after "the user said:" is kept, without the note that newer versions add. A button gives no feedback."""
    assert call_with("Bash", SAID, "Error: …", error=True).feedback == "main is opened elsewhere"
    assert call_with("Bash", SAID + NOTE, "Error: …", error=True).feedback == "main is opened elsewhere"
    assert call_with("Bash", STOP, error=True).feedback is None
    assert call_with("Bash", STOP, error=True, userFeedback="later").feedback == "later"
    assert call_with("Bash", "the user said: hi").feedback is None
    clarify = REJECTED + "To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n…"
    assert call_with("AskUserQuestion", clarify, error=True).feedback is None


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
def test_outcome_of_a_call_without_a_result(after: list[Any], outcome: Outcome) -> None:
    """It is pending if nothing follows, interrupted if an interrupt follows, and lost if the conversation continued."""
    (call,) = find_calls(entries_of(reply("I look", tool_use("Bash")), *after))
    assert (call.outcome, call.answer, call.output, call.result) == (outcome, None, "", None)


def test_result_of_a_parallel_call_does_not_make_others_lost() -> None:
    """If one of two calls of a reply has a result, the other is pending or interrupted."""
    parts = [reply(tool_use("Bash", id_="a"), tool_use("Read", id_="b")), prompt([tool_result("x", "b")])]
    assert [call.outcome for call in find_calls(entries_of(*parts))] == [Outcome.PENDING, Outcome.OK]
    assert [call.outcome for call in find_calls(entries_of(*parts, INTERRUPT))] == [Outcome.INTERRUPTED, Outcome.OK]
    assert [call.outcome for call in find_calls(entries_of(*parts, reply("go on")))] == [Outcome.LOST, Outcome.OK]


def test_call_of_an_aborted_reply_is_interrupted() -> None:
    """The row itself says that it was aborted."""
    (call,) = find_calls(entries_of(reply(tool_use("Bash"), isAbortedMidStream=True), reply("so")))
    assert (call.outcome, call.evidence) == (Outcome.INTERRUPTED, "isAbortedMidStream")


def test_repeated_rows_are_one_call_and_the_last_counts() -> None:
    """The same row twice, and the same tool use on two rows of a message, are one call."""
    rows = transcript(prompt("go"), reply(tool_use("Bash", {"command": "ls"})), prompt([tool_result("a")]))
    first = rows[1]
    assert isinstance(first, dict)
    repeated = {**first, "message": {**first["message"], "content": [tool_use("Bash", {"command": "pwd"})]}}
    (call,) = find_calls(decode_rows(*rows, repeated))
    assert call.input == {"command": "pwd"}
    twice = entries_of(
        reply(tool_use("Bash", {"command": "ls"}), tool_use("Bash", {"command": "ls -a"})), prompt([tool_result("a")])
    )
    (call,) = find_calls(twice)
    assert (call.input, call.output) == ({"command": "ls -a"}, "a")


def test_result_may_precede_its_call_or_be_in_another_turn() -> None:
    """Calls and results are paired by id anywhere. The turn is the call's."""
    entries = entries_of(
        prompt([tool_result("early", "a")]), reply(tool_use("Bash", id_="a"), tool_use("Bash", id_="b"))
    )
    entries += decode_rows(*transcript(prompt("next"), prompt([tool_result("late", "b")])))
    calls = find_calls(entries, turns=split_into_turns(entries, find_acts(entries)))
    assert [(call.output, call.turn) for call in calls] == [("early", 1), ("late", 1)]


def test_calls_without_ids_are_paired_by_parent_row() -> None:
    """A tool use without an id gets a stable generated id."""
    entries = entries_of(reply(tool_use("Bash", id_=None)), prompt([tool_result("a", None)]))
    (only_call,) = find_calls(entries)
    assert (only_call.outcome, only_call.output) == (Outcome.OK, "a")
    assert [call.id for call in find_calls(entries)] == [only_call.id]
    (alone,) = find_calls(entries_of(reply(tool_use("Bash", id_=None)), reply("so")))
    assert alone.outcome is Outcome.LOST


def test_server_tools_have_their_results_in_the_reply() -> None:
    """Use and result are in assistant rows. An object with an error code is an error."""
    success = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]}
    failure = {"type": "web_search_tool_result", "tool_use_id": "s2", "content": {"error_code": "max_uses_exceeded"}}
    uses = [tool_use("web_search", id_=name, kind="server_tool_use") for name in ("s1", "s2")]
    calls = find_calls(entries_of(reply(uses[0], success, uses[1], failure, "so")))
    assert [(call.tool, call.outcome) for call in calls] == [
        ("web_search", Outcome.OK),
        ("web_search", Outcome.ERROR),
    ]
    assert calls[0].answer is not None
    assert calls[0].result is None


def test_plain_result_in_a_reply_is_a_result() -> None:
    """A gateway may write a `tool_result` into an assistant row."""
    (call,) = find_calls(entries_of(reply(tool_use("Bash"), tool_result("a"))))
    assert (call.outcome, call.output) == (Outcome.OK, "a")


def test_rows_of_their_own_are_a_call_with_its_result() -> None:
    """A top-level `tool_use` row is a call, and the `tool_result` row after it its result."""
    rows: list[Row] = [
        {"type": "tool_use", "uuid": "t1", "tool": {"name": "Bash", "input": {"command": "ls"}}},
        {"type": "tool_result", "result": {"output": {"files": ["é"]}, "error": "partly"}},
        {"type": "tool_result", "result": {"output": "nobody asked"}},
        {"type": "tool_use"},
    ]
    (call,) = find_calls(decode_rows(*rows))
    assert (call.id, call.tool, call.input) == ("t1", "Bash", {"command": "ls"})
    assert (call.outcome, call.evidence) == (Outcome.ERROR, "is_error")
    assert call.output == '{"files": ["é"]}\npartly'


def test_results_without_a_call_are_not_calls() -> None:
    """A result alone is not a call."""
    assert find_calls(decode_rows(*transcript(prompt([tool_result("a", "gone")])))) == []


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (
            call_with("Bash", "x", {"stdout": "x", "persistedOutputPath": "/h/tool-results/a.txt"}),
            "/h/tool-results/a.txt",
        ),
        (
            call_with(
                "Grep", "<persisted-output>\nOutput too large (141KB). Full output saved to: /h/t/b.txt\n\nPreview"
            ),
            "/h/t/b.txt",
        ),
        (call_with("Bash", "Full output saved to: /h/t/c.txt", {"stdout": ""}), None),
    ],
)
def test_path_of_persisted_output(call: Call, path: str | None) -> None:
    """The file that contains the output is named in the result, or in the stub in its place."""
    assert call.persisted == (Path(path) if path else None)


@pytest.mark.parametrize(
    ("call", "agent"),
    [
        (call_with("Task", "done", {"status": "completed", "agentId": "ab94da7", "content": []}), "ab94da7"),
        (
            call_with("Agent", "Spawned", {"status": "teammate_spawned", "agent_id": "ann@team", "name": "ann"}),
            "ann@team",
        ),
        (call_with("Agent", "see agentId: x\nagentId: quoted\n…\nagentId: a1b2 (use SendMessage)"), "a1b2"),
        (call_with("Bash", "agentId: a1b2", {"stdout": "agentId: a1b2"}), None),
        (call_with("Agent", "agentless"), None),
    ],
)
def test_started_agent_of_a_call(call: Call, agent: str | None) -> None:
    """Its id is in the result, or in the last line of the text that names one."""
    assert call.started == agent


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (call_with("Bash", "Exit code 127\nnot found", "Error: …", error=True), 127),
        (call_with("Bash", "it said Exit code 1", {"stdout": ""}), None),
        (call_with("BashOutput", "", {"shellId": "1", "exitCode": 3}), 3),
        (call_with("BashOutput", "<status>completed</status>\n<exit_code>2</exit_code>"), 2),
        (call_with("TaskOutput", "", {"retrieval_status": "success", "task": {"task_id": "b", "exitCode": 4}}), 4),
    ],
)
def test_exit_code(call: Call, code: int | None) -> None:
    """The exit code is in the text or in the result of the call that requested the output."""
    assert exit_code(call) == code


def test_call_has_a_typed_result_and_a_duration() -> None:
    """The result is typed by tool. The duration is the time between both rows."""
    (bash_call,) = find_calls(entries_of(call("Bash", "ls", result="a", details={"stdout": "a"})))
    assert isinstance(bash_call.result, ShellResult)
    assert bash_call.duration is not None
    assert bash_call.duration.total_seconds() == 1


NOTICE = (
    "<task-notification>\n<task-id>a1b2</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n<output-file>/t/o</output-file>"
    '\n<status>completed</status>\n<summary>Agent "a &amp; b" completed</summary>\n<result>so <status>x</status>'
    "</result>\n<usage><total_tokens>12</total_tokens><tool_uses>3</tool_uses></usage>\n</task-notification>"
)


def test_notification_fields() -> None:
    """They are read outside of the result, which may contain anything."""
    (notice,) = find_notifications(entries_of(prompt(NOTICE)))
    assert (notice.task, notice.call, notice.status) == ("a1b2", "toolu_1", "completed")
    assert (notice.summary, notice.result) == ('Agent "a & b" completed', "so <status>x</status>")
    assert (notice.output_file, notice.usage) == ("/t/o", {"total_tokens": 12, "tool_uses": 3})


def test_queued_and_delivered_notification_counts_once() -> None:
    """It may be delivered in a user row or an attachment."""
    queued = meta("queue-operation", operation="enqueue", content=NOTICE)
    removed = meta("queue-operation", operation="remove", content=NOTICE)
    attached = chain("attachment", attachment={"type": "queued_command", "prompt": NOTICE})
    assert [notification.entry.kind for notification in find_notifications(entries_of(queued, removed, attached))] == [
        "attachment"
    ]
    assert [notification.entry.kind for notification in find_notifications(entries_of(queued, prompt(NOTICE)))] == [
        "user"
    ]
    assert [notification.entry.kind for notification in find_notifications(entries_of(queued))] == ["queue-operation"]
    assert len(find_notifications(entries_of(queued, queued, prompt(NOTICE), prompt(NOTICE), queued))) == 3


@pytest.mark.parametrize("text", ["see " + NOTICE, "<task-notification>" * 9, "<task-notification>\n<task-id>a"])
def test_quoted_notification_is_ignored(text: str) -> None:
    """Text that merely contains one, or half of one, is not a notification."""
    assert find_notifications(entries_of(prompt(text))) == []


IDS = st.sampled_from([None, "a", "b", "c"])
BLOCKS = st.one_of(
    st.builds(tool_use, st.sampled_from(["Bash", "Task", "", "LS"]), id_=IDS),
    st.builds(tool_result, st.sampled_from([None, "x", STOP, ["y"], [{"type": "text", "text": "z"}]]), IDS),
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
def test_any_rows_have_each_tool_use_once(rows: list[Row]) -> None:
    """For any rows, no call is repeated or missing, and the result is the same each time."""
    entries = decode_rows(*rows)
    calls = find_calls(entries)
    ids = [call.id for call in calls]
    named = {block.get("id") for row in rows if row["type"] == "assistant" for block in row["message"]["content"]}
    assert len(ids) == len(set(ids))
    assert named - {None} <= set(ids)
    assert [repr(call) for call in find_calls(entries)] == [repr(call) for call in calls]
