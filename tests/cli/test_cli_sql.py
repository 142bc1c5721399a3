"""`threadline sql`: read-only queries on the index, in every format."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, control_characters, start_in_subprocess
from tests.cli.test_cli_hostile import EVERYTHING, hostile_home
from tests.profiles import share
from tests.subtests import for_each

import threadline
from threadline.cli.sql import answers as sql_answers
from threadline.index import TABLES, VIEWS, open_read_only
from threadline.index.store import write_lock

FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"


@pytest.fixture
def home(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo home, and a new cache folder."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "home"
    shutil.copytree(demo_home, copy)
    return copy


def index_file(home: Path) -> Path:
    """The index file of the home."""
    (path,) = (home.parent / "cache").glob("*.sqlite")
    return path


def test_formats_have_the_same_rows(cli: CliRunner, indexed_home: Path) -> None:
    """Table, JSON, JSON Lines and CSV have the column names of the SELECT. The counts are correct."""
    query = "SELECT kind, COUNT(*) AS number FROM entries GROUP BY kind ORDER BY kind"
    rows = cli("sql", query, "--home", indexed_home, "--json").json
    home_rows = home_counts.rows(*home_counts.transcripts(indexed_home))
    assert sum(row["number"] for row in rows if row["kind"] == "user") == sum(
        row["type"] == "user" for row in home_rows
    )
    assert cli("sql", query, "--home", indexed_home, "--jsonl").jsonl == rows
    cells = cli("sql", query, "--home", indexed_home, "--csv").csv
    assert cells == [{name: str(value) for name, value in row.items()} for row in rows]
    table = cli("sql", query, "--home", indexed_home)
    assert (table.code, table.err) == (0, "")
    assert [line.split() for line in table.out.splitlines()] == [
        ["kind", "number"],
        *([row["kind"], str(row["number"])] for row in rows),
    ]


@pytest.mark.parametrize("engine", [[], ["--duckdb"]])
def test_csv_without_rows_has_a_header(cli: CliRunner, indexed_home: Path, engine: list[str]) -> None:
    """The columns of a SELECT are known even if it has no rows, so that a reader of CSV need not treat it specially."""
    if engine:
        pytest.importorskip("duckdb")
    result = cli("sql", "SELECT session, title FROM sessions WHERE 0 = 1", "--home", indexed_home, "--csv", *engine)
    assert (result.code, result.out) == (1, "session,title\n")


def test_duplicate_names_nulls_blobs_and_numbers(cli: CliRunner, indexed_home: Path) -> None:
    """Duplicate columns get unique names, blobs are hexadecimal, and NULL is null or an empty cell."""
    query = "SELECT 1 AS a, x'00ff' AS a, NULL AS a_2, 1.5 AS b, 9223372036854775807 AS c, 9e999 AS d"
    row = {"a": 1, "a_3": "00ff", "a_2": None, "b": 1.5, "c": 9223372036854775807, "d": None}
    assert cli("sql", query, "--home", indexed_home, "--json").json == [row]
    (cells,) = cli("sql", query, "--home", indexed_home, "--csv").csv
    assert cells["a_2"] == ""
    assert "00ff" in cli("sql", query, "--home", indexed_home).out


def test_index_is_private(cli: CliRunner, home: Path) -> None:
    """It contains the words of all sessions, also of an encrypted keep: whatever the umask and the cache folder."""
    (home.parent / "cache").mkdir(mode=0o755)
    previous = os.umask(0)
    try:
        assert cli("sql", "SELECT 1", "--home", home).code == 0
    finally:
        os.umask(previous)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (home.parent / "cache").rglob("*") if path.is_file()}
    assert {name: mode for name, mode in modes.items() if mode != 0o600 and not name.endswith(".lock")} == {}


def test_refreshes_the_index_first(cli: CliRunner, home: Path) -> None:
    """Appended entries are in the result, but not with `--no-refresh`."""
    query = "SELECT COUNT(*) AS n FROM entries"
    before = cli("sql", query, "--home", home, "--json").json[0]["n"]
    with home_counts.main_transcripts(home)[0].open("ab") as file:
        file.write(b'{"type":"user"}\n')
    assert cli("sql", query, "--home", home, "--no-refresh", "--json").json[0]["n"] == before
    assert cli("sql", query, "--home", home, "--json").json[0]["n"] == before + 1


def test_full_text_search(cli: CliRunner, indexed_home: Path) -> None:
    """`MATCH` and its ranking work, within fields and joined with a view."""
    query = (
        "SELECT transcript, line FROM said JOIN text ON text.rowid = entry_id"
        " WHERE text MATCH 'prompt: the' ORDER BY rank, entry_id LIMIT 5"
    )
    rows = cli("sql", query, "--home", indexed_home, "--json").json
    assert len(rows) == 5
    for row in rows:
        line = Path(row["transcript"]).read_bytes().split(b"\n")[row["line"] - 1]
        assert b"the" in line.lower()


def test_json_and_table_info_functions(cli: CliRunner, indexed_home: Path) -> None:
    """JSON functions and `pragma_table_info` work."""
    assert cli("sql", "SELECT value FROM json_each('[1,2]')", "--home", indexed_home, "--jsonl").jsonl == [
        {"value": 1},
        {"value": 2},
    ]
    names = cli("sql", "SELECT name FROM pragma_table_info('homes')", "--home", indexed_home, "--jsonl").jsonl
    assert [row["name"] for row in names] == ["home_id", "path"]


@for_each(
    "statement",
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
def test_refuses_everything_but_reading(cli: CliRunner, indexed_home: Path, statement: str) -> None:
    """Changes, other files, settings and transactions are refused in a sentence, and the index is unchanged."""
    cli("index", "refresh", "--home", indexed_home)
    before = index_file(indexed_home).read_bytes()
    place = indexed_home.parent / "elsewhere"
    result = cli("sql", statement.format(place=place), "--no-refresh", "--home", indexed_home)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("threadline: The index is read-only (")
    assert result.err.count("\n") == 1
    assert not place.exists()
    assert index_file(indexed_home).read_bytes() == before


@for_each(
    "statement, sentence",
    [
        ("SELEC 1", 'SQL, column 1: near "SELEC": syntax error.'),
        ("SELECT 1\nFRM entries", 'SQL, line 2, column 5: near "entries": syntax error.'),
        ("SELECT 1 FROM a, a", "SQL: no such table: a. Tables: "),
        ("SELECT nowhere(1)", "SQL, column 8: no such function: nowhere."),
        ("SELECT a FROM homes", "SQL, column 8: no such column: a. Columns of homes: home_id, path.\n"),
        ("SELECT a", "SQL, column 8: no such column: a. Tables: agents, calls, "),
        ("SELECT 1 FROM nowhere", "SQL, column 15: no such table: nowhere. Tables: agents, calls, "),
        ("SELECT 1; SELECT 2", "Write one statement, not several."),
        ("", "There is no statement. Write a SELECT. Tables: agents, "),
        ("/* only a comment */", "There is no statement. Write a SELECT. Tables: agents, "),
        ("SELECT 'a", "SQL, column 8: unrecognized token"),
        ("SELECT 1 FROM text WHERE text MATCH '\"'", "SQL: "),
        ("SELECT ?", "SQL: "),
        ("SELECT abs(-9223372036854775808)", "SQL: integer overflow."),
    ],
)
def test_invalid_sql_is_an_error(cli: CliRunner, indexed_home: Path, statement: str, sentence: str) -> None:
    """Exit code 2, and one line that says what is wrong, without a traceback."""
    result = cli("sql", statement, "--home", indexed_home)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
@for_each(
    "statement, sentence",
    [
        ("SELECT zeroblob(1000000000)", "larger than 64 MB"),
        ("SELECT hex(randomblob(1000000000))", "larger than 64 MB"),
        ("SELECT " + ", ".join(["randomblob(60000000)"] * 30), "The query needs more memory than allowed."),
    ],
)
def test_too_much_memory_is_an_error(cli: CliRunner, indexed_home: Path, statement: str, sentence: str) -> None:
    """A query that needs too much memory is reported in one sentence."""
    result = cli("sql", statement, "--home", indexed_home)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


LARGE_VALUES = [
    "printf('%*c', 1000000000, 'a')",
    "FORMAT('%.*c', 100000000, 'a')",
    "length(printf('%.*f', 100000000, 1.0))",
    "coalesce(printf('%100000000s', 'a'), 'none')",
    "zeroblob(100000000)",
    "replace(hex(zeroblob(10000)), '0', hex(zeroblob(10000)))",
    "group_concat(hex(zeroblob(30000000)), '') FROM (SELECT 1 UNION ALL SELECT 2)",
    "quote(zeroblob(60000000))",
]


@for_each("expression", share(LARGE_VALUES, 5))
def test_value_that_is_too_large_is_an_error(cli: CliRunner, indexed_home: Path, expression: str) -> None:
    """It is not an empty cell: SQLite's own `printf` returns NULL."""
    result = cli("sql", f"SELECT {expression}", "--home", indexed_home)
    assert (result.code, result.out) == (2, "")
    assert "larger than 64 MB" in result.err


