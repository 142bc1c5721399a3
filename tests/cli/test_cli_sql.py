"""`threadline sql`: questions to the index that can change nothing, in every format."""

from __future__ import annotations

import shutil
import signal
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, control_characters, start_in_subprocess
from tests.cli.test_cli_hostile import EVERYTHING, hostile_home
from tests.subtests import for_each

import threadline
from threadline.cli import sql_answers
from threadline.index import TABLES, VIEWS, open_read_only
from threadline.index.store import write_lock

FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"


@pytest.fixture
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a cache of its own."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "home"
    shutil.copytree(demo_home, copy)
    return copy


def _index(home: Path) -> Path:
    (found,) = (home.parent / "cache").glob("*.sqlite")
    return found


def test_every_format_has_the_same_rows(cli: CliRunner, home: Path) -> None:
    """A table, JSON, JSON Lines and CSV, with the names that the SELECT gives; figures are the home's own."""
    question = "SELECT kind, COUNT(*) AS number FROM entries GROUP BY kind ORDER BY kind"
    rows = cli("sql", question, "--home", home, "--json").json
    own = home_counts.rows(*home_counts.transcripts(home))
    assert sum(row["number"] for row in rows if row["kind"] == "user") == sum(row["type"] == "user" for row in own)
    assert cli("sql", question, "--home", home, "--jsonl").jsonl == rows
    cells = cli("sql", question, "--home", home, "--csv").csv
    assert cells == [{name: str(value) for name, value in row.items()} for row in rows]
    shown = cli("sql", question, "--home", home)
    assert (shown.code, shown.err) == (0, "")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["kind", "number"],
        *([row["kind"], str(row["number"])] for row in rows),
    ]


def test_names_that_come_twice_nulls_blobs_and_numbers(cli: CliRunner, home: Path) -> None:
    """Every column is there, under a name of its own; a blob is in hexadecimal; NULL is null, and an empty cell."""
    question = "SELECT 1 AS a, x'00ff' AS a, NULL AS a_2, 1.5 AS b, 9223372036854775807 AS c, 9e999 AS d"
    row = {"a": 1, "a_3": "00ff", "a_2": None, "b": 1.5, "c": 9223372036854775807, "d": None}
    assert cli("sql", question, "--home", home, "--json").json == [row]
    (cells,) = cli("sql", question, "--home", home, "--csv").csv
    assert cells["a_2"] == ""
    assert "00ff" in cli("sql", question, "--home", home).out


def test_the_index_is_refreshed_before(cli: CliRunner, home: Path) -> None:
    """What was appended is in the answer; with `--no-refresh` it is not."""
    question = "SELECT COUNT(*) AS n FROM entries"
    before = cli("sql", question, "--home", home, "--json").json[0]["n"]
    with home_counts.main_transcripts(home)[0].open("ab") as file:
        file.write(b'{"type":"user"}\n')
    assert cli("sql", question, "--home", home, "--no-refresh", "--json").json[0]["n"] == before
    assert cli("sql", question, "--home", home, "--json").json[0]["n"] == before + 1


def test_full_text_is_found(cli: CliRunner, home: Path) -> None:
    """`MATCH` and its ranking work, within fields, too, joined with the view of entries."""
    question = (
        "SELECT transcript, line FROM said JOIN text ON text.rowid = entry_id"
        " WHERE text MATCH 'prompt: the' ORDER BY rank, entry_id LIMIT 5"
    )
    rows = cli("sql", question, "--home", home, "--json").json
    assert len(rows) == 5
    for row in rows:
        line = Path(row["transcript"]).read_bytes().split(b"\n")[row["line"] - 1]
        assert b"the" in line.lower()


def test_functions_that_tell_of_tables_work(cli: CliRunner, home: Path) -> None:
    """JSON, and what a table's columns are."""
    assert cli("sql", "SELECT value FROM json_each('[1,2]')", "--home", home, "--jsonl").jsonl == [
        {"value": 1},
        {"value": 2},
    ]
    names = cli("sql", "SELECT name FROM pragma_table_info('homes')", "--home", home, "--jsonl").jsonl
    assert [row["name"] for row in names] == ["home_id", "path"]


