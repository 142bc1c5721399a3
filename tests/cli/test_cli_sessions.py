"""`list`, `show`, `tree`, `calls` and `errors`."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import COMMAND, CliRunner, control_characters, run_in_subprocess, subprocess_environment
from tests.cli.test_cli_hostile import EVERYTHING, TEXTS, ascii_json
from tests.subtests import for_each
from tests.thread.session_cases import main_transcripts
from tests.transcripts import SESSION, Pen, Row, call, chain, line, meta, prompt, reply, transcript, write

from threadline.cli.output import pager_command

OTHER = "5e551011-0000-4000-8000-000000000002"
OLD = "5e551011-0000-4000-8000-000000000003"
AGENT = "a0123456789abcdef"
(REWOUND,) = main_transcripts("rewind-leaves-a-branch")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three sessions: one with an agent in its folder, one with an agent next to it, one with an agent inside."""
    project = tmp_path / "home" / "projects" / "-work-app"
    arguments = {"subagent_type": "Explore", "description": "find it", "prompt": "Find it!"}
    write(
        project / f"{SESSION}.jsonl",
        *transcript(
            prompt("Fix the parser"),
            call("Bash", "false", result="Exit code 1\nboom", error=True),
            call("Agent", arguments, result="ok", details={"status": "completed", "agentId": AGENT}),
            reply("Done."),
            chain("system", subtype="api_error", error={"status": 529}, retryAttempt=1, maxRetries=10),
            prompt("thanks"),
            reply("You are welcome."),
            meta("custom-title", customTitle="The parser"),
        ),
    )
    write(
        project / SESSION / "subagents" / f"agent-{AGENT}.jsonl",
        *transcript(
            prompt("Find it!"),
            call("Grep", "it", result="no", error=True),
            reply("It."),
            pen=Pen(isSidechain=True, agentId=AGENT),
        ),
    )
    (project / SESSION / "subagents" / f"agent-{AGENT}.meta.json").write_text('{"agentType": "Explore"}')
    write(
        project / SESSION / "subagents" / "agent-acompact-0123456789abcdef.jsonl",
        *transcript(prompt("Sum up"), reply("All."), pen=Pen(isSidechain=True, agentId="acompact-0123456789abcdef")),
    )
    write(project / f"{OTHER}.jsonl", *transcript(prompt("日本語のテスト"), reply("はい"), pen=Pen(OTHER)))
    write(
        project / "agent-0123abcd.jsonl",
        *transcript(prompt("Beside"), reply("yes"), pen=Pen(OTHER, isSidechain=True, agentId="0123abcd")),
    )
    inside = transcript(
        prompt("Inside"), reply("yes"), pen=Pen("5e551011-0000-4000-8000-00000000000a", isSidechain=True)
    )
    rows = [{**row, "sessionId": OLD} for row in inside if isinstance(row, dict)]
    write(project / f"{OLD}.jsonl", *transcript(prompt("Old one"), reply("ok"), pen=Pen(OLD)), *rows)
    # Not sessions: only an agent's rows, only metadata, nothing.
    agent_id = "5e551011-0000-4000-8000-000000000004"
    write(project / f"{agent_id}.jsonl", *transcript(prompt("Agent"), reply("x"), pen=Pen(agent_id, isSidechain=True)))
    write(project / "5e551011-0000-4000-8000-000000000005.jsonl", *transcript(meta("summary", summary="A title")))
    write(project / "5e551011-0000-4000-8000-000000000006.jsonl")
    return tmp_path / "home"


def list_ids(cli: CliRunner, home: Path, *options: str) -> list[str]:
    """The ids of the sessions that `list` prints."""
    return [row["session"] for row in list_rows(cli, home, *options)]


