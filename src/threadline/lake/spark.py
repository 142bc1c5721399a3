"""Run the tasks of a build on Spark Connect: Apache Spark, or Sail, which implements the same API without a JVM.

Rows do not travel through the engine: a task is a row, and what comes back is the list of files that it wrote. The
workers need threadline installed, with the extra `lake`, and access to the same storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from threadline.errors import Unreadable
from threadline.lake.storage import Bucket
from threadline.model.tables import import_library

if TYPE_CHECKING:
    from threadline.lake.build import NewFile, Task

_MAX_ERROR = 300


def run_on_spark(
    remote: str, bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None]
) -> Iterator[NewFile]:
    """Run tasks on a Spark Connect server.

    Raises:
        Missing: the client is not installed.
        Unreadable: the server cannot be reached, or a task failed.
    """
    from threadline.lake.build import NewFile, encode_task

    sql = import_library("pyspark.sql", "spark")
    errors = import_library("pyspark.errors", "spark")
    uri, sizes = bucket.uri, {task.id: task.size for task in tasks}

    def run_batches(batches: Iterator[Any]) -> Iterator[Any]:
        from threadline.lake.spark import run_encoded_tasks

        return run_encoded_tasks(uri, batches)

    try:
        session = sql.SparkSession.builder.remote(remote).getOrCreate()
        try:
            frame = session.createDataFrame([(encode_task(task),) for task in tasks], "task string")
            written = frame.repartition(max(len(tasks), 1)).mapInArrow(run_batches, "task string, files string")
            rows = written.collect()
        finally:
            session.stop()
    except errors.PySparkException as error:
        raise Unreadable(f"Spark at {remote!r} failed: {' '.join(str(error).split())[:_MAX_ERROR]}.") from None
    for row in rows:
        yield from msgspec.json.decode(row["files"], type=list[NewFile])
        progress(sizes.get(row["task"], 0))


def run_encoded_tasks(uri: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Run the tasks in Arrow batches, on a worker; yield the files that each wrote, as JSON."""
    from threadline.lake.build import decode_task, run_task

    pa = import_library("pyarrow", "lake")
    bucket = Bucket(uri)
    for batch in batches:
        tasks = [decode_task(text) for text in batch.column(0).to_pylist()]
        files = [msgspec.json.encode(run_task(bucket, task)).decode() for task in tasks]
        names = pa.array([task.id for task in tasks], pa.string())
        yield pa.record_batch([names, pa.array(files, pa.string())], ["task", "files"])


def run_on_sail(bucket: Bucket, tasks: Sequence[Task], progress: Callable[[int], None]) -> Iterator[NewFile]:
    """Run tasks on a Sail server that runs in this process while they do.

    Raises:
        Missing: Sail is not installed.
        Unreadable: a task failed.
    """
    sail = import_library("pysail.spark", "spark")
    server = sail.SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    try:
        _, port = server.listening_address
        yield from run_on_spark(f"sc://127.0.0.1:{port}", bucket, tasks, progress)
    finally:
        server.stop()
