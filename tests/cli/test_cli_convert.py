"""`threadline convert`: other formats become transcripts with the same tokens, calls and texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.runner import CliRunner
from tests.doc_commands import run_shell_lines
from tests.profiles import scale_examples
from tests.transcripts import SESSION, call, line, prompt, reply, transcript, write

import threadline
from threadline.convert import convert_files, write_conversion

PAGE = Path(__file__).parents[2] / "docs/convert.md"
CWD = "/work/app"
SOURCES = Path(__file__).parent / "convert_sources"


def source_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a source: `tool-rows` (seed 003), `stream-json` with an agent, or `sdk-messages`."""
    return [json.loads(text) for text in (SOURCES / f"{name}.jsonl").read_bytes().splitlines()]


def stream_without_agents() -> list[dict[str, Any]]:
    """The rows of a stream that belong to the main conversation."""
    return [row for row in source_rows("stream-json") if not row.get("parent_tool_use_id")]


def convert_rows(tmp_path: Path, rows: list[Any], name: str = "source.jsonl", **options: Any) -> threadline.Session:
    """Convert rows, and read the only session."""
    path = write(tmp_path / name, *rows)
    (converted,) = write_conversion(convert_files([path], cwd=CWD, **options), tmp_path / "converted")
    return threadline.read(converted)


def facts(session: threadline.Session) -> dict[str, Any]:
    """Tokens, calls and texts of a session and its agents."""
    counts = ("input", "output", "cache_write", "cache_read")
    charges = [tuple(getattr(charge, name) for name in counts) for charge in session.ledger]
    kinds = {"user", "assistant", "tool_use", "tool_result"}
    texts = [threadline.extract_text(entry) for entry in session if entry.kind in kinds]
    return {
        "tokens": sorted(charge for charge in charges if any(charge)),
        "calls": sorted((str(call.id), call.tool, str(call.outcome), call.output) for call in session.calls),
        "texts": sorted(filter(None, texts)),
    }


def test_tool_rows_become_blocks(tmp_path: Path) -> None:
    """Rows of calls and results become blocks, one that repeats a call is merged, and all facts are equal."""
    source = threadline.read(write(tmp_path / f"{SESSION}.jsonl", *source_rows("tool-rows")))
    session = convert_rows(tmp_path, source_rows("tool-rows"))
    assert facts(session) == facts(source)
    assert [(c.tool, str(c.outcome)) for c in session.calls] == [("Read", "ok"), ("Bash", "error")]
    assert (session.ledger.total.input, session.ledger.total.output) == (130, 45)
    assert [entry.kind for entry in session] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert len(session.thread.entries) == 6
    assert session.problems == ()


READ = {"name": "Read", "input": {"file_path": "a"}}
BLOCK_ROWS: list[dict[str, Any]] = [
    {"type": "user", "timestamp": "2026-01-15T10:00:00.000Z", "message": {"role": "user", "content": "List them."}},
    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
    {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls x"}},
    {
        "type": "tool_result",
        "tool_use_id": "t2",
        "content": [{"type": "text", "text": "no such file"}],
        "is_error": True,
    },
    {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt", "is_error": False},
]


def test_rows_in_the_shape_of_blocks_become_blocks(tmp_path: Path) -> None:
    """Names, inputs, ids, outputs and errors stay, and the transcript has no problems."""
    source = threadline.read(write(tmp_path / f"{SESSION}.jsonl", *BLOCK_ROWS))
    session = convert_rows(tmp_path, BLOCK_ROWS)
    assert facts(session) == facts(source)
    for read in (source, session):
        assert [(c.id, c.tool, c.input, str(c.outcome), c.output) for c in read.calls] == [
            ("t1", "Bash", {"command": "ls"}, "ok", "a.txt"),
            ("t2", "Bash", {"command": "ls x"}, "error", "no such file"),
        ]
    assert session.problems == ()
    assert {entry.kind for entry in session} == {"user", "assistant"}
    assert not any({"id", "name", "input", "content", "is_error"} & entry.data.keys() for entry in session)


def test_rows_in_the_shape_of_blocks_are_complete(cli: CliRunner, tmp_path: Path) -> None:
    """`doctor` does not miss the fields of the other shape, and `show` finds the call of every result."""
    home = tmp_path / "home"
    write(home / "projects/-x" / f"{SESSION}.jsonl", *BLOCK_ROWS)
    missing = cli("doctor", "--home", home, "--json").json["missing_fields"]
    assert not [item for item in missing if item["kind"] in {"tool_use", "tool_result"}]
    assert "result without its call" not in cli("show", SESSION, "--home", home).out


def test_results_follow_the_id_of_their_call(tmp_path: Path) -> None:
    """A result that names an id that its call does not keep gets the new one, and never answers another call."""
    rows = [
        BLOCK_ROWS[0],
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "x1", **READ}]}},
        {"type": "tool_use", "uuid": "t1", "tool": READ},
        {"type": "tool_use", "id": 2, "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "t3", "name": "Bash", "input": {"command": "pwd"}},
        {"type": "tool_result", "tool_use_id": "t9", "content": "of another call"},
        {"type": "tool_result", "tool_use_id": 2, "content": "b.txt"},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "A"}]}},
    ]
    session = convert_rows(tmp_path, rows)
    read, listed, waiting = session.calls
    assert (read.id, read.output) == ("x1", "A")
    assert (str(listed.id)[:6], listed.output) == ("toolu_", "b.txt")
    assert (waiting.id, waiting.answer) == ("t3", None)


