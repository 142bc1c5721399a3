"""What agents did, as the index tells it: the same as sessions tell, however the transcripts came into being."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.work_rows import content, indexed, of_session, sessions
from tests.profiles import scale_examples
from tests.thread.session_cases import CASES, folder
from tests.transcripts import Row, call, line, prompt, transcript, write
from tools.demo import write as write_demo

from threadline.find import homes
from threadline.index import open_read_only, refresh_index

SESSION = "5e551011-0000-4000-8000-000000000001"
NAME = f"projects/-work-app/{SESSION}.jsonl"


def _compare(home: Path, index: Path, *, but: frozenset[str] = frozenset()) -> int:
    """Hold what the index tells of each session against what the session tells; gives how many calls there were."""
    refresh_index(index, homes(home))
    count = 0
    with closing(open_read_only(index)) as connection:
        for session in sessions(home):
            told, found = of_session(session), indexed(connection, session)
            known = {str(agent.id): str(agent.link.call) for agent in session.agents}
            links = dict(found.pop("links"))
            assert links == {agent: known[agent] for agent in links}
            assert dict(told.pop("links")).items() <= links.items()
            assert {name: rows for name, rows in found.items() if name not in but} == {
                name: rows for name, rows in told.items() if name not in but
            }
            count += len(told["calls"])
    return count


@pytest.mark.parametrize("megabytes", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_the_index_tells_of_work_what_sessions_tell(tmp_path: Path, megabytes: int) -> None:
    """Calls with tool, outcome, place and result; files, compactions, lists and agents: the same for every session."""
    write_demo(tmp_path / "home", megabytes=megabytes)
    assert _compare(tmp_path / "home", tmp_path / "index.sqlite") > 100


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES)
def test_odd_sessions_as_well(tmp_path: Path, case: str) -> None:
    """The same holds for every case of the corpus of sessions."""
    shutil.copytree(folder(case), tmp_path / "home/projects/-work-app")
    _compare(tmp_path / "home", tmp_path / "index.sqlite")


def _use(number: int, tool: str) -> dict[str, Any]:
    given: dict[str, dict[str, Any]] = {
        "Bash": {"command": "make"},
        "Read": {"file_path": "/work/app/a.py"},
        "Write": {"file_path": "b.py", "content": "x"},
        "TodoWrite": {"todos": [{"content": f"do {number}", "status": "pending", "activeForm": "doing"}]},
        "TaskCreate": {"subject": f"task {number}"},
        "TaskUpdate": {"taskId": str(number % 3), "status": "completed"},
        "Agent": {"subagent_type": "Explore", "prompt": "look"},
    }
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given[tool]}


def _results(number: int) -> dict[str, tuple[dict[str, Any], Any]]:
    """Results of all kinds: the block, and the tool's own."""
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


_TOOLS = ("Bash", "Read", "Write", "TodoWrite", "TaskCreate", "TaskUpdate", "Agent")
_STEPS = st.one_of(
    st.tuples(st.just("use"), st.integers(0, 6), st.just("")),
    st.tuples(st.just("result"), st.integers(0, 6), st.sampled_from(sorted(_results(0)))),
    st.tuples(st.sampled_from(("prompt", "interrupt", "boundary", "summary", "attached")), st.just(0), st.just("")),
)


def _rows(steps: list[tuple[str, int, str]], inside: int) -> list[bytes]:
    """A transcript of steps in any order; every so many rows, one is an agent's inside it."""
    rows: list[Row] = []
    told: set[int] = set()
    for number, (what, of, how) in enumerate(steps):
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
        if what == "use":
            message = {"id": f"msg_{number // 2}", "role": "assistant", "model": "m", "content": [_use(of, _TOOLS[of])]}
            row |= {"type": "assistant", "message": message}
        elif what == "result" and not (_TOOLS[of].startswith("T") and of in told):
            told.add(of)  # what a list was told is not taken back
            block, own = _results(of)[how]
            row |= {"type": "user", "message": {"role": "user", "content": [block]}}
            row |= {"toolUseResult": own} if own is not None else {}
        elif what == "boundary":
            row |= {"type": "system", "subtype": "compact_boundary", "uuid": f"b{number % 3}"}
            row |= {"compactMetadata": {"trigger": "auto", "preTokens": number}}
        elif what == "summary":
            row |= {"type": "user", "isCompactSummary": True, "parentUuid": f"b{number % 2}"}
            row |= {"message": {"role": "user", "content": "so far"}}
        elif what == "attached":
            row |= {"type": "attachment", "attachment": {"type": "edited_text_file", "filename": "/d", "snippet": ""}}
        else:
            text = "[Request interrupted by user]" if what == "interrupt" else "go on"
            row |= {"type": "user", "message": {"role": "user", "content": text}}
        rows.append(row)
    return [line(row) for row in rows]


@settings(max_examples=scale_examples(40))
@given(st.lists(_STEPS, min_size=1, max_size=25), st.sampled_from((0, 0, 3)), st.data())
def test_growing_line_by_line_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], inside: int, data: st.DataObject
) -> None:
    """Calls and results in any order, twice, or without one another, read in any parts: as if read at once.

    What is cut afterwards is as if it had never been there; and what is replaced, too.
    """
    folder = tmp_path_factory.mktemp("growing")
    home, index = folder / "home", folder / "index.sqlite"
    rows = _rows(steps, inside)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=6)) | {len(rows)})
    cut = data.draw(st.integers(0, len(rows)))
    grown = [rows[:end] for end in cuts]
    for number, states in enumerate([grown, [rows[:cut]], [rows[cut:] + rows[:cut]]]):
        for shown in states:
            write(home / NAME, *shown)
            refresh_index(index, homes(home))
        anew = folder / f"anew{number}.sqlite"
        refresh_index(anew, homes(home))
        assert content(index) == content(anew)


@given(st.lists(_STEPS, min_size=1, max_size=25), st.data())
def test_any_order_is_told_as_sessions_tell_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], data: st.DataObject
) -> None:
    """Whatever stands in a transcript, and in whatever parts it was read: calls, files and lists are the session's."""
    folder = tmp_path_factory.mktemp("any")
    rows = _rows(steps, 0)
    cut = data.draw(st.integers(0, len(rows)))
    for shown in (rows[:cut], rows):
        write(folder / "home" / NAME, *shown)
        refresh_index(folder / "index.sqlite", homes(folder / "home"))
    _compare(folder / "home", folder / "index.sqlite")


def test_rows_that_are_written_again_take_nothing_back(tmp_path: Path) -> None:
    """After a compaction, rows from before it stand there once more: lists stay as they were told last."""
    path = tmp_path / "home" / NAME
    told = [
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
    for rows in (told, told + told[1:7]):
        write(path, *rows)
        refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
        with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
            listed = connection.execute("SELECT list, content, status FROM todos ORDER BY list").fetchall()
        assert listed == [("task", "build", "completed"), ("todo", "second", "pending")]