def list_rows(cli: CliRunner, home: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of `list` that are sessions."""
    return [row for row in cli("list", "--home", home, "--json", *options).json if row["unlisted"] is None]


def test_list_counts_agents_of_sessions(cli: CliRunner, home: Path) -> None:
    """Agents are never listed as sessions, in any layout. Side agents are not counted."""
    rows = {row["session"]: row for row in list_rows(cli, home)}
    assert set(rows) == {SESSION, OTHER, OLD}
    assert [rows[id_]["agents"] for id_ in (SESSION, OTHER, OLD)] == [1, 1, 1]
    assert rows[SESSION]["title"] == "The parser"
    assert rows[SESSION]["turns"] == 2
    assert rows[SESSION]["project"] == "/work/app"
    assert rows[SESSION]["agent_types"] == {"Explore": 1}
    assert rows[SESSION]["model"] == "claude-sonnet-4-5-20250929"


def test_agents_without_transcript_are_counted_separately(cli: CliRunner, home: Path) -> None:
    """`agents` counts those with a transcript, `agents_started` all. `list` and `tree` use the same rule."""
    project = home / "projects" / "-work-app"
    arguments = {"subagent_type": "Plan", "description": "plan it", "prompt": "Plan it!"}
    path = write(
        project / "5e551011-0000-4000-8000-000000000007.jsonl",
        *transcript(
            prompt("Go"),
            call("Agent", arguments, result="ok", details={"status": "completed", "agentId": "a00000000000000f1"}),
            call("Task", {**arguments, "prompt": "Old"}, result="ok"),
            call("Agent", arguments, result="No such type", error=True),
            pen=Pen("5e551011-0000-4000-8000-000000000007"),
        ),
    )
    row = next(row for row in cli("list", "--home", home, "--json").json if row["path"] == str(path))
    assert (row["agents"], row["agents_started"], row["agent_types"]) == (0, 2, {"Plan": 2})
    tree = cli("tree", path, "--json").json
    assert (tree["agents"], tree["agents_started"]) == (0, 2)
    assert " · 2 agents, no transcripts · " in cli("list", "--home", home).out
    row_with_transcript = next(row for row in cli("list", "--home", home, "--json").json if row["session"] == SESSION)
    assert (row_with_transcript["agents"], row_with_transcript["agents_started"]) == (1, 1)


def test_list_has_two_lines_per_session(cli: CliRunner, home: Path) -> None:
    """The id and title, then the figures. The newest session is first."""
    result = cli("list", "--home", home)
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "5e551011  The parser"
    facts = r"2026-01-05 09:00 · 2 turns · 1 agent · sonnet-4-5 · \$[\d.]+ · [\d.]+ kB"
    assert re.fullmatch(rf" {{10}}{facts} · /work/app", lines[1])
    assert lines[6].startswith("Spent in no listed session: ")
    assert lines[-2:] == ["", "Times are UTC."]
    assert " ".join(lines[6:-2]).endswith("(the transcript contains only an agent's messages).")


def test_narrow_list_keeps_amounts(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, model, agents and turns give way first; the time, the amount and the project stay."""
    rows = transcript(prompt("go"), reply("done", output=100_000), pen=Pen(cwd="/work/a-rather-long-name"))
    write(tmp_path / f"projects/-work-a-rather-long-name/{SESSION}.jsonl", *rows)
    cli("index", "refresh", "--home", tmp_path)
    for columns in (100, 80, 60, 50):
        monkeypatch.setenv("COLUMNS", str(columns))
        line = cli("list", "--home", tmp_path).out.splitlines()[1]
        assert "2026-01-05 09:00" in line
        assert "$1.50" in line
        assert line.endswith("long-name")
        assert ("kB" in line or "bytes" in line) == (columns == 100)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--title", "PARSER"], [SESSION]),
        (["--agent-type", "explore"], [SESSION]),
        (["--project", "app"], [SESSION, OLD, OTHER]),
        (["--project", "nowhere"], []),
        (["--since", "2026-01-06"], []),
        (["--since", "2026-01-05", "--until", "2026-01-05"], [SESSION, OLD, OTHER]),
        (["--until", "2026-01-04"], []),
        (["--limit", "1"], [SESSION]),
    ],
)
def test_list_filters(cli: CliRunner, home: Path, options: list[str], ids: list[str]) -> None:
    """Filters by project, title, agent type, time and number."""
    assert list_ids(cli, home, *options) == ids


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["list", "--title", "zzz"], "None of 3 sessions matches --title 'zzz'. The newest is titled 'The parser'."),
        (["list", "--project", "zzz"], "None of 3 sessions matches --project 'zzz'. Projects: /work/app."),
        (
            ["list", "--agent-type", "zz"],
            "None of 3 sessions matches --agent-type 'zz'. Agent types: Explore (1).",
        ),
        (
            ["list", "--since", "2027-01-01"],
            "None of 3 sessions matches --since. The newest is from 2026-01-05 09:00 (UTC).",
        ),
        (
            ["calls", SESSION, "--tool", "Foo"],
            "No calls of Foo. Tools in this session: Bash (1), Agent (1), Grep (1).",
        ),
        (["calls", SESSION, "--outcome", "lost"], "No calls with that outcome. Outcomes: error (2), ok (1)."),
        (["calls", SESSION, "--agent", "zz"], f"No calls by that agent. Agents with calls: main, {AGENT}."),
        (["calls", OTHER], "No calls: no agent of this session called a tool."),
        (["errors", OTHER], "No failures: every call succeeded or is still open, and no request failed."),
        (
            ["errors", "--until", "2020-01-01"],
            "No failures in that time. Other failures are from 2026-01-05 to 2026-01-05 (UTC).",
        ),
        (["todos", OTHER], "No todos or tasks: no agent of this session made a list, or the last list is empty."),
        (["files", OTHER], "No files: the session did not read or write any."),
        (["files", OTHER, "--diff", "1", "2"], "No known file changes between 1 and 2."),
        (
            ["request", OTHER],
            "No requests: Claude Code records them only from version 2.1.325 on. This session was written by 2.1.232.",
        ),
    ],
)
def test_explains_why_nothing_matches(cli: CliRunner, home: Path, command: list[str], sentence: str) -> None:
    """Exit code 1 and one helpful sentence on standard error. `--json` prints an empty list."""
    result = cli(*command, "--home", home)
    assert (result.code, result.out, result.err) == (1, "", f"threadline: {sentence}\n")
    assert cli(*command, "--home", home, "--json").json == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_calls_table_fits_terminal(home: Path, columns: int) -> None:
    """The date is omitted if there is only one. Columns are dropped only if there is no room for them."""
    lines = run_in_subprocess("calls", SESSION, "--home", home, COLUMNS=str(columns)).out.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("line" in lines[0].split()) is (columns >= 80)
    assert lines[1].split()[0] == "09:00:04"


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", ["calls", "errors"])
def test_tables_with_long_names_fit_80_columns(tmp_path: Path, command: str) -> None:
    """Tool names are shortened before the input."""
    stop = "[Request interrupted by user for tool use]"
    path = write(
        tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl",
        *transcript(prompt("go"), call("mcp__a_browser__javascript_tool", {"a": "x" * 99}, stop, error=True)),
        *transcript(prompt("on"), call("Bash", "y" * 99), pen=Pen(start=datetime(2026, 2, 1, tzinfo=UTC))),
    )
    session = [path] if command == "calls" else []
    result = run_in_subprocess(command, *session, "--home", tmp_path / "home", COLUMNS="80")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80