def test_calls_and_results_without_content_are_reported(tmp_path: Path) -> None:
    """A call without a name and a result without content are findings, and the transcript has no problems."""
    rows = [BLOCK_ROWS[0], {"type": "tool_use", "id": "t1"}, {"type": "tool_result", "tool_use_id": "t1"}]
    path = write(tmp_path / "source.jsonl", *rows)
    fields = {finding.field for finding in convert_files([path], cwd=CWD).all_findings if finding.what == "invented"}
    assert fields >= {"tool_use.name", "tool_use.input", "tool_result.content"}
    assert convert_rows(tmp_path, rows).problems == ()


def test_an_invented_time_is_after_the_row_before(tmp_path: Path) -> None:
    """The first invented time is a millisecond after the time of the row before, as its reason says."""
    path = write(tmp_path / "source.jsonl", *BLOCK_ROWS)
    (session,) = convert_files([path], cwd=CWD).sessions
    converted = session.files[f"{session.session}.jsonl"]
    assert isinstance(converted, list)
    assert [row["timestamp"][-5:] for row in converted] == [f".00{number}Z" for number in range(5)]


def test_stream_json_becomes_a_session_with_agents(tmp_path: Path) -> None:
    """Working directory and version come from the first row, the cost from the last one; agents get transcripts."""
    session = convert_rows(tmp_path, source_rows("stream-json"), prompt="Who is here?")
    assert session.id == SESSION
    assert (session.cwds, session.versions) == (("/work/other",), ("2.1.325",))
    assert [turn.act.text for turn in session.turns if turn.act is not None] == ["Who is here?"]
    (agent,) = session.agents
    assert (agent.id, agent.type, agent.description, agent.link.call) == ("a0b1c2d3", "Explore", "look", "toolu_1")
    assert [(c.tool, str(c.outcome)) for c in session.calls] == [("Agent", "ok"), ("Bash", "ok")]
    total = session.ledger.total
    assert (total.charges, total.input, total.output) == (4, 12 * 3 + 99, 9 * 3 + 77)
    (cost,) = [entry for entry in session if entry.kind == "cost-state"]
    assert getattr(cost, "total_cost_usd", None) == pytest.approx(0.0123)
    assert session.problems == ()


def agent_run(call_id: str, agent: str) -> list[dict[str, Any]]:
    """The stream-json rows of a call that an agent answers."""
    tool = {"type": "tool_use", "id": call_id, "name": "Agent", "input": {"description": call_id}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [tool]}},
        {"type": "user", "parent_tool_use_id": call_id, "message": {"role": "user", "content": f"do {call_id}"}},
        {"type": "user", "message": {"role": "user", "content": [result]}, "tool_use_result": {"agentId": agent}},
    ]


def test_an_agent_that_is_resumed_has_one_transcript(tmp_path: Path) -> None:
    """Two calls with the same agent: its transcript has the rows of both, and is linked to the first."""
    rows = [*agent_run("toolu_1", "a0b1c2d3"), *agent_run("toolu_2", "a0b1c2d3")]
    session = convert_rows(tmp_path, rows, f"{SESSION}.jsonl")
    (agent,) = session.agents
    assert [threadline.extract_text(entry) for entry in agent.entries] == ["do toolu_1", "do toolu_2"]
    assert (agent.link.call, agent.description) == ("toolu_1", "toolu_1")