def test_printf_formats_as_in_sqlite(cli: CliRunner, indexed_home: Path) -> None:
    """The checked function returns what SQLite's own does."""
    call = "('%05.2f|%s|%d|%Q|%,d|%%|%x', 3.14159, 'x', 7, 'it''s', 1234567, 255)"
    columns = f"printf{call} AS a, format{call} AS b, printf(NULL) AS c, printf() AS d, printf('%s', NULL) AS e"
    (row,) = cli("sql", f"SELECT {columns}, printf('') AS f", "--home", indexed_home, "--json").json
    with closing(sqlite3.connect(":memory:")) as connection:
        names = [*row]
        expected = connection.execute(f"SELECT {columns}, printf('') AS f").fetchone()
    assert row == dict(zip(names, expected, strict=True))
    assert row["a"] == "03.14|x|7|'it''s'|1,234,567|%|ff"


def test_timeout_ends_a_query(cli: CliRunner, indexed_home: Path) -> None:
    """An endless query is stopped, and the message names `--timeout`."""
    result = cli("sql", FOREVER, "--timeout", "0.1", "--home", indexed_home)
    assert (result.code, result.out) == (2, "")
    assert "took longer than 0.1s" in result.err
    assert "--timeout" in result.err
    assert cli("sql", "SELECT 1", "--timeout", "0", "--home", indexed_home).code == 2