def test_refuses_short_id_prefix(cli: CliRunner, home: Path) -> None:
    """The message says how many characters are needed."""
    result = cli("show", "5", "--home", home)
    assert result.code == 2
    assert "at least 4 characters" in result.err


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        ({"PAGER": "head -n 2"}, ["head", "-n", "2"]),
        ({"PAGER": "head ; touch x"}, ["head", ";", "touch", "x"]),
        ({"PAGER": "cat"}, []),
        ({"PAGER": ""}, []),
        ({"PAGER": "head", "TERM": "dumb"}, []),
    ],
)
def test_pager_is_split_into_words_without_a_shell(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], command: list[str]
) -> None:
    """PAGER is run without a shell, and a dumb terminal has no pager."""
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    words = pager_command()
    assert [Path(word).name if not position else word for position, word in enumerate(words)] == command


def test_lists_copied_failures_once(cli: CliRunner, tmp_path: Path) -> None:
    """A failure that forks copied is listed once, for the session that ends first, with its turn."""
    project = tmp_path / "home" / "projects" / "-work-app"
    rows = [row for row in transcript(prompt("go"), call("Bash", "false", "no", error=True)) if isinstance(row, dict)]
    write(project / f"{OTHER}.jsonl", *rows)
    more = transcript(prompt("on"), reply("ok"), pen=Pen(start=datetime(2026, 2, 1, tzinfo=UTC)))
    write(project / f"{SESSION}.jsonl", *({**row, "sessionId": SESSION} for row in rows), *more)
    write(
        project / f"{OLD}.jsonl",
        *(
            {
                **row,
                "uuid": f"f{row['uuid'][1:]}",
                "parentUuid": row["parentUuid"] and f"f{row['parentUuid'][1:]}",
                "sessionId": OLD,
                "forkedFrom": {"sessionId": OTHER, "messageUuid": row["uuid"]},
            }
            for row in rows
        ),
    )
    (row,) = cli("errors", "--home", tmp_path / "home", "--json").json
    assert (row["turn"], row["copy_of"]) == (1, None)
    assert Path(row["place"].rsplit(":", 1)[0]).stem == OTHER
    (line,) = cli("errors", "--home", tmp_path / "home").out.splitlines()[1:]
    assert line.split()[3] == "1"


