"""A lake's tables in a Postgres catalogue, by configuration alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import SOURCE
from tests.lake.machines import push, write_session
from tests.lake.spark_cluster import free_port, wait_for_port

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import TABLES
from threadline.storage import Bucket

pytestmark = pytest.mark.slow
_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_ACCOUNT = "postgres"


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URI of a database in a server on loopback, which runs as the user postgres if the tests run as root."""
    pytest.importorskip("psycopg2", reason="needs the extra lake-test")
    if not _PROGRAMS:
        pytest.skip("needs Debian's postgresql")
    folder = Path(tempfile.mkdtemp(prefix="threadline-postgres-"))
    is_root = os.geteuid() == 0
    if is_root:
        shutil.chown(folder, _ACCOUNT)
    start: dict[str, Any] = {"user": _ACCOUNT, "cwd": folder} if is_root else {"cwd": folder}
    port, data = free_port(), folder / "data"
    words = ["--auth=trust", "--username=threadline", "--pgdata", str(data)]
    subprocess.run([_PROGRAMS[-1] / "initdb", *words], check=True, capture_output=True, **start)  # noqa: S603 - Debian's
    words = ["-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
    try:
        with subprocess.Popen([_PROGRAMS[-1] / "postgres", *words], stderr=subprocess.DEVNULL, **start) as server:  # noqa: S603 - Debian's
            try:
                wait_for_port(port)
                yield f"postgresql+psycopg2://threadline@127.0.0.1:{port}/postgres"
            finally:
                server.send_signal(signal.SIGINT)  # without waiting for connections to end
    finally:
        shutil.rmtree(folder)


def run_build(lake: Bucket, uri: str) -> subprocess.CompletedProcess[bytes]:
    """Build with a catalogue that environment variables configure."""
    settings = {"PYICEBERG_CATALOG__TEAM__TYPE": "sql", "PYICEBERG_CATALOG__TEAM__URI": uri}
    command = [sys.executable, "-m", "threadline", "lake", "build", lake.uri, "--catalog", "team", "--json"]
    environment = {**os.environ, "PYTHONPATH": SOURCE, **settings}
    return subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - ours


def test_tables_are_registered_in_postgres(tmp_path: Path, postgres: str) -> None:
    """After each build, other engines find the tables of the latest commit in the catalogue."""
    catalogs = pytest.importorskip("pyiceberg.catalog")
    lake = Bucket(str(tmp_path / "lake"))
    for number in (1, 2):
        write_session(tmp_path / "home", number)
        push(lake, [tmp_path / "home"])
        result = run_build(lake, postgres)
        assert result.returncode == 0, result.stderr
        catalog = catalogs.load_sql("team", {"type": "sql", "uri": postgres})
        assert catalog.load_table("threadline.sessions").scan().count() == number
        assert len(catalog.list_tables("threadline")) == len(TABLES)


def test_a_catalogue_that_does_not_answer(tmp_path: Path) -> None:
    """If the catalogue cannot be reached, the lake is built all the same, and the error says so."""
    pytest.importorskip("psycopg2", reason="needs the extra lake-test")
    lake = Bucket(str(tmp_path / "lake"))
    write_session(tmp_path / "home", 1)
    push(lake, [tmp_path / "home"])
    result = run_build(lake, "postgresql+psycopg2://threadline@127.0.0.1:1/postgres")
    assert result.returncode == 2
    assert b"The catalogue 'team' cannot be used" in result.stderr
    assert b"Traceback" not in result.stderr
    assert list(lake.list("silver/commits"))
