"""docs/lake.md: every command runs, and its queries give the same rows in every engine that tests can run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.browser.server import start_server
from tests.cli.runner import SOURCE
from tests.doc_commands import ROOT, run_shell_lines
from tests.lake.machines import make_homes, push
from tests.loopback_s3 import loopback_s3

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")
pytest.importorskip("pysail", reason="needs the extra lake-test")
pytest.importorskip("chdb", reason="needs the extra lake-test")

from threadline.lake import build_lake
from threadline.storage import Bucket

sqlglot = pytest.importorskip("sqlglot", reason="needs the extra lake-test")
PAGE = (ROOT / "docs/lake.md").read_text()
QUERIES = [" ".join(query.split()) for query in re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of moto, boto and pyspark
# What a ClickHouse server's client does with a script, here with chDB.
_CLIENT = """#!{python}
import sys
from chdb.session import Session
session = Session({folder!r})
for statement in sys.stdin.read().split(";\\n"):
    if statement.strip():
        session.query(statement)
session.close()
"""
# A Spark Connect server, which prints its port.
_SERVER = """
import sys, time
from pysail.spark import SparkConnectServer
server = SparkConnectServer(ip="127.0.0.1", port=0)
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def spark_connect() -> Iterator[str]:
    """The address of a Spark Connect server on loopback, with Sail behind it."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, "RUST_LOG": "error"}
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield f"sc://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()  # a server that goes on would never let this test end


def test_every_command_of_the_page_runs(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From nothing to a dashboard, then ClickHouse, a bucket and Spark: every shell line succeeds.

    The bucket, the Spark server and the client of ClickHouse are stand-ins on this machine.
    """
    served = []

    def serve(line: str) -> bool:
        """Start the server of a line, open its page, and stop it."""
        if not line.startswith("threadline serve "):
            return False
        uri = line.rsplit(maxsplit=1)[-1]
        with start_server(Path(uri), tmp_path / "serve", source="--lake", uri=uri) as server:
            served.append(server.json("/index.json"))
        return True

    client = tmp_path / "clickhouse-client"
    client.write_text(_CLIENT.format(python=sys.executable, folder=str(tmp_path / "server")))
    client.chmod(0o755)
    page = tmp_path / "lake.md"
    text = PAGE.replace("/tmp/lake", str(tmp_path / "lake")).replace("/tmp/search", str(tmp_path / "search"))  # noqa: S108
    # Its workers need the variables of the bucket.
    with loopback_s3(monkeypatch, "team-bucket"), spark_connect() as remote:
        page.write_text(text.replace("sc://spark:15002", remote))
        variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        results = list(run_shell_lines(page, tmp_path, small_home, variables=variables, is_done=serve))
    assert len(results) > 25
    for line, result in results:
        assert result.returncode == 0, f"{line}\n{result.stderr.decode()}"
    outputs = {line: result.stdout.decode() for line, result in results}
    assert "nothing is left" in results[-1][1].stdout.decode()
    by_team = next(text for line, text in outputs.items() if "--by team,project" in line)
    assert "search" in by_team
    assert "platform" in by_team
    folder, bucket = served
    assert {row["person"] for row in folder["usage"]["person"]} <= {"alice", "bob"}
    assert (folder["policy"], bucket["policy"]) == ("full", "metrics")
    assert bucket["machines"]


@pytest.mark.parametrize("dialect", ["spark", "trino", "duckdb", "snowflake", "bigquery"])
def test_the_queries_are_valid_everywhere(dialect: str) -> None:
    """The three queries parse in every dialect, and none has to be translated."""
    assert len(QUERIES) == 3
    for query in QUERIES:
        parsed = sqlglot.parse_one(query, read=dialect)
        assert parsed.find(sqlglot.exp.Command) is None
        assert len(parsed.selects) == 3


def test_the_queries_give_the_same_rows_in_duckdb_and_spark_sql(tmp_path: Path, demo_home: Path) -> None:
    """The three queries have the same rows in DuckDB and on Sail, which implements Spark SQL."""
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(make_homes(tmp_path / "homes", demo_home), 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)

    def rows(query: str, *options: str) -> object:
        command = [sys.executable, "-m", "threadline", "lake", "sql", str(bucket.folder), query, "--json", *options]
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        result = subprocess.run(command, env=environment, check=True, capture_output=True)  # noqa: S603 - our own
        return json.loads(result.stdout, parse_float=str)

    for query in QUERIES:
        local = rows(query)
        assert local
        assert rows(query, "--engine", "sail") == local
