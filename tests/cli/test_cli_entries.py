"""`threadline entries`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, run_in_subprocess
from tests.transcripts import Pen, line, meta, prompt, reply, transcript, write

from threadline import parse
from threadline.errors import Unreadable

KEYS = {
    "place",
    "line",
    "offset",
    "length",
    "kind",
    "subtype",
    "uuid",
    "parent_uuid",
    "session",
    "agent",
    "is_agent",
    "timestamp",
    "version",
    "slug",
    "request",
    "stop_reason",
    "service_tier",
    "text",
    "problems",
}
SESSION = "5e551011-0000-4000-8000-000000000001"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A transcript from January 2026 with a main thread, two agents, and rows outside the conversation."""
    main, first, second = Pen(), Pen(isSidechain=True, agentId="a1b2"), Pen(isSidechain=True, agentId="c3d4")
    rows = [
        *transcript(meta("summary", summary="A title", leafUuid="x"), prompt("do it"), reply("I will"), pen=main),
        *transcript(prompt("look"), reply("seen"), pen=first),
        *transcript(prompt("search"), pen=second),
        *transcript(reply("done"), pen=main),
    ]
    return write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *rows)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    """The texts of the rows."""
    return [row["text"] for row in rows]


def test_row_keys_are_stable(cli: CliRunner, sample: Path) -> None:
    """Each row has these keys. `--data` adds the entry's JSON."""
    rows = cli("entries", sample, "--jsonl").jsonl
    assert {frozenset(row) for row in rows} == {frozenset(KEYS)}
    full_rows = cli("entries", sample, "--jsonl", "--data").jsonl
    assert {frozenset(row) for row in full_rows} == {frozenset(KEYS | {"data"})}
    assert [row["data"] for row in full_rows] == list(home_counts.rows(sample))