def test_limited_list_says_so(cli: CliRunner, home: Path) -> None:
    """A limited list mentions --limit."""
    assert "use --limit N" in cli("list", "--home", home, "--limit", "2").out


def test_limited_list_is_the_start_of_the_full_list(cli: CliRunner, demo_home: Path) -> None:
    """The newest sessions, found from the ends of the files, are the beginning of the full list."""
    ids = list_ids(cli, demo_home)
    assert len(ids) > 10
    assert list_ids(cli, demo_home, "--limit", "7") == ids[:7]


def test_list_contains_no_agents(cli: CliRunner, demo_home: Path) -> None:
    """Every row is a main transcript, and agents are counted in the rows."""
    rows = cli("list", "--home", demo_home, "--json").json
    assert not [row for row in rows if "agent-" in row["path"] or "subagents" in row["path"]]
    assert sum(row["agents"] for row in rows) > 0


def process_start(pid: int) -> str:
    """The start time of a process, as Linux counts it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize(
    ("pid", "start", "running"),
    [("own", None, True), ("own", "right", True), ("own", "1", False), ("none", None, False)],
)
def test_running_sessions_are_marked(cli: CliRunner, home: Path, pid: str, start: str | None, *, running: bool) -> None:
    """A session is running if its process lives and started when the registry says."""
    number = os.getpid() if pid == "own" else 2**22 + 1  # Linux gives out no number that high
    registry = home / "sessions"
    registry.mkdir()
    if start == "right":
        start = process_start(number) if Path("/proc/self/stat").exists() else None
    registration = {"pid": number, "sessionId": OTHER, "procStart": start}
    (registry / f"{number}.json").write_text(json.dumps(registration))
    rows = {row["session"]: row["running"] for row in list_rows(cli, home)}
    assert rows == {SESSION: False, OLD: False, OTHER: running}
    assert ("running  日本語" in cli("list", "--home", home).out) is running


def test_empty_home_lists_nothing(cli: CliRunner, tmp_path: Path) -> None:
    """Exit code 1, and an empty array in JSON."""
    (tmp_path / "empty" / "projects").mkdir(parents=True)
    result = cli("list", "--home", tmp_path / "empty", "--json")
    assert (result.code, result.json) == (1, [])


def test_show_prints_the_conversation_in_order(cli: CliRunner, home: Path) -> None:
    """Through a pipe, it is plain text without colours."""
    result = cli("show", "last", "--home", home)
    assert result.code == 0
    text = cli("show", SESSION, "--home", home).out
    assert not control_characters(text)
    parts = [
        "The parser",
        "Fix the parser",
        "✗ Bash  false  error",
        "↳ Explore: find it",
        "Done.",
        "API error: 529",
        "thanks",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_show_thread_json(cli: CliRunner, home: Path) -> None:
    """`--thread --json` has the session and the visible entries of the active thread, in order, and nothing else."""
    document = cli("show", SESSION, "--thread", "--json", "--home", home).json
    assert list(document) == ["session", "entries"]
    assert document["session"] == SESSION
    assert [list(entry) for entry in document["entries"]] == [["uuid", "kind", "place"]] * len(document["entries"])
    assert [entry["kind"] for entry in document["entries"]] == [
        "user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert document["entries"][0]["place"].endswith(f"{SESSION}.jsonl:1")


def test_show_json_has_turns_and_jsonl_entries(cli: CliRunner, home: Path) -> None:
    """`--json` is a document of turns. `--jsonl` and `--csv` have one row per entry."""
    document = cli("show", SESSION, "--json", "--home", home).json
    assert document["title"] == "The parser"
    assert [turn["prompt"] for turn in document["turns"]] == ["Fix the parser", "thanks"]
    assert [tool_call["tool"] for tool_call in document["turns"][0]["calls"]] == ["Bash", "Agent"]
    assert document["turns"][1]["reply"] == "You are welcome."
    rows = cli("show", SESSION, "--jsonl", "--home", home).jsonl
    assert rows[0]["text"] == "Fix the parser"
    assert {row["turn"] for row in rows} == {1, 2}
    assert len(cli("show", SESSION, "--csv", "--home", home).csv) == len(rows)
    rows_with_agents = cli("show", SESSION, "--jsonl", "--agents", "full", "--home", home).jsonl
    assert {row["agent"] for row in rows_with_agents} == {None, AGENT}


@for_each("command", ["show", "tree", "context", "request", "todos", "entries", "explain", "why", "waste"])
def test_commands_about_one_session_take_the_newest(cli: CliRunner, home: Path, command: str) -> None:
    """Without SESSION, a command about one session is about `last`."""
    unnamed, last = cli(command, "--home", home), cli(command, "last", "--home", home)
    assert (unnamed.code, unnamed.out, unnamed.err) == (last.code, last.out, last.err)
    assert unnamed.code in (0, 1)


def test_show_refuses_unknown_turn_or_branch(cli: CliRunner, home: Path) -> None:
    """Exit code 2, and the message says how many there are."""
    result = cli("show", SESSION, "--turn", "9", "--home", home)
    assert (result.code, "2 turns" in result.err) == (2, True)
    assert cli("show", SESSION, "--branch", "1", "--home", home).code == 2


@pytest.mark.parametrize("command", ["show", "tree", "calls", "errors"])
def test_unknown_or_ambiguous_session_is_an_error(cli: CliRunner, home: Path, command: str) -> None:
    """Exit code 2. An ambiguous prefix lists the candidates."""
    assert cli(command, "ffffffff", "--home", home).code == 2
    ambiguous = cli(command, "5e551011", "--home", home)
    assert ambiguous.code == 2
    assert f"{OTHER}.jsonl" in ambiguous.err


@pytest.mark.parametrize("command", ["show", "tree", "calls", "files", "export", "context", "errors", "todos"])
def test_file_that_is_not_a_transcript_is_an_error(cli: CliRunner, tmp_path: Path, command: str) -> None:
    """A text file has no line that is a JSON object. An empty file may be a new transcript."""
    path = tmp_path / "notes.txt"
    path.write_text("root:x:0:0\nan unfinished line")
    result = cli(command, path)
    assert (result.code, result.out) == (2, "")
    assert "notes.txt' is not a transcript: no line is a JSON object." in result.err
    path.write_text("")
    assert "is not a transcript" not in cli(command, path).err


def test_calls_lists_and_filters(cli: CliRunner, home: Path) -> None:
    """Each call has its tool, input, outcome, agent and turn. Calls of agents are included."""
    rows = cli("calls", SESSION, "--json", "--home", home).json
    assert [(row["tool"], row["outcome"], row["agent"], row["turn"]) for row in rows[:2]] == [
        ("Bash", "error", None, 1),
        ("Agent", "ok", None, 1),
    ]
    assert [row["tool"] for row in cli("calls", SESSION, "--agent", AGENT[:6], "--jsonl", "--home", home).jsonl] == [
        "Grep"
    ]
    assert len(cli("calls", SESSION, "--agent", "main", "--csv", "--home", home).csv) == 2
    assert [row["input"] for row in cli("calls", SESSION, "--tool", "Bash", "--json", "--home", home).json] == ["false"]
    assert cli("calls", SESSION, "--outcome", "lost", "--home", home).code == 1
    assert cli("calls", SESSION, "--outcome", "no such", "--home", home).code == 2
    assert "✗ error" in cli("calls", SESSION, "--home", home).out


def test_errors_lists_failed_calls_and_requests(cli: CliRunner, home: Path) -> None:
    """Failed calls of all agents and failed requests are listed. A text that mentions an error is not."""
    rows = cli("errors", SESSION, "--json", "--home", home).json
    assert sorted((row["what"], row["tool"] or "", row["evidence"]) for row in rows) == [
        ("api-error", "", "system/api_error"),
        ("error", "Bash", "is_error"),
        ("error", "Grep", "is_error"),
    ]
    all_rows = cli("errors", "--json", "--home", home).json
    assert {row["place"] for row in all_rows} == {row["place"] for row in rows}
    assert cli("errors", OTHER, "--home", home).code == 1
    assert cli("errors", "--since", "2026-01-06", "--home", home).code == 1
    assert "boom" in cli("errors", SESSION, "--home", home).out


def test_tree_shows_turns_and_agents(cli: CliRunner, home: Path) -> None:
    """As lines, nested JSON and rows."""
    result = cli("tree", SESSION, "--home", home)
    assert result.code == 0
    assert "1 Fix the parser" in result.out
    assert "↳ Explore: find it" in result.out
    assert cli("tree", SESSION, "--json", "--home", home).json["children"][0]["children"][0]["agent"] == AGENT
    assert [row["kind"] for row in cli("tree", SESSION, "--jsonl", "--home", home).jsonl] == [
        "session", "turn", "agent", "turn",
    ]  # fmt: skip


def hostile_session_home(folder: Path, text: str) -> Path:
    """A home with a session that has the text in every field that a command might show."""
    fields: Row = {"cwd": f"/{text}", "gitBranch": text, "version": text, "slug": text}
    image = {"type": text, text: text}
    agent_result = {
        "status": "completed",
        "agentId": AGENT,
        "prompt": text,
        "content": [{"type": "text", "text": text}],
    }
    arguments: dict[str, Any] = {"subagent_type": text, "description": text, "prompt": text}
    hunk = {"oldStart": 1, "newStart": 1, "lines": [f"-{text}", f"+{text}", text]}
    edit = {"filePath": text, "oldString": text, "newString": text, "structuredPatch": [hunk]}
    todos = [{"content": text, "status": text}]
    parts = transcript(
        prompt(text),
        reply(
            text, {"type": "thinking", "thinking": text}, image, f"# {text}\n- {text}\n```{text}\n{text}\n```\n|{text}|"
        ),
        call(text, {"command": text, text: text}, result=text, details={text: text}, error=True),
        call("Bash", text, result=text, details=text, error=True),
        call("Edit", {"file_path": text, "old_string": text, "new_string": text}, result=text, details=edit),
        call("Edit", {"file_path": text, "old_string": text, "new_string": text}, result=text),
        call("TodoWrite", {"todos": todos}, result=text, details={"newTodos": todos}),
        call("AskUserQuestion", {}, result=text, details={"questions": [], "answers": {text: text}}),
        call("ExitPlanMode", {"plan": text}, result=text, details={"plan": text}),
        call("Agent", arguments, result=text, details=agent_result),
        call("mcp__" + text + "__" + text, {text: text}, result=text),
        prompt(f"<command-name>{text}</command-name><command-args>{text}</command-args>"),
        prompt(f"<local-command-stdout>{text}</local-command-stdout>"),
        prompt(f"<{text}>"),
        chain("attachment", attachment={"type": "queued_command", "prompt": text, "commandMode": "prompt"}),
        chain("system", subtype=text, content=text),
        chain("system", subtype="api_error", error={"status": text, "message": text}, retryAttempt=1, maxRetries=2),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": text, "preTokens": 5}),
        reply(text, isApiErrorMessage=True, message={"model": text}),
        reply(text, message={"model": text}),
        meta("custom-title", customTitle=text),
        meta("queue-operation", operation="enqueue", content=text),
        pen=Pen(**fields),
    )
    agent = transcript(
        prompt(text),
        call(text, {"command": text}, result=text, error=True),
        reply(text),
        pen=Pen(isSidechain=True, agentId=AGENT, **fields),
    )
    project = folder / "home" / "projects" / "-x"
    main = write(project / f"{SESSION}.jsonl", *(ascii_json(row) for row in parts if isinstance(row, dict)))
    write(
        project / SESSION / "subagents" / f"agent-{AGENT}.jsonl",
        *(ascii_json(row) for row in agent if isinstance(row, dict)),
    )
    agent_meta = {"agentType": text, "description": text, "name": text}
    main.with_suffix("").joinpath("subagents", f"agent-{AGENT}.meta.json").write_text(json.dumps(agent_meta))
    return folder / "home"


ALL_COMMANDS: tuple[list[str], ...] = (
    ["list"],
    ["show", SESSION],
    ["show", SESSION, "--agents", "full", "--all"],
    ["show", SESSION, "--thread"],
    ["tree", SESSION],
    ["tree", SESSION, "--all"],
    ["calls", SESSION],
    ["errors", SESSION],
    ["errors"],
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("text", TEXTS)
def test_tables_escape_hostile_text(cli: CliRunner, tmp_path: Path, command: list[str], text: str) -> None:
    """Control characters in any field are escaped."""
    result = cli(*command, "--home", hostile_session_home(tmp_path, text))
    assert result.code == 0, result.err
    assert not control_characters(result.out)
    assert not control_characters(result.err)


@pytest.mark.sample(6)
@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("output", ["--json", "--jsonl", "--csv"])
def test_hostile_text_gives_valid_documents(cli: CliRunner, tmp_path: Path, command: list[str], output: str) -> None:
    """Machine formats are valid UTF-8 and well-formed documents."""
    result = cli(*command, output, "--home", hostile_session_home(tmp_path, EVERYTHING))
    assert result.code == 0, result.err
    assert getattr(result, output[2:])


def run_in_terminal(*arguments: str, env: dict[str, str]) -> str:
    """What the command writes to a terminal of 100 columns."""
    import pty  # noqa: PLC0415 - not on every system

    pid, descriptor = pty.fork()
    if pid == 0:  # pragma: no cover - the child is the command
        os.execve(COMMAND[0], [*COMMAND, *arguments], {**subprocess_environment(), "COLUMNS": "100", **env})  # noqa: S606 - our own
    output = b""
    while wait([descriptor], 60):
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the child is gone
            break
        if not data:
            break
        output += data
    os.close(descriptor)
    os.waitpid(pid, 0)
    return output.decode()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there are no such terminals")
@pytest.mark.parametrize(
    ("env", "options", "coloured"),
    [
        ({"TERM": "xterm", "PAGER": "cat"}, [], True),
        ({"TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1"}, [], False),
        ({"TERM": "xterm", "PAGER": "cat"}, ["--no-color"], False),
        ({"TERM": "dumb", "PAGER": "false"}, [], False),
    ],
    ids=["colours", "NO_COLOR", "--no-color", "dumb"],
)
@pytest.mark.parametrize(
    "command", ["show", *(pytest.param(command, marks=pytest.mark.slow) for command in ("tree", "list"))]
)
def test_colours_in_a_terminal(
    home: Path, command: str, env: dict[str, str], options: list[str], *, coloured: bool
) -> None:
    """Through the pager, with only the page's own colours, unless they are turned off."""
    session = [] if command == "list" else [SESSION]
    text = run_in_terminal(command, *session, "--home", str(home), *options, env=env)
    assert "The parser" in text
    assert ("\x1b[1mThe parser\x1b[0m" in text) is coloured
    # The progress bar is on the same terminal.
    page = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)
    assert not control_characters(page)


