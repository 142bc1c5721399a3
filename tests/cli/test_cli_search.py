"""`threadline search` finds what was said, shows where, and never has an empty screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, call, meta, prompt, reply, transcript, write

from threadline.find import homes
from threadline.index import index_path
from threadline.index.store import open_for_writing

FIRST, SECOND = "5e551011-0000-4000-8000-000000000001", "5e551022-0000-4000-8000-000000000002"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions of two projects; the index lies beside."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "home"
    write(
        home / "projects" / "-work-app" / f"{FIRST}.jsonl",
        *transcript(
            prompt("why does the harbour deploy fail?"),
            call("Bash", "deploy harbour", result="timeout \x1b[31mharbour\x1b[0m \u202ereversed", error=True),
            reply("The harbour was closed."),
            meta("ai-title", aiTitle="Deploying"),
        ),
    )
    write(
        home / "projects" / "-srv-shop" / f"{SECOND}.jsonl",
        *transcript(prompt("=deploy to the staging harbour"), pen=Pen(SECOND, cwd="/srv/shop")),
    )
    return home


def test_a_hit_is_shown_with_its_session_and_place(cli: CliRunner, home: Path) -> None:
    """Title, when, project, field, words and place; no marks where no terminal is."""
    result = cli("search", "harbour", "closed", "--home", home)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "1  5e551011  Deploying"
    assert lines[1].endswith("2026-01-05 09:00 · reply · /work/app")
    assert lines[2].strip() == "The harbour was closed."
    assert lines[3].strip().endswith(f"{FIRST}.jsonl:4")
    assert "\x1b" not in result.out


def test_rows_for_programs(cli: CliRunner, home: Path) -> None:
    """One a session, the best; `--all` has every entry, `--sort time` the newest first."""
    rows = cli("search", "harbour", "--json", "--home", home).json
    assert {row["session"]: (row["field"], row["more"]) for row in rows} == {
        FIRST: ("prompt", 3),
        SECOND: ("prompt", 0),
    }
    every = cli("search", "harbour", "--all", "--sort", "time", "--jsonl", "--home", home).jsonl
    assert len(every) == 5
    times = [row["timestamp"] for row in every]
    assert times == sorted(times, reverse=True)
    for row in every:
        assert all(row["snippet"][start:end].lower() == "harbour" for start, end in row["highlights"])
    cells = cli("search", "staging", "--csv", "--home", home).csv
    assert cells[0]["snippet"].startswith("'=deploy")


def test_context_is_what_was_said_around(cli: CliRunner, home: Path) -> None:
    """So many entries before and after, in their order."""
    (row,) = cli("search", "command:harbour", "--context", "1", "--json", "--home", home).json
    assert [one["text"] for one in row["before"]] == ["why does the harbour deploy fail?"]
    assert len(row["after"]) == 1
    page = cli("search", "command:harbour", "--context", "5", "--home", home).out
    assert page.index("why does") < page.index("deploy harbour") < page.index("was closed")


@pytest.mark.parametrize("words", [["harbour", "-deploy"], ["harbour", "-project:shop", "-deploy"]])
def test_a_minus_is_no_option(cli: CliRunner, home: Path, words: list[str]) -> None:
    """`-deploy` leaves out a word, `-harbour` is not `-h`, and the words are one query."""
    rows = cli("search", *words, "--all", "--json", "--home", home).json
    assert {row["field"] for row in rows} == {"reply", "result"}
    assert cli("search", "deploy*", "-harbour", "--json", "--home", home).json[0]["field"] == "title"


def test_an_option_that_is_spelt_wrong_is_no_word(cli: CliRunner, home: Path) -> None:
    """It says which was meant; an option that is none of ours is a word."""
    result = cli("search", "harbour", "--limt", "3", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "--limit" in result.err
    assert cli("search", "--dry-run", "--home", home).code == 1


def test_a_query_that_is_not_understood(cli: CliRunner, home: Path) -> None:
    """Exit 2, and the column."""
    result = cli("search", "promt:deploy", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "column 1" in result.err


def test_no_hit_says_what_would_have_matched(cli: CliRunner, home: Path) -> None:
    """Fewer filters, another spelling, some of the words: exit 1, never an empty screen."""
    fewer = cli("search", "closed", "project:shop", "--home", home)
    assert (fewer.code, fewer.out) == (1, "")
    assert "without project:shop, 1 entry does" in fewer.err
    spelt = cli("search", "habrour", "--home", home)
    assert spelt.code == 1
    assert "did you mean 'harbour'?" in spelt.err
    assert "harbour" in spelt.out
    some = cli("search", "closed", "staging", "--home", home)
    assert some.code == 1
    assert "These contain some" in some.err
    nothing = cli("search", "zzzzzz", "--home", home)
    assert (nothing.code, nothing.out) == (1, "")
    assert "Nothing in" in nothing.err
    rows = cli("search", "habrour", "--json", "--home", home)
    assert (rows.code, "harbour" in rows.json[0]["snippet"]) == (1, True)
    assert "did you mean" in rows.err
    lacking = cli("search", "closed", "staging", "--json", "--home", home)
    assert (lacking.code, {word for row in lacking.json for word in row["lacks"]}) == (1, {"closed", "staging"})
    exact = cli("search", "habrour", "--exact", "--json", "--home", home)
    assert (exact.code, exact.json) == (1, [])
    assert "did you mean" in exact.err


def test_what_was_written_since_is_found(cli: CliRunner, home: Path) -> None:
    """The index is refreshed first, unless that is not wanted."""
    assert cli("search", "lighthouse", "--no-refresh", "--home", home).code == 1
    assert cli("search", "lighthouse", "--home", home).code == 1
    path = home / "projects" / "-srv-shop" / f"{SECOND}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"ai-title","aiTitle":"Lighthouse","sessionId":"' + SECOND.encode() + b'"}\n')
    assert cli("search", "lighthouse", "--no-refresh", "--home", home).code == 1
    assert cli("search", "lighthouse", "--home", home).code == 0


def test_a_busy_index_answers_as_it_is(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process is at it: the answer is of what is there, and says so."""
    assert cli("search", "harbour", "--home", home).code == 0
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 10)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.01)
    with open_for_writing(index_path(one.path for one in homes(home))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        result = cli("search", "harbour", "--home", home)
    assert result.code == 0
    assert "as it is" in result.err


def test_hostile_text_steers_no_terminal(cli: CliRunner, home: Path) -> None:
    """Nothing in a snippet is more than text."""
    out = cli("search", "result:harbour", "--home", home).out
    assert "harbour" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_without_a_home_it_says_what_to_do(cli: CliRunner) -> None:
    """Exit 1, and how to make one."""
    result = cli("search", "anything")
    assert result.code == 1
    assert "threadline demo" in result.err


def test_how_many_more_a_session_has(cli: CliRunner, home: Path) -> None:
    """Its best hit is shown, and how many others there are."""
    page = cli("search", "harbour", "--home", home).out
    assert "+3 more in this session" in page
    assert page.count(FIRST[:8]) == 2  # its name, and its place
    assert [line for line in page.splitlines() if line.startswith("2  ")] == [
        "2  5e551022  =deploy to the staging harbour"
    ]


def test_a_hit_is_opened(cli: CliRunner, home: Path) -> None:
    """The turn that it stands in is shown as `show` has it; the number counts the hits as they are listed."""
    first = cli("search", "closed", "--open", "--home", home)
    assert first.code == 0
    assert "── turn 1" in first.out
    assert "The harbour was closed." in first.out
    assert f"{FIRST}.jsonl:4" in first.err
    listed = [row["session"] for row in cli("search", "harbour", "--json", "--home", home).json]
    for number, session in enumerate(listed, 1):
        assert session in cli("search", "harbour", "--open", str(number), "--home", home).out
    assert "was closed" in cli("search", "--open", "closed", "--home", home).out


def test_what_cannot_be_opened(cli: CliRunner, home: Path) -> None:
    """There are not so many, there is none, or it is asked for in rows."""
    result = cli("search", "harbour", "--open", "9", "--home", home)
    assert (result.code, result.out) == (1, "")
    assert "No hit 9" in result.err
    assert cli("search", "zzzzzz", "--open", "--home", home).code == 1
    assert cli("search", "harbour", "--open", "--json", "--home", home).code == 2


def test_a_branch_and_an_agent_are_opened(cli: CliRunner, home: Path) -> None:
    """What an edit left is shown with the way to it; an agent's transcript is shown by itself."""
    told = transcript(
        prompt("where is the pier?"), reply("By the quay."), prompt("where is the mole?"), pen=Pen(SECOND)
    )
    edited = told[2]
    assert isinstance(edited, dict)
    edited["parentUuid"] = None  # the first prompt was left
    write(home / "projects" / "-srv-shop" / f"{SECOND}.jsonl", *told)
    assert "By the quay." in cli("search", "quay", "--open", "--home", home).out
    agent = home / "projects" / "-work-app" / FIRST / "subagents" / "agent-a1b2c3d4.jsonl"
    pen = Pen(FIRST, isSidechain=True, agentId="a1b2c3d4")
    write(agent, *transcript(prompt("look for the dock"), reply("The dock is dry."), pen=pen))
    assert "agent a1b2c3d4" in cli("search", "dock", "dry", "--home", home).out
    assert "The dock is dry." in cli("search", "dock", "dry", "--open", "--home", home).out


def test_a_prompt_whose_transcript_is_gone(cli: CliRunner, home: Path) -> None:
    """It says so, in the page and in rows, and is opened as far as it is left."""
    row = (
        b'{"display":"an anchor\\nof old","timestamp":1767600000000,"project":"/srv/old","sessionId":"0ld00000-0000"}\n'
    )
    (home / "history.jsonl").write_bytes(row)
    page = cli("search", "anchor", "--context", "2", "--home", home)
    assert page.code == 0
    assert "transcript deleted" in page.out
    assert "history.jsonl:1" in page.out
    (told,) = cli("search", "anchor", "--json", "--home", home).json
    assert (told["gone"], told["session"], told["project"], told["field"]) == (
        True,
        "0ld00000-0000",
        "/srv/old",
        "prompt",
    )
    assert [row["gone"] for row in cli("search", "harbour", "--json", "--home", home).json] == [False, False]
    opened = cli("search", "anchor", "--open", "--home", home)
    assert opened.out == "an anchor\nof old\n"
    assert "was deleted" in opened.err


@pytest.mark.parametrize("command", [["search", "harbour"], ["list"], ["history"]])
def test_a_page_is_as_wide_as_columns_says(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """In a pipe, too; only places, which programs take from there, are whole."""
    (home / "history.jsonl").write_text(f'{{"display":"{"harbour " * 40}","timestamp":1767600000000}}\n')
    long = transcript(prompt("harbour " * 40), pen=Pen(SECOND))
    write(home / "projects" / "-srv-shop" / f"{SECOND}.jsonl", *long)
    widths = []
    for columns in ("80", "140"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = cli(*command, "--home", home).out.splitlines()
        widths.append(max(len(line) for line in lines if ".jsonl:" not in line))
    assert widths[0] <= 80 < widths[1] <= 140


def test_a_title_is_shown_once_and_with_a_time(cli: CliRunner, home: Path) -> None:
    """That of its session; below it stands what was typed first, unless that is the title."""
    lines = cli("search", "Deploying", "--exact", "--home", home).out.splitlines()
    assert lines[0] == "1  5e551011  Deploying"
    assert lines[1].strip() == "2026-01-05 09:00 · title · /work/app"
    assert lines[2].strip() == "why does the harbour deploy fail?"
    assert ".jsonl:" in lines[3]


def test_what_is_not_shown_is_counted_by_sessions_and_entries(cli: CliRunner, home: Path) -> None:
    """`--limit` counts sessions, and `--all` shows the entries of each; what was given is not advised."""
    last = cli("search", "harbour", "--limit", "1", "--home", home).out.splitlines()[-1]
    assert last == "1 more session (1 entry): use --limit N. 3 more entries in the sessions shown: use --all."
    shown = cli("search", "harbour", "--home", home).out.splitlines()[-1]
    assert shown == "3 more entries in the sessions shown: use --all."
    every = cli("search", "harbour", "--limit", "2", "--all", "--home", home).out.splitlines()[-1]
    assert every == "3 more entries: use --limit N."
    assert "use --" not in cli("search", "harbour", "--all", "--home", home).out


def test_that_nobody_looked_for_more_sessions_is_said(cli: CliRunner, demo_home: Path) -> None:
    """Where looking ends once enough are found, nobody knows how many more there are, and the way to them is told."""
    few = cli("search", "tool:Bash", "--limit", "2", "--home", demo_home).out.splitlines()[-1]
    assert few.startswith("There may be more sessions: use --limit N.")
    all_of_them = cli("search", "tool:Bash", "--limit", "500", "--home", demo_home).out.splitlines()[-1]
    assert "more sessions" not in all_of_them


def test_a_file_is_called_as_it_is_asked_for(cli: CliRunner, home: Path) -> None:
    """`file`, on the page and in rows."""
    write(
        home / "projects" / "-srv-shop" / f"{SECOND}.jsonl",
        *transcript(prompt("begin"), call("Read", "/srv/shop/mole.py", result="x"), pen=Pen(SECOND, cwd="/srv/shop")),
    )
    assert " · file · " in cli("search", "file:mole.py", "--home", home).out
    assert cli("search", "file:mole.py", "--json", "--home", home).json[0]["field"] == "file"


def test_a_session_of_which_only_agents_are_left(cli: CliRunner, home: Path) -> None:
    """Its prompt is found in the history, and says of the others that they are what is left."""
    gone = "0ld00000-0000-4000-8000-000000000009"
    row = f'{{"display":"an anchor","timestamp":1767700000000,"project":"/srv/old","sessionId":"{gone}"}}\n'
    (home / "history.jsonl").write_text(row)
    pen = Pen(gone, isSidechain=True, agentId="a1b2c3d4")
    agent = home / "projects" / "-srv-old" / "agent-a1b2c3d4.jsonl"
    write(agent, *transcript(prompt("look at the anchor and its long chain"), reply("An anchor, it is."), pen=pen))
    page = cli("search", "anchor", "--sort", "time", "--home", home).out
    assert "transcript deleted · +2 more in remaining files · /srv/old" in page
    assert "only this prompt" not in page


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("tool:Bsh", "no tool is 'Bsh'; did you mean Bash?"),
        ("kind:asistant", "did you mean assistant?"),
        ("kind:zzz", "no kind is 'zzz'; kinds are "),
        ("project:shpo", "did you mean shop?"),
        ("model:gpt", "no model is 'gpt'; models are claude"),
        ("branch:mian", "did you mean main?"),
        ("version:1", "no version is '1'; versions are 2"),
        ("agent:Explore", "no agent is 'Explore': there are no agent types"),
        ("session:zzz", "no session id begins with 'zzz'; `threadline list` shows them."),
        ("since:2026-06-01", "the newest entry is from 2026-01-05"),
        ("until:2025-06-01", "the oldest entry is from 2026-01-05"),
        ("since:2026-06-01 until:2026-05-01", "since: is later than until:"),
        ("harbour tool:Bsh", "did you mean Bash? Without tool:Bsh, 5 entries do."),
    ],
)
def test_a_filter_that_nothing_fits_says_what_there_is(cli: CliRunner, home: Path, query: str, says: str) -> None:
    """The nearest value or those that there are, the newest or the oldest time; words are not advised to be fewer."""
    result = cli("search", query, "--home", home)
    assert (result.code, result.out) == (1, "")
    assert says in result.err
    assert "fewer words" not in result.err
