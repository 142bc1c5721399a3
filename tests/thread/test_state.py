"""Tests of the state at any place: what a session proves about its files, lists and settings."""

from __future__ import annotations

import gc
import json
import re
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each
from tests.thread.read_checks import Explanation, check_reads
from tests.thread.state_rows import edit_call, hunks, place_at_line, read_call, session_of, write_call
from tests.transcripts import Part, call, chain, meta, prompt, reply

from threadline.errors import NotFound
from threadline.model.session import Session
from threadline.model.state import EvidenceKind, FileState, ProofLevel, State
from threadline.thread import analyze_context, difference, file_log, parse_numbered_lines, state_at
from threadline.thread.state.replay import unified_text

A = "/work/app/a.py"
B = "/work/app/b.py"
TEXT = "one\n\ttwo\n  three\nfour\n"

# Few different lines, with tabs and spaces at their beginnings: what patches cannot tell apart must not be confused.
LINES = st.lists(st.sampled_from(["", "x", "\tx", "  x", "y", "\t\ty", "    y", "z"]), max_size=12)
TEXTS = LINES.map("\n".join)


def file_of(session: Session, path: str = A, backup: dict[str, bytes] | None = None) -> FileState:
    """Return a file at the end of a session."""
    return state_at(session, backup=(backup or {}).get).files[path]


def draw_edit(draw: st.DrawFn, text: str) -> tuple[str, str, bool] | None:
    """Draw an edit that the tool would accept: the old string occurs as often as required."""
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
    """Draw writes, edits and reads of two files, and the files after each."""
    files: dict[str, str] = {}
    parts: list[Part] = []
    after: list[dict[str, str]] = []
    for _ in range(draw(st.integers(1, 8))):
        path = draw(st.sampled_from([A, B]))
        text = files.get(path)
        edit = draw_edit(draw, text) if text is not None and draw(st.booleans()) else None
        if text is not None and edit is not None:
            old, new, every = edit
            parts.append(edit_call(path, text, old, new, has_original=draw(st.booleans()), every=every))
            files[path] = text.replace(old, new)
        elif text is not None and draw(st.booleans()):
            parts.append(read_call(path, text, draw(st.integers(1, text.count("\n") + 1)), draw(st.integers(1, 4))))
        else:
            content = draw(TEXTS)
            parts.append(write_call(path, content, text))
            files[path] = content
        after.append(dict(files))
    return parts, after


@given(histories())
def test_written_and_edited_files_are_proven_at_every_place(history: tuple[list[Part], list[Any]]) -> None:
    """After each write, edit and read, every file is proven whole and equals what a file system would have."""
    parts, after = history
    session = session_of(*parts)
    results = [call.answer.place for call in session.calls if call.answer is not None]
    assert len(results) == len(after)
    for place, files in zip(results, after, strict=True):
        state = state_at(session, place)
        assert {path: file.content for path, file in state.files.items()} == files
        assert all(file.proven is ProofLevel.WHOLE for file in state.files.values())
        assert not any(
            evidence.how is EvidenceKind.OUTSIDE for file in state.files.values() for evidence in file.evidence
        )


@given(histories())
def test_state_at_the_last_place_equals_the_end(history: tuple[list[Part], list[Any]]) -> None:
    """Replaying up to the last entry is replaying everything."""
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
    """Draw a file that is never shown whole: parts are read, and it is edited without its previous text."""
    text = draw(TEXTS)
    parts: list[Part] = []
    for _ in range(draw(st.integers(1, 6))):
        edit = draw_edit(draw, text) if draw(st.booleans()) else None
        if edit is not None:
            old, new, every = edit
            parts.append(edit_call(A, text, old, new, has_original=False, every=every))
            text = text.replace(old, new)
        else:
            parts.append(read_call(A, text, draw(st.integers(1, text.count("\n") + 1)), draw(st.integers(1, 4))))
    return parts, text


@given(glimpses())
def test_known_lines_of_a_partly_seen_file_are_right(glimpse: tuple[list[Part], str]) -> None:
    """Every line that is claimed to be known is what the file has there."""
    parts, text = glimpse
    file = state_at(session_of(*parts)).files.get(A)
    if file is None:
        return
    truth = text.split("\n")
    assert file.content in (None, text)
    assert all(truth[number - 1] == line for number, line in file.lines.items())
    assert file.total_lines in (None, len(truth))