def test_long_results_are_streamed(cli: CliRunner, indexed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long cells are fetched a few at a time. A table with many rows is printed in parts."""
    cli("sql", "SELECT 1", "--home", indexed_home)
    with threadline.open(indexed_home) as archive, archive.sql_runner() as query:
        result = query("SELECT zeroblob(5000000) FROM entries LIMIT 7", 60)
        assert [len(chunk) for chunk in result.chunks(500)] == [2, 2, 2, 1]
    monkeypatch.setattr(sql_answers, "_ROWS_PER_TABLE", 10)
    words = cli("sql", "SELECT entry_id AS number FROM entries ORDER BY 1 LIMIT 25", "--home", indexed_home).out.split()
    assert words.count("number") == 3
    assert len(words) == 28


@pytest.mark.sample(2)
@pytest.mark.parametrize("more", [(), ("--duckdb",)])
def test_ctrl_c_ends_a_query(indexed_home: Path, more: tuple[str, ...]) -> None:
    """An endless query ends at once, without a message."""
    query = FOREVER.replace("MAX(x) FROM n", "x FROM n WHERE x <= 600")
    if more:
        query = "SELECT range AS x FROM range(1000000000000000) WHERE range < 10000"
    process = start_in_subprocess(
        "sql", query, *more, "--home", indexed_home, "--jsonl", THREADLINE_CACHE=str(indexed_home.parent / "cache")
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"x":')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_no_rows_exits_with_1(cli: CliRunner, indexed_home: Path) -> None:
    """Exit code 1. Machine formats have no rows."""
    query = "SELECT * FROM entries WHERE kind = 'nothing'"
    table = cli("sql", query, "--home", indexed_home)
    assert (table.code, table.out, table.err) == (1, "", "threadline: No rows.\n")
    listed = cli("sql", query, "--home", indexed_home, "--json")
    assert (listed.code, listed.json) == (1, [])


def test_missing_index_or_home(cli: CliRunner, home: Path) -> None:
    """`--no-refresh` without an index, and no home: exit code 1, and what to do."""
    result = cli("sql", "SELECT 1", "--no-refresh", "--home", home)
    assert (result.code, result.out) == (1, "")
    assert "Run `threadline index refresh`" in result.err
    assert cli("sql", "SELECT 1").code == 1
    assert cli("sql", "--home", home).code == 2
    assert cli("sql", "SELECT 1", "--schema").code == 2


def test_busy_index_is_used_as_it_is(cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process refreshes the index, the result comes from the existing one.

    A message says so if it is stale.
    """
    monkeypatch.setattr("threadline.index.store._BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.02)
    cli("index", "refresh", "--home", home)
    with next((home / "projects").rglob("*.jsonl")).open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    with write_lock(index_file(home)):
        result = cli("sql", "SELECT 1 AS one", "--home", home, "--json")
    assert (result.code, result.json) == (0, [{"one": 1}])
    assert "Using the index as it is." in result.err


def test_schema_lists_every_table_and_column(cli: CliRunner, indexed_home: Path) -> None:
    """`--schema` lists the columns of a real index, without needing one: views, which queries use, come first."""
    rows = cli("sql", "--schema", "--jsonl").jsonl
    assert sorted((row["kind"] for row in rows), reverse=True) == [row["kind"] for row in rows]
    cli("index", "refresh", "--home", indexed_home)
    with closing(open_read_only(index_file(indexed_home))) as connection:
        for name in (*TABLES, *VIEWS):
            columns = [column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            assert [row["column"] for row in rows if row["table"] == name] == columns
    assert {row["table"] for row in rows} == {*TABLES, *VIEWS}
    assert {row["table"] for row in rows if row["kind"] == "view"} == set(VIEWS)
    result = cli("sql", "--schema")
    assert result.code == 0
    assert all(f"\n  {row['column']}" in result.out for row in rows)


def test_escapes_hostile_text(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile kinds, names and texts are escaped in every format."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    home = hostile_home(tmp_path / "home", EVERYTHING)
    for output in ("", "--json", "--jsonl", "--csv"):
        result = cli("sql", "SELECT * FROM said JOIN transcripts ON transcript = path", "--home", home, *output.split())
        assert result.code == 0
        assert control_characters(result.out + result.err) <= ({"\r"} if output == "--csv" else set())  # in quotes
    for output in ("", "--csv"):
        hostile_column = cli("sql", 'SELECT 1 AS "\x1b[31m\u202e"', "--home", home, *output.split())
        assert hostile_column.code == 0
        assert control_characters(hostile_column.out) == set()
    wrong = cli("sql", "SELECT \x1b[31m", "--home", home)
    assert wrong.code == 2
    assert control_characters(wrong.err) == set()
    (row,) = cli("sql", "SELECT '=1+1' AS a", "--home", home, "--csv").csv
    assert row["a"] == "'=1+1"
