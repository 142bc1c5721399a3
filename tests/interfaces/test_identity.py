"""A session is its file: every interface says the same id, tokens and calls, whatever the file and its rows are called.

The rows have the shapes of five descriptions of the format. `tests/real/test_seed_blocks.py` takes their own examples.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import entry_points
from tests.interfaces.identity import (
    CALL,
    NAMES,
    RESULT,
    UUID,
    Facts,
    Row,
    ask_about_file,
    ask_about_session,
    make_prompt,
    make_reply,
    write_rows,
)

import threadline

_FIRST, _SECOND = "5eed0000-0000-4000-8000-00000000000a", "5eed0000-0000-4000-8000-00000000000b"
SHAPES: dict[str, tuple[list[Row], int, int]] = {
    "no ids at all": (
        [
            make_prompt("open the notes"),
            make_reply("I will.", CALL, tokens=(1500, 50)),
            make_prompt("", message={"role": "user", "content": RESULT}),
        ],
        1550,
        1,
    ),
    "another id, on prompts only": (
        [
            make_prompt("hello", uuid="u1", sessionId="sess1"),
            make_reply("Hello!", tokens=(10, 8), uuid="a1"),
            make_prompt("open the notes", uuid="u2", sessionId="sess1"),
            make_reply("I will.", tokens=(50, 30), uuid="a2"),
            {"type": "tool_use", "uuid": "t1", "tool": {"name": "Read", "input": {"file_path": "notes.md"}}},
            {"type": "tool_result", "uuid": "r1", "result": {"output": "a note", "error": None}},
            make_reply("It says: a note.", tokens=(80, 15), uuid="a3"),
        ],
        193,
        1,
    ),
    "another id, everywhere": (
        [
            make_prompt("open the notes", uuid="u1", parentUuid=None, sessionId="other", cwd="/work/app"),
            make_reply("I will.", CALL, tokens=(7, 5), uuid="a1", parentUuid="u1", sessionId="other"),
            make_prompt("", message={"role": "user", "content": RESULT}, uuid="u2", parentUuid="a1", sessionId="other"),
        ],
        12,
        1,
    ),
    "two other ids, as in a copy": (
        [
            make_prompt("hello", uuid="u1", parentUuid=None, sessionId=_FIRST),
            make_reply("Hello!", tokens=(3, 4), uuid="a1", parentUuid="u1", sessionId=_FIRST),
            make_reply("And more.", tokens=(5, 6), uuid="a2", parentUuid="a1", sessionId=_SECOND),
        ],
        18,
        0,
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_session_is_its_file(tmp_path: Path, shape: str, name: str) -> None:
    """Every interface gives the same id, tokens and calls: in a home by id and by path, and outside of any home."""
    rows, tokens, calls = SHAPES[shape]
    home = tmp_path / "home"
    inside = write_rows(home / "projects/-home-user-project-a" / f"{name}.jsonl", rows)
    outside = write_rows(tmp_path / "copies" / f"{name}.jsonl", rows)
    for interface, facts in (ask_about_session(home, inside) | ask_about_file(home, outside)).items():
        expected = Facts(name, tokens if facts.tokens is not None else None, calls if facts.calls is not None else None)
        assert (interface, facts) == (interface, expected)


def test_rows_id_is_an_alias_if_one_session_has_it(tmp_path: Path) -> None:
    """`show sess1` shows the session whose rows say `sess1`; a second one with that id makes it unknown."""
    rows, _tokens, _calls = SHAPES["another id, on prompts only"]
    folder = tmp_path / "projects/-a"
    write_rows(folder / f"{UUID}.jsonl", rows)
    assert _run(tmp_path, "show", "sess1").json["session"] == UUID
    assert _run(tmp_path, "usage", "--by", "session", "--session", "sess1").json["rows"][0]["session"] == UUID
    with threadline.open(tmp_path) as archive:
        assert archive.session("SESS1").id == UUID
    write_rows(folder / "copy.jsonl", rows)
    assert b"no session has that id" in _run(tmp_path, "show", "sess1").err


def test_projects_may_have_sessions_of_the_same_name(tmp_path: Path) -> None:
    """As the third description draws it: each is listed, counted and found by its path or its folder and name."""
    for number, name in enumerate(("a/session1", "a/session2", "b/session1"), 1):
        rows = [make_prompt(name, uuid=f"u{number}"), make_reply("Done.", tokens=(number, 0), uuid=f"a{number}")]
        write_rows(tmp_path / f"projects/-home-user-project-{name}.jsonl", rows)
    assert sorted(row["title"] for row in _run(tmp_path, "list").json) == ["a/session1", "a/session2", "b/session1"]
    spent = {row["title"]: row["tokens"] for row in _run(tmp_path, "list").json}
    assert spent == {"a/session1": 1, "a/session2": 2, "b/session1": 3}
    assert _run(tmp_path).json["sessions"] == 3
    assert b"-project-b/session1.jsonl" in _run(tmp_path, "show", "session1").err
    for name, tokens in (("a/session1", 1), ("b/session1", 3)):
        shown = _run(tmp_path, "show", f"project-{name}").json
        assert (shown["session"], shown["title"]) == ("session1", name)
        assert _run(tmp_path, "explain", f"project-{name}").json["total"]["input"] == tokens
    assert _run(tmp_path, "show", "session2").json["title"] == "a/session2"
    server = entry_points.WebClient(tmp_path)
    try:
        rows = server.json("/sessions.json")["sessions"]
        pages = [server.json(f"{row['address']}/about.json") for row in rows]
    finally:
        server.close()
    assert [page["title"] for page in pages] == [row["title"] for row in rows]
    assert len({page["path"] for page in pages}) == 3
    assert [page["tokens"] for page in pages] == [row["tokens"] for row in rows]
    assert {row["title"]: row["tokens"] for row in rows} == {"a/session1": 1, "a/session2": 2, "b/session1": 3}


def test_id_that_begins_another_is_exact(tmp_path: Path) -> None:
    """`session1` does not mean `session10`, and a UUID does not mean a copy with something added."""
    names = {"session1": 1, "session10": 2, UUID: 4, f"{UUID} (1)": 8}
    for name, tokens in names.items():
        rows = [make_prompt(name, uuid=f"u{tokens}"), make_reply("Done.", CALL, tokens=(tokens, 0), uuid=f"a{tokens}")]
        write_rows(tmp_path / f"projects/-a/{name}.jsonl", rows)
    for name, tokens in names.items():
        assert _run(tmp_path, "show", name).json["session"] == name
        assert _run(tmp_path, "usage", "--session", name).json["total"]["input"] == tokens
        with threadline.open(tmp_path) as archive:
            assert archive.ledger().where(session=name).total.input == tokens
            assert {call.session for call in archive.calls(session=name, limit=None)} <= {name}
    assert _run(tmp_path, "show", UUID[:8]).json["session"] == UUID
    assert _run(tmp_path, "show", "last").code == 0


@pytest.mark.parametrize("index", ["on", "off"])
def test_every_file_in_subagents_is_an_agent(tmp_path: Path, index: str) -> None:
    """`<session>/subagents/<any name>.jsonl` is an agent's transcript for every interface."""
    agent = "7f3c2a10-0000-4000-8000-000000000002"
    folder = tmp_path / "projects/-a"
    write_rows(folder / f"{UUID}.jsonl", [make_prompt("begin"), make_reply("Begun.", tokens=(1500, 50))])
    agent_rows = [make_prompt("look around", isSidechain=True), make_reply("Seen.", tokens=(700, 20), isSidechain=True)]
    write_rows(folder / UUID / "subagents" / f"{agent}.jsonl", agent_rows)

    def ask(*arguments: str) -> Any:
        return _run(tmp_path, *arguments, index=index).json

    (row,) = ask("list")
    assert row["agents"] == 1
    usage = {(row["session"], row["agent"]): row["input"] for row in ask("usage", "--by", "session,agent")["rows"]}
    assert usage == {(UUID, "main"): 1500, (UUID, agent): 700}
    tree = ask("tree", UUID)
    assert (tree["agents"], tree["children"][-1]["kind"]) == (1, "agent")
    session = threadline.read(folder / f"{UUID}.jsonl")
    assert [agent.id for agent in session.agents] == [agent]
    assert session.ledger.total.input == 2200
    assert ask("explain", UUID)["total"]["input"] == 2200
    assert ask("entries", str(folder / UUID / "subagents" / f"{agent}.jsonl"))[0]["session"] == UUID