@pytest.mark.parametrize("id_", ["x/../../../../outside", "..", "", "a\\b", "a\0b", "C:x", "a" * 300])
def test_the_id_of_an_agent_does_not_lead_out_of_the_folder(tmp_path: Path, id_: str) -> None:
    """An id that cannot be part of a file name is reported, and another one takes its place."""
    source = write(tmp_path / f"in/{SESSION}.jsonl", *agent_run("toolu_1", id_))
    conversion = convert_files([source], cwd=CWD)
    write_conversion(conversion, tmp_path / "out/deep/er")
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and path != source]
    assert {path.parent for path in outside} == {
        tmp_path / "out/deep/er",
        tmp_path / f"out/deep/er/{SESSION}/subagents",
    }
    assert [finding.example for finding in conversion.all_findings if finding.what == "dropped"] == [
        id_[:60] + "…" * (len(id_) > 60)
    ]


def test_stream_json_has_the_tokens_calls_and_texts_of_its_source(tmp_path: Path) -> None:
    """A stream without agents is read the same before and after, except for the prompt that it does not have."""
    rows = stream_without_agents()
    source = facts(threadline.read(write(tmp_path / f"{SESSION}.jsonl", *rows)))
    converted = facts(convert_rows(tmp_path, rows))
    assert [text for text in converted["texts"] if "prompt is not part" in text] == [converted["texts"][0]]
    assert {**converted, "texts": converted["texts"][1:]} == source


@pytest.mark.parametrize("form", ["lines", "array", "pretty", "array over lines"])
def test_sdk_messages_are_known_by_their_fields(tmp_path: Path, form: str) -> None:
    """Messages of the SDK become rows, whether they are lines, an array, or pretty-printed documents."""
    messages = source_rows("sdk-messages")
    data = {
        "lines": b"".join(map(line, messages)),
        "array": json.dumps(messages).encode(),
        "pretty": "\n".join(json.dumps(message, indent=2) for message in messages).encode(),
        "array over lines": json.dumps(messages, indent=4).encode(),
    }[form]
    session = convert_rows(tmp_path, [data])
    assert (session.id, session.cwds) == (SESSION, ("/work/sdk",))
    assert [turn.act.text for turn in session.turns if turn.act is not None] == ["List the files."]
    assert [(str(c.id), c.tool, str(c.outcome), c.output) for c in session.calls] == [
        ("toolu_1", "Bash", "ok", "a.txt")
    ]
    assert (session.ledger.total.input, session.ledger.total.output) == (24, 13)
    assert session.problems == ()
    reply_texts = [threadline.extract_text(entry) for entry in session if entry.kind == "assistant"]
    assert reply_texts == ["I list.", "One file."]


def test_a_complete_transcript_stays_as_it_is(tmp_path: Path) -> None:
    """A transcript of Claude Code has everything, so nothing is invented, and the rows are equal."""
    rows = transcript(prompt("hi"), reply("ok"), call("Bash", "ls", result="a", details={"stdout": "a"}))
    rows = [{**row, "sourceToolAssistantUUID": "x"} if "toolUseResult" in row else row for row in rows]  # type: ignore[dict-item] # rows, no bytes
    path = write(tmp_path / f"{SESSION}.jsonl", *rows)
    (session,) = convert_files([path], cwd=CWD).sessions
    assert [finding for finding in session.findings if finding.what != "changed"] == []
    converted = session.files[f"{SESSION}.jsonl"]
    assert isinstance(converted, list)
    for before, after in zip(rows, converted, strict=True):
        assert isinstance(before, dict)
        assert {**after, "sourceToolAssistantUUID": ""} == {**before, "sourceToolAssistantUUID": ""}


def test_a_second_conversion_is_equal(cli: CliRunner, tmp_path: Path) -> None:
    """Ids depend only on the content, so two conversions of copies are byte for byte the same."""
    for name in ("one", "two"):
        path = write(tmp_path / name / "rows.jsonl", *source_rows("tool-rows"))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert cli("convert", path, "--cwd", CWD, "--output", tmp_path / f"out-{name}").code == 0
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / f"out-{n}").iterdir()} for n in ("one", "two"))
    assert first == second
    assert len(first) == 1


