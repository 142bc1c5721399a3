"""An OTLP/HTTP server on loopback that decodes what it receives, and answers as a test asks it to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.export.otlp.decoding import DecodedSpan, decode_protobuf


class Receiver:
    """Keeps every request that it accepted. `answers` are the next ones: a status, and headers; then 200."""

    def __init__(self) -> None:
        self.url = ""
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.batches: list[list[DecodedSpan]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.rejects = 0

    @property
    def spans(self) -> list[DecodedSpan]:
        """All accepted spans, in order."""
        return [span for batch in self.batches for span in batch]

    @property
    def stored(self) -> dict[tuple[str, str], DecodedSpan]:
        """The spans as a consumer stores them: by id, the last one of each."""
        return {(span.trace, span.id): span for span in self.spans}


@contextmanager
def receive() -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.paths.append(self.path)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, headers = receiver.answers.pop(0) if receiver.answers else (200, {})
            answer = b"not now"
            if status == 200:
                receiver.batches.append(decode_protobuf(body))
                response = ExportTraceServiceResponse()
                if receiver.rejects:
                    response.partial_success.rejected_spans = receiver.rejects
                    response.partial_success.error_message = "too old"
                answer = response.SerializeToString()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    worker.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        worker.join()
        server.server_close()
