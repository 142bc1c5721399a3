"""Run the tasks of a build on Spark Connect: Apache Spark, or Sail, which implements the same API without a JVM.

Rows do not travel through the engine: a task is a row, and what comes back is the list of files that it wrote. The
workers need threadline installed, with the extra `lake`, and access to the same storage.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from threadline.errors import BadQuery, Unreadable
from threadline.lake.tables import NewFile
from threadline.lake.tasks import SAIL, SPARK, Task, run_task
from threadline.model.tables import import_library
from threadline.storage import Bucket

_MAX_ERROR = 300
_SECONDS_TO_CONNECT = 10
_MAX_RETRIES, _MAX_BACKOFF = 7, 8000
"""A server that does not answer is asked again for half a minute."""


def run_on_spark(
    remote: str, bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None]
) -> Iterator[NewFile]:
    """Run tasks on a Spark Connect server.

    Raises:
        Missing: the client is not installed.
        Unreadable: the server cannot be reached, or a task failed.
    """
    uri, sizes = bucket.uri, {task.id: task.size for task in tasks}

    def run_batches(batches: Iterator[Any]) -> Iterator[Any]:
        return run_encoded_tasks(uri, batches)

    with _open_session(remote, advice="The tables are as they were; build again.") as session:
        frame = session.createDataFrame([(msgspec.json.encode(task).decode(),) for task in tasks], "task string")
        written = frame.repartition(max(len(tasks), 1)).mapInArrow(run_batches, "task string, files string")
        rows = written.collect()
    for row in rows:
        yield from msgspec.json.decode(row["files"], type=list[NewFile])
        progress(sizes.get(row["task"], 0))


@contextmanager
def _open_session(remote: str, *, advice: str) -> Iterator[Any]:
    """A session of a Spark Connect server. Its errors become sentences that end with `advice`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about versions of pandas, which is not used
        sql = import_library("pyspark.sql", "spark")
        retries = import_library("pyspark.sql.connect.client.retries", "spark")
    errors = import_library("pyspark.errors", "spark")
    _check_connection(remote)
    try:
        session = sql.SparkSession.builder.remote(remote).getOrCreate()
        session.client.set_retry_policies([retries.DefaultPolicy(max_retries=_MAX_RETRIES, max_backoff=_MAX_BACKOFF)])
        try:
            yield session
        finally:
            session.stop()
    except errors.PySparkException as error:
        reason = " ".join(str(error).split())[:_MAX_ERROR].rstrip(".")
        raise Unreadable(f"Spark at {remote!r} failed: {reason}. {advice}") from None


def query_on_spark(
    engine: str, files: Mapping[str, Sequence[str]], query: str, parameters: Sequence[Any] = ()
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run Spark SQL on an engine, `sail` or `sc://HOST:PORT`; return the names of the columns, and the rows.

    Days and hours are in UTC, and times have a time zone, as in DuckDB. (`DataFrame.collect` would return local times.)
    `files` are the URIs of each table's Parquet files, which the engine has to be able to read. `parameters` are the
    values of question marks in the query.

    Raises:
        BadQuery: there is no such engine.
        Missing: it is not installed.
        Unreadable: the server cannot be reached, or the query failed.
    """
    if engine != SAIL and not engine.startswith(SPARK):
        raise BadQuery(f"Unknown engine {engine!r}. Use local, sail, sc://HOST:PORT or chdb:FOLDER.")
    with ExitStack() as stack:
        remote = stack.enter_context(_sail_server()) if engine == SAIL else engine
        session = stack.enter_context(_open_session(remote, advice="Check the query, and that it can read the lake."))
        session.conf.set("spark.sql.session.timeZone", "UTC")
        for name, uris in files.items():
            session.read.parquet(*uris).createOrReplaceTempView(name)
        frame = session.sql(query, args=list(parameters) or None)
        columns = [column.to_pylist(maps_as_pydicts="lossy") for column in frame.toArrow().columns]
        return list(frame.columns), list(zip(*columns, strict=True))


def _check_connection(remote: str) -> None:
    """Check that something listens there: the client itself retries for ten minutes.

    Raises:
        BadQuery: it is not an address.
        Unreadable: nothing does.
    """
    client = import_library("pyspark.sql.connect.client", "spark")
    errors = import_library("pyspark.errors", "spark")
    grpc = import_library("grpc", "spark")
    try:
        channel = client.DefaultChannelBuilder(remote).toChannel()
    except errors.PySparkException:
        raise BadQuery(f"{remote!r} is not the address of a Spark Connect server. Use sc://HOST:PORT.") from None
    try:
        grpc.channel_ready_future(channel).result(timeout=_SECONDS_TO_CONNECT)
    except grpc.FutureTimeoutError:
        raise Unreadable(f"Nothing answers at {remote!r}. Is the Spark Connect server running?") from None
    finally:
        channel.close()


def run_encoded_tasks(uri: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Run the tasks in Arrow batches, on a worker; yield the files that each wrote, as JSON."""
    pa = import_library("pyarrow", "lake")
    bucket = Bucket(uri)
    for batch in batches:
        tasks = [msgspec.json.decode(text, type=Task) for text in batch.column(0).to_pylist()]
        files = [msgspec.json.encode(run_task(bucket, task)).decode() for task in tasks]
        names = pa.array([task.id for task in tasks], pa.string())
        yield pa.record_batch([names, pa.array(files, pa.string())], ["task", "files"])


def run_on_sail(bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None]) -> Iterator[NewFile]:
    """Run tasks on a Sail server that runs in this process while they do.

    Raises:
        Missing: Sail is not installed.
        Unreadable: a task failed.
    """
    with _sail_server() as remote:
        yield from run_on_spark(remote, bucket, tasks, progress)


@contextmanager
def _sail_server() -> Iterator[str]:
    """Run Sail in this process; yield its address."""
    os.environ.setdefault("RUST_LOG", "error")  # Sail logs what it starts and stops
    sail = import_library("pysail.spark", "spark")
    server = sail.SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    try:
        _, port = server.listening_address
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.stop()