def apply_diff(old: str, diff: str) -> str:
    """Apply a unified diff as `patch` does."""
    if not diff:
        return old
    before = re.findall(r"[^\n]*\n|[^\n]+", old)
    result: list[str] = []
    at = 0
    diff_lines = diff.replace("\n\\ No newline at end of file\n", "\0").split("\n")[2:]
    for line in diff_lines:
        for at_end, piece in ((False, line),) if "\0" not in line else _pieces(line):
            if piece.startswith("@@"):
                start = int(re.findall(r"-(\d+)", piece)[0])
                count = re.findall(r"-\d+,(\d+)", piece)
                start += 1 if count == ["0"] else 0
                result += before[at : start - 1]
                at = start - 1
            elif piece[:1] in (" ", "-"):
                assert before[at] == piece[1:] + ("" if at_end else "\n")
                result += [before[at]] if piece[0] == " " else []
                at += 1
            elif piece[:1] == "+":
                result.append(piece[1:] + ("" if at_end else "\n"))
    return "".join(result + before[at:])


def _pieces(line: str) -> list[tuple[bool, str]]:
    *ended, last = line.split("\0")
    return [(True, piece) for piece in ended] + ([(False, last)] if last else [])


@given(TEXTS, TEXTS)
def test_diff_applied_to_the_old_text_gives_the_new(old: str, new: str) -> None:
    """To the last newline."""
    assert apply_diff(old, unified_text("a", old, new)) == new


def test_diff_between_two_places_says_what_is_proven() -> None:
    """A file that both places know is proven. One that was first seen in between is compared with its first content."""
    session = session_of(
        write_call(A, "1\n2\n"), prompt("on"), edit_call(A, "1\n2\n", "2", "3"), edit_call(B, "b\n", "b", "c")
    )
    between = next(act.place for act in session.acts if act.text == "on")
    proven_diff, first_seen = difference(state_at(session, between), state_at(session))
    assert (proven_diff.path, proven_diff.proven) == (A, True)
    assert proven_diff.text == f"--- {A}\n+++ {A}\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    assert (first_seen.path, first_seen.proven) == (B, False)
    assert "-b\n+c\n" in first_seen.text
    assert "First seen" in first_seen.statement
    assert difference(state_at(session), state_at(session)) == ()


def test_new_file_is_compared_with_nothing() -> None:
    """The session created it."""
    session = session_of(prompt("on"), write_call(A, "1\n"))
    (change,) = difference(state_at(session, place_at_line(session, 1)), state_at(session))
    assert change.text == f"--- /dev/null\n+++ {A}\n@@ -0,0 +1 @@\n+1\n"


def test_partly_known_file_has_no_diff() -> None:
    """The statement says so."""
    session = session_of(prompt("on"), read_call(A, TEXT, 2, 1))
    (change,) = difference(state_at(session, place_at_line(session, 1)), state_at(session))
    assert (change.text, change.proven) == ("", False)
    assert "1 of 5 lines are known" in change.statement


def test_replacing_a_line_by_nothing_removes_its_newline() -> None:
    """As the tool does."""
    details = {
        "filePath": A,
        "oldString": "two",
        "newString": "",
        "originalFile": "one\ntwo\nthree",
        "replaceAll": False,
    }
    patch = hunks("one\ntwo\nthree", "one\nthree")
    session = session_of(call("Edit", {"file_path": A}, "ok", details={**details, "structuredPatch": patch}))
    assert file_of(session).content == "one\nthree"


def test_patch_takes_precedence_over_the_strings() -> None:
    """The tool may insert something else than the given string."""
    details = {
        "filePath": A,
        "oldString": "two",
        "newString": "é",
        "originalFile": "one\ntwo\n",
        "structuredPatch": hunks("one\ntwo\n", "one\n\\u00e9\n"),
    }
    session = session_of(call("Edit", {"file_path": A}, "ok", details=details))
    assert file_of(session).content == "one\n\\u00e9\n"


def test_multi_edit_applies_edits_in_order() -> None:
    """One after the other."""
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "1\n", "new_string": "2\n"}]
    details = {"filePath": A, "edits": edits, "originalFileContents": "one\n", "structuredPatch": hunks("one\n", "2\n")}
    session = session_of(call("MultiEdit", {"file_path": A, "edits": edits}, "ok", details=details))
    assert file_of(session).content == "2\n"


