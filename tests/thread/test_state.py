"""The state at any place: what a session proves of its files, and how its lists and settings stood."""

from __future__ import annotations

import gc
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each
from tests.thread.state_rows import edited, hunks, line_of, read_text, session_of, wrote
from tests.transcripts import Part, call, chain, meta, prompt, reply

from threadline.errors import NotFound
from threadline.model.session import Session
from threadline.model.state import EvidenceKind, FileState, ProofLevel, State
from threadline.thread import difference, parse_numbered_lines, state_at
from threadline.thread.state import check_reads
from threadline.thread.state.replay import Explanation, unified_text

A = "/work/app/a.py"
B = "/work/app/b.py"
TEXT = "one\n\ttwo\n  three\nfour\n"

# Few different lines, with tabs and spaces at their beginnings: what patches cannot tell apart must not be confused.
LINES = st.lists(st.sampled_from(["", "x", "\tx", "  x", "y", "\t\ty", "    y", "z"]), max_size=12)
TEXTS = LINES.map("\n".join)


def file_of(session: Session, path: str = A, backup: dict[str, bytes] | None = None) -> FileState:
    """A file at the end of a session."""
    return state_at(session, backup=(backup or {}).get).files[path]


def replacement(draw: st.DrawFn, text: str) -> tuple[str, str, bool] | None:
    """An edit that the tool would take: the old string is there, and as often as asked."""
    if not text.strip("\n"):
        return None
    start = draw(st.integers(0, len(text) - 1))
    old = text[start : draw(st.integers(start + 1, len(text)))]
    new = draw(TEXTS)
    if old == new or not old or (not new and not old.endswith("\n") and old + "\n" in text):
        return None
    return old, new, text.count(old) > 1


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Part], list[dict[str, str]]]:
    """Writes, edits and reads of two files, and what the files are after each."""
    files: dict[str, str] = {}
    parts: list[Part] = []
    after: list[dict[str, str]] = []
    for _ in range(draw(st.integers(1, 8))):
        path = draw(st.sampled_from([A, B]))
        text = files.get(path)
        edit = replacement(draw, text) if text is not None and draw(st.booleans()) else None
        if text is not None and edit is not None:
            old, new, every = edit
            parts.append(edited(path, text, old, new, told=draw(st.booleans()), every=every))
            files[path] = text.replace(old, new)
        elif text is not None and draw(st.booleans()):
            parts.append(read_text(path, text, draw(st.integers(1, text.count("\n") + 1)), draw(st.integers(1, 4))))
        else:
            content = draw(TEXTS)
            parts.append(wrote(path, content, text))
            files[path] = content
        after.append(dict(files))
    return parts, after


@given(histories())
def test_what_is_written_and_edited_is_known_whole_at_every_place(history: tuple[list[Part], list[Any]]) -> None:
    """After each write, edit and read, every file is proven whole and is what a file system would hold."""
    parts, after = history
    session = session_of(*parts)
    results = [call.answer.place for call in session.calls if call.answer is not None]
    assert len(results) == len(after)
    for place, files in zip(results, after, strict=True):
        state = state_at(session, place)
        assert {path: file.content for path, file in state.files.items()} == files
        assert all(file.proven is ProofLevel.WHOLE for file in state.files.values())
        assert not any(one.how is EvidenceKind.OUTSIDE for file in state.files.values() for one in file.evidence)


@given(histories())
def test_the_state_at_the_last_place_is_the_state_at_the_end(history: tuple[list[Part], list[Any]]) -> None:
    """Replaying up to the last entry is replaying all."""
    session = session_of(*history[0])
    last, end = state_at(session, session.main.entries[-1].place), state_at(session)
    assert (last.files, last.todos, last.tasks, last.cwd, last.time) == (
        end.files,
        end.todos,
        end.tasks,
        end.cwd,
        end.time,
    )


