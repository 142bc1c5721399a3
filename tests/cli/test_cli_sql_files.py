"""`threadline sql --out` and `--export`: complete result files with types."""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner

from threadline.cli.sql import answers as sql_answers
from threadline.index import PRIVATE, TABLES, TIME_COLUMNS, VIEWS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

KINDS = "SELECT kind, COUNT(*) AS number FROM entries GROUP BY kind ORDER BY kind"
NOTHING = "SELECT kind, line FROM entries WHERE 0"


@pytest.fixture
def home(indexed_home: Path) -> Path:
    """The home whose tables are written."""
    return indexed_home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder for result files."""
    path = tmp_path / "written"
    path.mkdir()
    return path


def test_formats_have_the_same_rows(cli: CliRunner, home: Path, folder: Path) -> None:
    """Parquet, CSV, JSON Lines and JSON, by suffix, have the rows that the command prints."""
    rows = cli("sql", KINDS, "--home", home, "--json").json
    for name in ("a.parquet", "a.csv", "a.jsonl", "a.NDJSON", "a.json"):
        result = cli("sql", KINDS, "--home", home, "--out", folder / name)
        assert (result.code, result.out, result.err) == (0, f"Wrote {len(rows)} rows to {folder / name}.\n", "")
    assert pq.read_table(folder / "a.parquet").to_pylist() == rows
    with (folder / "a.csv").open(newline="") as file:
        assert [{**row, "number": int(row["number"])} for row in csv.DictReader(file)] == rows
    assert [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()] == rows
    assert (folder / "a.NDJSON").read_bytes() == (folder / "a.jsonl").read_bytes()
    assert json.loads((folder / "a.json").read_text()) == rows


def test_parquet_keeps_types(cli: CliRunner, home: Path, folder: Path) -> None:
    """Numbers, text, blobs and NULL keep their types. A column of several types is text."""
    query = (
        "SELECT 1 AS a, 1.5 AS b, 'c' AS c, x'00ff' AS d, NULL AS e, 9223372036854775807 AS f, 1 AS g,"
        " x'ab' AS h, 1 AS h UNION ALL SELECT NULL, 2, NULL, NULL, NULL, 0.5, 'x', 'x', 2"
    )
    cli("sql", query, "--home", home, "--out", folder / "a.parquet")
    table = pq.read_table(folder / "a.parquet")
    assert {field.name: field.type for field in table.schema} == {
        "a": pa.int64(),
        "b": pa.float64(),
        "c": pa.string(),
        "d": pa.binary(),
        "e": pa.string(),
        "f": pa.string(),
        "g": pa.string(),
        "h": pa.string(),
        "h_2": pa.int64(),
    }
    assert table.to_pylist() == [
        {"a": 1, "b": 1.5, "c": "c", "d": b"\0\xff", "e": None, "f": str(2**63 - 1), "g": "1", "h": "ab", "h_2": 1},
        {"a": None, "b": 2.0, "c": None, "d": None, "e": None, "f": "0.5", "g": "x", "h": "x", "h_2": 2},
    ]


def test_no_rows_give_a_file_with_columns(cli: CliRunner, home: Path, folder: Path) -> None:
    """An empty result is written, too, with exit code 1."""
    result = cli("sql", NOTHING, "--home", home, "--out", folder / "a.parquet")
    assert (result.code, result.out) == (1, f"Wrote 0 rows to {folder / 'a.parquet'}.\n")
    assert pq.read_table(folder / "a.parquet").column_names == ["kind", "line"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.json"])
def test_file_is_replaced_only_with_force_and_atomically(cli: CliRunner, home: Path, folder: Path, name: str) -> None:
    """An existing file is kept without `--force` or if the query fails. No temporary file is left."""
    target = folder / name
    target.write_text("mine")
    refused = cli("sql", KINDS, "--home", home, "--out", target)
    assert (refused.code, refused.out) == (2, "")
    assert "already exists. Choose another name, or use --force." in refused.err
    broken = "SELECT line FROM entries UNION ALL SELECT abs(-9223372036854775808)"
    assert cli("sql", broken, "--home", home, "--out", target, "--force").code == 2
    assert target.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == [name]
    assert cli("sql", KINDS, "--home", home, "--out", target, "--force").code == 0
    assert target.read_bytes() != b"mine"
    assert [path.name for path in folder.iterdir()] == [name]


def test_nothing_is_written_through_a_symlink(cli: CliRunner, home: Path, folder: Path) -> None:
    """Not even with `--force`: neither the link nor the file it points to changes."""
    (folder / "real.json").write_text("[]")
    (folder / "link.json").symlink_to("real.json")
    result = cli("sql", KINDS, "--home", home, "--out", folder / "link.json", "--force")
    assert (result.code, "is a symlink" in result.err) == (2, True)
    assert (folder / "link.json").is_symlink()
    assert (folder / "real.json").read_text() == "[]"


def test_invalid_targets_are_refused_before_the_query(cli: CliRunner, home: Path, folder: Path) -> None:
    """An unknown suffix, a folder, a missing folder, a Claude home: exit code 2 and a sentence."""
    (folder / "made.csv").mkdir()
    for name, sentence in {
        "a.xlsx": "Use one of these suffixes: .parquet, .csv",
        "a": "Unknown format of",
        "made.csv": "is a folder",
        "none/a.csv": "cannot be written: No such file or directory",
    }.items():
        result = cli("sql", KINDS, "--home", home, "--out", folder / name)
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err
    in_home = cli("sql", KINDS, "--home", home, "--out", home / "projects" / "a.csv")
    assert in_home.code == 2
    assert "where threadline does not write" in in_home.err
    for options in (
        ("--out", str(folder / "a.csv"), "--json", KINDS),
        ("--out", str(folder / "a.csv")),
        ("--force", KINDS),
        ("--export", str(folder), KINDS),
        ("--export", str(folder), "--schema"),
        ("--duckdb",),
    ):
        assert cli("sql", "--home", home, *options).code == 2
    assert [path.name for path in folder.iterdir()] == ["made.csv"]


def test_csv_cells_are_safe_for_spreadsheets(cli: CliRunner, home: Path, folder: Path) -> None:
    """A CSV file contains what `--csv` prints."""
    cli("sql", "SELECT '=1' AS a", "--home", home, "--out", folder / "a.csv")
    assert (folder / "a.csv").read_text() == "a\n'=1\n"
    assert cli("sql", "SELECT '=1' AS a", "--home", home, "--csv").out == "a\n'=1\n"


def test_export_writes_every_table_and_view(cli: CliRunner, home: Path, folder: Path) -> None:
    """One Parquet file per public table or view, with its rows and columns. Amounts are decimals."""
    rows = cli("sql", "--export", folder / "tables", "--home", home, "--json").json
    names = {*TABLES, *VIEWS} - {*PRIVATE, "text"}
    assert {row["table"] for row in rows} == names
    assert {path.name for path in (folder / "tables").iterdir()} == {f"{name}.parquet" for name in names}
    for row in rows:
        table = pq.read_table(row["path"])
        assert (row["rows"], row["bytes"]) == (table.num_rows, Path(row["path"]).stat().st_size)
        query = f"SELECT * FROM {row['table']}"  # noqa: S608 - the schema's own name
        expected = cli("sql", query, "--no-refresh", "--home", home, "--jsonl").jsonl
        assert table.num_rows == len(expected)
        if expected:
            assert table.column_names == list(expected[0])
    charges = pq.read_table(folder / "tables" / "charges.parquet")
    assert charges.schema.field("amount").type == pa.decimal128(38, 18)
    expected = cli("sql", "SELECT amount FROM charges", "--no-refresh", "--home", home, "--jsonl").jsonl
    amounts = [row["amount"] for row in charges.select(["amount"]).to_pylist()]
    assert amounts == [Decimal(row["amount"]) if row["amount"] else None for row in expected]
    assert any(amounts)


def test_export_overwrites_only_with_force(cli: CliRunner, home: Path, folder: Path) -> None:
    """One existing file is enough to refuse. Other files in the folder are left alone."""
    (folder / "mine.txt").write_text("mine")
    (folder / "charges.parquet").write_text("mine")
    refused = cli("sql", "--export", folder, "--home", home)
    assert refused.code == 2
    assert "already exists" in refused.err
    assert len(list(folder.iterdir())) == 2
    result = cli("sql", "--export", folder, "--home", home, "--force")
    assert result.code == 0
    assert "charges.parquet" in result.out
    assert (folder / "mine.txt").read_text() == "mine"
    assert pq.read_table(folder / "charges.parquet").num_rows
    assert cli("sql", "--export", folder / "mine.txt", "--home", home).code == 2


def test_without_pyarrow_names_the_extra(
    cli: CliRunner, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet says what to install and leaves nothing. The other formats work."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for arguments in ((KINDS, "--out", folder / "a.parquet"), ("--export", folder)):
        result = cli("sql", "--home", home, *arguments)
        assert result.code == 2
        assert result.err.endswith("[frames]'\n")
        assert list(folder.iterdir()) == []
    assert cli("sql", KINDS, "--home", home, "--out", folder / "a.json").code == 0


def test_help_lists_the_formats(cli: CliRunner) -> None:
    """Every suffix in the help can be written."""
    text = " ".join(cli("sql", "--help").out.split())
    assert "Write the rows to FILE: .parquet, .csv, .jsonl or .json." in text
    assert {".parquet", ".csv", ".jsonl", ".json"} <= set(sql_answers.FORMAT_BY_SUFFIX)


def test_exported_times_are_timestamps(cli: CliRunner, home: Path, folder: Path) -> None:
    """In every table and view, and in the file of a SELECT. Amounts are decimals."""
    assert cli("sql", "--export", folder / "tables", "--home", home).code == 0
    types = {
        (file.stem, field.name): field.type
        for file in (folder / "tables").glob("*.parquet")
        for field in pq.read_schema(file)
    }
    times = {name: type_ for name, type_ in types.items() if name[1] in TIME_COLUMNS}
    assert len(times) > 10
    assert set(times.values()) == {pa.timestamp("us", tz="UTC")}
    assert types["charges", "amount"] == pa.decimal128(38, 18)
    target = folder / "some.parquet"
    query = "SELECT timestamp, amount, SUM(output) AS output FROM charges GROUP BY 1, 2"
    assert cli("sql", query, "--out", target, "--home", home).code == 0
    types_of_select = [str(field.type) for field in pq.read_schema(target)]
    assert types_of_select == [
        "timestamp[us, tz=UTC]",
        "decimal128(38, 18)",
        "int64",
    ]