def test_notebook_is_proven_only_if_the_result_has_it() -> None:
    """Newer results of `NotebookEdit` have the whole notebook. Older ones prove nothing."""
    old_result = {"new_source": "x", "edit_mode": "replace", "cell_id": "1", "error": ""}
    new_result = {**old_result, "notebook_path": A, "original_file": "{}", "updated_file": '{"x":1}'}
    session = session_of(
        call("NotebookEdit", {"notebook_path": A}, "ok", details=new_result),
        call("NotebookEdit", {"notebook_path": B}, "ok", details=old_result),
    )
    assert file_of(session).content == '{"x":1}'
    assert (file_of(session, B).proven, file_of(session, B).changed is not None) == (ProofLevel.UNKNOWN, True)


NOTEBOOK = """{
 "cells": [
  {"cell_type": "code", "id": "aa", "metadata": {}, "execution_count": 3, "source": ["x"], "outputs": [{"a": "é"}]},
  {"cell_type": "markdown", "id": "bb", "metadata": {}, "source": "# T"}
 ],
 "metadata": {"v": 1.0, "e": {}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""
CODE_CELL: dict[str, Any] = {
    "cell_type": "code",
    "id": "aa",
    "metadata": {},
    "execution_count": None,
    "source": "y\nz",
    "outputs": [],
}
TEXT_CELL = {"cell_type": "markdown", "id": "bb", "metadata": {}, "source": "# T"}
NEW_CELL: dict[str, Any] = {
    "cell_type": "code",
    "id": "7a6d",
    "source": "new",
    "metadata": {},
    "execution_count": None,
    "outputs": [],
}
NEW_TEXT = {"cell_type": "markdown", "id": "554f", "source": "first", "metadata": {}}
RAN_CELL = {**CODE_CELL, "execution_count": 3, "source": ["x"], "outputs": [{"a": "é"}]}


def notebook_of(*cells: Any) -> str:
    """Return a notebook as Claude Code writes it."""
    notebook = {"cells": cells, "metadata": {"v": 1, "e": {}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False)


@pytest.mark.parametrize(
    ("change", "output", "after"),
    [
        ({"cell_id": "aa", "new_source": "y\nz"}, "Updated cell aa with y", [CODE_CELL, TEXT_CELL]),
        ({"cell_number": 0, "new_source": "y\nz"}, "Updated cell 0 with y", [CODE_CELL, TEXT_CELL]),
        (
            {"cell_id": "bb", "new_source": "b", "cell_type": "code"},
            "Updated cell bb with b",
            [RAN_CELL, {**TEXT_CELL, "cell_type": "code", "source": "b"}],
        ),
        (
            {"cell_id": "aa", "new_source": "new", "cell_type": "code", "edit_mode": "insert"},
            "Inserted cell 7a6d with new",
            [RAN_CELL, NEW_CELL, TEXT_CELL],
        ),
        (
            {"new_source": "first", "cell_type": "markdown", "edit_mode": "insert"},
            "Inserted cell 554f with first",
            [NEW_TEXT, RAN_CELL, TEXT_CELL],
        ),
        ({"cell_id": "cell-1", "new_source": "", "edit_mode": "delete"}, "Deleted cell cell-1", [RAN_CELL]),
        ({"cell_number": 2, "new_source": "new"}, "Inserted cell 7a6d with new", [RAN_CELL, TEXT_CELL, NEW_CELL]),
    ],
)
@pytest.mark.parametrize("has_result", [True, False])
def test_notebook_edits_of_a_known_notebook_are_applied(
    change: dict[str, Any], output: str, after: list[Any], *, has_result: bool
) -> None:
    """Without a result, or with one of the older ones, the input says what was changed. Measured with 2.1.325."""
    details = {"new_source": change["new_source"], "error": ""} if has_result else None
    edit = call("NotebookEdit", {"notebook_path": A, **change}, output, details=details)
    file = file_of(session_of(write_call(A, NOTEBOOK), edit))
    assert (file.content, file.proven) == (notebook_of(*after), ProofLevel.WHOLE)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (NOTEBOOK, {"cell_id": "zz", "new_source": "y"}),
        (NOTEBOOK, {"cell_id": "aa", "new_source": 1}),
        (NOTEBOOK, {"cell_id": "aa", "new_source": "new", "edit_mode": "insert"}),
        (NOTEBOOK, {"cell_number": 7, "new_source": "y"}),
        (NOTEBOOK, {"cell_id": "aa", "new_source": "y", "edit_mode": "turn"}),
        (NOTEBOOK.replace("1.0", "1e300"), {"cell_id": "aa", "new_source": "y"}),
        (NOTEBOOK.replace("1.0", "NaN"), {"cell_id": "aa", "new_source": "y"}),
        (NOTEBOOK.replace('"e"', '"7"'), {"cell_id": "aa", "new_source": "y"}),
        ("[]", {"cell_id": "aa", "new_source": "y"}),
        ("not JSON", {"cell_id": "aa", "new_source": "y"}),
    ],
)
def test_notebook_edit_of_unknown_effect_leaves_nothing_proven(text: str, change: dict[str, Any]) -> None:
    """An unknown cell, a cell without its id, or a value that JavaScript writes in its own way."""
    edit = call("NotebookEdit", {"notebook_path": A, **change}, "Updated cell")
    file = file_of(session_of(write_call(A, text), edit))
    assert (file.content, file.proven, file.changed is not None) == (None, ProofLevel.UNKNOWN, True)


def test_notebook_edit_without_a_result_is_in_the_files() -> None:
    """Even if nothing is known about the notebook."""
    session = session_of(call("NotebookEdit", {"notebook_path": A, "cell_id": "1", "new_source": "x"}, "ok"))
    assert (file_of(session).proven, file_of(session).changed is not None) == (ProofLevel.UNKNOWN, True)


@pytest.mark.parametrize(
    ("edits", "content"),
    [
        ([{"old_string": "one", "new_string": "1"}, {"old_string": "1\n", "new_string": "2\n"}], "2\n1 one\n"),
        ([{"old_string": "one", "new_string": "x", "replace_all": True}], "x\nx x\n"),
        ([{"old_string": "three", "new_string": "x"}], None),
        ([{"old_string": 1}], None),
        ([], None),
        (None, None),
    ],
)
def test_multi_edit_without_a_result_is_applied(edits: Any, content: str | None) -> None:
    """The edits of the input are applied in order; if they do not fit, the text is unknown."""
    before = "one\n1 one\n" if content is None or "x" not in content else "one\none one\n"
    session = session_of(write_call(A, before), call("MultiEdit", {"file_path": A, "edits": edits}, "ok"))
    assert (file_of(session).content, file_of(session).changed is not None) == (content, True)


def test_all_calls_whose_results_are_in_one_row_are_applied() -> None:
    """Programs that use the API themselves write the results of parallel calls as one message."""
    edits = [(A, "one", "two"), (A, "two", "three"), (B, "eins", "zwei")]
    uses = [
        {"type": "tool_use", "id": f"t{number}", "name": "Edit", "input": edit_input}
        for number, edit_input in enumerate(
            {"file_path": path, "old_string": old, "new_string": new} for path, old, new in edits
        )
    ]
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "edited"} for use in uses]
    session = session_of(
        write_call(A, "one\n"),
        write_call(B, "eins\n"),
        chain("assistant", message={"role": "assistant", "id": "m", "model": "x", "content": uses}),
        chain("user", message={"role": "user", "content": results}),
    )
    assert [file_of(session, path).content for path in (A, B)] == ["three\n", "zwei\n"]
    assert [(edit.call, edit.diff.splitlines()[-1]) for edit in file_log(session, A)[1:]] == [
        ("t0", "+two"),
        ("t1", "+three"),
    ]


def test_edit_of_all_occurrences_without_a_result_is_applied() -> None:
    """`replace_all` counts."""
    change = {"file_path": A, "old_string": "one", "new_string": "two", "replace_all": True}
    session = session_of(write_call(A, "one\none\n"), call("Edit", change, "ok"))
    assert file_of(session).content == "two\ntwo\n"


def test_file_read_in_two_parts_is_proven_whole() -> None:
    """Unless a command ran in between."""
    parts = [read_call(A, TEXT, 1, 2), read_call(A, TEXT, 3, 3)]
    assert file_of(session_of(*parts)).content == TEXT
    assert (
        file_of(session_of(parts[0], call("Bash", "make", "ok", details={"stdout": ""}), parts[1])).proven
        is ProofLevel.PARTIAL
    )


def test_impossible_number_of_lines_proves_nothing() -> None:
    """A file that was read in parts is not proven whole by a negative number."""
    file = {"filePath": A, "content": "x", "numLines": 1, "startLine": 1, "totalLines": -5}
    part = call("Read", {"file_path": A}, "1\tx", details={"type": "text", "file": file})
    state = file_of(session_of(part, part))
    assert (state.proven, state.lines, state.total_lines) == (ProofLevel.PARTIAL, {1: "x"}, None)


def test_time_after_the_end_of_the_calendar_is_unknown() -> None:
    """The last microsecond of the year 9999 is a valid timestamp, and as a floating-point number in the next year."""
    session = session_of(chain("user", timestamp="9999-12-31T23:59:59.999999Z"))
    assert state_at(session).time is None


def test_carriage_returns_are_removed() -> None:
    """Claude Code removes them before newlines and writes them back."""
    assert file_of(session_of(write_call(A, "a\r\nb\r\n"))).content == "a\nb\n"


@pytest.mark.parametrize("command", ["sed -i s/a/b/ a.py", "cat /work/app/a.py|wc", 'python "app/a.py"'])
def test_command_that_names_a_file_is_a_doubt(command: str) -> None:
    """The text stays proven as of then, and the command is named."""
    session = session_of(write_call(A, "1\n"), call("Bash", command, "ok", details={"stdout": "ok", "stderr": ""}))
    file = file_of(session)
    assert (file.content, file.ran_since, [doubt.how for doubt in file.doubts]) == ("1\n", 1, [EvidenceKind.COMMAND])
    assert "1 later command ran; 1 mentions this file" in file.statement


def test_refused_command_is_not_a_doubt() -> None:
    """It did not run."""
    refused = "The user doesn't want to proceed with this tool use."
    session = session_of(
        write_call(A, "1\n"), call("Bash", "rm a.py", refused, details="User rejected tool use", error=True)
    )
    assert (file_of(session).doubts, file_of(session).ran_since) == ((), 0)


def test_hook_after_an_edit_is_a_doubt() -> None:
    """Formatters run as hooks. The program's own callbacks are not doubts."""
    session = session_of(write_call(A, "1\n"))
    (first_call,) = session.calls
    for command, doubts in (("mix format", [EvidenceKind.HOOK]), ("callback", [])):
        hook = {
            "type": "hook_progress",
            "hookEvent": "PostToolUse",
            "hookName": "PostToolUse:Write",
            "command": command,
        }
        hooked = session_of(
            write_call(A, "1\n"), chain("progress", data=hook, toolUseID=first_call.id, parentToolUseID=first_call.id)
        )
        assert [doubt.how for doubt in file_of(hooked).doubts] == doubts


