"""The history of a file: every edit as a diff, with its turn, prompt and model, and what proves it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.thread.state_rows import edit_call, hunks, read_call, session_of, write_call
from tests.transcripts import MODEL, Part, call, prompt

from threadline.model.session import Session
from threadline.model.state import DiffSource, EvidenceKind, FileEdit
from threadline.thread import file_log

A = "/work/app/a.py"
B = "/work/app/lib/a.py"


def log_of(*parts: Part, path: str = A, agents: dict[str, Any] | None = None) -> tuple[FileEdit, ...]:
    """Return the edits of a file in a session of these parts."""
    return file_log(session_of(*parts, agents=agents), path)


def changed_lines(edit: FileEdit) -> list[str]:
    """Return the added and removed lines of a diff."""
    return [line for line in edit.diff.splitlines()[2:] if line[:1] in {"+", "-"}]


def test_log_has_every_edit_in_order_with_its_turn_prompt_and_model() -> None:
    """Writes, edits and rewrites, each compared with the text before it. Reads are not edits."""
    created, edited, rewritten = log_of(
        write_call(A, "one\n"),
        prompt("make it two"),
        read_call(A, "one\n"),
        edit_call(A, "one\n", "one", "two"),
        write_call(A, "three\n", "two\n"),
    )
    assert [(edit.how, edit.tool, edit.turn, edit.prompt) for edit in (created, edited, rewritten)] == [
        (EvidenceKind.WRITE, "Write", 1, "go"),
        (EvidenceKind.EDIT, "Edit", 2, "make it two"),
        (EvidenceKind.WRITE, "Write", 2, "make it two"),
    ]
    assert created.diff == f"--- /dev/null\n+++ {A}\n@@ -0,0 +1 @@\n+one\n"
    assert (changed_lines(edited), changed_lines(rewritten)) == (["-one", "+two"], ["-two", "+three"])
    assert {edit.model for edit in (created, edited, rewritten)} == {MODEL}
    assert all(edit.proven and edit.source is DiffSource.TEXTS for edit in (created, edited, rewritten))
    assert created.timestamp is not None
    assert edited.timestamp is not None
    assert created.timestamp < edited.timestamp
    assert edited.place.line > created.place.line


def test_log_compares_a_rewrite_with_the_last_known_text() -> None:
    """Even if the result of the call does not contain it. A command that names the file makes it doubtful."""
    rewrite = call("Write", {"file_path": A, "content": "two\n"}, "ok")
    sure = log_of(write_call(A, "one\n"), rewrite)[-1]
    doubtful = log_of(write_call(A, "one\n"), call("Bash", "sed -i s/x/y/ a.py", ""), rewrite)[-1]
    unknown = log_of(rewrite)[-1]
    assert (changed_lines(sure), sure.proven) == (["-one", "+two"], True)
    assert (changed_lines(doubtful), doubtful.proven) == (["-one", "+two"], False)
    assert "1 command" in doubtful.statement
    assert (changed_lines(unknown), unknown.proven, unknown.source) == (["+two"], False, DiffSource.INPUT)
    assert "every line is shown as added" in unknown.statement


def test_log_uses_the_patch_or_the_strings_if_the_text_is_not_known() -> None:
    """A patch shows tabs as spaces: a changed line that begins with spaces is proven only by the call's strings."""
    plain = log_of(edit_call(A, "one\ntwo\n", "two", "2", has_original=False))[-1]
    spaces = log_of(edit_call(A, "\ttwo\n", "two", "2", has_original=False))[-1]
    whole_lines = log_of(edit_call(A, "\tone\n  two\n", "  two", "  2", has_original=False))[-1]
    strings = log_of(call("Edit", {"file_path": A, "old_string": "x", "new_string": "y"}, "ok"))[-1]
    several = log_of(
        call("MultiEdit", {"file_path": A, "edits": [{"old_string": o, "new_string": o * 2} for o in "xy"]}, "ok")
    )[-1]
    notebook = log_of(call("NotebookEdit", {"notebook_path": A, "cell_id": "1", "new_source": "n"}, "ok"))[-1]
    assert (plain.source, plain.proven, changed_lines(plain)) == (DiffSource.PATCH, True, ["-two", "+2"])
    assert (spaces.source, spaces.proven, changed_lines(spaces)) == (DiffSource.PATCH, False, ["-  two", "+  2"])
    assert (whole_lines.source, whole_lines.proven) == (DiffSource.PATCH, True)
    assert (strings.source, strings.proven, changed_lines(strings)) == (DiffSource.INPUT, False, ["-x", "+y"])
    assert (several.source, changed_lines(several)) == (DiffSource.INPUT, ["-x", "+xx", "-y", "+yy"])
    assert several.diff.count("+++") == 1
    assert (notebook.source, changed_lines(notebook)) == (DiffSource.INPUT, ["+n"])


def test_edit_without_any_text_says_so() -> None:
    """The edit is listed in any case."""
    (edit,) = log_of(call("MultiEdit", {"file_path": A, "edits": 7}, "ok"))
    assert (edit.diff, edit.source, edit.proven) == ("", DiffSource.NONE, False)
    assert edit.statement == "What was changed is not recorded."


def test_refused_edits_and_edits_of_other_files_are_not_in_the_log() -> None:
    """A path is complete, or the end of one by whole names."""
    session = session_of(
        write_call(A, "one\n"),
        write_call(B, "two\n"),
        write_call("/work/app/aa.py", "x"),
        call("Edit", {"file_path": A, "old_string": "x", "new_string": "y"}, "no such text", error=True),
    )
    assert [edit.path for edit in file_log(session, A)] == [A]
    assert [edit.path for edit in file_log(session, "a.py")] == [A, B]
    assert [edit.path for edit in file_log(session, "lib\\a.py")] == [B]


def test_edits_of_agents_belong_to_the_turn_that_started_them() -> None:
    """They are in order of time, and have the agent's id."""
    edits = log_of(
        write_call(A, "one\n"),
        *[prompt("wait")] * 9,
        agents={"a1": [prompt("look"), edit_call(A, "one\n", "one", "two", has_original=False)]},
    )
    assert [(edit.agent, changed_lines(edit)) for edit in edits] == [(None, ["+one"]), ("a1", ["-one", "+two"])]


def test_edit_that_a_person_modified_is_marked() -> None:
    """The patch has what was written."""
    patch = hunks("one\n", "mine\n")
    (_, edit) = log_of(
        write_call(A, "one\n"), edit_call(A, "one\n", "one", "two", userModified=True, structuredPatch=patch)
    )
    assert (edit.how, changed_lines(edit)) == (EvidenceKind.USER_MODIFIED, ["-one", "+mine"])


@pytest.mark.parametrize("text", ["one\r\ntwo\r\n", "one\u2028two\n"])
def test_diffs_split_lines_at_newlines_only(text: str) -> None:
    """Carriage returns before newlines are removed; other separators are part of a line."""
    (edit,) = log_of(write_call(A, text))
    assert edit.diff.count("\n+") == text.count("\n") + 1  # and the header


def test_session_of_a_log_is_a_session() -> None:
    """A session without edits has an empty log."""
    session: Session = session_of(prompt("hi"))
    assert file_log(session, A) == ()