@st.composite
def glimpses(draw: st.DrawFn) -> tuple[list[Part], str]:
    """A file that is never shown whole: parts of it are read, and it is edited without its text from before."""
    text = draw(TEXTS)
    parts: list[Part] = []
    for _ in range(draw(st.integers(1, 6))):
        edit = replacement(draw, text) if draw(st.booleans()) else None
        if edit is not None:
            old, new, every = edit
            parts.append(edited(A, text, old, new, told=False, every=every))
            text = text.replace(old, new)
        else:
            parts.append(read_text(A, text, draw(st.integers(1, text.count("\n") + 1)), draw(st.integers(1, 4))))
    return parts, text


@given(glimpses())
def test_nothing_is_claimed_that_is_not_so(glimpse: tuple[list[Part], str]) -> None:
    """Of a file that is seen in parts only, every line that is said to be known is what the file has there."""
    parts, text = glimpse
    file = state_at(session_of(*parts)).files.get(A)
    if file is None:
        return
    truth = text.split("\n")
    assert file.content in (None, text)
    assert all(truth[number - 1] == line for number, line in file.lines.items())
    assert file.total_lines in (None, len(truth))


def applied(old: str, diff: str) -> str:
    """A unified diff applied as `patch` does."""
    if not diff:
        return old
    before = re.findall(r"[^\n]*\n|[^\n]+", old)
    made: list[str] = []
    at = 0
    said = diff.replace("\n\\ No newline at end of file\n", "\0").split("\n")[2:]
    for line in said:
        for at_end, piece in ((False, line),) if "\0" not in line else _pieces(line):
            if piece.startswith("@@"):
                start = int(re.findall(r"-(\d+)", piece)[0])
                count = re.findall(r"-\d+,(\d+)", piece)
                start += 1 if count == ["0"] else 0
                made += before[at : start - 1]
                at = start - 1
            elif piece[:1] in (" ", "-"):
                assert before[at] == piece[1:] + ("" if at_end else "\n")
                made += [before[at]] if piece[0] == " " else []
                at += 1
            elif piece[:1] == "+":
                made.append(piece[1:] + ("" if at_end else "\n"))
    return "".join(made + before[at:])


def _pieces(line: str) -> list[tuple[bool, str]]:
    *ended, last = line.split("\0")
    return [(True, piece) for piece in ended] + ([(False, last)] if last else [])


@given(TEXTS, TEXTS)
def test_a_diff_applied_to_the_old_text_gives_the_new(old: str, new: str) -> None:
    """What a diff says is what happened, to the last newline."""
    assert applied(old, unified_text("a", old, new)) == new


def test_a_diff_between_two_places_says_what_is_proven() -> None:
    """A file that both places know is diffed; one that is met in between is diffed from what it was when it was met."""
    session = session_of(wrote(A, "1\n2\n"), prompt("on"), edited(A, "1\n2\n", "2", "3"), edited(B, "b\n", "b", "c"))
    between = next(act.place for act in session.acts if act.text == "on")
    known, met = difference(state_at(session, between), state_at(session))
    assert (known.path, known.proven) == (A, True)
    assert known.text == f"--- {A}\n+++ {A}\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    assert (met.path, met.proven) == (B, False)
    assert "-b\n+c\n" in met.text
    assert "First seen" in met.statement
    assert difference(state_at(session), state_at(session)) == ()


def test_a_new_file_was_not_there_before() -> None:
    """A file that the session created is diffed from nothing."""
    session = session_of(prompt("on"), wrote(A, "1\n"))
    (one,) = difference(state_at(session, line_of(session, 1)), state_at(session))
    assert one.text == f"--- /dev/null\n+++ {A}\n@@ -0,0 +1 @@\n+1\n"


def test_no_diff_is_made_of_what_is_not_known_whole() -> None:
    """A side that is known in part gives no diff, and the statement says so."""
    session = session_of(prompt("on"), read_text(A, TEXT, 2, 1))
    (one,) = difference(state_at(session, line_of(session, 1)), state_at(session))
    assert (one.text, one.proven) == ("", False)
    assert "1 of 5 lines are proven" in one.statement