def test_note_about_an_outside_change_is_used() -> None:
    """Only the lines that the note shows remain known."""
    note = {"type": "edited_text_file", "filename": A, "snippet": "1\tone\n2\tTWO"}
    file = file_of(session_of(write_call(A, "one\ntwo\nthree\n"), chain("attachment", attachment=note)))
    assert (file.proven, file.lines, file.content) == (ProofLevel.PARTIAL, {1: "one", 2: "TWO"}, None)


def test_unexpected_previous_text_is_an_outside_change() -> None:
    """An edit shows a previous text that differs from the known one."""
    file = file_of(session_of(write_call(A, "1\n"), edit_call(A, "1\n2\n", "2", "3")))
    assert file.content == "1\n3\n"
    assert [evidence.how for evidence in file.evidence] == [EvidenceKind.WRITE, EvidenceKind.OUTSIDE, EvidenceKind.EDIT]


def test_unchanged_file_is_proven_again() -> None:
    """The result that a file is unchanged proves it as of then."""
    same = call("Read", {"file_path": A}, "unchanged", details={"type": "file_unchanged", "file": {"filePath": A}})
    run = call("Bash", "touch a.py", "", details={"stdout": "", "stderr": ""})
    file = file_of(session_of(write_call(A, "1\n"), run, same))
    assert (file.content, file.doubts, file.ran_since) == ("1\n", (), 0)