def test_nothing_is_written_without_a_folder_or_over_a_file(cli: CliRunner, tmp_path: Path) -> None:
    """Without `--output`, convert only reports. With it, an existing file is never replaced."""
    path = write(tmp_path / "in" / "rows.jsonl", *source_rows("tool-rows"))
    before = sorted(tmp_path.rglob("*"))
    result = cli("convert", path, "--cwd", CWD)
    assert "not written: use --out DIR" in result.out
    assert sorted(tmp_path.rglob("*")) == before
    assert cli("convert", path, "--output", tmp_path / "out").code == 0
    (written,) = (tmp_path / "out").iterdir()
    written.write_text("mine")
    result = cli("convert", path, "--output", tmp_path / "out")
    assert (result.code, result.out) == (2, "")
    assert "exists. Choose another --out folder" in result.err
    assert written.read_text() == "mine"


def test_a_claude_home_gets_the_session_in_its_projects_folder(cli: CliRunner, tmp_path: Path) -> None:
    """`--output` may be a Claude home: the session is written where `claude --resume` looks for it."""
    (tmp_path / "home/projects").mkdir(parents=True)
    path = write(tmp_path / "rows.jsonl", *source_rows("tool-rows"))
    answer = cli("convert", path, "--cwd", CWD, "--output", tmp_path / "home", "--json").json
    (session,) = answer["sessions"]
    assert session["path"] == str(tmp_path / "home/projects/-work-app" / f"{session['session']}.jsonl")
    again = cli("convert", path, "--cwd", CWD, "--output", tmp_path / "home")
    assert again.code == 2
    other = cli("convert", path, "--cwd", "/work/other", "--output", tmp_path / "home")
    assert f"Resume: cd /work/other && claude --resume {session['session']}" in other.out
    shutil.rmtree(tmp_path / "home/projects/-work-other")
    (listed,) = cli("list", "--home", tmp_path / "home", "--json").json
    assert listed["title"] == "Hi"


def test_everything_invented_is_reported(cli: CliRunner, tmp_path: Path) -> None:
    """The report has a row for each field that was invented, changed, merged or dropped, with count and place."""
    path = write(tmp_path / "rows.jsonl", *source_rows("tool-rows"), {"type": "checkpoint"}, b"no JSON\n")
    answer = cli("convert", path, "--cwd", CWD, "--json").json
    (session,) = answer["sessions"]
    assert (session["rows"], session["agents"], session["path"], session["cwd"]) == (6, 0, None, CWD)
    findings = {(row["what"], row["field"]): row for row in answer["findings"]}
    for field in ("session", "parentUuid", "cwd", "version", "userType", "isSidechain", "message.id", "message.role"):
        assert ("invented", field) in findings, field
    assert findings["changed", "uuid"]["count"] == 5
    assert findings["changed", "sessionId"]["example"] == "sess1"
    assert findings["merged", "tool_use"]["place"] == f"{path}:3"
    assert findings["dropped", "checkpoint"]["count"] == findings["dropped", "not a JSON object"]["count"] == 1
    assert cli("convert", path, "--cwd", CWD, "--jsonl").jsonl == answer["findings"]
    assert "invented" in cli("convert", path, "--cwd", CWD).out


def test_rows_without_times_follow_each_other(tmp_path: Path) -> None:
    """Without any time, the file's time is used; rows are a millisecond apart."""
    rows = [{"type": "user", "message": {"content": f"{number}"}} for number in range(3)]
    path = write(tmp_path / "rows.jsonl", *rows)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (session,) = convert_files([path], cwd=CWD).sessions
    converted = session.files[f"{session.session}.jsonl"]
    assert isinstance(converted, list)
    assert [row["timestamp"][-5:] for row in converted] == [".000Z", ".001Z", ".002Z"]
    assert converted[0]["timestamp"].startswith("2023-11-14T22:13:20")


def test_sessions_whose_ids_are_no_uuids_stay_apart(tmp_path: Path) -> None:
    """Each id of a file becomes a UUID of its own, and the report says why."""
    rows = [
        {"type": "user", "sessionId": name, "message": {"role": "user", "content": f"Ask {name}"}}
        for name in ("one", "two", "one", SESSION)
    ]
    conversion = convert_files([write(tmp_path / "source.jsonl", *rows)], cwd=CWD)
    texts = {
        str(session.id): [act.text for act in session.acts]
        for session in map(threadline.read, write_conversion(conversion, tmp_path / "converted"))
    }
    assert sorted(texts.values()) == [[f"Ask {SESSION}"], ["Ask one", "Ask one"], ["Ask two"]]
    assert texts[SESSION] == [f"Ask {SESSION}"]
    reasons = {finding.reason for finding in conversion.all_findings if finding.field == "session"}
    assert reasons == {"'one' is not a UUID", "'two' is not a UUID"}