@pytest.mark.parametrize("index", ["on", "off"])
def test_session_has_one_project(tmp_path: Path, index: str) -> None:
    """An agent's transcript in another project's folder, below or beside the sessions there, is of its session's."""
    rows = [make_prompt("begin", cwd="/work/app"), make_reply("Begun.", tokens=(1500, 50), cwd="/work/app")]
    write_rows(tmp_path / f"projects/-work-app/{UUID}.jsonl", rows)
    elsewhere = tmp_path / "projects/-work-app-assets"
    for number, path in enumerate((elsewhere / UUID / "subagents/agent-a1.jsonl", elsewhere / "agent-a2.jsonl")):
        fields: Row = {"isSidechain": True, "agentId": f"a{number + 1}", "sessionId": UUID, "cwd": "/work/app/assets"}
        reply = make_reply("Seen.", CALL, tokens=(700 + number, 20), **fields)
        write_rows(path, [make_prompt("look for zebras", **fields), reply])

    def ask(*arguments: str) -> Any:
        return _run(tmp_path, *arguments, index=index).json

    (row,) = ask("list")
    assert row["project"] == "/work/app"
    assert [(row["project"], row["input"]) for row in ask("usage", "--by", "project")["rows"]] == [("/work/app", 2901)]
    assert ask("usage", "--project", "assets")["rows"] == []
    assert {call["project"] for call in ask("calls")} == {"/work/app"}
    assert ask("calls", "--project", "assets") == []
    assert not ask("entries", "--project", "assets")
    digest = ask("digest", "--since", "2025-01-01", "--until", "2025-02-01")
    ((project, sessions),) = ((row["project"], row["sessions"]) for row in digest["projects"])
    assert (project, [session["session"] for session in sessions]) == ("/work/app", [UUID])
    if index == "on":
        assert [hit["project"] for hit in ask("search", "zebras")] == ["/work/app"]
        (counts,) = ask("sql", "SELECT COUNT(DISTINCT project) AS projects, COUNT(*) AS charges FROM charges")
        assert counts == {"projects": 1, "charges": 3}