def test_removing_text_removes_its_line_end() -> None:
    """Where something is replaced by nothing, the tool removes the newline after it, too."""
    own = {"filePath": A, "oldString": "two", "newString": "", "originalFile": "one\ntwo\nthree", "replaceAll": False}
    patch = hunks("one\ntwo\nthree", "one\nthree")
    session = session_of(call("Edit", {"file_path": A}, "ok", details={**own, "structuredPatch": patch}))
    assert file_of(session).content == "one\nthree"


def test_the_patch_decides_where_the_strings_do_not() -> None:
    """Where the tool put in something else than the string that was given, the patch tells what."""
    own = {
        "filePath": A,
        "oldString": "two",
        "newString": "é",
        "originalFile": "one\ntwo\n",
        "structuredPatch": hunks("one\ntwo\n", "one\n\\u00e9\n"),
    }
    session = session_of(call("Edit", {"file_path": A}, "ok", details=own))
    assert file_of(session).content == "one\n\\u00e9\n"


def test_several_edits_in_one_call() -> None:
    """The replacements of a `MultiEdit` are made one after the other."""
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "1\n", "new_string": "2\n"}]
    own = {"filePath": A, "edits": edits, "originalFileContents": "one\n", "structuredPatch": hunks("one\n", "2\n")}
    session = session_of(call("MultiEdit", {"file_path": A, "edits": edits}, "ok", details=own))
    assert file_of(session).content == "2\n"


def test_notebooks_are_known_where_their_text_is_told() -> None:
    """Newer results of `NotebookEdit` have the whole notebook; of older ones nothing is proven."""
    own = {"new_source": "x", "edit_mode": "replace", "cell_id": "1", "error": ""}
    told = {**own, "notebook_path": A, "original_file": "{}", "updated_file": '{"x":1}'}
    session = session_of(
        call("NotebookEdit", {"notebook_path": A}, "ok", details=told),
        call("NotebookEdit", {"notebook_path": B}, "ok", details=own),
    )
    assert file_of(session).content == '{"x":1}'
    assert (file_of(session, B).proven, file_of(session, B).changed is not None) == (ProofLevel.UNKNOWN, True)


def test_a_file_read_in_two_parts_is_known_whole() -> None:
    """Parts that are read one after the other, with nothing run in between, are the whole."""
    parts = [read_text(A, TEXT, 1, 2), read_text(A, TEXT, 3, 3)]
    assert file_of(session_of(*parts)).content == TEXT
    assert (
        file_of(session_of(parts[0], call("Bash", "make", "ok", details={"stdout": ""}), parts[1])).proven
        is ProofLevel.PARTIAL
    )


def test_line_ends_are_newlines() -> None:
    """Carriage returns before newlines are no part of a text: Claude Code takes them off, and puts them back."""
    assert file_of(session_of(wrote(A, "a\r\nb\r\n"))).content == "a\nb\n"


@pytest.mark.parametrize("command", ["sed -i s/a/b/ a.py", "cat /work/app/a.py|wc", 'python "app/a.py"'])
def test_a_command_that_names_a_file_is_a_doubt(command: str) -> None:
    """A command proves nothing: the text stays proven as of then, and the command is named."""
    session = session_of(wrote(A, "1\n"), call("Bash", command, "ok", details={"stdout": "ok", "stderr": ""}))
    file = file_of(session)
    assert (file.content, file.ran_since, [doubt.how for doubt in file.doubts]) == ("1\n", 1, [EvidenceKind.COMMAND])
    assert "1 later command could have changed it (mentioned by 1)" in file.statement


