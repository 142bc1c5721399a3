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
    "text",
    "problems",
}
SESSION = "5e551011-0000-4000-8000-000000000001"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A transcript with a main thread, two agents, and rows outside the conversation, in January 2026."""
    main, first, second = Pen(), Pen(isSidechain=True, agentId="a1b2"), Pen(isSidechain=True, agentId="c3d4")
    rows = [
        *transcript(meta("summary", summary="A title", leafUuid="x"), prompt("do it"), reply("I will"), pen=main),
        *transcript(prompt("look"), reply("seen"), pen=first),
        *transcript(prompt("search"), pen=second),
        *transcript(reply("done"), pen=main),
    ]
    return write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *rows)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    """What the entries say."""
    return [row["text"] for row in rows]


def test_keys_are_stable(cli: CliRunner, sample: Path) -> None:
    """Each row has these keys; `--data` adds the entry's own JSON, whole."""
    rows = cli("entries", sample, "--jsonl").jsonl
    assert {frozenset(row) for row in rows} == {frozenset(KEYS)}
    whole = cli("entries", sample, "--jsonl", "--data").jsonl
    assert {frozenset(row) for row in whole} == {frozenset(KEYS | {"data"})}
    assert [row["data"] for row in whole] == list(home_counts.rows(sample))


def test_every_entry_is_a_row_with_its_place(cli: CliRunner, sample: Path) -> None:
    """Without a filter every entry comes, in file order; place, line, offset and length lead back to its bytes."""
    rows = cli("entries", sample, "--jsonl").jsonl
    content = sample.read_bytes()
    assert [row["line"] for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        raw = content[row["offset"] : row["offset"] + row["length"]]
        assert row["place"] == f"{sample}:{row['line']}"
        assert json.loads(raw)["type"] == row["kind"]
    assert sum(row["length"] for row in rows) == len(content)


def test_by_kind(cli: CliRunner, sample: Path) -> None:
    """`--kind` keeps a kind, several keep several; a kind that is not there is nothing found."""
    rows = list(home_counts.rows(sample))
    for kinds in (["user"], ["summary"], ["user", "assistant"]):
        options = [word for kind in kinds for word in ("--kind", kind)]
        got = cli("entries", sample, *options, "--jsonl").jsonl
        assert [row["kind"] for row in got] == [row["type"] for row in rows if row["type"] in kinds]
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


@pytest.mark.parametrize(("options", "sentence"), NOTHING, ids=lambda given: " ".join(given)[:30])
def test_nothing_found_says_why(cli: CliRunner, sample: Path, options: list[str], sentence: str) -> None:
    """Where no entry passes: exit code 1, nothing on standard output, and one sentence that helps on standard error."""
    result = cli("entries", sample, *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_nothing_to_read_says_so(cli: CliRunner, tmp_path: Path) -> None:
    """A folder without transcripts and a transcript without entries are told apart from filters that fit nothing."""
    folder = cli("entries", tmp_path)
    assert (folder.code, folder.out) == (1, "")
    assert folder.err == f"threadline: No transcripts in {str(tmp_path)!r}.\n"
    empty = cli("entries", write(tmp_path / "a.jsonl", b""), "--kind", "user")
    assert (empty.code, empty.out) == (1, "")
    assert "There are no entries" in empty.err
    nobody = cli("entries", write(tmp_path / "b.jsonl", *transcript(prompt("hi"))), "--agent", "sub")
    assert "No subagent wrote here" in nobody.err


def test_a_time_that_ends_before_it_begins_is_an_error(cli: CliRunner, sample: Path) -> None:
    """`--since` after `--until` is said before anything is read: exit code 2."""
    result = cli("entries", sample, "--since", "2026-02-01", "--until", "2026-01-01")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: --since 2026-02-01 is after --until 2026-01-01")


def test_by_agent(cli: CliRunner, sample: Path) -> None:
    """`--agent` takes an agent's id, `main` for the main thread, `sub` for what subagents wrote."""
    assert texts(cli("entries", sample, "--agent", "a1b2", "--jsonl").jsonl) == ["look", "seen"]
    assert texts(cli("entries", sample, "--agent", "c3d4", "--jsonl").jsonl) == ["search"]
    assert texts(cli("entries", sample, "--agent", "sub", "--jsonl").jsonl) == ["look", "seen", "search"]
    main = cli("entries", sample, "--agent", "main", "--jsonl").jsonl
    assert texts(main) == ["A title", "do it", "I will", "done"]
    assert texts(cli("entries", sample, "--agent", "agent-a1b2", "--jsonl").jsonl) == ["look", "seen"]
    assert cli("entries", sample, "--agent", "ffff").code == 1


def test_an_agents_transcript_is_its_own(cli: CliRunner, tmp_path: Path) -> None:
    """Every row of `agent-<id>.jsonl` is that agent's, also one that does not say so; one that names another is not."""
    rows = [*transcript(prompt("a")), {"type": "summary", "summary": "b", "leafUuid": "x"}]
    rows += transcript(prompt("c"), pen=Pen(isSidechain=True, agentId="other"))
    path = write(tmp_path / "agent-a1b2c3d4.jsonl", *rows)
    got = cli("entries", path, "--jsonl").jsonl
    assert [(row["agent"], row["is_agent"]) for row in got] == [("a1b2c3d4", True), ("a1b2c3d4", True), ("other", True)]
    assert texts(cli("entries", path, "--agent", "a1b2c3d4", "--jsonl").jsonl) == ["a", "b"]
    assert texts(cli("entries", path, "--agent", "a1b2", "--jsonl").jsonl) == ["a", "b"]
    assert cli("entries", path, "--agent", "main").code == 1


def test_agents_of_a_home_equal_an_independent_count(cli: CliRunner, demo_home: Path) -> None:
    """Over a whole home, `main` and `sub` split the entries: agents' own transcripts, and rows that name one."""
    everything = len(cli("entries", demo_home, "--jsonl").jsonl)
    main, agents = (len(cli("entries", demo_home, "--agent", who, "--jsonl").jsonl) for who in ("main", "sub"))
    assert main + agents == everything
    own = [path for path in home_counts.transcripts(demo_home) if path.name.startswith("agent-")]
    others = home_counts.rows(*(path for path in home_counts.transcripts(demo_home) if path not in own))
    named = sum(bool(row.get("isSidechain") or row.get("agentId")) for row in others)
    assert agents == sum(len(path.read_bytes().splitlines()) for path in own) + named


def test_by_time(cli: CliRunner, tmp_path: Path) -> None:
    """`--since` and `--until` take days in UTC, of which both ends are kept, and moments."""
    days = [datetime(2026, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    rows = [row for day in days for row in transcript(prompt(str(day.day)), pen=Pen(start=day))]
    path = write(tmp_path / "a.jsonl", *rows, {"type": "summary", "summary": "no time", "leafUuid": "x"})

    def days_of(*options: str) -> list[str]:
        return texts(cli("entries", path, *options, "--jsonl").jsonl)

    assert days_of("--since", "2026-01-02") == ["2", "3"]
    assert days_of("--until", "2026-01-02") == ["1", "2"]
    assert days_of("--since", "2026-01-02", "--until", "2026-01-02") == ["2"]
    assert days_of("--since", "2026-01-01T13:00", "--until", "2026-01-03T11:00Z") == ["2"]
    assert days_of("--since", "2026-01-02T14:00+03:00") == ["2", "3"]
    assert days_of("--until", "999999w") == []
    assert days_of("--since", "999999w") == ["1", "2", "3"]


def test_by_words_for_time(cli: CliRunner, tmp_path: Path) -> None:
    """`--since` takes `12h`, `7d`, `2w`, `yesterday` and `today`, counted back from now."""
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
def test_a_bad_time_is_an_error_with_a_sentence(cli: CliRunner, sample: Path, option: str, word: str) -> None:
    """A word that is no time: exit code 2, nothing on standard output, and what to write instead."""
    result = cli("entries", sample, f"{option}={word}")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: ")
    assert "is not a time. Write 2026-11-03" in result.err
    assert "\x1b" not in result.err


def test_no_more_than_the_limit(cli: CliRunner, sample: Path) -> None:
    """`--limit` ends after so many that pass the other filters; less than one is refused."""
    assert texts(cli("entries", sample, "--kind", "user", "--limit", "2", "--jsonl").jsonl) == ["do it", "look"]
    assert len(cli("entries", sample, "--limit", "1000", "--jsonl").jsonl) == 7
    refused = cli("entries", sample, "--limit", "0")
    assert refused.code == 2
    assert "--limit" in refused.err


def test_only_what_has_problems(cli: CliRunner, tmp_path: Path) -> None:
    """`--problems` keeps entries with which something is wrong, and each says what and where."""
    good = line({"type": "summary", "summary": "fine", "leafUuid": "x"})
    path = write(tmp_path / "a.jsonl", good, b"garbage\n", good, line({"type": "user", "message": 5}))
    rows = cli("entries", path, "--problems", "--jsonl").jsonl
    assert [(row["line"], row["problems"][0]["kind"]) for row in rows] == [(2, "foreign-bytes"), (4, "wrong-type")]
    assert {frozenset(problem) for row in rows for problem in row["problems"]} == {
        frozenset({"kind", "place", "message"})
    }
    assert rows[1]["problems"][0]["place"] == f"{path}:4$.message"
    assert cli("entries", write(tmp_path / "b.jsonl", good), "--problems").code == 1


def test_problems_are_shown_and_named(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of `--problems` shows what is wrong, several things joined; a time that names no moment is one."""
    monkeypatch.setenv("COLUMNS", "300")
    good = line({"type": "summary", "summary": "fine", "leafUuid": "x"})
    odd = {"type": "user", "timestamp": "yesterday", "message": 5}
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


def test_raw_gives_the_bytes_back(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """`--raw` without a filter is the file, byte for byte, whatever is in it; with one, the lines that pass."""
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


def test_raw_keeps_apart_what_was_apart(cli: CliRunner, tmp_path: Path) -> None:
    """Two rows glued to one line stay so, but a row whose neighbour is filtered out ends its line."""
    title, mode = line({"type": "summary", "summary": "s", "leafUuid": "u"}), line({"type": "mode", "mode": "plan"})
    path = write(tmp_path / "a.jsonl", title[:-1] + mode, title[:-1])
    assert cli("entries", path, "--raw", "--kind", "summary").raw == title[:-1] + b"\n" + title[:-1]


def test_by_the_start_of_an_id(cli: CliRunner, sample: Path, demo_home: Path) -> None:
    """PATH may be the start of a session's id, or of an agent's that has a transcript of its own."""
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
        assert "Give at least 4 characters" in result.err


def test_a_start_that_fits_several_lists_them(cli: CliRunner, tmp_path: Path) -> None:
    """An ambiguous start is an error that lists the candidates; one letter more decides."""
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
def test_an_unknown_name_is_an_error_with_a_sentence(cli: CliRunner, sample: Path, command: str, name: str) -> None:
    """A name that is neither a path nor the start of an id: exit code 2 and a sentence, not longer than one reads."""
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
            shown = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
            shown = CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", shown)
            got = cell[name]
            if isinstance(value, str) and value[:1] in "=+-@\t\r" and value:
                assert got == "'" + shown
            elif isinstance(value, str) or value is None:
                assert got == shown
            else:
                assert json.loads(got) == value
    table = [text for text in cli("entries", folder).out.split("\n") if text[:7].strip().isdecimal()]
    assert [int(text[:7]) for text in table] == [row["line"] for row in rows]
    kinds = [row["kind"] + (f"/{row['subtype']}" if row["subtype"] else "") for row in rows]
    assert [text[30:].split("  ")[0][:15] for text in table] == [kind[:15] for kind in kinds]


def test_nothing_found_is_the_same_in_all_formats(cli: CliRunner, sample: Path) -> None:
    """Where no entry passes, the exit code is 1, and JSON is still JSON."""
    answers = {name: cli("entries", sample, "--kind", "none", f"--{name}") for name in ("json", "jsonl", "csv")}
    assert {result.code for result in answers.values()} == {1}
    assert answers["json"].json == []
    assert answers["jsonl"].out == answers["csv"].out == ""


def test_a_transcript_that_cannot_be_read(cli: CliRunner, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of several that cannot be read is said on standard error and the others come; alone it is an error."""
    other = write(sample.with_name("5e551011-0000-4000-8000-000000000002.jsonl"), *transcript(prompt("other")))
    really = parse.entries

    def refuse(path: Path) -> Any:
        if path == sample:
            raise Unreadable(f"{path} cannot be opened: no.")
        return really(path)

    monkeypatch.setattr("threadline.cli.entries.parse_entries", refuse)
    result = cli("entries", sample.parent, "--jsonl")
    assert (result.code, texts(result.jsonl)) == (0, ["other"])
    assert result.err == f"threadline: {sample} cannot be opened: no.\n"
    assert cli("entries", sample).code == 2
    assert cli("entries", other).code == 0


@pytest.mark.slow
def test_deep_and_big_values_are_printed(tmp_path: Path) -> None:
    """Values nested 900 deep, and integers of any size, come out of `--data` in every format."""
    deep = b'{"type":"user","x":' + b"[" * 900 + b"]" * 900 + b"}\n"
    path = write(tmp_path / "a.jsonl", deep, b'{"type":"user","x":' + b"9" * 400 + b"}\n")
    for output in ("json", "jsonl", "csv"):
        result = run_in_subprocess("entries", path, "--data", f"--{output}")
        assert result.code == 0
        assert "9" * 400 in result.out
        assert "[" * 900 in result.out


@pytest.mark.parametrize("command", ["entries", "doctor"])
def test_side_files_are_not_read_as_transcripts(cli: CliRunner, demo_home: Path, command: str) -> None:
    """A side file that is named is called what it is, with where to read it: exit code 2."""
    plan = write(demo_home.parent / "copy/plans/x.md", b"# Plan")
    write(demo_home.parent / "copy/history.jsonl", line({"display": "x"}))
    meta = next(demo_home.glob("projects/**/agent-*.meta.json"))
    named = {
        demo_home / "history.jsonl": "history",
        demo_home / "stats-cache.json": "stats-cache",
        meta: "agent-meta",
        plan: "plan",
    }
    for path, kind in named.items():
        result = cli(command, path)
        assert (result.code, result.out) == (2, "")
        assert f"is a side file ({kind}), not a transcript. Read it with threadline.read_side_file" in result.err


@pytest.mark.parametrize("command", ["entries", "doctor"])
@pytest.mark.parametrize("name", [".credentials.json", "x.key", ".env", "settings.json"])
def test_secrets_and_settings_are_not_opened_by_name_either(
    cli: CliRunner, tmp_path: Path, command: str, name: str
) -> None:
    """A secret that is named is refused with a sentence, and nothing of it shows."""
    (tmp_path / "projects").mkdir()
    result = cli(command, write(tmp_path / name, b'{"secret":"sk-planted"}'))
    assert (result.code, result.out) == (2, "")
    assert "never opens" in result.err
    assert "sk-planted" not in result.err


@pytest.mark.parametrize(
    "options", [["--json", "--csv"], ["--csv", "--jsonl"], ["--raw", "--json"], ["--data"], ["--data", "--raw"]]
)
def test_options_that_contradict_each_other(cli: CliRunner, sample: Path, options: list[str]) -> None:
    """Two forms at once, or `--data` without one that has room for it: exit code 2, and a sentence that names both."""
    result = cli("entries", sample, *options)
    assert (result.code, result.out) == (2, "")
    assert all(option in result.err.rpartition("Error: ")[2] for option in options)


def test_a_narrow_table_leaves_room_for_the_text(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns no line is longer; the kind takes what is shown, 16 at most; a long one that comes later is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    words = "word " * 40
    path = write(tmp_path / "a.jsonl", *transcript(prompt(words)))
    heading, row = cli("entries", path).out.splitlines()
    assert (heading.index("text"), len(row)) == (30 + 4 + 2, 80)
    path = write(tmp_path / "b.jsonl", *transcript(*[prompt(words)] * 300), {"type": "an-extremely-long-kind"})
    for one in (path, write(tmp_path / "c.jsonl", {"type": "an-extremely-long-kind"}, *transcript(prompt(words)))):
        lines = cli("entries", one).out.splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[0].index("text") == 30 + 16 + 2
        assert any("an-extremely-lo…  " in text for text in lines)


def test_of_a_session_whose_transcript_is_gone_the_agents_are_named(cli: CliRunner, tmp_path: Path) -> None:
    """Search and usage name it, so it is not denied; what is left of it is told."""
    session = "5e551012-0000-4000-8000-000000000002"
    home = tmp_path / "home"
    agent = home / "projects/-w" / session / "subagents/agent-a1b2c3d4.jsonl"
    write(agent, *transcript(prompt("look"), reply("seen"), pen=Pen(session, isSidechain=True, agentId="a1b2c3d4")))
    for command in ("show", "entries"):
        result = cli(command, session[:8], "--home", home)
        assert result.code == 2
        assert result.err.endswith("itself is gone. What is left: a1b2c3d4; name one of them.\n")
    assert cli("entries", "a1b2c3d4", "--home", home).code == 0


@pytest.mark.parametrize("command", ["entries", "scan", "doctor"])
def test_last_is_the_newest_session(cli: CliRunner, demo_home: Path, command: str) -> None:
    """What reads transcripts takes `last` as `show` does."""
    named = cli("list", "--limit", "1", "--json", "--home", demo_home).json[0]["id"]
    assert cli(command, "last", "--home", demo_home).out == cli(command, named, "--home", demo_home).out