def snapshot(**backups: Any) -> Part:
    """Write the files that are tracked when a prompt is sent."""
    tracked = {name.replace("_", "."): backup for name, backup in backups.items()}
    return meta("file-history-snapshot", messageId="m", snapshot={"messageId": "m", "trackedFileBackups": tracked})


def test_backups_prove_the_previous_content() -> None:
    """A backup without a name proves that there was no file."""
    first = {"backupFileName": "aa@v1", "version": 1, "backupTime": "2026-01-05T09:10:00.000Z"}
    none = {"backupFileName": None, "version": 1, "backupTime": "2026-01-05T09:10:00.000Z"}
    session = session_of(prompt("more"), snapshot(a_py=first, b_py=none))
    assert file_of(session, backup={"aa@v1": b"kept\r\n"}).content == "kept\n"
    assert (file_of(session, B).proven, file_of(session, B).content) == (ProofLevel.ABSENT, None)
    assert A not in state_at(session).files
    assert file_of(session, B, backup={"aa@v1": b"\xff"}).proven is ProofLevel.ABSENT


def test_new_backup_without_a_change_is_a_doubt() -> None:
    """A file is only copied again if it differs. If the session did not change it, something else did."""
    versions = [
        {"backupFileName": f"aa@v{n}", "version": n, "backupTime": f"2026-01-05T09:1{n}:00.000Z"} for n in (1, 2)
    ]
    session = session_of(
        write_call(A, "1\n"), snapshot(a_py=versions[0]), snapshot(a_py=versions[0]), snapshot(a_py=versions[1])
    )
    assert [doubt.how for doubt in file_of(session).doubts] == [EvidenceKind.BACKUP]