def test_a_command_that_was_refused_ran_not() -> None:
    """A refused command is no doubt."""
    refused = "The user doesn't want to proceed with this tool use."
    session = session_of(
        wrote(A, "1\n"), call("Bash", "rm a.py", refused, details="User rejected tool use", error=True)
    )
    assert (file_of(session).doubts, file_of(session).ran_since) == ((), 0)


def test_a_hook_after_an_edit_is_a_doubt() -> None:
    """Formatters run as hooks after an edit; the program's own callbacks are none."""
    session = session_of(wrote(A, "1\n"))
    (one,) = session.calls
    for command, doubts in (("mix format", [EvidenceKind.HOOK]), ("callback", [])):
        hook = {
            "type": "hook_progress",
            "hookEvent": "PostToolUse",
            "hookName": "PostToolUse:Write",
            "command": command,
        }
        again = session_of(wrote(A, "1\n"), chain("progress", data=hook, toolUseID=one.id, parentToolUseID=one.id))
        assert [doubt.how for doubt in file_of(again).doubts] == doubts


def test_a_change_from_outside_is_noticed() -> None:
    """The program's note that a file was changed ends what was known, but for the lines that it shows."""
    note = {"type": "edited_text_file", "filename": A, "snippet": "1\tone\n2\tTWO"}
    file = file_of(session_of(wrote(A, "one\ntwo\nthree\n"), chain("attachment", attachment=note)))
    assert (file.proven, file.lines, file.content) == (ProofLevel.PARTIAL, {1: "one", 2: "TWO"}, None)


def test_a_difference_from_what_was_known_came_from_outside() -> None:
    """Where an edit shows another text from before than the one that is known, somebody else changed it."""
    file = file_of(session_of(wrote(A, "1\n"), edited(A, "1\n2\n", "2", "3")))
    assert file.content == "1\n3\n"
    assert [one.how for one in file.evidence] == [EvidenceKind.WRITE, EvidenceKind.OUTSIDE, EvidenceKind.EDIT]


def test_a_file_that_did_not_change_is_known_anew() -> None:
    """The answer that a file is unchanged proves it as of then."""
    same = call("Read", {"file_path": A}, "unchanged", details={"type": "file_unchanged", "file": {"filePath": A}})
    run = call("Bash", "touch a.py", "", details={"stdout": "", "stderr": ""})
    file = file_of(session_of(wrote(A, "1\n"), run, same))
    assert (file.content, file.doubts, file.ran_since) == ("1\n", (), 0)


def snapshot(**backups: Any) -> Part:
    """The files that are tracked when a prompt is sent."""
    tracked = {name.replace("_", "."): backup for name, backup in backups.items()}
    return meta("file-history-snapshot", messageId="m", snapshot={"messageId": "m", "trackedFileBackups": tracked})


def test_backups_prove_what_was_there() -> None:
    """A backup is the file as it was; one without a name says that there was no file."""
    first = {"backupFileName": "aa@v1", "version": 1, "backupTime": "2026-01-05T09:10:00.000Z"}
    none = {"backupFileName": None, "version": 1, "backupTime": "2026-01-05T09:10:00.000Z"}
    session = session_of(prompt("more"), snapshot(a_py=first, b_py=none))
    assert file_of(session, backup={"aa@v1": b"kept\r\n"}).content == "kept\n"
    assert (file_of(session, B).proven, file_of(session, B).content) == (ProofLevel.ABSENT, None)
    assert A not in state_at(session).files
    assert file_of(session, B, backup={"aa@v1": b"\xff"}).proven is ProofLevel.ABSENT


def test_a_new_backup_without_a_change_of_ours_is_a_doubt() -> None:
    """A file is copied anew only when it differs: if the session did not change it, another did."""
    versions = [
        {"backupFileName": f"aa@v{n}", "version": n, "backupTime": f"2026-01-05T09:1{n}:00.000Z"} for n in (1, 2)
    ]
    session = session_of(
        wrote(A, "1\n"), snapshot(a_py=versions[0]), snapshot(a_py=versions[0]), snapshot(a_py=versions[1])
    )
    assert [doubt.how for doubt in file_of(session).doubts] == [EvidenceKind.BACKUP]