@for_each(
    "question",
    [
        "DELETE FROM entries",
        "INSERT INTO meta VALUES('a', 'b')",
        "INSERT INTO text(text) VALUES('rebuild')",
        "UPDATE sqlite_master SET sql = ''",
        "DROP TABLE entries",
        "CREATE TABLE a(b)",
        "CREATE TEMP TABLE a(b)",
        "CREATE VIRTUAL TABLE a USING fts5(b)",
        "ATTACH '{place}' AS other",
        "VACUUM INTO '{place}'",
        "VACUUM",
        "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA temp_store_directory = '{place}'",
        "EXPLAIN DELETE FROM entries",
        "WITH gone AS (SELECT 1) DELETE FROM entries",
        "SELECT * FROM pragma_journal_mode",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version",
        "BEGIN",
        "SAVEPOINT a",
        "REINDEX",
        "ANALYZE",
        "DETACH main",
        "SELECT load_extension('{place}')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT FTS3_TOKENIZER('a', x'4141414141414141')",
    ],
)
def test_nothing_but_reading_is_allowed(cli: CliRunner, home: Path, question: str) -> None:
    """Changes, other files, settings and transactions are refused in a sentence; the index stays as it is."""
    cli("index", "refresh", "--home", home)
    before = _index(home).read_bytes()
    place = home.parent / "elsewhere"
    result = cli("sql", question.format(place=place), "--no-refresh", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: The index is read-only (")
    assert result.err.count("\n") == 1
    assert not place.exists()
    assert _index(home).read_bytes() == before


@for_each(
    "question, sentence",
    [
        ("SELEC 1", 'SQL, column 1: near "SELEC": syntax error.'),
        ("SELECT 1\nFRM entries", 'SQL, line 2, column 5: near "entries": syntax error.'),
        ("SELECT 1 FROM a, a", "SQL: no such table: a;"),
        ("SELECT nowhere(1)", "SQL, column 8: no such function: nowhere."),
        (
            "SELECT a FROM entries",
            "SQL, column 8: no such column: a; `threadline sql --schema` lists tables and columns.",
        ),
        ("SELECT 1 FROM nowhere", "SQL, column 15: no such table: nowhere; `threadline sql --schema`"),
        ("SELECT 1; SELECT 2", "Give one statement, not several."),
        ("", "There is no statement. Give a SELECT;"),
        ("/* only a comment */", "There is no statement. Give a SELECT;"),
        ("SELECT 'a", "SQL, column 8: unrecognized token"),
        ("SELECT 1 FROM text WHERE text MATCH '\"'", "SQL: "),
        ("SELECT ?", "SQL: "),
        ("SELECT abs(-9223372036854775808)", "SQL: integer overflow."),
    ],
)
def test_what_sqlite_does_not_understand_is_a_sentence(
    cli: CliRunner, home: Path, question: str, sentence: str
) -> None:
    """Exit code 2, one line that says what is wrong, and no traceback."""
    result = cli("sql", question, "--home", home)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
@for_each(
    "question, sentence",
    [
        ("SELECT zeroblob(1000000000)", "SQL: string or blob too big."),
        ("SELECT hex(randomblob(1000000000))", "SQL: string or blob too big."),
        ("SELECT " + ", ".join(["randomblob(60000000)"] * 30), "The query needs more memory than allowed."),
    ],
)
def test_too_much_memory_is_a_sentence(cli: CliRunner, home: Path, question: str, sentence: str) -> None:
    """The same if a query needs a value or an amount of memory beyond the limit."""
    result = cli("sql", question, "--home", home)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_a_question_ends_in_time(cli: CliRunner, home: Path) -> None:
    """One that would never end is given up, and how to give it longer is said."""
    result = cli("sql", FOREVER, "--timeout", "0.1", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert "took longer than 0.1 s" in result.err
    assert "--timeout" in result.err
    assert cli("sql", "SELECT 1", "--timeout", "0", "--home", home).code == 2


def test_a_long_answer_is_never_held_whole(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long cells come a few at a time; a table of very many rows is shown in parts, and has them all."""
    cli("sql", "SELECT 1", "--home", home)
    with threadline.open(home) as archive, archive.asking() as query:
        result = query("SELECT zeroblob(5000000) FROM entries LIMIT 7", 60)
        assert [len(chunk) for chunk in result.chunks(500)] == [2, 2, 2, 1]
    monkeypatch.setattr(sql_answers, "_ROWS_PER_TABLE", 10)
    shown = cli("sql", "SELECT entry_id AS number FROM entries ORDER BY 1 LIMIT 25", "--home", home).out.split()
    assert shown.count("number") == 3
    assert len(shown) == 28


@pytest.mark.sample(2)
@pytest.mark.parametrize("more", [(), ("--duckdb",)])
def test_ctrl_c_ends_a_question(home: Path, more: tuple[str, ...]) -> None:
    """One that has not ended yet is left at once, with nothing said but what came before."""
    question = FOREVER.replace("MAX(x) FROM n", "x FROM n WHERE x <= 600")
    if more:
        question = "SELECT range AS x FROM range(1000000000000000) WHERE range < 10000"
    asking = start_in_subprocess(
        "sql", question, *more, "--home", home, "--jsonl", THREADLINE_CACHE=str(home.parent / "cache")
    )
    assert asking.stdout is not None
    assert asking.stdout.readline().startswith(b'{"x":')
    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=30)
    assert (asking.returncode, err) == (130, b"")


def test_no_rows_are_no_error(cli: CliRunner, home: Path) -> None:
    """Exit code 1; programs get no rows in their format."""
    nothing = "SELECT * FROM entries WHERE kind = 'nothing'"
    shown = cli("sql", nothing, "--home", home)
    assert (shown.code, shown.out, shown.err) == (1, "", "threadline: No rows.\n")
    listed = cli("sql", nothing, "--home", home, "--json")
    assert (listed.code, listed.json) == (1, [])


def test_without_an_index_or_a_home(cli: CliRunner, home: Path) -> None:
    """`--no-refresh` before there is an index, and no home at all: exit code 1, and what to do."""
    result = cli("sql", "SELECT 1", "--no-refresh", "--home", home)
    assert (result.code, result.out) == (1, "")
    assert "Run `threadline index refresh`" in result.err
    assert cli("sql", "SELECT 1").code == 1
    assert cli("sql", "--home", home).code == 2
    assert cli("sql", "SELECT 1", "--schema").code == 2


def test_while_another_refreshes_the_index_answers_as_it_is(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes all the same; standard error says of what it is, where there would be something to read."""
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.02)
    cli("index", "refresh", "--home", home)
    with next((home / "projects").rglob("*.jsonl")).open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    with write_lock(_index(home)):
        result = cli("sql", "SELECT 1 AS one", "--home", home, "--json")
    assert (result.code, result.json) == (0, [{"one": 1}])
    assert "Using the index as it is." in result.err


def test_the_schema_names_every_table_and_column(cli: CliRunner, home: Path) -> None:
    """`--schema` has the columns of a real index, without one."""
    rows = cli("sql", "--schema", "--jsonl").jsonl
    cli("index", "refresh", "--home", home)
    with closing(open_read_only(_index(home))) as connection:
        for name in (*TABLES, *VIEWS):
            named = [column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            assert [row["column"] for row in rows if row["table"] == name] == named
    assert {row["table"] for row in rows} == {*TABLES, *VIEWS}
    assert {row["table"] for row in rows if row["kind"] == "view"} == set(VIEWS)
    shown = cli("sql", "--schema")
    assert shown.code == 0
    assert all(f"\n  {row['column']}" in shown.out for row in rows)


def test_what_transcripts_say_steers_nothing(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds, names and texts that want to steer a terminal or a spreadsheet come as escapes, in every format."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    home = hostile_home(tmp_path / "home", EVERYTHING)
    for output in ("", "--json", "--jsonl"):
        result = cli("sql", "SELECT * FROM said JOIN transcripts ON transcript = path", "--home", home, *output.split())
        assert result.code == 0
        assert control_characters(result.out + result.err) == set()
    named = cli("sql", 'SELECT 1 AS "\x1b[31m\u202e"', "--home", home)
    assert named.code == 0
    assert control_characters(named.out) == set()
    wrong = cli("sql", "SELECT \x1b[31m", "--home", home)
    assert wrong.code == 2
    assert control_characters(wrong.err) == set()
    (row,) = cli("sql", "SELECT '=1+1' AS a", "--home", home, "--csv").csv
    assert row["a"] == "'=1+1"
