"""The index has the same calls, files, todos and agents as sessions, however the transcripts were written."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.session_rows import content, rows_from_index, rows_from_transcripts, sessions
from tests.profiles import scale_examples
from tests.thread.session_cases import CASES, folder
from tests.transcripts import Row, call, line, prompt, transcript, write
from tools.demo import write as write_demo

from threadline.find import homes, look
from threadline.index import open_read_only, refresh_index
from threadline.index.rows.state import ReadRequest, read_rows

SESSION = "5e551011-0000-4000-8000-000000000001"
NAME = f"projects/-work-app/{SESSION}.jsonl"


def _compare(home: Path, index: Path, *, ignored: frozenset[str] = frozenset()) -> int:
    """Compare the rows of each session in the index with those of its transcripts. Returns the number of calls."""
    refresh_index(index, homes(home))
    count = 0
    with closing(open_read_only(index)) as connection:
        for session in sessions(home):
            expected, actual = rows_from_transcripts(session), rows_from_index(connection, session)
            calls = {str(agent.id): str(agent.link.call) for agent in session.agents}
            links = dict(actual.pop("links"))
            assert links == {agent: calls[agent] for agent in links}
            assert dict(expected.pop("links")).items() <= links.items()
            assert {name: rows for name, rows in actual.items() if name not in ignored} == {
                name: rows for name, rows in expected.items() if name not in ignored
            }
            count += len(expected["calls"])
    return count


@pytest.mark.parametrize("megabytes", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_the_index_equals_the_sessions(tmp_path: Path, megabytes: int) -> None:
    """Calls with tool, outcome, place and result, files, compactions, lists and agents are equal for every session."""
    write_demo(tmp_path / "home", megabytes=megabytes)
    assert _compare(tmp_path / "home", tmp_path / "index.sqlite") > 100


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES)
def test_the_index_equals_the_case_sessions(tmp_path: Path, case: str) -> None:
    """The same holds for every case of the corpus of sessions."""
    shutil.copytree(folder(case), tmp_path / "home/projects/-work-app")
    _compare(tmp_path / "home", tmp_path / "index.sqlite")


def _use(number: int, tool: str) -> dict[str, Any]:
    arguments: dict[str, dict[str, Any]] = {
        "Bash": {"command": "make"},
        "Read": {"file_path": "/work/app/a.py"},
        "Write": {"file_path": "b.py", "content": "x"},
        "MultiEdit": {"file_path": "b.py", "edits": [{"old_string": "x", "new_string": "y"}]},
        "NotebookEdit": {"notebook_path": "n.ipynb", "cell_id": "1", "new_source": "y"},
        "TodoWrite": {"todos": [{"content": f"do {number}", "status": "pending", "activeForm": "doing"}]},
        "TaskCreate": {"subject": f"task {number}"},
        "TaskUpdate": {"taskId": str(number % 3), "status": "completed"},
        "Agent": {"subagent_type": "Explore", "prompt": "look"},
    }
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments[tool]}


def _results(number: int) -> dict[str, tuple[dict[str, Any], Any]]:
    """Results of all kinds: the block, and the tool's details."""
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "     1→x"}
    return {
        "plain": (block, None),
        "bash": (block, {"stdout": "a", "stderr": "", "interrupted": False}),
        "stopped": (block, {"stdout": "a", "stderr": "", "interrupted": True}),
        "failed": ({**block, "is_error": True, "content": "Exit code 3"}, "Error: Exit code 3"),
        "read": (block, {"type": "text", "file": {"filePath": "/work/app/a.py", "content": "x"}}),
        "written": (block, {"type": "create", "filePath": "c.py", "content": "x", "structuredPatch": []}),
        "task": (block, {"task": {"id": str(number % 3), "subject": f"task {number}"}}),
        "agent": ({**block, "content": "done\nagentId: a77"}, {"agentId": f"a{number}", "status": "completed"}),
    }


_TOOLS = ("Bash", "Read", "Write", "MultiEdit", "NotebookEdit", "TodoWrite", "TaskCreate", "TaskUpdate", "Agent")
_STEPS = st.one_of(
    st.tuples(st.just("use"), st.integers(0, len(_TOOLS) - 1), st.just("")),
    st.tuples(st.just("result"), st.integers(0, len(_TOOLS) - 1), st.sampled_from(sorted(_results(0)))),
    st.tuples(st.sampled_from(("prompt", "interrupt", "boundary", "summary", "attached")), st.just(0), st.just("")),
)