def test_every_entry_is_a_row_with_its_position(cli: CliRunner, sample: Path) -> None:
    """Without a filter, every entry is printed in file order. Place, line, offset and length locate its bytes."""
    rows = cli("entries", sample, "--jsonl").jsonl
    content = sample.read_bytes()
    assert [row["line"] for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        raw = content[row["offset"] : row["offset"] + row["length"]]
        assert row["place"] == f"{sample}:{row['line']}"
        assert json.loads(raw)["type"] == row["kind"]
    assert sum(row["length"] for row in rows) == len(content)


def test_filters_by_kind(cli: CliRunner, sample: Path) -> None:
    """`--kind` may be repeated. If no entry is of this kind, the exit code is 1."""
    rows = list(home_counts.rows(sample))
    for kinds in (["user"], ["summary"], ["user", "assistant"]):
        options = [word for kind in kinds for word in ("--kind", kind)]
        filtered = cli("entries", sample, *options, "--jsonl").jsonl
        assert [row["kind"] for row in filtered] == [row["type"] for row in rows if row["type"] in kinds]
    assert cli("entries", sample, "--kind", "nothing").code == 1


NOTHING = [
    (["--kind", "usr"], "Did you mean user? Kinds here: "),
    (["--kind", "User"], "Did you mean user? Kinds here: "),
    (["--kind", "pr-link"], "No entries of kind 'pr-link'. Kinds here: user, assistant, summary."),
    (["--kind", "pr-lnk"], "Did you mean pr-link?"),
    (["--kind", "zzzzz"], "No entries of kind 'zzzzz'. Kinds here: "),
    (["--kind", "user,assistant"], "Repeat the option instead: --kind user --kind assistant."),
    (["--kind", "tool_use"], "is a block inside assistant entries"),
    (["--kind", "tool_result"], "is a block inside user entries"),
    (["--kind", "text"], "is a block inside assistant and user entries"),
    (["--kind", "thinking"], "is a block inside assistant entries"),
    (["--agent", "nosuch"], "Agents here: a1b2, c3d4."),
    (["--agent", "any"], "Use `main` for the main thread, `sub` for all subagents."),
    (["--since", "2027-01-01"], "The entries here are from 2026-01-0"),
    (["--until", "2020-01-01"], "The entries here are from 2026-01-0"),
    (["--problems"], "No entry has a problem."),
    (["--kind", "summary", "--agent", "sub"], "None of 7 entries matches --kind and --agent 'sub'."),
]


@pytest.mark.parametrize(("options", "sentence"), NOTHING, ids=lambda value: " ".join(value)[:30])
def test_explains_why_nothing_matches(cli: CliRunner, sample: Path, options: list[str], sentence: str) -> None:
    """If no entry matches: exit code 1, empty standard output, and one helpful sentence on standard error."""
    result = cli("entries", sample, *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_reports_missing_transcripts_and_entries(cli: CliRunner, tmp_path: Path) -> None:
    """Missing transcripts and empty transcripts are reported differently from filters that match nothing."""
    folder = cli("entries", tmp_path)
    assert (folder.code, folder.out) == (1, "")
    assert folder.err == f"threadline: No transcripts in {str(tmp_path)!r}.\n"
    empty = cli("entries", write(tmp_path / "a.jsonl", b""), "--kind", "user")
    assert (empty.code, empty.out) == (1, "")
    assert "There are no entries" in empty.err
    no_agents = cli("entries", write(tmp_path / "b.jsonl", *transcript(prompt("hi"))), "--agent", "sub")
    assert "No subagent wrote here" in no_agents.err


def test_since_after_until_is_an_error(cli: CliRunner, sample: Path) -> None:
    """`--since` after `--until` exits with 2 before anything is read."""
    result = cli("entries", sample, "--since", "2026-02-01", "--until", "2026-01-01")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(
        "threadline: The time range ends before it starts: since 2026-02-01, until 2026-01-01."
    )


def test_filters_by_agent(cli: CliRunner, sample: Path) -> None:
    """`--agent` accepts an agent's id, `main` for the main thread, or `sub` for all subagents."""
    assert texts(cli("entries", sample, "--agent", "a1b2", "--jsonl").jsonl) == ["look", "seen"]
    assert texts(cli("entries", sample, "--agent", "c3d4", "--jsonl").jsonl) == ["search"]
    assert texts(cli("entries", sample, "--agent", "sub", "--jsonl").jsonl) == ["look", "seen", "search"]
    main = cli("entries", sample, "--agent", "main", "--jsonl").jsonl
    assert texts(main) == ["A title", "do it", "I will", "done"]
    assert texts(cli("entries", sample, "--agent", "agent-a1b2", "--jsonl").jsonl) == ["look", "seen"]
    assert cli("entries", sample, "--agent", "ffff").code == 1


def test_rows_of_agent_transcript_belong_to_the_agent(cli: CliRunner, tmp_path: Path) -> None:
    """Every row of `agent-<id>.jsonl` belongs to that agent, unless it names another one."""
    rows = [*transcript(prompt("a")), {"type": "summary", "summary": "b", "leafUuid": "x"}]
    rows += transcript(prompt("c"), pen=Pen(isSidechain=True, agentId="other"))
    path = write(tmp_path / "agent-a1b2c3d4.jsonl", *rows)
    filtered = cli("entries", path, "--jsonl").jsonl
    assert [(row["agent"], row["is_agent"]) for row in filtered] == [
        ("a1b2c3d4", True),
        ("a1b2c3d4", True),
        ("other", True),
    ]
    assert texts(cli("entries", path, "--agent", "a1b2c3d4", "--jsonl").jsonl) == ["a", "b"]
    assert texts(cli("entries", path, "--agent", "a1b2", "--jsonl").jsonl) == ["a", "b"]
    assert cli("entries", path, "--agent", "main").code == 1


def test_main_and_sub_partition_a_home(cli: CliRunner, demo_home: Path) -> None:
    """Over a home, `main` and `sub` partition the entries, and `sub` equals an independent count."""
    everything = len(cli("entries", demo_home, "--jsonl").jsonl)
    main, agents = (len(cli("entries", demo_home, "--agent", agent, "--jsonl").jsonl) for agent in ("main", "sub"))
    assert main + agents == everything
    agent_files = [path for path in home_counts.transcripts(demo_home) if path.name.startswith("agent-")]
    others = home_counts.rows(*(path for path in home_counts.transcripts(demo_home) if path not in agent_files))
    sidechain_rows = sum(bool(row.get("isSidechain") or row.get("agentId")) for row in others)
    assert agents == sum(len(path.read_bytes().splitlines()) for path in agent_files) + sidechain_rows


def test_filters_by_time(cli: CliRunner, tmp_path: Path) -> None:
    """`--since` and `--until` accept days in UTC, both inclusive, and times."""
    days = [datetime(2026, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    rows = [row for day in days for row in transcript(prompt(str(day.day)), pen=Pen(start=day))]
    path = write(tmp_path / "a.jsonl", *rows, {"type": "summary", "summary": "no time", "leafUuid": "x"})

    def entries_in(*options: str) -> list[str]:
        return texts(cli("entries", path, *options, "--jsonl").jsonl)

    assert entries_in("--since", "2026-01-02") == ["2", "3"]
    assert entries_in("--until", "2026-01-02") == ["1", "2"]
    assert entries_in("--since", "2026-01-02", "--until", "2026-01-02") == ["2"]
    assert entries_in("--since", "2026-01-01T13:00", "--until", "2026-01-03T11:00Z") == ["2"]
    assert entries_in("--since", "2026-01-02T14:00+03:00") == ["2", "3"]
    assert entries_in("--until", "999999w") == []
    assert entries_in("--since", "999999w") == ["1", "2", "3"]


def test_filters_by_relative_time(cli: CliRunner, tmp_path: Path) -> None:
    """`--since` accepts `12h`, `7d`, `2w`, `yesterday` and `today`, relative to now."""
    now = datetime.now(UTC)
    ages = {"minutes": timedelta(minutes=-1), "hours": timedelta(hours=30), "days": timedelta(days=10)}
    rows = [row for name, age in ages.items() for row in transcript(prompt(name), pen=Pen(start=now - age))]
    path = write(tmp_path / "a.jsonl", *rows)
    expected = {
        "today": ["minutes"],
        "12h": ["minutes"],
        "2d": ["minutes", "hours"],
        "2w": ["minutes", "hours", "days"],
        "20000m": ["minutes", "hours", "days"],
    }
    for word, names in expected.items():
        assert texts(cli("entries", path, "--since", word, "--jsonl").jsonl) == names
    assert texts(cli("entries", path, "--until", "yesterday", "--jsonl").jsonl)[-1] == "days"
    assert "minutes" not in texts(cli("entries", path, "--until", "now", "--jsonl").jsonl)


@pytest.mark.parametrize("word", ["soon", "2026-13-01", "2026-02-30", "7 parsecs", "", "-1d", "20261301", "\x1b[31m"])
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_invalid_time_is_an_error(cli: CliRunner, sample: Path, option: str, word: str) -> None:
    """An invalid time exits with 2, and the message says what to write instead."""
    result = cli("entries", sample, f"{option}={word}")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: ")
    assert "is not a time. Write 2026-11-03" in result.err
    assert "\x1b" not in result.err


def test_limit_counts_matching_entries(cli: CliRunner, sample: Path) -> None:
    """`--limit` counts entries that match the other filters. 0 is no limit; values below it are refused."""
    assert texts(cli("entries", sample, "--kind", "user", "--limit", "2", "--jsonl").jsonl) == ["do it", "look"]
    assert len(cli("entries", sample, "--limit", "1000", "--jsonl").jsonl) == 7
    assert len(cli("entries", sample, "--limit", "0", "--jsonl").jsonl) == 7
    refused = cli("entries", sample, "--limit", "-1")
    assert refused.code == 2
    assert "--limit" in refused.err


def test_problems_filter_keeps_entries_with_problems(cli: CliRunner, tmp_path: Path) -> None:
    """`--problems` keeps entries with problems, and each names what and where."""
    good = line({"type": "summary", "summary": "fine", "leafUuid": "x"})
    path = write(tmp_path / "a.jsonl", good, b"garbage\n", good, line({"type": "user", "message": 5}))
    rows = cli("entries", path, "--problems", "--jsonl").jsonl
    assert [(row["line"], row["problems"][0]["kind"]) for row in rows] == [(2, "foreign-bytes"), (4, "wrong-type")]
    assert {frozenset(problem) for row in rows for problem in row["problems"]} == {
        frozenset({"kind", "place", "message"})
    }
    assert rows[1]["problems"][0]["place"] == f"{path}:4$.message"
    assert cli("entries", write(tmp_path / "b.jsonl", good), "--problems").code == 1


def test_problems_table_describes_each_problem(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of `--problems` joins several problems. An invalid timestamp is one."""
    monkeypatch.setenv("COLUMNS", "300")
    good = line({"type": "summary", "summary": "fine", "leafUuid": "x"})
    (row,) = prompt("x")(Pen())
    odd = {**row, "timestamp": "yesterday", "message": 5}
    path = write(tmp_path / "a.jsonl", good[:-1] + good, line(odd))
    glued, both = cli("entries", path, "--problems").out.splitlines()[1:]
    assert glued.rstrip().endswith("glued: on one line with the object before it")
    assert "wrong-type: " in both
    assert both.endswith("; bad-timestamp: 'yesterday' is not a time")
    (row,) = [row for row in cli("entries", path, "--jsonl").jsonl if row["kind"] == "user"]
    assert row["problems"][-1] == {
        "kind": "bad-timestamp",
        "place": f"{path}:2$.timestamp",
        "message": "'yesterday' is not a time",
    }
    assert set(cli("doctor", path, "--json").json["problems"]) == {"glued", "wrong-type", "bad-timestamp"}


def test_raw_prints_the_bytes(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """`--raw` without a filter reproduces the file byte for byte. With a filter it prints the matching lines."""
    row = line({"type": "summary", "summary": "s", "leafUuid": "u"})
    odd = b"\xef\xbb\xbf" + row + row[:-1] + row + b"\r\n\0\0\0\n\xff\xfe\n" + row[:-1] + b"\r\n" + row[:-9]
    for path in (write(tmp_path / "odd.jsonl", odd), *home_counts.transcripts(demo_home)[:5]):
        result = cli("entries", path, "--raw")
        assert (result.code, result.raw) == (0, path.read_bytes())
    path = home_counts.main_transcripts(demo_home)[0]
    users = [
        splitline
        for splitline in path.read_bytes().splitlines(keepends=True)
        if json.loads(splitline)["type"] == "user"
    ]
    assert cli("entries", path, "--raw", "--kind", "user").raw == b"".join(users)


def test_raw_ends_lines_of_filtered_glued_rows(cli: CliRunner, tmp_path: Path) -> None:
    """Two rows glued on one line stay together, but a row whose neighbour is filtered out ends its line."""
    title, mode = line({"type": "summary", "summary": "s", "leafUuid": "u"}), line({"type": "mode", "mode": "plan"})
    path = write(tmp_path / "a.jsonl", title[:-1] + mode, title[:-1])
    assert cli("entries", path, "--raw", "--kind", "summary").raw == title[:-1] + b"\n" + title[:-1]


def test_accepts_id_prefixes(cli: CliRunner, sample: Path, demo_home: Path) -> None:
    """PATH may be the prefix of a session id, or of an agent id that has its own transcript."""
    home = sample.parents[2]
    for name in ("5e551011", f"{SESSION}.jsonl"):
        assert cli("entries", name, "--home", home).out == f"{sample}\n{cli('entries', sample).out}"
    assert cli("entries", SESSION.upper(), "--home", home).code == 0
    agent = next(path for path in home_counts.transcripts(demo_home) if path.name.startswith("agent-a"))
    for name in (agent.stem.removeprefix("agent-"), agent.stem, agent.name):
        rows = cli("entries", name, "--home", demo_home, "--jsonl").jsonl
        assert {Path(row["place"].rpartition(":")[0]) for row in rows} == {agent}
    for short in ("5e5", "a", "agent-a1"):
        result = cli("entries", short, "--home", home)
        assert result.code == 2
        assert "Use at least 4 characters" in result.err


def test_ambiguous_prefix_lists_candidates(cli: CliRunner, tmp_path: Path) -> None:
    """An ambiguous prefix is an error that lists the candidates. One more letter decides."""
    paths = [
        write(tmp_path / f"projects/-a/5e55101{letter}-0000-4000-8000-000000000001.jsonl", *transcript(prompt(letter)))
        for letter in "ab"
    ]
    result = cli("entries", "5e5510", "--home", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: 2 transcripts have an id that starts with '5e5510':")
    assert all(str(path) in result.err for path in paths)
    assert texts(cli("entries", "5e55101b", "--home", tmp_path, "--jsonl").jsonl) == ["b"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "name",
    ["ffffffff", "nowhere.jsonl", "../x", "%", "5e5", "-", "", "a\0b", "x" * 5000, "f" * 5000, "~nosuchuser/x"],
)
@pytest.mark.parametrize("command", ["entries", "doctor"])
def test_unknown_name_is_a_short_error(cli: CliRunner, sample: Path, command: str, name: str) -> None:
    """A name that is neither a path nor an id prefix exits with 2 and a short sentence."""
    result = cli(command, "--home", sample.parents[2], "--", name)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: ")
    assert len(result.err) < 400
    assert result.err.rstrip().endswith((".", "is."))


# Control characters that a CSV cell shows as escapes.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def test_all_formats_agree(cli: CliRunner, demo_home: Path) -> None:
    """`--json`, `--jsonl`, `--csv` and the table show the same entries in the same order."""
    folder = home_counts.main_transcripts(demo_home)[0].parent
    rows = cli("entries", folder, "--jsonl").jsonl
    assert cli("entries", folder, "--json").json == rows
    cells = cli("entries", folder, "--csv").csv
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        assert list(cell) == list(row)
        for name, value in row.items():
            expected = (
                value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
            )
            expected = CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", expected)
            actual = cell[name]
            if isinstance(value, str) and value[:1] in "=+-@\t\r" and value:
                assert actual == "'" + expected
            elif isinstance(value, str) or value is None:
                assert actual == expected
            else:
                assert json.loads(actual) == value
    table = [text for text in cli("entries", folder).out.split("\n") if text[:7].strip().isdecimal()]
    assert [int(text[:7]) for text in table] == [row["line"] for row in rows]
    kinds = [row["kind"] + (f"/{row['subtype']}" if row["subtype"] else "") for row in rows]
    assert [text[30:].split("  ")[0][:15] for text in table] == [kind[:15] for kind in kinds]


def test_no_match_exits_with_1_in_all_formats(cli: CliRunner, sample: Path) -> None:
    """If no entry matches, the exit code is 1, and JSON is still valid."""
    results = {name: cli("entries", sample, "--kind", "none", f"--{name}") for name in ("json", "jsonl", "csv")}
    assert {result.code for result in results.values()} == {1}
    assert results["json"].json == []
    assert results["jsonl"].out == results["csv"].out == ""


def test_reports_unreadable_transcript_and_prints_the_rest(
    cli: CliRunner, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unreadable transcript of several is reported on standard error. A single one is an error."""
    other = write(sample.with_name("5e551011-0000-4000-8000-000000000002.jsonl"), *transcript(prompt("other")))
    real_entries = parse.entries

    def refuse(path: Path) -> Any:
        if path == sample:
            raise Unreadable(f"{path} cannot be opened: no.")
        return real_entries(path)

    monkeypatch.setattr("threadline.cli.session.entries.parse_entries", refuse)
    result = cli("entries", sample.parent, "--jsonl")
    assert (result.code, texts(result.jsonl)) == (0, ["other"])
    assert result.err == f"threadline: {sample} cannot be opened: no.\n"
    assert cli("entries", sample).code == 2
    assert cli("entries", other).code == 0


@pytest.mark.slow
def test_prints_deep_and_big_values(tmp_path: Path) -> None:
    """Values nested 900 deep, and integers of any size, are printed by `--data` in every format."""
    deep = b'{"type":"user","x":' + b"[" * 900 + b"]" * 900 + b"}\n"
    path = write(tmp_path / "a.jsonl", deep, b'{"type":"user","x":' + b"9" * 400 + b"}\n")
    for output in ("json", "jsonl", "csv"):
        result = run_in_subprocess("entries", path, "--data", f"--{output}")
        assert result.code == 0
        assert "9" * 400 in result.out
        assert "[" * 900 in result.out


@pytest.mark.parametrize("command", ["entries", "doctor"])
def test_side_files_are_not_read_as_transcripts(cli: CliRunner, demo_home: Path, command: str) -> None:
    """A side file as PATH exits with 2 and is named as such."""
    plan = write(demo_home.parent / "copy/plans/x.md", b"# Plan")
    write(demo_home.parent / "copy/history.jsonl", line({"display": "x"}))
    meta = next(demo_home.glob("projects/**/agent-*.meta.json"))
    kinds = {
        demo_home / "history.jsonl": "history",
        demo_home / "stats-cache.json": "stats-cache",
        meta: "agent-meta",
        plan: "plan",
    }
    for path, kind in kinds.items():
        result = cli(command, path)
        assert (result.code, result.out) == (2, "")
        assert f"is a side file ({kind}), not a transcript. Read it with threadline.read_side_file" in result.err


@pytest.mark.parametrize("command", ["entries", "doctor"])
@pytest.mark.parametrize("name", [".credentials.json", "x.key", ".env", "settings.json"])
def test_refuses_secrets_and_settings_as_path(cli: CliRunner, tmp_path: Path, command: str, name: str) -> None:
    """A secret as PATH is refused with a sentence, and none of its content is shown."""
    (tmp_path / "projects").mkdir()
    result = cli(command, write(tmp_path / name, b'{"secret":"sk-planted"}'))
    assert (result.code, result.out) == (2, "")
    assert "never opens" in result.err
    assert "sk-planted" not in result.err


@pytest.mark.parametrize(
    "options", [["--json", "--csv"], ["--csv", "--jsonl"], ["--raw", "--json"], ["--data"], ["--data", "--raw"]]
)
def test_contradicting_options_are_an_error(cli: CliRunner, sample: Path, options: list[str]) -> None:
    """Two formats, or `--data` without a format that can hold it, exit with 2 and name both options."""
    result = cli("entries", sample, *options)
    assert (result.code, result.out) == (2, "")
    assert all(option in result.err.rpartition("Error: ")[2] for option in options)


def test_narrow_table_leaves_room_for_the_text(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns no line is longer. The kind column is as wide as needed, up to 16, and longer kinds are cut."""
    monkeypatch.setenv("COLUMNS", "80")
    words = "word " * 40
    path = write(tmp_path / "a.jsonl", *transcript(prompt(words)))
    heading, row = cli("entries", path).out.splitlines()
    assert (heading.index("text"), len(row)) == (30 + 4 + 2, 80)
    path = write(tmp_path / "b.jsonl", *transcript(*[prompt(words)] * 300), {"type": "an-extremely-long-kind"})
    for transcript_path in (
        path,
        write(tmp_path / "c.jsonl", {"type": "an-extremely-long-kind"}, *transcript(prompt(words))),
    ):
        lines = cli("entries", transcript_path).out.splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[0].index("text") == 30 + 16 + 2
        assert any("an-extremely-lo…  " in text for text in lines)


def test_names_agents_of_session_without_main_transcript(cli: CliRunner, tmp_path: Path) -> None:
    """Search and usage list such a session, so the error says what is left of it."""
    session = "5e551012-0000-4000-8000-000000000002"
    home = tmp_path / "home"
    agent = home / "projects/-w" / session / "subagents/agent-a1b2c3d4.jsonl"
    write(agent, *transcript(prompt("look"), reply("seen"), pen=Pen(session, isSidechain=True, agentId="a1b2c3d4")))
    for command in ("show", "entries"):
        result = cli(command, session[:8], "--home", home)
        assert result.code == 2
        assert result.err.endswith("no longer exists. What is left: a1b2c3d4; name one of them.\n")
    assert cli("entries", "a1b2c3d4", "--home", home).code == 0


@pytest.mark.parametrize("command", ["entries", "scan", "doctor"])
def test_last_is_the_newest_session(cli: CliRunner, demo_home: Path, command: str) -> None:
    """`last` is the newest session, as in `show`."""
    newest = cli("list", "--limit", "1", "--json", "--home", demo_home).json[0]["session"]
    assert cli(command, "last", "--home", demo_home).out == cli(command, newest, "--home", demo_home).out
