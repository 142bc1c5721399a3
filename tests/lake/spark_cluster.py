"""A Spark standalone cluster on loopback: a master, two workers and a Spark Connect server.

`pip install pyspark` brings all of it but Java. It cannot share an environment with `pyspark-client`, so install it
elsewhere, and set `SPARK_HOME` to its folder: `python -m venv spark && spark/bin/pip install pyspark`, then
`SPARK_HOME=spark/lib/python3.11/site-packages/pyspark`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SECONDS_TO_START = 180
_CLASSES = "org.apache.spark"


def spark_home() -> Path | None:
    """The folder of a Spark distribution; None without one, or without Java."""
    home = Path(os.environ.get("SPARK_HOME", "/nonexistent"))
    return home if (home / "bin/spark-class").exists() and shutil.which("java") is not None else None


class SparkCluster:
    """A cluster that runs. `url` is that of its Spark Connect server."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._master_port, self._port = free_port(), free_port()
        self._master = f"spark://127.0.0.1:{self._master_port}"
        self.url = f"sc://127.0.0.1:{self._port}"
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the master, the workers and the server, and wait for them."""
        words = ["--host", "127.0.0.1", "--port", str(self._master_port), "--webui-port", "0"]
        self._start("spark-class", f"{_CLASSES}.deploy.master.Master", *words)
        wait_for_port(self._master_port)
        self.workers = [self._start_worker() for _ in range(2)]
        self._start_connect()
        wait_for_port(self._port)

    def _start_worker(self) -> subprocess.Popen[bytes]:
        words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        return self._start("spark-class", f"{_CLASSES}.deploy.worker.Worker", *words, self._master)

    def _start_connect(self) -> None:
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
        }
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        service = f"{_CLASSES}.sql.connect.service.SparkConnectServer"
        self._start("spark-submit", "--master", self._master, "--class", service, *words, "spark-internal")

    def _start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_WORKER_DIR": str(self._folder / "work"),
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }
        log = (self._folder / f"{len(self._processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(  # noqa: S603 - Spark's own scripts
                [self._home / "bin" / program, *words],
                env=environment,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Stop what was started."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        """The ends of the logs, for a failure."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self._folder.glob("*.log")))


@contextmanager
def spark_cluster(home: Path, folder: Path) -> Iterator[SparkCluster]:
    """Run a cluster. Its workers have the environment variables of this process."""
    folder.mkdir()
    cluster = SparkCluster(home, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def free_port() -> int:
    """A port of loopback that is free."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Wait until something listens."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    message = f"Nothing listens on port {port}."
    raise TimeoutError(message)


def child_processes(parent: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    waiting, found = [parent], []
    while waiting:
        waiting += (started := children.get(waiting.pop(), []))
        found += started
    return found