def test_agents_edits_are_ordered_by_time() -> None:
    """The note that the main agent gets about such an edit adds nothing."""
    note = {"type": "edited_text_file", "filename": A, "snippet": "1\ttwo"}
    parts = [write_call(A, "one\n"), *[prompt("wait")] * 9, chain("attachment", attachment=note)]
    session = session_of(
        *parts, agents={"a1": [prompt("look"), edit_call(A, "one\n", "one", "two", has_original=False)]}
    )
    file = file_of(session)
    assert file.content == "two\n"
    assert [(evidence.how, evidence.agent) for evidence in file.evidence] == [
        (EvidenceKind.WRITE, None),
        (EvidenceKind.EDIT, "a1"),
        (EvidenceKind.OUTSIDE, None),
    ]


def shifted(row: Any, seconds: int) -> dict[str, Any]:
    """Return a row with another time."""
    moment = datetime.fromisoformat(row["timestamp"]) + timedelta(seconds=seconds)
    return {**row, "timestamp": moment.isoformat()}


def rows_of(*parts: Part) -> list[Any]:
    """Return the rows of a session's parts."""
    return [json.loads(entry.raw) for entry in session_of(*parts).main.entries]


def contents_by_line(session: Session) -> list[str | None]:
    """Return what is known of the file after each line."""
    states = (state_at(session, entry.place) for entry in session.main.entries)
    return [state.files[A].content if A in state.files else None for state in states]


