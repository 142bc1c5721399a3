"""Builds on Apache Spark, standalone with two workers, through Spark Connect: the rows of `local`, whatever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.runner import SOURCE
from tests.lake.machines import make_homes, push, write_session
from tests.lake.spark_cluster import SparkCluster, child_processes, free_port, spark_cluster, spark_home, wait_for_port
from tests.lake.test_build import assert_equal_usage, snapshot
from tests.loopback_s3 import loopback_s3

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import build_lake, read_commit
from threadline.storage import Bucket

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of moto and boto
_SECONDS_TO_BUILD = 600
_TASK_PER_SESSION = (  # with `ps1`, pyspark does not take the process for a doctest, which needs SPARK_HOME
    "import sys; sys.ps1 = ''; from threadline.lake import build_lake, tasks; from threadline.storage import Bucket;"
    "tasks.TASK_BYTES = 1; build_lake(Bucket(sys.argv[1]), engine=sys.argv[2])"
)


@pytest.fixture(scope="module")
def lake_uri() -> Iterator[str]:
    """A lake in a bucket on loopback."""
    with pytest.MonkeyPatch.context() as patch, loopback_s3(patch, "team-bucket"):
        yield "s3://team-bucket/lake"


@pytest.fixture(scope="module")
def cluster(lake_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster whose workers reach the bucket."""
    del lake_uri
    home = spark_home()
    if home is None:
        pytest.skip("needs Java, and SPARK_HOME with the folder of pyspark (see tests/lake/spark_cluster.py)")
    pytest.importorskip("pyspark", reason="needs the extra lake-test")
    with spark_cluster(home, tmp_path_factory.mktemp("spark") / "cluster") as cluster:
        yield cluster


def start_build(lake: Bucket, engine: str) -> subprocess.Popen[bytes]:
    """Start a build with a task per session, in a process of its own: pyspark takes a test worker for a doctest."""
    command = [sys.executable, "-c", _TASK_PER_SESSION, lake.uri, engine]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": SOURCE}, stderr=subprocess.PIPE)  # noqa: S603 - ours


def assert_success(build: subprocess.Popen[bytes], cluster: SparkCluster) -> None:
    """Wait for a build, and read what it writes meanwhile: with a full pipe, it would never end."""
    _, errors = build.communicate(timeout=_SECONDS_TO_BUILD)
    assert build.returncode == 0, errors.decode() + cluster.logs()


def wait_for_files(lake: Bucket, count: int, build: subprocess.Popen[bytes]) -> None:
    """Wait until tasks of the build have written this many files."""
    deadline = time.monotonic() + 300
    while sum(entry.path.endswith(".parquet") for entry in lake.list("silver")) < count:
        assert build.poll() is None, (build.stderr.read() if build.stderr else b"").decode()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_spark_gives_the_rows_of_local(tmp_path: Path, lake_uri: str, cluster: SparkCluster, demo_home: Path) -> None:
    """Two workers build a task per session: all tables equal those of `local`, and usage that of one machine."""
    homes = make_homes(tmp_path / "homes", demo_home)
    lakes = [Bucket(f"{lake_uri}/spark"), Bucket(str(tmp_path / "lake"))]
    for lake in lakes:
        for number, home in enumerate(homes, 1):
            push(lake, [home], number)
    build = start_build(lakes[0], cluster.url)
    assert_success(build, cluster)
    build_lake(lakes[1], jobs=1)
    assert snapshot(lakes[0]) == snapshot(lakes[1])
    assert_equal_usage(lakes[0], homes)


def test_a_killed_spark_worker_loses_nothing(tmp_path: Path, lake_uri: str, cluster: SparkCluster) -> None:
    """If a worker and its executor are killed while they write, the other one runs their tasks: every row once."""
    lakes = [Bucket(f"{lake_uri}/killed"), Bucket(str(tmp_path / "lake"))]
    for number in range(1, 31):
        write_session(tmp_path / "home", number, turns=20)
    for lake in lakes:
        push(lake, [tmp_path / "home"])
    build_lake(lakes[1], jobs=1)
    build = start_build(lakes[0], cluster.url)
    wait_for_files(lakes[0], 10, build)
    worker = cluster.workers[0]
    for process in [worker.pid, *child_processes(worker.pid)]:
        os.kill(process, signal.SIGKILL)
    assert_success(build, cluster)
    assert snapshot(lakes[0]) == snapshot(lakes[1])


def test_a_killed_server_changes_nothing(tmp_path: Path, lake_uri: str) -> None:
    """If the Sail server is killed, the build fails with a sentence, and the next one has every row once."""
    pytest.importorskip("pysail", reason="needs the extra lake-test")
    lakes = [Bucket(f"{lake_uri}/server"), Bucket(str(tmp_path / "lake"))]
    for number in range(1, 31):
        write_session(tmp_path / "home", number, turns=20)
    for lake in lakes:
        push(lake, [tmp_path / "home"])
    build_lake(lakes[1], jobs=1)
    port = free_port()
    words = ["-m", "pysail", "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "SAIL_MODE": "local-cluster"}
    with subprocess.Popen([sys.executable, *words], env=environment) as server:  # noqa: S603 - ours
        try:
            wait_for_port(port)
            build = start_build(lakes[0], f"sc://127.0.0.1:{port}")
            wait_for_files(lakes[0], 10, build)
        finally:  # a server that goes on would never let this test end
            server.kill()
    _, errors = build.communicate(timeout=_SECONDS_TO_BUILD)
    assert build.returncode != 0
    assert f"Spark at 'sc://127.0.0.1:{port}' failed" in errors.decode()
    assert read_commit(lakes[0]) is None
    build_lake(lakes[0], jobs=1)
    assert snapshot(lakes[0]) == snapshot(lakes[1])