def test_project_follows_the_session_when_it_appears(tmp_path: Path) -> None:
    """The index assigns an agent's transcript to its session's project, even if the session is written later."""
    fields: Row = {"isSidechain": True, "agentId": "a1", "sessionId": UUID, "cwd": "/work/app/assets"}
    reply = make_reply("Seen.", tokens=(700, 20), **fields)
    write_rows(tmp_path / f"projects/-work-app-assets/{UUID}/subagents/agent-a1.jsonl", [reply])

    def projects() -> list[str]:
        return [row["project"] for row in _run(tmp_path, "usage", "--by", "project").json["rows"]]

    _run(tmp_path, "index", "refresh")
    assert projects() == ["/work/app/assets"]
    rows = [make_prompt("begin", cwd="/work/app"), make_reply("Begun.", tokens=(1500, 50), cwd="/work/app")]
    main = write_rows(tmp_path / f"projects/-work-app/{UUID}.jsonl", rows)
    assert projects() == ["/work/app"]
    main.unlink()
    assert projects() == ["/work/app/assets"]


def test_agents_beside_a_renamed_transcript_stay_its_agents(tmp_path: Path) -> None:
    """Outside of a home, agents that name the id in the rows of the main transcript belong to it, and count there."""
    path = write_rows(tmp_path / "notes.jsonl", SHAPES["another id, everywhere"][0])
    agent_row = make_reply("Seen.", tokens=(700, 20), isSidechain=True, agentId="a1", uuid="x1", sessionId="other")
    write_rows(tmp_path / "agent-a1.jsonl", [agent_row])
    session = threadline.read(path)
    assert (session.id, [agent.id for agent in session.agents]) == ("notes", ["a1"])
    assert session.ledger.total.tokens == 12 + 720
    (tmp_path / "home/projects").mkdir(parents=True)
    assert _run(tmp_path / "home", "explain", str(path)).json["total"]["charges"] == 2


def test_files_that_are_not_sessions_are_not_listed(tmp_path: Path) -> None:
    """Hidden files, notes and agents' rows are not sessions, whatever they are called."""
    folder = tmp_path / "projects/-a"
    write_rows(folder / f"._{UUID}.jsonl", [make_prompt("hidden")])
    write_rows(folder / "notes.jsonl", [{"note": "buy milk"}])
    write_rows(folder / "helper.jsonl", [make_prompt("an agent's", isSidechain=True)])
    write_rows(folder / "agent-a1.jsonl", [make_prompt("an agent's", isSidechain=True, agentId="a1")])
    assert _run(tmp_path, "list").json == []
    assert _run(tmp_path).json["sessions"] == 0
    overview = entry_points.run_command("--home", tmp_path).out.decode()
    assert "threadline usage" in overview
    assert "show last" not in overview


def test_keep_lists_and_restores_a_session_of_any_name(tmp_path: Path) -> None:
    """A session is kept under its own name, with its agents."""
    home, keep = tmp_path / "home", tmp_path / "keep"
    path = write_rows(home / "projects/-a/session1.jsonl", SHAPES["no ids at all"][0])
    write_rows(home / "projects/-a/session1/subagents/helper.jsonl", [make_reply("Seen.", tokens=(7, 2))])
    entry_points.run_command("keep", "--home", home, "--keep", keep)
    (row,) = entry_points.run_command("keep", "list", "--keep", keep, "--json").json
    assert (row["session"], row["files"]) == ("session1", 2)
    content = path.read_bytes()
    path.unlink()
    entry_points.run_command("keep", "restore", "session1", "--keep", keep, "--home", home)
    assert path.read_bytes() == content


def _run(home: Path, *arguments: str, index: str = "on") -> entry_points.CommandResult:
    return entry_points.run_command(*arguments, "--json", "--home", home, environment={"THREADLINE_INDEX": index})