def test_lines_at_the_beginning_with_later_times_come_first() -> None:
    """A file that was written again begins with bookkeeping rows of the end."""
    queue = {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-01-09T00:00:00Z", "content": "x"}
    title = {"type": "custom-title", "customTitle": "x"}
    parts = [prompt("go"), write_call(A, "one\n"), edit_call(A, "one\n", "one", "two")]
    session = session_of(*rows_of(*parts)[1:])
    moved = session_of(title, queue, queue, *rows_of(*parts)[1:])
    begin = [entry for entry in moved.main.entries if entry.kind in {"queue-operation", "custom-title"}]
    assert len(begin) == 3
    assert [bool(state_at(moved, entry.place).files) for entry in begin] == [False] * 3
    assert [c for c in contents_by_line(moved) if c] == [c for c in contents_by_line(session) if c]
    (change,) = difference(state_at(moved, begin[0].place), state_at(moved, moved.main.entries[-1].place))
    assert "+two" in change.text


@pytest.mark.parametrize("seconds", [-3600, -1, 1, 3600])
def test_lines_of_a_transcript_are_in_the_order_of_the_file(seconds: int) -> None:
    """A clock that was set, or rows whose times overlap, change no order within a transcript."""
    parts = [write_call(A, "1\n"), *(edit_call(A, f"{n}\n", f"{n}", f"{n + 1}") for n in range(1, 6))]
    rows = rows_of(*parts)
    expected = contents_by_line(session_of(*rows[1:]))
    for at in range(2, len(rows)):
        single = [shifted(row, seconds) if position == at else row for position, row in enumerate(rows)]
        tail = [shifted(row, seconds) if position >= at else row for position, row in enumerate(rows)]
        assert contents_by_line(session_of(*single[1:])) == expected
        assert contents_by_line(session_of(*tail[1:])) == expected


def test_calls_without_details_are_used() -> None:
    """Rows of agents often lack the tool's own result. The input and what the model saw remain."""
    tool_input = {"file_path": A, "content": "one\n"}
    change = {"file_path": A, "old_string": "one", "new_string": "two"}
    reading = call("Read", {"file_path": B}, "     5→five\n     6→six\n\n<system-reminder>\nx\n</system-reminder>")
    session = session_of(call("Write", tool_input, "ok"), call("Edit", change, "ok"), reading)
    assert file_of(session).content == "two\n"
    assert file_of(session, B).lines == {5: "five", 6: "six"}


def test_copied_call_is_applied_once() -> None:
    """Rows that a resume or a fork copied do not repeat an edit."""
    part = edit_call(A, "one\n", "one", "one one", has_original=False)
    session = session_of(write_call(A, "one\n"), part)
    rows = [json.loads(entry.raw) for entry in session.main.entries]
    copied = session_of(*rows[1:], *rows[-1:])
    assert file_of(copied).content == "one one\n"


def test_files_changed_on_an_abandoned_branch_are_in_doubt() -> None:
    """A rewind may restore files, which no row shows."""
    session = session_of(reply("ok"), prompt("change"), write_call(A, "1\n"), reply("done"))
    fork = session.main.entries[1].uuid
    rewound = session_of(
        reply("ok"),
        prompt("change"),
        write_call(A, "1\n"),
        reply("done"),
        prompt("other", parentUuid=fork),
        reply("well"),
    )
    assert len(rewound.branches) == 1
    assert [doubt.how for doubt in file_of(rewound).doubts] == [EvidenceKind.REWIND]


def test_todos_are_the_last_written_list() -> None:
    """Up to the place, and for each agent."""
    pending, completed = (
        [{"content": "x", "status": status, "activeForm": "xing"}] for status in ("pending", "completed")
    )
    session = session_of(
        call("TodoWrite", {"todos": pending}, "ok", details={"oldTodos": [], "newTodos": pending}),
        prompt("on"),
        call("TodoWrite", {"todos": completed}, "ok"),
        agents={"a1": [prompt("go"), call("TodoWrite", {"todos": pending}, "ok")]},
    )
    between = next(act.place for act in session.acts if act.text == "on")
    assert [todo.status for todo in state_at(session, between).todos[0].todos] == ["pending"]
    main, agent = state_at(session).todos
    assert (main.agent, main.todos[0].status) == (None, "completed")
    assert (agent.agent, agent.todos[0].status) == ("a1", "pending")


def create_task(number: str, subject: str) -> Part:
    """Write a call that creates a task."""
    tool_input = {"subject": subject, "description": f"do {subject}"}
    return call("TaskCreate", tool_input, "ok", details={"task": {"id": number, "subject": subject}})


def update_task(number: str, **changes: Any) -> Part:
    """Write a call that changes a task."""
    details = {"success": True, "taskId": number, "updatedFields": list(changes)}
    return call("TaskUpdate", {"taskId": number, **changes}, "ok", details=details)


def test_tasks_reflect_all_changes() -> None:
    """Tasks are created, changed, blocked and deleted. A listing has all that exist."""
    session = session_of(
        create_task("1", "one"), create_task("2", "two"), create_task("3", "three"),
        update_task("1", status="in_progress", owner="me"), update_task("2", addBlockedBy=["1"]),
        update_task("3", status="deleted"),
        update_task("4", status="completed"),
        call("TaskUpdate", {"taskId": "1", "status": "completed"}, "no", details={"success": False, "taskId": "1"}),
    )  # fmt: skip
    tasks = {task_state.task.id: task_state.task for task_state in state_at(session).tasks}
    assert list(tasks) == ["1", "2", "4"]
    assert (tasks["1"].status, tasks["1"].owner, tasks["1"].description) == ("in_progress", "me", "do one")
    assert (tasks["2"].status, tasks["2"].blocked_by) == ("pending", ["1"])
    listed = call("TaskList", {}, "#2", details={"tasks": [{"id": "2", "subject": "two", "status": "completed"}]})
    (remaining,) = state_at(session_of(create_task("1", "one"), create_task("2", "two"), listed)).tasks
    assert (remaining.task.id, remaining.task.status, remaining.task.description) == ("2", "completed", "do two")


def test_settings_at_a_place() -> None:
    """Model, mode, directory, branch and context size are the last ones up to the place."""
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


def test_context_size_is_that_of_the_context() -> None:
    """It includes cache writes that only their split has, as in some rows before 2.1.152."""
    split = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 400}
    counts = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_creation": split, "output_tokens": 9}
    session = session_of(reply("one", message={"usage": counts}))
    assert state_at(session).context_tokens == analyze_context(session).window == 501


def test_place_outside_the_session_is_an_error() -> None:
    """It is the caller's mistake."""
    with pytest.raises(NotFound, match="The session has no entry at"):
        state_at(session_of(), place_at_line(session_of(), 99))


def test_empty_session_has_a_state() -> None:
    """It has no files."""
    assert state_at(session_of()).files == {}
    assert isinstance(state_at(session_of()), State)