def test_agents_change_files_too_in_the_order_of_time() -> None:
    """An agent's edit stands where its time puts it, and the note that the main agent gets of it is no news."""
    note = {"type": "edited_text_file", "filename": A, "snippet": "1\ttwo"}
    parts = [wrote(A, "one\n"), *[prompt("wait")] * 9, chain("attachment", attachment=note)]
    session = session_of(*parts, agents={"a1": [prompt("look"), edited(A, "one\n", "one", "two", told=False)]})
    file = file_of(session)
    assert file.content == "two\n"
    assert [(one.how, one.agent) for one in file.evidence] == [
        (EvidenceKind.WRITE, None),
        (EvidenceKind.EDIT, "a1"),
        (EvidenceKind.OUTSIDE, None),
    ]


def test_agents_without_results_of_their_own_are_followed_by_their_calls() -> None:
    """Rows of agents often lack the tool's own result: the input and what the model saw remain."""
    given = {"file_path": A, "content": "one\n"}
    change = {"file_path": A, "old_string": "one", "new_string": "two"}
    seen = call("Read", {"file_path": B}, "     5→five\n     6→six\n\n<system-reminder>\nx\n</system-reminder>")
    session = session_of(call("Write", given, "ok"), call("Edit", change, "ok"), seen)
    assert file_of(session).content == "two\n"
    assert file_of(session, B).lines == {5: "five", 6: "six"}


def test_a_call_that_is_written_twice_happened_once() -> None:
    """Rows that a resume or a fork copied do not make an edit twice."""
    part = edited(A, "one\n", "one", "one one", told=False)
    session = session_of(wrote(A, "one\n"), part)
    rows = [json.loads(entry.raw) for entry in session.main.entries]
    again = session_of(*rows[1:], *rows[-1:])
    assert file_of(again).content == "one one\n"


def test_files_changed_on_a_path_that_was_left_are_in_doubt() -> None:
    """A rewind may put files back, which no row tells."""
    session = session_of(reply("ok"), prompt("change"), wrote(A, "1\n"), reply("done"))
    fork = session.main.entries[1].uuid
    again = session_of(
        reply("ok"), prompt("change"), wrote(A, "1\n"), reply("done"), prompt("other", parentUuid=fork), reply("well")
    )
    assert len(again.branches) == 1
    assert [doubt.how for doubt in file_of(again).doubts] == [EvidenceKind.REWIND]


def test_todos_stand_as_they_were_last_written() -> None:
    """The list is the last that was written up to the place, by agent."""
    one, two = ([{"content": "x", "status": status, "activeForm": "xing"}] for status in ("pending", "completed"))
    session = session_of(
        call("TodoWrite", {"todos": one}, "ok", details={"oldTodos": [], "newTodos": one}),
        prompt("on"),
        call("TodoWrite", {"todos": two}, "ok"),
        agents={"a1": [prompt("go"), call("TodoWrite", {"todos": one}, "ok")]},
    )
    between = next(act.place for act in session.acts if act.text == "on")
    assert [todo.status for todo in state_at(session, between).todos[0].todos] == ["pending"]
    main, agent = state_at(session).todos
    assert (main.agent, main.todos[0].status) == (None, "completed")
    assert (agent.agent, agent.todos[0].status) == ("a1", "pending")


def create(number: str, subject: str) -> Part:
    """A task was made."""
    given = {"subject": subject, "description": f"do {subject}"}
    return call("TaskCreate", given, "ok", details={"task": {"id": number, "subject": subject}})


def update(number: str, **given: Any) -> Part:
    """A task was changed."""
    own = {"success": True, "taskId": number, "updatedFields": list(given)}
    return call("TaskUpdate", {"taskId": number, **given}, "ok", details=own)