@pytest.mark.skipif(os.name == "nt", reason="there are no such terminals")
def test_real_terminal_gets_only_our_own_sequences(tmp_path: Path) -> None:
    """With colours on, the only escape sequences are the page's own."""
    home = hostile_session_home(tmp_path, EVERYTHING)
    text = run_in_terminal(
        "show", SESSION, "--all", "--agents", "full", "--home", str(home), env={"TERM": "xterm", "PAGER": "cat"}
    )
    page = re.sub(r"\x1b\[(?:0|1|2|3|3[1-6]|1;3[46])m|\r\n", "", text)
    assert not control_characters(page)


@pytest.mark.slow
def test_show_succeeds_through_a_pipe(home: Path) -> None:
    """The command succeeds and writes nothing to standard error."""
    result = run_in_subprocess("show", SESSION, "--home", home)
    assert result.code == 0
    assert not result.err


def test_reads_session_with_unfinished_last_line(cli: CliRunner, home: Path) -> None:
    """An unfinished last line does not hide the rest of the session."""
    path = home / "projects" / "-work-app" / f"{OTHER}.jsonl"
    with path.open("ab") as file:
        file.write(line({"type": "user", "message": {"role": "user", "content": "half"}})[:30])
    assert "はい" in cli("show", path).out
    assert OTHER in list_ids(cli, home)