def test_reads_are_checked_against_known_content() -> None:
    """A read that differs is explained by what ran in between, or unexplained."""
    run = call("Bash", "make fmt", "", details={"stdout": "", "stderr": ""})
    name = call("Bash", "./tool a.py", "", details={"stdout": "", "stderr": ""})
    for between, expected in (
        ([], Explanation.NONE),
        ([run], Explanation.REWRITING_COMMAND),
        ([name], Explanation.NAMING_COMMAND),
    ):
        session = session_of(
            write_call(A, "1\n"), read_call(A, "1\n"), *between, read_call(A, "2\n"), read_call(A, "2\n")
        )
        assert [read.explanation for read in check_reads(session)] == [Explanation.AGREES, expected, Explanation.AGREES]
    assert check_reads(session_of(read_call(A, "1\n"), read_call(A, "2\n"))) == []


@for_each(
    "details",
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
def test_damaged_results_do_not_raise(tool: str, details: dict[str, Any]) -> None:
    """Whatever a result contains, there is a state."""
    session = session_of(write_call(A, "1\n"), call(tool, {"file_path": A, "notebook_path": A}, "ok", details=details))
    state = state_at(session)
    assert difference(state_at(session, place_at_line(session, 1)), state) is not None
    assert all(file.statement and (file.size is None or file.size >= 0) for file in state.files.values())


def test_numbered_lines_end_with_the_file() -> None:
    """What the program adds below is not a line of the file."""
    assert parse_numbered_lines("") == {}
    assert parse_numbered_lines("   1→a\n   2→\n\n<system-reminder>\n3\tb") == {1: "a", 2: ""}
    assert parse_numbered_lines("5\ta\n3\tb") == {5: "a"}


def hunk(old: int, new: int, *lines: str) -> dict[str, Any]:
    """Return a hunk with any numbers."""
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
def test_invalid_hunks_prove_no_lines_before_the_first(patch: list[dict[str, Any]]) -> None:
    """Hunks with numbers below 1, or that remove more lines than exist, break nothing."""
    text = "a\nb\nc\nd"
    for before in ([], [write_call(A, "other")], [read_call(A, text, 1, 3)], [read_call(A, text, 3, 1)]):
        session = session_of(*before, edit_call(A, "x", "zz", "q", has_original=False, structuredPatch=patch))
        assert all(number >= 1 for number in file_of(session).lines)
        after = session_of(
            *before,
            edit_call(A, "x", "zz", "q", has_original=False, structuredPatch=patch),
            edit_call(A, "x", "x", "y"),
            read_call(A, "y", 1, 1),
        )
        assert file_of(after).content == "y"


def test_task_fields_are_text() -> None:
    """Only text is used as status, subject or owner. Metadata may be an object."""
    tool_input = {"subject": {"a": 1}, "status": {"z": 1}, "owner": ["x"], "metadata": {"k": 1}, "description": "d"}
    details = {"task": {"id": "1", "subject": "s"}}
    (task_state,) = state_at(session_of(call("TaskCreate", tool_input, "ok", details=details))).tasks
    task = task_state.task
    assert (task.subject, task.status, task.owner, task.description) == ("s", "pending", None, "d")
    assert task.metadata == {"k": 1}


def replay_seconds(session: Session) -> float:
    """Return the time that it takes to compute the state at the end."""
    best = float("inf")
    for _ in range(3):
        gc.collect()
        gc.disable()
        start = time.process_time()
        state_at(session)
        best = min(best, time.process_time() - start)
        gc.enable()
    return best


@pytest.mark.slow
def test_time_is_linear_in_files_and_commands() -> None:
    """Four times the files of one name and the commands that name it take less than sixteen times as long."""

    def seconds(size: int) -> float:
        files = [write_call(f"/work/{number}/a.py", "x") for number in range(size)]
        session = session_of(*files, *[call("Bash", "cat a.py", "x")] * size)
        assert {len(file.doubts) for file in state_at(session).files.values()} == {size}
        return replay_seconds(session)

    assert seconds(3200) / seconds(800) < 8


@pytest.mark.slow
def test_time_is_linear_in_the_parts_of_a_file() -> None:
    """Four times the lines, each read by a call of its own, take less than sixteen times as long."""

    def seconds(size: int) -> float:
        text = "x\n" * size
        session = session_of(*(read_call(A, text, number, 1) for number in range(1, size + 1)))
        assert len(state_at(session).files[A].lines) == size
        return replay_seconds(session)

    assert seconds(3200) / seconds(800) < 8