def test_tasks_stand_as_they_were_changed() -> None:
    """Tasks are made, changed, blocked and deleted; a listing tells all there are."""
    session = session_of(
        create("1", "one"), create("2", "two"), create("3", "three"),
        update("1", status="in_progress", owner="me"), update("2", addBlockedBy=["1"]), update("3", status="deleted"),
        update("4", status="completed"),
        call("TaskUpdate", {"taskId": "1", "status": "completed"}, "no", details={"success": False, "taskId": "1"}),
    )  # fmt: skip
    tasks = {known.task.id: known.task for known in state_at(session).tasks}
    assert list(tasks) == ["1", "2", "4"]
    assert (tasks["1"].status, tasks["1"].owner, tasks["1"].description) == ("in_progress", "me", "do one")
    assert (tasks["2"].status, tasks["2"].blocked_by) == ("pending", ["1"])
    listed = call("TaskList", {}, "#2", details={"tasks": [{"id": "2", "subject": "two", "status": "completed"}]})
    (left,) = state_at(session_of(create("1", "one"), create("2", "two"), listed)).tasks
    assert (left.task.id, left.task.status, left.task.description) == ("2", "completed", "do two")


def test_settings_are_those_of_the_place() -> None:
    """Model, mode, directory, branch and the size of the context are the last that were told up to the place."""
    session = session_of(
        reply("one", input=1, read=10, written=100, effort="high"),
        prompt("on", permissionMode="plan", cwd="/work/other", gitBranch="side"),
        reply("two", input=2, read=20, written=200, message={"model": "claude-opus-4-5"}),
        meta("permission-mode", permissionMode="default"),
        reply("made up", message={"model": "<synthetic>"}, input=0),
    )
    between = next(act.place for act in session.acts if act.text == "on")
    then, end = state_at(session, between), state_at(session)
    assert (then.model, then.context_tokens, then.effort) == ("claude-sonnet-4-5-20250929", 111, "high")
    assert (then.permission_mode, then.cwd, then.git_branch) == ("plan", "/work/other", "side")
    assert (end.model, end.context_tokens, end.permission_mode) == ("claude-opus-4-5", 222, "default")
    assert (then.place, end.place) == (between, None)


def test_a_place_that_is_not_there_is_a_sentence() -> None:
    """A place outside the session is the caller's mistake."""
    with pytest.raises(NotFound, match="The session has no entry at"):
        state_at(session_of(), line_of(session_of(), 99))


def test_an_empty_session_has_a_state() -> None:
    """There is a state without any file."""
    assert state_at(session_of()).files == {}
    assert isinstance(state_at(session_of()), State)


def test_reads_are_checked_against_what_was_known() -> None:
    """A read that differs from what was written is explained by what ran, or it is not explained."""
    run = call("Bash", "make fmt", "", details={"stdout": "", "stderr": ""})
    name = call("Bash", "./tool a.py", "", details={"stdout": "", "stderr": ""})
    for between, expected in (
        ([], Explanation.NONE),
        ([run], Explanation.REWRITING_COMMAND),
        ([name], Explanation.NAMING_COMMAND),
    ):
        session = session_of(wrote(A, "1\n"), read_text(A, "1\n"), *between, read_text(A, "2\n"), read_text(A, "2\n"))
        assert [read.explanation for read in check_reads(session)] == [Explanation.AGREES, expected, Explanation.AGREES]
    assert check_reads(session_of(read_text(A, "1\n"), read_text(A, "2\n"))) == []


