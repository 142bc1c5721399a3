"""Fields that every interface knows: renamed tools, agent types, stop reasons, request ids, tiers, slugs, platforms."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, START, Pen, call, chain, prompt, reply, transcript, write
from tests.web.client import Client

import threadline
from threadline.render import CallItem, View, count_tools, place_items

PROJECT = Path("projects") / "-work-app"
INDEX = pytest.mark.parametrize("index", ["on", "off"])


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A home whose sessions call tools by their old and new names."""
    parts = (
        prompt("look around"),
        call("View", {"file_path": "/a"}, "old"),
        call("Read", {"file_path": "/b"}, "new"),
        call("LSTool", {"path": "/"}, "a b"),
        call("Task", {"prompt": "go", "description": "d"}, "done"),
        call("Agent", {"prompt": "go on", "description": "d"}, "done"),
    )
    write(tmp_path / PROJECT / f"{SESSION}.jsonl", *transcript(*parts))
    return tmp_path


@pytest.mark.parametrize("session", [(), (SESSION,)])
@pytest.mark.parametrize(
    ("options", "tools"),
    [
        (["--tool", "Read"], ["Read", "View"]),
        (["--tool", "View"], ["Read", "View"]),
        (["--tool", "ls"], ["LSTool"]),
        (["--tool", "Task"], ["Agent", "Task"]),
        (["--tool", "Read", "--exact-tools"], ["Read"]),
        (["--tool", "View", "--exact-tools"], ["View"]),
    ],
)
def test_calls_of_a_tool_include_its_other_name(
    cli: CliRunner, renamed: Path, session: tuple[str, ...], options: list[str], tools: list[str]
) -> None:
    """Each call still has the name that the transcript has."""
    rows = cli("calls", *session, *options, "--home", renamed, "--json").json
    assert sorted(row["tool"] for row in rows) == tools