def test_turn_on_a_branch_is_shown_with_its_branch(cli: CliRunner) -> None:
    """The text has the prompt and the reply, and says on which branch they are."""
    result = cli("show", REWOUND, "--turn", "2")
    assert result.code == 0
    assert "turn 2 is on the abandoned branch 1" in result.out
    assert "── turn 2" in result.out
    branch = cli("show", REWOUND, "--branch", "1", "--turn", "2").out
    assert [line for line in result.out.splitlines() if "abandoned branch" not in line] == branch.splitlines()


def test_rows_of_a_turn_on_a_branch_are_printed(cli: CliRunner) -> None:
    """`--jsonl` prints the entries of the turn."""
    rows = cli("show", REWOUND, "--turn", "2", "--jsonl").jsonl
    assert {row["turn"] for row in rows} == {2}


def test_json_of_a_branch_has_its_turns(cli: CliRunner) -> None:
    """`--branch` selects the same turns for `--json` as for `--jsonl`; without it, `--json` has all."""
    turns = {output: cli("show", REWOUND, "--branch", "1", output) for output in ("--json", "--jsonl")}
    numbers = [turn["number"] for turn in turns["--json"].json["turns"]]
    assert set(numbers) == {row["turn"] for row in turns["--jsonl"].jsonl}
    assert len(cli("show", REWOUND, "--json").json["turns"]) > len(numbers)


def test_turn_of_the_conversation_names_no_branch(cli: CliRunner) -> None:
    """A turn that was kept is shown as before."""
    assert "branch" not in cli("show", REWOUND, "--turn", "1").out.splitlines()[2]