@for_each(
    "own",
    [
        {"type": "text", "file": None},
        {"type": "text", "file": {"filePath": A, "content": None}},
        {"type": "text", "file": {"filePath": A, "content": "x", "startLine": -5, "numLines": 10**18, "totalLines": 3}},
        {"filePath": A, "oldString": "a", "newString": None, "structuredPatch": [{"lines": None}]},
        {
            "filePath": A,
            "oldString": "",
            "newString": "",
            "structuredPatch": [{"oldStart": -9, "lines": ["", "?", "+a"]}],
        },
        {"filePath": A, "content": "\udc80", "type": "create", "structuredPatch": None},
    ],
)
@for_each("tool", ["Read", "Edit", "Write", "MultiEdit", "NotebookEdit"])
def test_damaged_results_do_not_raise(tool: str, own: dict[str, Any]) -> None:
    """Whatever a result holds, there is a state."""
    session = session_of(wrote(A, "1\n"), call(tool, {"file_path": A, "notebook_path": A}, "ok", details=own))
    state = state_at(session)
    assert difference(state_at(session, line_of(session, 1)), state) is not None
    assert all(file.statement and (file.size is None or file.size >= 0) for file in state.files.values())


def test_numbered_lines_end_where_the_file_does() -> None:
    """What the program adds below a file is not taken for a line of it."""
    assert parse_numbered_lines("") == {}
    assert parse_numbered_lines("   1→a\n   2→\n\n<system-reminder>\n3\tb") == {1: "a", 2: ""}
    assert parse_numbered_lines("5\ta\n3\tb") == {5: "a"}


def hunk(old: int, new: int, *lines: str) -> dict[str, Any]:
    """A hunk as it is written, whatever its numbers."""
    return {"oldStart": old, "oldLines": 1, "newStart": new, "newLines": 1, "lines": list(lines)}


@pytest.mark.parametrize(
    "patch",
    [
        [hunk(-5, -5, "-zz", "+q")],
        [hunk(-5, 1, "-zz", "+q")],
        [hunk(1, -5, " x", "+q")],
        [hunk(0, 0, "+q")],
        [hunk(1, 1, "-a", "-b"), hunk(1, 1, "-a", "-b")],
    ],
    ids=str,
)
def test_no_file_has_lines_before_its_first(patch: list[dict[str, Any]]) -> None:
    """Hunks numbered below 1, or that take away more lines than there are, prove no lines there and break nothing."""
    text = "a\nb\nc\nd"
    for before in ([], [wrote(A, "other")], [read_text(A, text, 1, 3)], [read_text(A, text, 3, 1)]):
        session = session_of(*before, edited(A, "x", "zz", "q", told=False, structuredPatch=patch))
        assert all(number >= 1 for number in file_of(session).lines)
        after = session_of(
            *before,
            edited(A, "x", "zz", "q", told=False, structuredPatch=patch),
            edited(A, "x", "x", "y"),
            read_text(A, "y", 1, 1),
        )
        assert file_of(after).content == "y"


def test_a_task_has_words_where_words_belong() -> None:
    """Whatever a call is given as status, subject or owner, only text is taken; metadata may be an object."""
    given = {"subject": {"a": 1}, "status": {"z": 1}, "owner": ["x"], "metadata": {"k": 1}, "description": "d"}
    own = {"task": {"id": "1", "subject": "s"}}
    (known,) = state_at(session_of(call("TaskCreate", given, "ok", details=own))).tasks
    task = known.task
    assert (task.subject, task.status, task.owner, task.description) == ("s", "pending", None, "d")
    assert task.metadata == {"k": 1}


@pytest.mark.slow
def test_commands_that_name_many_files_take_time_that_grows_with_both() -> None:
    """Four times the files of one name and four times the commands that name it: not sixteen times as long."""

    def seconds(size: int) -> float:
        files = [wrote(f"/work/{number}/a.py", "x") for number in range(size)]
        session = session_of(*files, *[call("Bash", "cat a.py", "x")] * size)
        best = float("inf")
        for _ in range(3):
            gc.collect()
            gc.disable()
            start = time.process_time()
            state = state_at(session)
            best = min(best, time.process_time() - start)
            gc.enable()
        assert {len(file.doubts) for file in state.files.values()} == {size}
        return best

    assert seconds(3200) / seconds(800) < 8
