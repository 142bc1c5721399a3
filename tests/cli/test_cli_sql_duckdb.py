"""`threadline sql --duckdb`: DuckDB over the tables of the index, without access to anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import SOURCE, CliRunner
from tests.profiles import every
from tests.subtests import for_each

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

FILLING_MEMORY = ["SELECT repeat('x', 4000000000)", "SELECT list(range) FROM range(1000000000)"]
FOREVER = "SELECT SUM(a.range * b.range) FROM range(10000000000) a, range(10000000000) b"


@pytest.fixture
def home(indexed_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home to query, and a new folder for temporary files."""
    temporary = tmp_path / "passing's"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return indexed_home


def test_duckdb_and_sqlite_give_the_same_rows(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The same query gives the same output in every format, and no temporary file is left."""
    query = "SELECT kind, COUNT(*) AS number, MAX(line) AS line FROM said GROUP BY kind ORDER BY kind"
    for output in ([], ["--json"], ["--jsonl"], ["--csv"]):
        sqlite = cli("sql", query, "--home", home, *output)
        duckdb = cli("sql", query, "--duckdb", "--home", home, *output)
        assert (duckdb.code, duckdb.out, duckdb.err) == (0, sqlite.out, "")
    assert list((tmp_path / "passing's").iterdir()) == []


def test_amounts_are_summed_exactly(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """SUM of amounts is the decimal sum, a string in JSON and a decimal in Parquet. The sum of tokens is exact, too."""
    amounts = cli("sql", "SELECT amount, output FROM charges", "--home", home, "--jsonl").jsonl
    total = sum(Decimal(row["amount"]) for row in amounts if row["amount"])
    query = "SELECT SUM(amount) AS amount, SUM(output) AS output FROM charges"
    (row,) = cli("sql", query, "--duckdb", "--home", home, "--json").json
    assert Decimal(row["amount"]) == total
    assert row["output"] == sum(row["output"] for row in amounts)
    assert cli("sql", query, "--duckdb", "--home", home, "--out", tmp_path / "a.parquet").code == 0
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.field("amount").type == pa.decimal128(38, 18)
    assert table.to_pylist()[0]["amount"] == total


def test_duckdb_types(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """Times are ISO 8601 in UTC, blobs hexadecimal, large numbers strings, lists and maps JSON. Names are unique."""
    query = (
        "SELECT TIMESTAMPTZ '2026-01-02T03:04:05+01:00' AS a, '\\x00\\xFF'::BLOB AS a, 1::HUGEINT << 100 AS b,"
        " [1.50::DECIMAL(9,2)] AS c, MAP {1: DATE '2026-01-02'} AS d, 'nan'::DOUBLE AS e, TRUE AS f, NULL AS g"
    )
    row = {
        "a": "2026-01-02T02:04:05.000Z",
        "a_2": "00ff",
        "b": str(2**100),
        "c": [Decimal("1.5")],
        "d": {"1": "2026-01-02"},
        "e": None,
        "f": True,
        "g": None,
    }
    assert cli("sql", query, "--duckdb", "--home", home, "--json").json == [row]
    assert cli("sql", query, "--duckdb", "--home", home, "--out", tmp_path / "a.parquet").code == 0
    assert pq.read_table(tmp_path / "a.parquet").column_names == list(row)
    unsupported = cli("sql", "SELECT INTERVAL 3 DAYS AS i", "--duckdb", "--home", home, "--out", tmp_path / "b.parquet")
    assert unsupported.code == 2
    assert "Cast the column to VARCHAR" in unsupported.err
    assert not (tmp_path / "b.parquet").exists()


@for_each(
    "statement, sentence",
    [
        ("SELECT * FROM read_text('{secret}')", "Only the index can be read"),
        ("SELECT * FROM read_csv('{secret}')", "Only the index can be read"),
        ("SELECT * FROM '{secret}'", "Only the index can be read"),
        ("SELECT * FROM glob('/*')", "Only the index can be read"),
        ("SELECT * FROM sqlite_scan('{secret}', 'a')", "sqlite_scan"),
        ("SELECT * FROM homes_of_python", "homes_of_python does not exist. `threadline sql --schema`"),
        ("COPY (SELECT 1) TO '{place}'", "The index is read-only (COPY)"),
        ("ATTACH '{place}'", "The index is read-only (ATTACH)"),
        ("EXPORT DATABASE '{place}'", "The index is read-only (EXPORT)"),
        ("INSTALL sqlite", "The index is read-only (LOAD)"),
        ("SET enable_external_access = true", "The index is read-only (SET)"),
        ("CREATE TABLE a(b INT)", "The index is read-only (CREATE)"),
        ("PRAGMA version", "The index is read-only (PRAGMA)"),
        ("SELECT 1; SELECT 2", "Write one statement, not several."),
        ("", "The query is empty. Write a SELECT"),
        ("SELEC 1", 'DuckDB, column 1: syntax error at or near "SELEC".'),
        ("SELECT nothing FROM charges", "DuckDB, column 8: Referenced column"),
        *every(2, [(query, "needs too much memory") for query in FILLING_MEMORY]),
        ("SELECT 'a'::INTEGER", "DuckDB: Could not convert string"),
    ],
)
def test_refuses_files_changes_and_invalid_sql(
    cli: CliRunner, home: Path, tmp_path: Path, statement: str, sentence: str
) -> None:
    """Other files, changes, settings, too much memory and mistakes: exit code 2, one line, nothing written."""
    secret, place = tmp_path / "secret.csv", tmp_path / "elsewhere"
    secret.write_text("sesame\n")
    result = cli("sql", statement.format(secret=secret, place=place), "--duckdb", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert "sesame" not in result.err
    assert result.err.count("\n") == 1
    assert not place.exists()
    assert list((tmp_path / "passing's").iterdir()) == []


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("query", [FOREVER, "SELECT range FROM range(1000000000000000) WHERE range < 10000"])
def test_timeout_ends_a_query(cli: CliRunner, home: Path, tmp_path: Path, query: str) -> None:
    """An endless query is stopped, before or during its rows, and no file is left."""
    for more in (("--jsonl",), ("--out", tmp_path / "a.parquet")):
        result = cli("sql", query, "--duckdb", "--timeout", "1", "--home", home, *more)
        assert result.code == 2
        assert "took longer than 1s" in result.err
    assert not list(tmp_path.glob("*.parquet*"))


def test_timeout_before_a_query_has_started() -> None:
    """If there is no time left when an endless query is started, it is stopped nevertheless."""
    code = (
        "import sys; from threadline.errors import BadQuery\n"
        "from threadline.cli.sql.duckdb_query import query_parquet\n"
        "try:\n"
        "    with query_parquet({}, sys.argv[1], 60) as answer:\n"
        "        answer._left = 0\n"
        "        list(answer)\n"
        "except BadQuery as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, FOREVER]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    result = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)  # noqa: S603 - ours
    assert b"took longer than 60s" in result.stdout


def test_no_progress_bar_is_printed(cli: CliRunner, home: Path) -> None:
    """DuckDB would print one to standard output, between the rows, if it took this process for an interactive one."""
    query = "SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'"
    assert cli("sql", query, "--duckdb", "--home", home, "--json").json == [{"value": "false"}]


def test_no_rows_exits_with_1(cli: CliRunner, home: Path) -> None:
    """Exit code 1, as with SQLite."""
    query = "SELECT * FROM entries WHERE kind = 'nothing'"
    result = cli("sql", query, "--duckdb", "--home", home)
    assert (result.code, result.out, result.err) == (1, "", "threadline: No rows.\n")


@pytest.mark.parametrize(("package", "extra"), [("duckdb", "duckdb"), ("pyarrow", "frames")])
def test_names_the_missing_extra(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    """The message says which extra to install."""
    monkeypatch.setitem(sys.modules, package, None)
    result = cli("sql", "SELECT COUNT(*) FROM charges", "--duckdb", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert f"{package} is not installed. Run: " in result.err
    assert result.err.endswith(f"[{extra}]'\n")
