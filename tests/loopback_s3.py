"""An S3 service on loopback, for tests of buckets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

import pytest


@contextmanager
def loopback_s3(monkeypatch: pytest.MonkeyPatch, bucket: str) -> Iterator[Any]:
    """Start a service with one bucket, set the variables that lead to it, and yield a client. Skips without moto."""
    server_module = pytest.importorskip("moto.server", reason="needs the extra lake-test")
    boto3 = pytest.importorskip("boto3", reason="needs the extra lake-test")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        urlopen(f"http://{host}:{port}/moto-api/reset", data=b"").close()  # other servers of this process
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=bucket)
        yield client
    finally:
        server.stop()
