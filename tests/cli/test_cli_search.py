"""`threadline search`."""

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
    """Two sessions in two projects. The index is next to the home."""
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


def test_hit_has_title_field_text_and_place(cli: CliRunner, home: Path) -> None:
    """Title, time, project, field, snippet and place, without colours outside a terminal."""
    result = cli("search", "harbour", "closed", "--home", home)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "1  5e551011  Deploying"
    assert lines[1].endswith("2026-01-05 09:00 · reply · /work/app")
    assert lines[2].strip() == "The harbour was closed."
    assert lines[3].strip().endswith(f"{FIRST}.jsonl:4")
    assert "\x1b" not in result.out


def test_machine_formats(cli: CliRunner, home: Path) -> None:
    """One row per session, the best hit. `--all` has every entry, `--sort time` the newest first."""
    rows = cli("search", "harbour", "--json", "--home", home).json
    assert {row["session"]: (row["field"], row["more"]) for row in rows} == {
        FIRST: ("prompt", 3),
        SECOND: ("prompt", 0),
    }
    hits = cli("search", "harbour", "--all", "--sort", "time", "--jsonl", "--home", home).jsonl
    assert len(hits) == 5
    times = [row["timestamp"] for row in hits]
    assert times == sorted(times, reverse=True)
    for row in hits:
        assert all(row["snippet"][start:end].lower() == "harbour" for start, end in row["highlights"])
    cells = cli("search", "staging", "--csv", "--home", home).csv
    assert cells[0]["snippet"].startswith("'=deploy")


def test_context_shows_neighbouring_entries(cli: CliRunner, home: Path) -> None:
    """`--context N` shows N entries before and after, in order."""
    (row,) = cli("search", "command:harbour", "--context", "1", "--json", "--home", home).json
    assert [entry["text"] for entry in row["before"]] == ["why does the harbour deploy fail?"]
    assert len(row["after"]) == 1
    page = cli("search", "command:harbour", "--context", "5", "--home", home).out
    assert page.index("why does") < page.index("deploy harbour") < page.index("was closed")


@pytest.mark.parametrize("words", [["harbour", "-deploy"], ["harbour", "-project:shop", "-deploy"]])
def test_minus_excludes_a_word(cli: CliRunner, home: Path, words: list[str]) -> None:
    """`-deploy` excludes a word, `-harbour` is not `-h`, and all words form one query."""
    rows = cli("search", *words, "--all", "--json", "--home", home).json
    assert {row["field"] for row in rows} == {"reply", "result"}
    assert cli("search", "deploy*", "-harbour", "--json", "--home", home).json[0]["field"] == "title"


