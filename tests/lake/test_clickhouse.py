"""A lake in ClickHouse (chDB): the same search as `lake search`, incremental loads, and the script for a server."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.lake.machines import make_homes, push, session_id, write_session

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")
pytest.importorskip("chdb", reason="needs the extra clickhouse")

from threadline.errors import BadQuery
from threadline.lake import (
    ChdbStore,
    LakeHit,
    TextSearch,
    build_lake,
    clickhouse_ddl,
    forget_sources,
    load_script,
    read_usage,
    search_lake,
    search_statement,
    select_sources,
)
from threadline.model.times import parse_timestamp
from threadline.storage import Bucket

pytestmark = pytest.mark.slow
SEARCHES = (
    TextSearch(("hello",), limit=500),
    TextSearch(("HELLO", "0"), limit=500),
    TextSearch(("another way",), limit=500),
    TextSearch(("way another",), limit=500),
    TextSearch(("hell",), limit=500),
    TextSearch(("ok",), people=("person1", "person3"), limit=7),
    TextSearch(("ok",), people=(), limit=7),
    TextSearch(("file-1",), project="APP1", limit=500),
    TextSearch(("the",), since=parse_timestamp("2026-01-01T00:00:00Z"), limit=500),
    TextSearch(("the",), until=parse_timestamp("2026-01-01T00:00:00Z"), limit=500),
    TextSearch(("größe", "naïve", "日本"), limit=500),
    TextSearch(("日本",), limit=500),
    TextSearch(("it's", "\\"), limit=500),
    TextSearch(("_", "("), limit=20),
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, demo_home: Path) -> Bucket:
    """A lake of six machines, one with texts in several scripts."""
    folder = tmp_path_factory.mktemp("clickhouse")
    bucket = Bucket(str(folder / "lake"))
    home = folder / "scripts"
    write_session(home, 7, text="Größe naïve 日本語 it's a \\ backslash")
    for number, path in enumerate([*make_homes(folder / "homes", demo_home), home], 1):
        push(bucket, [path], number)
    build_lake(bucket, jobs=1)
    return bucket


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, lake: Bucket) -> Path:
    """A folder with the lake in chDB."""
    folder = tmp_path_factory.mktemp("chdb")
    with ChdbStore(folder) as store:
        store.load(lake)
    return folder


def places(hits: list[LakeHit]) -> list[tuple[object, ...]]:
    """What identifies hits, and their texts."""
    return [(hit.timestamp, hit.person, hit.transcript, hit.line, hit.field, hit.text) for hit in hits]


def test_search_equals_that_of_duckdb(lake: Bucket, folder: Path) -> None:
    """For words, phrases, scripts without spaces, people, projects and times, both engines have the same hits."""
    found = 0
    for search in SEARCHES:
        local, clickhouse = search_lake(lake, search), search_lake(lake, search, f"chdb:{folder}")
        assert places(local) == places(clickhouse), search
        found += bool(local)
    assert found >= 10


def test_search_uses_the_text_index(lake: Bucket, folder: Path) -> None:
    """A word that few texts have is looked up in the index, and reads few parts of the table."""
    del lake
    with ChdbStore(folder) as store:
        plan = "\n".join(
            str(row) for row in store.query(f"EXPLAIN indexes = 1 {search_statement(TextSearch(('another',)))}")
        )
    assert "words" in plan
    assert 'tokens: ["another"]' in plan.replace("\\", "")


def test_the_lake_has_as_many_rows_and_the_same_amounts(lake: Bucket, folder: Path) -> None:
    """Rows and exact sums by person equal those of the lake's own tables."""
    usage = read_usage(lake)
    expected = {row.keys["person"]: row.amount for row in usage.ledger.by("person", extra=usage.keys)}
    with ChdbStore(folder) as store:
        rows = store.query("SELECT person, toString(sum(amount)) AS amount FROM threadline.charges GROUP BY person")
    assert {row["person"]: Decimal(row["amount"]) for row in rows} == expected


def test_loading_again_follows_the_lake(tmp_path: Path) -> None:
    """A second load adds nothing, a later one adds what was built since, and forgotten sessions are removed."""
    home = tmp_path / "home"
    write_session(home, 1, text="first")
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [home])
    build_lake(bucket, jobs=1)
    search = TextSearch(("first",))
    with ChdbStore(tmp_path / "chdb") as store:
        assert store.load(bucket).added > 0
        assert store.load(bucket).added == 0
        # A load that died after the rows and before the note that they are complete.
        store._run("ALTER TABLE threadline.loaded DELETE WHERE name = 'texts' SETTINGS mutations_sync = 2")
        assert store.load(bucket).removed == 1
        assert len(store.search(search)) == len(search_lake(bucket, search))
        write_session(home, 2, text="second")
        push(bucket, [home])
        build_lake(bucket, jobs=1)
        assert store.load(bucket).added > 0
        assert store.search(TextSearch(("second",)))
        forget_sources(bucket, select_sources(bucket, sessions=[session_id(1)]))
        assert store.load(bucket).removed > 0
        assert store.search(search) == []
        assert store.search(TextSearch(("second",)))


def test_the_script_for_a_server_loads_the_same(tmp_path: Path, lake: Bucket) -> None:
    """The statements of --sql, run one by one, create and fill the tables, also a second time."""
    with ChdbStore(tmp_path / "chdb") as store:
        for _ in range(2):
            for statement in load_script(lake):
                store._run(statement)
        for search in SEARCHES[:4]:
            rows = store.search(search)
            assert [row["text"] for row in rows] == [hit.text for hit in search_lake(lake, search)]


def test_the_command_loads_and_searches(
    tmp_path: Path, lake: Bucket, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`lake clickhouse --load`, then `lake search --engine chdb:…`; before, a sentence says what to do."""
    cli = CliRunner(capfdbinary)
    uri, folder = str(lake.folder), str(tmp_path / "chdb")
    early = cli("lake", "search", uri, "hello", "--engine", f"chdb:{folder}")
    assert (early.code, "lake clickhouse URI --load FOLDER" in " ".join(early.err.split())) == (2, True)
    assert cli("lake", "clickhouse", uri).code == 2
    assert cli("lake", "clickhouse", uri, "--load", folder, "--json").json["added"] > 0
    hits = cli("lake", "search", uri, "another", "way", "--engine", f"chdb:{folder}", "--json").json
    assert hits == cli("lake", "search", uri, "another", "way", "--json").json
    assert cli("lake", "clickhouse", uri, "--ddl").out.count("CREATE TABLE") == sum(
        "CREATE TABLE" in statement for statement in clickhouse_ddl()
    )


def test_nothing_loaded_says_so(tmp_path: Path) -> None:
    """A search in an empty folder names the command that fills it."""
    with ChdbStore(tmp_path) as store, pytest.raises(BadQuery, match="lake clickhouse"):
        store.search(TextSearch(("a",)))