@INDEX
def test_usage_by_tool_merges_renamed_tools(
    cli: CliRunner, renamed: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """`--exact-tools` keeps the names apart; the totals are equal."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    merged = cli("usage", "--by", "tool", "--home", renamed, "--json").json
    assert {row["tool"]: row["charges"] for row in merged["rows"]} == {"Read": 2, "LS": 1, "Agent": 2}
    exact = cli("usage", "--by", "tool", "--exact-tools", "--home", renamed, "--json").json
    assert {row["tool"] for row in exact["rows"]} == {"View", "Read", "LSTool", "Task", "Agent"}
    assert merged["total"] == exact["total"]
    by_time = cli("usage", "--by", "tool", "--sort", "time", "--home", renamed, "--json").json
    assert [row["tool"] for row in by_time["rows"]] == ["Read", "LS", "Agent"]


def test_search_finds_a_tool_by_its_other_name(cli: CliRunner, renamed: Path) -> None:
    """A regular expression matches the name in the transcript."""

    def lines(query: str) -> list[int]:
        hits = cli("search", query, "--home", renamed, "--all", "--json").json
        return sorted(int(hit["place"].rpartition(":")[2]) for hit in hits)

    assert lines("tool:read") == lines("tool:View") == [2, 3, 4, 5]
    assert lines("tool:/^View$/") == [2, 3]


def test_session_page_filters_by_either_name(renamed: Path) -> None:
    """`count_tools`, which the page's filter lists, has the current names."""
    session = threadline.read(renamed / PROJECT / f"{SESSION}.jsonl")
    assert count_tools(session) == {"Agent": 2, "Read": 2, "LS": 1}
    assert count_tools(session, exact_tools=True)["View"] == 1
    assert _tools_shown(session, View(tools=("Read",))) == ["View", "Read"]
    assert _tools_shown(session, View(tools=("Read",), exact_tools=True)) == ["Read"]


def _tools_shown(session: threadline.Session, view: View) -> list[str]:
    return [placed.item.call.tool for placed in place_items(session.main, view) if isinstance(placed.item, CallItem)]


MAX_TOKENS = "The reply is incomplete: it reached the output limit (max_tokens)."
SLUG = "curious-hatching-cherny"


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A home with a reply that reached the limit, one of another tier, a slug and an environment."""
    environment = {"platform": "darwin", "osVersion": "Darwin 25.1.0", "workingDirectory": "/work/app"}
    parts = (
        chain("attachment", attachment={"type": "environment", "snapshot": environment}),
        prompt("write a poem"),
        reply("roses are", "red and", message={"stop_reason": "max_tokens"}, output=99),
        prompt("until the word END"),
        reply("violets", message={"stop_reason": "stop_sequence", "stop_sequence": "END"}),
        prompt("faster"),
        reply("ok", message={"usage": {"input_tokens": 4, "output_tokens": 2, "service_tier": "priority"}}),
    )
    write(tmp_path / PROJECT / f"{SESSION}.jsonl", *transcript(*parts, pen=Pen(slug=SLUG)))
    return tmp_path


@pytest.mark.parametrize("form", ["md", "txt", "html", "json"])
def test_exports_say_why_a_reply_stopped(cli: CliRunner, stopped: Path, form: str) -> None:
    """Rows 003.29 and 003.30: once for each reply, not for each of its rows."""
    out = cli("export", SESSION, "--home", stopped, "--format", form, "--out", "-").out
    assert out.count("it reached the output limit (max") == 1
    assert out.count("The reply ended at a stop sequence") == 1


def test_show_and_entries_have_the_fields(cli: CliRunner, stopped: Path) -> None:
    """`show`, `show --json`, `show --jsonl` and `entries --json`."""
    text = " ".join(cli("show", SESSION, "--home", stopped, "--no-pager").out.split())
    assert MAX_TOKENS in text
    assert "stop sequence (stop_sequence): END" in text
    assert SLUG in text
    assert "Darwin 25.1.0" in text
    document = cli("show", SESSION, "--home", stopped, "--json").json
    assert (document["slug"], document["platform"], document["os_version"]) == (SLUG, "darwin", "Darwin 25.1.0")
    assert [turn["stop_reason"] for turn in document["turns"] if turn["act"]] == [
        "max_tokens",
        "stop_sequence",
        "end_turn",
    ]
    entries = cli("entries", SESSION, "--home", stopped, "--json").json
    replies = [row for row in entries if row["kind"] == "assistant"]
    assert [row["stop_reason"] for row in replies] == ["max_tokens", "max_tokens", "stop_sequence", "end_turn"]
    assert [row["service_tier"] for row in replies] == [None, None, None, "priority"]
    assert all(row["slug"] == SLUG and row["request"].startswith("req_01") for row in replies)
    listed = cli("list", "--home", stopped, "--json").json[0]
    assert (listed["slug"], listed["platform"], listed["os_version"]) == (SLUG, "darwin", "Darwin 25.1.0")


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("stop:max_tokens", [3, 4]),
        ("stop:STOP_sequence", [6]),
        ("stop:max*", [3, 4]),
        ("-stop:* kind:assistant", []),
        ("tier:priority", [8]),
        ("slug:hatching kind:assistant", [3, 4, 6, 8]),
        ("platform:darwin kind:user", [2, 5, 7]),
        ("platform:25.1 violets", [6]),
        ("platform:linux", []),
        ("slug:other", []),
    ],
)
def test_fields_are_searchable(cli: CliRunner, stopped: Path, query: str, lines: list[int]) -> None:
    """Rows 001.75, 001.117, 003.29, 004.34: each is a field of the query language."""
    result = cli("search", query, "--home", stopped, "--all", "--exact", "--json")
    hits = result.json if result.out else []
    assert sorted(int(hit["place"].rpartition(":")[2]) for hit in hits) == lines


@INDEX
def test_request_and_slug_name_a_message_and_a_session(
    cli: CliRunner, stopped: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Rows 001.118 and 004.34, with an index and without."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    first = next(row for row in cli("entries", SESSION, "--home", stopped, "--json").json if row["request"])
    receipt = cli("explain", first["request"], "--home", stopped, "--json").json
    (message,) = receipt["messages"]
    assert (message["output"], len(message["lines"])) == (99, 2)
    assert {line["request"] for line in message["lines"]} == {first["request"]}
    assert "'req_nothing'" in cli("explain", "req_nothing", "--home", stopped).err
    assert cli("show", SLUG, "--home", stopped, "--json").json["session"] == SESSION
    missing = cli("show", "curious-hatching-other", "--home", stopped)
    assert (missing.code, missing.out) == (2, "")


@INDEX
def test_slug_of_two_sessions_is_ambiguous(
    cli: CliRunner, stopped: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """The message lists both transcripts."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    other = "5e551011-0000-4000-8000-000000000002"
    write(stopped / PROJECT / f"{other}.jsonl", *transcript(prompt("hi"), reply("ok"), pen=Pen(other, slug=SLUG)))
    result = cli("show", SLUG, "--home", stopped)
    assert result.code != 0
    assert SESSION in result.err
    assert other in result.err


@INDEX
@pytest.mark.parametrize("key", ["service-tier", "service_tier"])
def test_usage_by_service_tier(
    cli: CliRunner, stopped: Path, monkeypatch: pytest.MonkeyPatch, index: str, key: str
) -> None:
    """Rows 001.75 and 001.121: a tier that is not recorded is the standard one."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    for options in ([], ["--since", "2026-01-05"], ["--since", "2026-01-05T09:00:01Z", "--tz", "Asia/Kathmandu"]):
        rows = cli("usage", "--by", key, *options, "--home", stopped, "--jsonl").jsonl
        assert {row["service-tier"]: row["charges"] for row in rows} == {"standard": 2, "priority": 1}


def test_fields_are_columns(cli: CliRunner, stopped: Path) -> None:
    """Every field is a column of a table or view."""

    def rows(select: str) -> list[list[object]]:
        return [list(row.values()) for row in cli("sql", select, "--home", stopped, "--json").json]

    assert rows("SELECT slug, platform, os_version FROM sessions") == [[SLUG, "darwin", "Darwin 25.1.0"]]
    assert rows("SELECT stop_reason, COUNT(DISTINCT request) FROM said WHERE kind = 'assistant' GROUP BY 1") == [
        ["end_turn", 1],
        ["max_tokens", 1],
        ["stop_sequence", 1],
    ]
    assert rows("SELECT service_tier, COUNT(*) FROM charges GROUP BY 1") == [["priority", 1], ["standard", 2]]


def test_renamed_tools_have_their_current_name_in_sql(cli: CliRunner, renamed: Path) -> None:
    """Row 004.11: `calls.tool` is the name in the transcript, `calls.current_tool` the current one."""
    select = "SELECT DISTINCT tool, current_tool FROM calls WHERE tool <> current_tool ORDER BY 1"
    rows = cli("sql", select, "--home", renamed, "--json").json
    assert [list(row.values()) for row in rows] == [["LSTool", "LS"], ["Task", "Agent"], ["View", "Read"]]


def test_search_says_which_filter_to_remove(cli: CliRunner, renamed: Path) -> None:
    """An amount needs a comparison; fields that are never in one entry are named."""
    assert "Say how to compare: cost:>5" in cli("search", "cost:5", "--home", renamed).err
    error = cli("search", "tool:Read error:* model:sonnet", "--home", renamed).err
    assert "model: is in replies and error: in results, which are different entries; remove one of them" in error
    assert "without error:*, 2 entries do" in error


AGENT = "a1b2c3d4e5f60718"


def _write_agents(home: Path) -> None:
    """Write agents whose type is known from a result, from the prompt of the call, from a side file and not at all."""
    task = {"description": "d", "prompt": "Review it", "subagent_type": "architecture-reviewer"}
    sidechain = Pen(start=START.replace(hour=10), isSidechain=True)
    inside = transcript(prompt("Merge all"), reply("merged"), pen=sidechain)
    for row in inside:
        assert isinstance(row, dict)
        row["uuid"] = f"1{row['uuid'][1:]}"
        row["parentUuid"] = f"1{row['parentUuid'][1:]}" if row["parentUuid"] else None
    main = transcript(
        prompt("go"),
        call("Task", task, "done", details={"agentId": AGENT, "status": "completed"}),
        call("Task", {"description": "d", "prompt": "Merge all", "subagent_type": "synthesis-master"}, "done"),
        call("Task", {"description": "d", "prompt": "Design it", "subagent_type": "zen-code-architect"}, "done"),
    )
    write(home / PROJECT / f"{SESSION}.jsonl", *main, *inside)
    agents = home / PROJECT / SESSION / "subagents"
    texts = {AGENT: "Review it", "a2": "Design it", "a3": "By side file", "a4": "Nobody asked for this"}
    for at, (name, text) in enumerate(texts.items()):
        pen = Pen(start=START.replace(hour=11 + at), isSidechain=True, agentId=name)
        bash = call("Bash", "ls", "a", message={"id": f"msg_01{at}"})
        write(agents / f"agent-{name}.jsonl", *transcript(prompt(text), bash, pen=pen))
    (agents / "agent-a3.meta.json").write_text('{"agentType": "general-purpose"}')


AGENT_TYPES = {
    "main": 3,
    "architecture-reviewer": 1,
    "synthesis-master": 1,
    "zen-code-architect": 1,
    "general-purpose": 1,
    "(none)": 1,
}


@INDEX
def test_usage_knows_the_agent_types_of_the_tree(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Rows 001.95 to 001.98: from the call, the prompt or the side file, as in `threadline tree`."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    _write_agents(tmp_path)
    rows = cli("usage", "--by", "agent-type", "--home", tmp_path, "--jsonl").jsonl
    assert {row["agent-type"]: row["charges"] for row in rows} == AGENT_TYPES
    session = threadline.read(tmp_path / PROJECT / f"{SESSION}.jsonl")
    assert {agent.type or "(none)" for agent in session.agents} == AGENT_TYPES.keys() - {"main"}
    with threadline.open(tmp_path, index=index == "on") as archive:
        ledger = archive.ledger().where(model="sonnet").where(lambda charge: charge.agent is not None)
        types = {row.keys["agent-type"] for row in ledger.by("agent-type")}
    assert types == AGENT_TYPES.keys() - {"main"}


def test_sql_knows_the_agent_types_of_the_tree(cli: CliRunner, tmp_path: Path) -> None:
    """`charges.agent_type` and `agents.type`."""
    _write_agents(tmp_path)
    select = "SELECT COALESCE(agent_type, CASE WHEN agent IS NULL THEN 'main' ELSE '(none)' END) type, COUNT(*) charges"
    rows = cli("sql", f"{select} FROM charges GROUP BY 1", "--home", tmp_path, "--json").json
    assert {row["type"]: row["charges"] for row in rows} == AGENT_TYPES
    agents = cli("sql", "SELECT COALESCE(type, '(none)') type FROM agents", "--home", tmp_path, "--json").json
    assert {row["type"] for row in agents} == AGENT_TYPES.keys() - {"main"}
    for name in AGENT_TYPES.keys() - {"main", "(none)"}:
        assert cli("list", "--agent-type", name, "--home", tmp_path, "--json").json[0]["session"] == SESSION


def test_pages_merge_renamed_tools_unless_exact(renamed: Path) -> None:
    """The pages of usage and calls, and that of a session, which also says how a reply stopped."""
    client = Client(renamed)

    def tools(address: str) -> set[str]:
        return {row["tool"] for row in client.get(address).json()["rows"]}

    assert tools("/usage.json?by=tool&since=all") == {"Read", "LS", "Agent"}
    assert tools("/usage.json?by=tool&since=all&exact_tools=1") == {"View", "Read", "LSTool", "Task", "Agent"}
    calls = client.get("/calls.json?tool=Read").json()["calls"]
    assert {row["tool"] for row in calls} == {"View", "Read"}
    assert len(client.get("/calls.json?tool=Read&exact_tools=1").json()["calls"]) == 1


def test_session_page_says_why_a_reply_stopped(stopped: Path) -> None:
    """Rows 003.29 and 003.30; the head has slug and operating system."""
    client = Client(stopped)
    page = client.get(f"/session/{SESSION}").text
    for text in ("it reached the output limit (max_tokens)", "stop sequence (stop_sequence)", SLUG, "Darwin 25.1.0"):
        assert text in page
