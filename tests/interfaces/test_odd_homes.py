"""The rows of the list add up to the totals of every home, with an index or without: see `docs/odd-homes.md`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import entry_points, odd_homes
from tests.interfaces.odd_homes import FIRST, NOWHERE, SECOND, UPPER

import threadline

SEEDS = 2
MORE_SEEDS = 150


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", odd_homes.CASES)
def test_rows_add_up_in_every_case(tmp_path: Path, name: str) -> None:
    """`list`, `usage`, `show`, the pages and the library say the same about each file."""
    _check_sums(odd_homes.CASES[name](tmp_path / "homes"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rows_add_up_in_random_homes(tmp_path: Path, seed: int) -> None:
    """Copies, links, foreign ids, twins, odd names and agents without sessions, in one or two homes."""
    _check_sums(odd_homes.write_random(tmp_path / "homes", seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, MORE_SEEDS))
def test_rows_add_up_in_more_random_homes(tmp_path: Path, seed: int) -> None:
    """The same for many more."""
    _check_sums(odd_homes.write_random(tmp_path / "homes", seed))


def _check_sums(homes: list[Path]) -> None:
    rows = {index: _run(homes, "list", index=index).json or [] for index in ("on", "off")}
    keys = ("session", "path", "tokens", "agents", "shared", "unlisted", "started", "ended")
    by_index = [sorted(str([row[key] for key in keys]) for row in rows[index]) for index in ("on", "off")]
    assert by_index[0] == by_index[1]
    for index in ("on", "off"):
        usage = _run(homes, "usage", "--by", "session", index=index).json or {"rows": []}
        spent = {row["session"]: _tokens(row) for row in usage["rows"]}
        by_id: Counter[str] = Counter()
        for row in rows[index]:
            by_id[row["session"] or "(none)"] += row["tokens"]
        assert +by_id == spent
        for row in rows[index]:
            shown = _run(homes, "show", row["path"], index=index).json
            assert (row["path"], shown["spent"]["tokens"]) == (row["path"], row["tokens"])
        with threadline.open(homes, index=index == "on") as archive:
            assert archive.ledger().total.tokens == sum(spent.values())
            for session in archive.sessions():
                (tokens,) = (row["tokens"] for row in rows[index] if row["path"] == _escaped(session.path))
                assert archive.session_at(session.path).ledger.total.tokens == tokens
    _check_pages(homes, rows["on"])


def _check_pages(homes: list[Path], rows: list[Any]) -> None:
    server = entry_points.WebClient(*homes)
    try:
        listed = server.json("/sessions.json?limit=500")["sessions"]
        assert sorted(row["tokens"] for row in listed) == sorted(row["tokens"] for row in rows)
        for row in listed:
            page = server.json(f"{row['address']}/about.json")
            assert (row["address"], page["tokens"]) == (row["address"], row["tokens"])
        assert len({row["address"] for row in listed}) == len(listed)
    finally:
        server.close()


def test_copy_says_what_it_is_a_copy_of(tmp_path: Path) -> None:
    """The copy spent nothing; the list, `show` and the page say how much it shares, and with which session."""
    homes = odd_homes.CASES["copy under another id"](tmp_path / "homes")
    copy, original = _run(homes, "list").json
    assert [(row["session"], row["tokens"]) for row in (copy, original)] == [(SECOND, 0), (FIRST, 1000)]
    assert [(part["session"], part["tokens"]) for part in copy["shared"]] == [(FIRST, 1000)]
    assert original["shared"] == []
    arguments = [argument for home in homes for argument in ("--home", home)]
    assert b"copy of 5eed0000" in entry_points.run_command("list", *arguments).out
    shown = _run(homes, "show", SECOND).json
    assert [(part["session"], part["tokens"]) for part in shown["shared"]] == [(FIRST, 1000)]
    server = entry_points.WebClient(*homes)
    try:
        page = server.json(f"/session/{SECOND}/about.json")
        (fact,) = (part for part in page["shared"])
    finally:
        server.close()
    assert (page["tokens"], fact["session"], fact["tokens"]) == (0, FIRST, 1000)


@pytest.mark.parametrize("index", ["on", "off"])
@pytest.mark.parametrize(
    ("name", "spent"),
    [
        ("copy under another id", {FIRST: 1000, SECOND: 0}),
        ("copy under an id that sorts first", {FIRST: 0, SECOND: 1020}),
        ("copy that continues before its original", {FIRST: 20, SECOND: 1300}),
        ("hard link under another id", {FIRST: 77, SECOND: 0}),
        ("hard link under an id that sorts first", {FIRST: 0, SECOND: 77}),
    ],
)
def test_original_is_the_session_that_the_rows_name(
    tmp_path: Path, name: str, spent: dict[str, int], index: str
) -> None:
    """It has the spending, whatever the order of the ids, and the copy says that it continues the original."""
    homes = odd_homes.CASES[name](tmp_path / "homes")
    assert {row["session"]: row["tokens"] for row in _run(homes, "list", index=index).json} == spent
    copy, original = sorted(spent, key=lambda session: spent[session])
    continuations = {session: _run(homes, "show", session, index=index).json["continuations"] for session in spent}
    assert [(part["session"], part["forward"]) for part in continuations[copy]] == [(original, False)]
    assert [(part["session"], part["forward"]) for part in continuations[original]] == [(copy, True)]


@pytest.mark.parametrize("name", ["the same id in two folders", odd_homes.SEVERAL_HOMES])
def test_ambiguous_id_lists_names_that_work(tmp_path: Path, name: str) -> None:
    """`show ID` fails with exit code 2, and each name in its message shows one of the sessions."""
    homes = odd_homes.CASES[name](tmp_path / "homes")
    failed = _run(homes, "show", FIRST)
    assert failed.code == 2
    names = [line.strip() for line in failed.err.decode().splitlines() if line.startswith("  ")]
    assert len(names) == 2
    assert [_run(homes, "show", name).json["path"] for name in names] == names


def test_page_of_an_ambiguous_id_lists_the_sessions(tmp_path: Path) -> None:
    """Each has an address of its own, which hits and lists lead to."""
    homes = odd_homes.CASES["the same id in two folders"](tmp_path / "homes")
    server = entry_points.WebClient(*homes)
    try:
        choice = server.json(f"/session/{FIRST}.json")
        pages = {page["path"]: page["tokens"] for page in _choices(server, choice)}
        hits = server.json("/search?q=prompt&every=1")["text"]
    finally:
        server.close()
    assert {Path(path).parent.name: tokens for path, tokens in pages.items()} == {"-work-app": 1000, "-work-other": 20}
    for folder in ("-work-app", "-work-other"):
        assert f"/session/{folder}~2F{FIRST}?at=L1" in hits


def _choices(server: entry_points.WebClient, choice: Any) -> list[Any]:
    return [server.json(f"{row['address']}/about.json") for row in choice["choices"]]


def test_agent_in_a_third_folder_belongs_to_the_first_session_by_path(tmp_path: Path) -> None:
    """The list, the session itself, SQL and the index agree: `-work-app/5eed` is before `-work/5eed`."""
    (home,) = odd_homes.CASES["the same id in two folders, with an agent in a third"](tmp_path / "home")
    with threadline.open(home) as archive:
        archive.refresh()
        listed = {session.path.parent.name: session.agents for session in archive.sessions()}
        read = {name: archive.session_at(home / f"projects/{name}/{FIRST}.jsonl").agents for name in listed}
        rows = archive.sql("SELECT transcript, agents FROM sessions")
        briefs = {Path(brief.path).parent.name: brief.agents for brief in archive.open_index().sessions()}
        named = {name: len(archive.agents(session=f"{name}/{FIRST}")) for name in listed}
    expected = {"-work": 0, "-work-app": 1}
    assert named == expected
    assert listed == briefs == expected
    assert {name: len(agents) for name, agents in read.items()} == expected
    assert {Path(row["transcript"]).parent.name: row["agents"] for row in rows} == expected


@pytest.mark.parametrize("index", [True, False])
def test_homes_that_share_their_projects_have_each_session_once(tmp_path: Path, index: bool) -> None:
    """Its id is not ambiguous, and the first home has it."""
    homes = odd_homes.CASES["two homes with the same projects"](tmp_path / "homes")
    with threadline.open(homes, index=index) as archive:
        assert archive.transcript(FIRST).home.path == homes[0]
        assert [(len(home.projects), len(home.transcripts)) for home in archive.found] == [(1, 2), (0, 0)]


@pytest.mark.parametrize(("name", "has_session"), [("notes", True), (FIRST, True), (FIRST, False)])
def test_edit_of_an_agent_apart_from_its_session_is_shown(tmp_path: Path, name: str, has_session: bool) -> None:
    """The log has its diff, whether the session is in another project, in another home, or gone."""
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        (home / "projects").mkdir(parents=True)
    if has_session:
        odd_homes.write(homes[0] / f"projects/-work-app/{name}.jsonl", odd_homes.conversation("a", 1_000))
    rows = odd_homes.agent_rows("b", 20, "a1", session=name, day=2)
    block = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"file_path": "/work/app/x.py"}}
    rows[1]["message"]["content"] = [block]
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    details = {"type": "create", "filePath": "/work/app/x.py", "content": "hi", "structuredPatch": []}
    message = {"role": "user", "content": [answer]}
    rows.append({**rows[0], "uuid": "r", "parentUuid": "b-a", "message": message, "toolUseResult": details})
    odd_homes.write(homes[name == FIRST] / f"projects/-work-other/{name}/subagents/agent-a1.jsonl", rows)
    with threadline.open(homes) as archive:
        (edit,) = archive.file_log("x.py")
    assert "+hi" in edit.diff


def test_named_session_includes_what_it_copied(tmp_path: Path) -> None:
    """`calls` and `errors` of a session have its copies, in the command and in the library; lists over all do not."""
    rows = odd_homes.conversation("a", 1_000, session=FIRST)
    use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "false"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "boom", "is_error": True}
    rows[1]["message"]["content"].append(use)
    answer = {**rows[0], "uuid": "a-r", "parentUuid": "a-a", "message": {"role": "user", "content": [result]}}
    for name in (FIRST, SECOND):
        odd_homes.write(tmp_path / f"home/projects/-work-app/{name}.jsonl", [*rows, answer])
    homes = [tmp_path / "home"]
    with threadline.open(homes) as archive:
        for name in (FIRST, SECOND):
            assert len(_run(homes, "calls", name).json) == len(archive.calls(session=name)) == 1
            assert len(_run(homes, "errors", name).json) == len(archive.errors(session=name)) == 1
        assert len(archive.calls()) == len(archive.errors()) == 1


def test_agents_belong_to_the_session_in_their_folder(tmp_path: Path) -> None:
    """Sessions of the same name in two projects do not share agents, in any list."""
    homes = odd_homes.CASES["agents of sessions of the same name"](tmp_path / "homes")
    for index in ("on", "off"):
        assert sorted((row["agents"], row["tokens"]) for row in _run(homes, "list", index=index).json) == [
            (1, 11),
            (2, 422),
        ]
    with threadline.open(homes) as archive:
        assert sorted(row["agents"] for row in archive.sql("SELECT agents FROM sessions")) == [1, 2]
        assert sorted(brief.agents for brief in archive.open_index().sessions()) == [1, 2]


def test_two_transcripts_of_an_agent_are_one_agent(tmp_path: Path) -> None:
    """Its amount is in the tree once."""
    homes = odd_homes.CASES["an agent in two files"](tmp_path / "homes")
    tree = _run(homes, "tree", FIRST).json
    agents = [child["tokens"] for child in tree["children"] if child["kind"] == "agent"]
    assert (tree["tokens"], tree["agents"], agents) == (1020, 1, [20])


def test_transcripts_without_a_session_are_listed_with_the_reason(tmp_path: Path) -> None:
    """Nothing that was spent is missing from the list, and each file can be shown."""
    homes = odd_homes.CASES["names that are no UUID"](tmp_path / "homes")
    rows = _run(homes, "list").json
    assert {Path(row["path"]).name: row["unlisted"] for row in rows} == {
        "notes.jsonl": None,
        "helper.jsonl": "the transcript contains only an agent's messages",
        f"{SECOND}.jsonl": "the transcript contains only an agent's messages",
        f"._{FIRST}.jsonl": "the file is not a session's or an agent's transcript",
        "agent-.jsonl": "the file is not a session's or an agent's transcript",
        "deep.jsonl": "the file is not a session's or an agent's transcript",
    }
    unlisted = _run(homes, "doctor").json["unlisted"]
    assert {reason: row["count"] for reason, row in unlisted.items()} == {
        "the file is not a session's or an agent's transcript": 3,
        "the transcript has no conversation of its own": 2,
    }
    homes = odd_homes.CASES["agents without a session"](tmp_path / "agents")
    assert (
        _run(homes, "doctor").json["unlisted"]["the transcript of its session is missing or not listed"]["count"] == 2
    )
    rows = _run(homes, "list").json
    assert {row["session"]: row["tokens"] for row in rows} == {None: 300, NOWHERE: 20}
    text = entry_points.run_command("list", "--home", homes[0]).out.decode()
    assert "Spent in no listed session: 320 tokens" in " ".join(text.split())


def test_limit_that_cuts_nothing_changes_nothing(tmp_path: Path) -> None:
    """`list --limit` leaves out what was spent in no session only if it leaves out sessions."""
    homes = odd_homes.CASES["names that are no UUID"](tmp_path / "homes")
    odd_homes.write(homes[0] / "projects/-work-app/more.jsonl", odd_homes.conversation("m", 7, day=9))
    rows = _run(homes, "list").json
    assert [row["unlisted"] is None for row in rows].count(True) == 2
    assert _run(homes, "list", "--limit", "2").json == _run(homes, "list", "--limit", "500").json == rows
    assert _run(homes, "list", "--limit", "1").json == rows[:1]


def test_ids_that_differ_in_case_are_two_sessions(tmp_path: Path) -> None:
    """In lists, in the ledger, by id and by address."""
    homes = odd_homes.CASES["ids that differ in case"](tmp_path / "homes")
    expected = {FIRST: 1000, UPPER: 20, "Notes": 300, "notes": 4000}
    assert {row["session"]: row["tokens"] for row in _run(homes, "list").json} == expected
    server = entry_points.WebClient(*homes)
    try:
        for name, tokens in expected.items():
            assert _run(homes, "show", name).json["spent"]["tokens"] == tokens
            assert server.json(f"/session/{name}/about.json")["tokens"] == tokens
            with threadline.open(homes) as archive:
                assert archive.ledger(session=name).total.tokens == tokens
    finally:
        server.close()


def test_impossible_times_are_shown_as_written_and_reported(tmp_path: Path) -> None:
    """1999 is 1999 everywhere; the year 99999 is no time. Both are problems."""
    homes = odd_homes.CASES["impossible times"](tmp_path / "homes")
    rows = {row["session"]: row for row in _run(homes, "list").json}
    assert rows[FIRST]["started"] == rows[FIRST]["first"] == _run(homes, "show", FIRST).json["started"]
    assert rows[FIRST]["started"].startswith("1999-01-01")
    assert rows[SECOND]["ended"] == rows[SECOND]["started"] == "2026-03-01T10:00:00Z"
    assert _run(homes, "doctor").json["problems"]["bad-timestamp"]["count"] == 3
    with threadline.open(homes) as archive:
        assert len(archive.problems(kinds="bad-timestamp")) == 3


def test_session_without_times_has_no_start_and_no_end(tmp_path: Path) -> None:
    """`last` is the file's mtime, so that the list has an order; `started` and `ended` are null everywhere."""
    rows = [{**row, "timestamp": "99999-01-01T00:00:00Z"} for row in odd_homes.conversation("a", 7, session=FIRST)]
    odd_homes.write(tmp_path / f"home/projects/-work-app/{FIRST}.jsonl", rows)
    homes = [tmp_path / "home"]
    for index in ("on", "off"):
        (row,) = _run(homes, "list", index=index).json
        assert (row["first"], row["started"], row["ended"]) == (None, None, None)
    shown = _run(homes, "show", FIRST).json
    assert (shown["started"], shown["ended"]) == (None, None)
    server = entry_points.WebClient(*homes)
    try:
        (row,) = server.json("/sessions.json")["sessions"]
        page = server.json(f"{row['address']}/about.json")
    finally:
        server.close()
    assert [row["started"], row["ended"], page["started"], page["ended"]] == [None] * 4


def test_paths_that_are_no_text_can_be_used_again(tmp_path: Path) -> None:
    """`list --json` escapes bytes that are not text; `show`, `read` and the page accept that."""
    homes = odd_homes.CASES["folder that is no text"](tmp_path / "homes")
    rows = _run(homes, "list").json
    assert [row["session"] for row in rows] == ["n\\xfe", FIRST]
    for row in rows:
        assert "\\xff" in row["path"]
        assert threadline.read(row["path"]).id == row["session"]
        assert _run(homes, "show", row["path"]).json["path"] == row["path"]
        assert _run(homes, "show", row["session"]).json["session"] == row["session"]


def _run(homes: list[Path], *arguments: str | Path, index: str = "on") -> entry_points.CommandResult:
    options = [argument for home in homes for argument in ("--home", home)]
    return entry_points.run_command(*arguments, "--json", *options, environment={"THREADLINE_INDEX": index})


def _tokens(row: Any) -> int:
    return int(row["input"] + row["output"] + row["cache_write"] + row["cache_read"])


def _escaped(path: Path) -> str:
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")