def test_misspelt_option_is_an_error(cli: CliRunner, home: Path) -> None:
    """A misspelt option gets a suggestion. Other words that start with a dash are part of the query."""
    result = cli("search", "harbour", "--limt", "3", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "--limit" in result.err
    assert cli("search", "--dry-run", "--home", home).code == 1


@pytest.mark.parametrize("option", [["--project", "shop"], ["--since=7d"]])
def test_filter_option_of_other_commands_names_the_field(cli: CliRunner, home: Path, option: list[str]) -> None:
    """Filters are fields of the query, and `--project` is not searched for as a word."""
    result = cli("search", "harbour", *option, "--home", home)
    assert (result.code, result.out) == (2, "")
    assert f"{option[0][2:].split('=')[0]}:VALUE" in result.err


def test_invalid_query_names_the_column(cli: CliRunner, home: Path) -> None:
    """Exit code 2, and the column."""
    result = cli("search", "promt:deploy", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "column 1" in result.err


def test_no_hit_says_what_would_have_matched(cli: CliRunner, home: Path) -> None:
    """Fewer filters, another spelling, some of the words: exit code 1, never an empty screen."""
    fewer = cli("search", "closed", "project:shop", "--home", home)
    assert (fewer.code, fewer.out) == (1, "")
    assert "without project:shop, 1 entry does" in fewer.err
    misspelt = cli("search", "habrour", "--home", home)
    assert misspelt.code == 1
    assert "did you mean 'harbour'?" in misspelt.err
    assert "harbour" in misspelt.out
    partial = cli("search", "closed", "staging", "--home", home)
    assert partial.code == 1
    assert "These contain some" in partial.err
    unmatched = cli("search", "zzzzzz", "--home", home)
    assert (unmatched.code, unmatched.out) == (1, "")
    assert "Nothing in" in unmatched.err
    rows = cli("search", "habrour", "--json", "--home", home)
    assert (rows.code, "harbour" in rows.json[0]["snippet"]) == (1, True)
    assert "did you mean" in rows.err
    lacking = cli("search", "closed", "staging", "--json", "--home", home)
    assert (lacking.code, {word for row in lacking.json for word in row["lacks"]}) == (1, {"closed", "staging"})
    exact = cli("search", "habrour", "--exact", "--json", "--home", home)
    assert (exact.code, exact.json) == (1, [])
    assert "did you mean" in exact.err


def test_refreshes_the_index_first(cli: CliRunner, home: Path) -> None:
    """The index is refreshed first, unless `--no-refresh` is given."""
    assert cli("search", "lighthouse", "--no-refresh", "--home", home).code == 1
    assert cli("search", "lighthouse", "--home", home).code == 1
    path = home / "projects" / "-srv-shop" / f"{SECOND}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"ai-title","aiTitle":"Lighthouse","sessionId":"' + SECOND.encode() + b'"}\n')
    assert cli("search", "lighthouse", "--no-refresh", "--home", home).code == 1
    assert cli("search", "lighthouse", "--home", home).code == 0


def test_busy_index_is_used_as_it_is(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process refreshes the index, the result comes from the existing one, and a message says so."""
    assert cli("search", "harbour", "--home", home).code == 0
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 10)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.01)
    with open_for_writing(index_path(each.path for each in homes(home))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        result = cli("search", "harbour", "--home", home)
    assert result.code == 0
    assert "as it is" in result.err


def test_escapes_hostile_text(cli: CliRunner, home: Path) -> None:
    """Control characters in a snippet are removed."""
    out = cli("search", "result:harbour", "--home", home).out
    assert "harbour" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_without_a_home_says_what_to_do(cli: CliRunner) -> None:
    """Exit code 1, and how to create one."""
    result = cli("search", "anything")
    assert result.code == 1
    assert "threadline demo" in result.err


def test_counts_more_hits_in_a_session(cli: CliRunner, home: Path) -> None:
    """The best hit is shown, with the number of others."""
    page = cli("search", "harbour", "--home", home).out
    assert "+3 more in this session" in page
    assert page.count(FIRST[:8]) == 2  # its name, and its place
    assert [line for line in page.splitlines() if line.startswith("2  ")] == [
        "2  5e551022  =deploy to the staging harbour"
    ]


def test_open_shows_the_turn_of_a_hit(cli: CliRunner, home: Path) -> None:
    """The turn is printed like `show` does. The number counts the hits as listed."""
    first = cli("search", "closed", "--open", "--home", home)
    assert first.code == 0
    assert "── turn 1" in first.out
    assert "The harbour was closed." in first.out
    assert f"{FIRST}.jsonl:4" in first.err
    listed = [row["session"] for row in cli("search", "harbour", "--json", "--home", home).json]
    for number, session in enumerate(listed, 1):
        assert session in cli("search", "harbour", "--open", str(number), "--home", home).out
    assert "was closed" in cli("search", "--open", "closed", "--home", home).out


def test_open_reports_missing_hits(cli: CliRunner, home: Path) -> None:
    """An unknown number, no hit, or a machine format."""
    result = cli("search", "harbour", "--open", "9", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "No hit 9" in result.err
    limited = cli("search", "harbour", "--all", "--open", "9", "--limit", "1", "--home", home)
    assert "the query has 5 hits" in limited.err
    assert cli("search", "zzzzzz", "--open", "--home", home).code == 1
    assert cli("search", "harbour", "--open", "--json", "--home", home).code == 2


def test_open_shows_branches_and_agents(cli: CliRunner, home: Path) -> None:
    """An abandoned branch is shown with its path. An agent's transcript is shown by itself."""
    rows = transcript(
        prompt("where is the pier?"), reply("By the quay."), prompt("where is the mole?"), pen=Pen(SECOND)
    )
    edited = rows[2]
    assert isinstance(edited, dict)
    edited["parentUuid"] = None  # the first prompt was left
    write(home / "projects" / "-srv-shop" / f"{SECOND}.jsonl", *rows)
    assert "By the quay." in cli("search", "quay", "--open", "--home", home).out
    agent = home / "projects" / "-work-app" / FIRST / "subagents" / "agent-a1b2c3d4.jsonl"
    pen = Pen(FIRST, isSidechain=True, agentId="a1b2c3d4")
    write(agent, *transcript(prompt("look for the dock"), reply("The dock is dry."), pen=pen))
    assert "agent a1b2c3d4" in cli("search", "dock", "dry", "--home", home).out
    assert "The dock is dry." in cli("search", "dock", "dry", "--open", "--home", home).out


def test_finds_prompts_of_deleted_transcripts(cli: CliRunner, home: Path) -> None:
    """The hit is marked as deleted, and `--open` shows what is left of it."""
    row = (
        b'{"display":"an anchor\\nof old","timestamp":1767600000000,"project":"/srv/old","sessionId":"0ld00000-0000"}\n'
    )
    (home / "history.jsonl").write_bytes(row)
    page = cli("search", "anchor", "--context", "2", "--home", home)
    assert page.code == 0
    assert "transcript deleted" in page.out
    assert "history.jsonl:1" in page.out
    (hit,) = cli("search", "anchor", "--json", "--home", home).json
    assert (hit["gone"], hit["session"], hit["project"], hit["field"]) == (
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
def test_width_follows_columns(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    """Also in a pipe. Only places are not shortened, because programs read them."""
    (home / "history.jsonl").write_text(f'{{"display":"{"harbour " * 40}","timestamp":1767600000000}}\n')
    long = transcript(prompt("harbour " * 40), pen=Pen(SECOND))
    write(home / "projects" / "-srv-shop" / f"{SECOND}.jsonl", *long)
    widths = []
    for columns in ("80", "140"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = cli(*command, "--home", home).out.splitlines()
        widths.append(max(len(line) for line in lines if ".jsonl:" not in line))
    assert widths[0] <= 80 < widths[1] <= 140


def test_title_hit_shows_title_once(cli: CliRunner, home: Path) -> None:
    """The first prompt is below the title, unless it is the title."""
    lines = cli("search", "Deploying", "--exact", "--home", home).out.splitlines()
    assert lines[0] == "1  5e551011  Deploying"
    assert lines[1].strip() == "2026-01-05 09:00 · title · /work/app"
    assert lines[2].strip() == "why does the harbour deploy fail?"
    assert ".jsonl:" in lines[3]


def test_counts_sessions_and_entries_not_shown(cli: CliRunner, home: Path) -> None:
    """`--limit` counts sessions, `--all` shows their entries. Options already given are not suggested."""
    last = cli("search", "harbour", "--limit", "1", "--home", home).out.splitlines()[-1]
    assert last == "1 more session (1 entry): use --limit N. 3 more entries in the sessions shown: use --all."
    limited_entries = cli("search", "harbour", "--home", home).out.splitlines()[-1]
    assert limited_entries == "3 more entries in the sessions shown: use --all."
    all_entries = cli("search", "harbour", "--limit", "2", "--all", "--home", home).out.splitlines()[-1]
    assert all_entries == "3 more entries: use --limit N."
    assert "use --" not in cli("search", "harbour", "--all", "--home", home).out


def test_says_that_there_may_be_more_sessions(cli: CliRunner, demo_home: Path) -> None:
    """If the search stops at the limit, the number of other sessions is unknown, and --limit is suggested."""
    limited = " ".join(cli("search", "tool:Bash", "--limit", "2", "--home", demo_home).out.splitlines()[-2:])
    assert "There may be more sessions: use --limit N." in limited
    unlimited = " ".join(cli("search", "tool:Bash", "--limit", "500", "--home", demo_home).out.splitlines()[-2:])
    assert "more sessions" not in unlimited


def test_weak_matches_are_left_out(cli: CliRunner, tmp_path: Path) -> None:
    """A session with most of the words is an answer: exit code 0. Others that have only a common word are not shown."""
    texts = ("the marvin logo is blurred", "marvin again", "a skills listing", *["fix this, please"] * 30)
    ids = [f"5eed0000-0000-4000-8000-{number:012}" for number in range(len(texts))]
    for id_, text in zip(ids, texts, strict=True):
        parts = [prompt(text), reply("I will fix it.")]
        write(tmp_path / f"home/projects/-work-app/{id_}.jsonl", *transcript(*parts, pen=Pen(id_)))
    arguments = ("how did we fix the marvin logo in skills", "--json", "--home", tmp_path / "home")
    result = cli("search", *arguments)
    assert [row["session"] for row in result.json] == [ids[0], ids[2], ids[1]]
    assert (result.code, "These contain some" in result.err) == (0, True)
    assert cli("search", *arguments, "--exact").code == 1


def test_incomplete_answer_is_marked(cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the time was over, the rows say so, and the text names the option that allows more time."""
    query = ("search", "/[a-z]+e[a-z]+/", "--home", demo_home)
    assert {row["cut_short"] for row in cli(*query, "--json").json} == {False}
    monkeypatch.setattr("threadline.search.engine.SOON_SECONDS", -1.0)
    assert {row["cut_short"] for row in cli(*query, "--json").json} == {True}
    text = cli(*query).out
    assert "There may be more sessions: use --timeout SECONDS." in text
    assert "--limit" not in text


def test_file_hits_have_the_field_file(cli: CliRunner, home: Path) -> None:
    """On the page and in rows."""
    write(
        home / "projects" / "-srv-shop" / f"{SECOND}.jsonl",
        *transcript(prompt("begin"), call("Read", "/srv/shop/mole.py", result="x"), pen=Pen(SECOND, cwd="/srv/shop")),
    )
    assert " · file · " in cli("search", "file:mole.py", "--home", home).out
    assert cli("search", "file:mole.py", "--json", "--home", home).json[0]["field"] == "file"


def test_finds_session_with_only_agents_left(cli: CliRunner, home: Path) -> None:
    """Its prompt is found in the history, and the other hits are counted as remaining files."""
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
    ("query", "sentence"),
    [
        ("tool:Bsh", "no tool matches 'Bsh'; did you mean Bash?"),
        ("kind:asistant", "did you mean assistant?"),
        ("kind:zzz", "no kind matches 'zzz'; kinds are "),
        ("project:shpo", "did you mean shop?"),
        ("model:gpt", "no model matches 'gpt'; models are claude"),
        ("branch:mian", "did you mean main?"),
        ("version:1", "no version matches '1'; versions are 2"),
        ("agent:Explore", "no agent matches 'Explore': there are no agent types"),
        ("session:zzz", "no session id begins with 'zzz'; `threadline list` shows them."),
        ("since:2026-06-01", "the newest entry is from 2026-01-05"),
        ("until:2025-06-01", "the oldest entry is from 2026-01-05"),
        ("since:2026-06-01 until:2026-05-01", "since: is later than until:"),
        ("harbour tool:Bsh", "did you mean Bash? Without tool:Bsh, 5 entries do."),
        ("harbour tool:Bsh model:gpt", "did you mean Bash? No model matches 'gpt'"),
        ("harbour agent:sub", "without agent:sub, 5 entries do."),
        ("harbour -agent:main", "matches 'harbour -agent:main'; without -agent:main, 5 entries do."),
        ("harbour since:1d", "without since:1d, 5 entries do."),
        (r"/zz\d+/", r"matches '/zz\d+/'."),
        ("工程", "matches '工程'."),
    ],
)
def test_unmatched_filter_suggests_values(cli: CliRunner, home: Path, query: str, sentence: str) -> None:
    """The message names the nearest or existing values, or the newest or oldest time."""
    result = cli("search", query, "--home", home)
    assert (result.code, result.out) == (1, "")
    assert sentence in result.err
    assert "fewer words" not in result.err