def _rows(steps: list[tuple[str, int, str]], inside: int) -> list[bytes]:
    """A transcript of steps in any order. Every `inside`-th row belongs to an agent."""
    rows: list[Row] = []
    answered: set[int] = set()
    for number, (action, call_number, kind) in enumerate(steps):
        row: Row = {
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": SESSION,
            "cwd": "/work/app",
            "isSidechain": inside > 0 and number % inside == 0,
            "timestamp": f"2026-01-05T09:{number // 60:02d}:{number % 60:02d}.000Z",
        }
        if row["isSidechain"]:
            row |= {"agentId": f"a{number % 2}"}
        if action == "use":
            message = {
                "id": f"msg_{number // 2}",
                "role": "assistant",
                "model": "m",
                "content": [_use(call_number, _TOOLS[call_number])],
            }
            row |= {"type": "assistant", "message": message}
        elif action == "result" and not (_TOOLS[call_number].startswith("T") and call_number in answered):
            answered.add(call_number)  # a list is not changed back
            block, details = _results(call_number)[kind]
            row |= {"type": "user", "message": {"role": "user", "content": [block]}}
            row |= {"toolUseResult": details} if details is not None else {}
        elif action == "boundary":
            row |= {"type": "system", "subtype": "compact_boundary", "uuid": f"b{number % 3}"}
            row |= {"compactMetadata": {"trigger": "auto", "preTokens": number}}
        elif action == "summary":
            row |= {"type": "user", "isCompactSummary": True, "parentUuid": f"b{number % 2}"}
            row |= {"message": {"role": "user", "content": "so far"}}
        elif action == "attached":
            row |= {"type": "attachment", "attachment": {"type": "edited_text_file", "filename": "/d", "snippet": ""}}
        else:
            text = "[Request interrupted by user]" if action == "interrupt" else "go on"
            row |= {"type": "user", "message": {"role": "user", "content": text}}
        rows.append(row)
    return [line(row) for row in rows]


@pytest.mark.slow
@settings(max_examples=scale_examples(40))
@given(st.lists(_STEPS, min_size=1, max_size=25), st.sampled_from((0, 0, 3)), st.data())
def test_incremental_refreshes_equal_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], inside: int, data: st.DataObject
) -> None:
    """Calls and results in any order, repeated or alone, read in any parts, give the same as read at once.

    Truncated or replaced lines leave nothing behind.
    """
    folder = tmp_path_factory.mktemp("growing")
    home, index = folder / "home", folder / "index.sqlite"
    rows = _rows(steps, inside)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=6)) | {len(rows)})
    cut = data.draw(st.integers(0, len(rows)))
    grown = [rows[:end] for end in cuts]
    for number, states in enumerate([grown, [rows[:cut]], [rows[cut:] + rows[:cut]]]):
        for lines in states:
            write(home / NAME, *lines)
            refresh_index(index, homes(home))
        rebuilt = folder / f"rebuilt{number}.sqlite"
        refresh_index(rebuilt, homes(home))
        assert content(index) == content(rebuilt)


def test_a_repeated_call_with_another_result_has_the_files_of_that(tmp_path: Path) -> None:
    """A refresh that reads a call and its result again leaves no file of the earlier result."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    rows = _rows([("use", 1, ""), ("result", 1, "plain"), ("use", 1, ""), ("result", 1, "agent")], 0)
    files = []
    for lines in (rows[:2], rows):
        write(home / NAME, *lines)
        refresh_index(index, homes(home))
        files.append(content(index)["files"])
    assert [len(rows) for rows in files] == [1, 0]


@pytest.mark.slow
def test_time_grows_linearly_with_repeated_results(tmp_path: Path) -> None:
    """A transcript whose rows were all written again: four times as many calls take less than nine times as long."""

    def seconds(calls: int) -> float:
        details = {"type": "text", "file": {"filePath": "/work/app/a.py", "content": "x"}}
        rows = transcript(prompt("go"), *[call("Read", "/work/app/a.py", "1\tx", details=details)] * calls)
        write(tmp_path / str(calls) / NAME, *rows, *rows)
        (found,) = look(homes(tmp_path / str(calls))[0]).transcripts
        started = time.process_time()
        read_rows(ReadRequest(found))
        return time.process_time() - started

    assert min(seconds(8000), seconds(8000)) < 9 * min(seconds(2000), seconds(2000))


@given(st.lists(_STEPS, min_size=1, max_size=25), st.data())
def test_the_index_equals_the_session_for_any_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], data: st.DataObject
) -> None:
    """Whatever a transcript contains, and in whatever parts it was read: calls, files and lists are the session's."""
    folder = tmp_path_factory.mktemp("any")
    rows = _rows(steps, 0)
    cut = data.draw(st.integers(0, len(rows)))
    for lines in (rows[:cut], rows):
        write(folder / "home" / NAME, *lines)
        refresh_index(folder / "index.sqlite", homes(folder / "home"))
    _compare(folder / "home", folder / "index.sqlite")


def test_repeated_rows_do_not_change_lists_back(tmp_path: Path) -> None:
    """After a compaction, earlier rows are repeated. Lists keep their latest state."""
    path = tmp_path / "home" / NAME
    original = [
        *transcript(
            prompt("go"),
            call("TodoWrite", {"todos": [{"content": "first", "status": "pending"}]}, "noted"),
            call("TaskCreate", {"subject": "build"}, "made", details={"task": {"id": "1", "subject": "build"}}),
            call(
                "TaskUpdate", {"taskId": "1", "status": "completed"}, "done", details={"success": True, "taskId": "1"}
            ),
            call("TodoWrite", {"todos": [{"content": "second", "status": "pending"}]}, "noted"),
        )
    ]
    for rows in (original, original + original[1:7]):
        write(path, *rows)
        refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
        with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
            todos = connection.execute("SELECT list, content, status FROM todos ORDER BY list").fetchall()
        assert todos == [("task", "build", "completed"), ("todo", "second", "pending")]