def test_several_runs_of_a_session_become_one_transcript(tmp_path: Path) -> None:
    """Files are read in order. Each run has a cost, and the last one counts."""
    rows, later = stream_without_agents(), stream_without_agents()
    later[-1]["total_cost_usd"] = 0.5
    for row in later:
        if row["type"] == "assistant":
            row["message"]["id"] += "b"
    paths = [write(tmp_path / name, *part) for name, part in (("1.jsonl", rows), ("2.jsonl", later))]
    (converted,) = write_conversion(convert_files(paths, cwd=CWD), tmp_path / "converted")
    session = threadline.read(converted)
    costs = [Decimal(str(getattr(entry, "total_cost_usd", 0))) for entry in session if entry.kind == "cost-state"]
    assert costs == [Decimal("0.0123"), Decimal("0.5")]
    assert session.ledger.total.charges == 4


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]", b"no JSON at all", b'{"type":"ai-title","aiTitle":"x"}\n'])
def test_nothing_to_convert(cli: CliRunner, tmp_path: Path, content: bytes) -> None:
    """A file without messages is not an error, but nothing is converted."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    result = cli("convert", path, "--output", tmp_path / "out")
    assert (result.code, result.out) == (1, "")
    assert "No messages to convert" in result.err
    assert not (tmp_path / "out").exists()


_FIELDS = """message uuid parentUuid timestamp sessionId session_id tool result tool_use_id parent_tool_use_id subtype
data toolUseResult tool_use_result total_cost_usd modelUsage content model usage message_id num_turns cwd version isMeta
error"""
_WORDS = st.sampled_from(["user", "assistant", "tool_use", "tool_result", "system", "result", "init", "text", SESSION])
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_NAMES = st.sampled_from(
    ["type", "content", "id", "name", "input", "text", "tool_use_id", "model", "usage", "role", "x"]
)
_VALUES = st.recursive(
    _SCALARS | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=12,
)
_ROWS = st.fixed_dictionaries({"type": _WORDS}, optional=dict.fromkeys(_FIELDS.split(), _VALUES))
_MESSAGES = st.fixed_dictionaries({}, optional=dict.fromkeys(_FIELDS.split(), _VALUES))


@settings(max_examples=scale_examples(40))
@given(st.lists(_ROWS | _MESSAGES | _VALUES, max_size=8))
def test_any_json_converts_or_is_reported(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    """Whatever the documents are, nothing raises, every row is readable, and a second conversion is equal."""
    folder = tmp_path_factory.mktemp("any")
    path = folder / "rows.json"
    path.write_text("\n".join(json.dumps(value, indent=1) for value in values))
    conversion = convert_files([path], cwd=CWD)
    assert convert_files([path], cwd=CWD) == conversion
    for converted in write_conversion(conversion, folder / "out"):
        session = threadline.read(converted)
        assert all(entry.kind not in {"damaged", "untyped"} for entry in session)
        assert sum(entry.uuid is None for entry in session if entry.kind in {"user", "assistant"}) == 0


def test_missing_input_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    """An input that does not exist is named."""
    result = cli("convert", tmp_path / "nowhere.jsonl")
    assert result.code == 2
    assert "nowhere.jsonl" in result.err


@pytest.mark.slow
def test_examples_of_the_page_work(demo_home: Path, tmp_path: Path) -> None:
    """Every example of `docs/convert.md` works on files in the formats that the page describes."""
    work = tmp_path / "work"
    names = {"run.jsonl": "stream-json", "messages.json": "sdk-messages", "old.jsonl": "tool-rows"}
    examples = run_shell_lines(
        PAGE, tmp_path, demo_home, {name: SOURCES / f"{file}.jsonl" for name, file in names.items()}
    )
    for shown, result in examples:
        assert (result.returncode, result.stderr) == (0, b""), shown
        assert result.stdout or shown.startswith("mkdir "), shown
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1] / "src")}
    printed = subprocess.run(  # noqa: S603 - our own example
        [sys.executable, "-W", "error", "-c", code],
        cwd=work,
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    assert b"invented prompt 1" in printed
    assert list((work / "from-python").glob("*.jsonl"))
