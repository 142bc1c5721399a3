"""Send spans to an OTLP endpoint over HTTP, with a rate limit and retries.

Nothing is sent unless an `Endpoint` was named. Requests are compressed protobuf. Redirects are not followed: a redirect
could lead to a server that nobody named.
"""

from __future__ import annotations

import email.utils
import gzip
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from threadline.errors import BadQuery, Error
from threadline.export.otlp.encoding import ProtobufCodec, encode_json
from threadline.export.otlp.spans import Span, split_batches

_TRACES_PATH = "/v1/traces"
_TIMEOUT = 60.0
_RETRIED_STATUSES = frozenset((429, 502, 503, 504))
_MAX_ATTEMPTS = 6
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_LONGEST_RETRY_AFTER = 600.0
_REPORTED_WAIT = 5.0
_MAX_BODY = 300
_MAX_ANSWER = 64 * 1024
_DIGEST_BYTES = 16


class Endpoint(Struct, frozen=True):
    """Where to send traces: the complete URL, and the headers of each request."""

    url: str
    headers: dict[str, str] = {}

    @staticmethod
    def parse(url: str, headers: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> Endpoint:
        """Read an endpoint from an option: `/v1/traces` is added unless the URL ends with it.

        `headers` are `NAME=VALUE` texts; those in the environment apply as well.

        Raises:
            BadQuery: the URL or a header is not valid.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadQuery(f"{url!r} is not an address. Use http://HOST:PORT or https://HOST.")
        if parts.username is not None:
            raise BadQuery("The address contains a password. Use --header 'authorization=Basic …' instead.")
        path = parts.path.rstrip("/")
        complete = path if path.endswith(_TRACES_PATH) else path + _TRACES_PATH
        named = [text for name in _HEADER_VARIABLES for text in environ.get(name, "").split(",") if text.strip()]
        pairs = [*(map(unquote, _parse_header(text)) for text in named), *map(_parse_header, headers)]
        return Endpoint(
            urlunsplit((parts.scheme, parts.netloc, complete, parts.query, "")),
            {name.lower(): value for name, value in pairs},
        )

    @staticmethod
    def from_environment(headers: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> Endpoint:
        """Read an endpoint from OpenTelemetry's variables.

        Raises:
            BadQuery: none is set, or it is not valid.
        """
        url = next((environ[name] for name in _URL_VARIABLES if environ.get(name)), None)
        if url is None:
            raise BadQuery("OTEL_EXPORTER_OTLP_ENDPOINT is not set. Set it, or name the address with --endpoint.")
        return Endpoint.parse(url, headers, environ)


_URL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADER_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")


def _parse_header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip() or any(character in text for character in "\r\n"):
        raise BadQuery(f"The header {text!r} is not NAME=VALUE.")
    return name.strip(), value.strip()


class OtlpSender:
    """Sends spans in batches. `spans`, `requests`, `retries` and `rejected` count what happened.

    A request that the server refuses for the moment (429, 502, 503, 504), or that does not reach it, is repeated after
    the time that the server asks for, or after 1, 2, 4 … seconds. `rate` is the largest number of spans per second.
    `report` gets a sentence before a long wait.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        rate: float | None = None,
        report: Callable[[str], None] = lambda _sentence: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.spans = self.requests = self.retries = self.rejected = 0
        self.rejection = ""
        """The last reason why spans were rejected."""
        self._codec = ProtobufCodec()
        self._rate = rate
        self._report = report
        self._sleep = sleep
        self._clock = clock
        self._next_send = 0.0
        self._opener = urllib.request.build_opener(_NoRedirects)

    def send(self, spans: Sequence[Span]) -> None:
        """Send spans, in as many requests as necessary.

        Raises:
            Error: the server cannot be reached, or refused a request.
        """
        for batch in split_batches(spans):
            self._wait_for_rate(len(batch))
            body = self._post(gzip.compress(self._codec.encode(batch), compresslevel=1, mtime=0))
            rejected, reason = self._codec.decode_rejection(body)
            self.requests += 1
            self.spans += len(batch) - rejected
            self.rejected += rejected
            self.rejection = reason or self.rejection

    def _wait_for_rate(self, spans: int) -> None:
        if self._rate is None:
            return
        now = self._clock()
        if now < self._next_send:
            self._sleep(self._next_send - now)
        self._next_send = max(now, self._next_send) + spans / self._rate

    def _post(self, data: bytes) -> bytes:
        wait = _FIRST_WAIT
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            try:
                return self._request(data)
            except urllib.error.HTTPError as error:
                with error:
                    problem = _describe_response(self.endpoint.url, error)
                    pause = _retry_after(error.headers.get("Retry-After"))
                    if error.code not in _RETRIED_STATUSES:
                        raise problem from None
            except (OSError, http.client.HTTPException) as error:
                problem = _describe_failure(self.endpoint.url, error)
                pause = None
                if not self.requests:
                    raise problem from None
            if attempt == _MAX_ATTEMPTS:
                raise problem
            self.retries += 1
            pause = wait if pause is None else pause
            if pause >= _REPORTED_WAIT:
                self._report(f"{problem} Trying again in {pause:.0f} seconds.")
            self._sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last attempt returns or raises")

    def _request(self, data: bytes) -> bytes:
        headers = {
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            "user-agent": "threadline",
            **self.endpoint.headers,
        }
        request = urllib.request.Request(self.endpoint.url, data, headers)  # noqa: S310 - the scheme was checked
        with self._opener.open(request, timeout=_TIMEOUT) as response:
            return self._read_answer(response)

    def _read_answer(self, response: Any) -> bytes:
        """The start of an answer, which has a few bytes. A server that sends more, or slowly, is not waited for."""
        body = b""
        deadline = self._clock() + _TIMEOUT
        while len(body) < _MAX_ANSWER and self._clock() < deadline:
            part = response.read1(_MAX_ANSWER - len(body))
            if not part:
                break
            body += part
        return body


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any) -> None:
        """Follow no redirect; it is then reported as an error."""
        return


def _describe_failure(url: str, error: Exception) -> Error:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return Error(f"{url} did not answer within {_TIMEOUT:.0f} seconds. Run the command again, with --resume FILE.")
    return Error(f"{url} cannot be reached: {reason}. Is the server running?")


def _describe_response(url: str, error: urllib.error.HTTPError) -> Error:
    body = error.read(_MAX_BODY).decode(errors="replace")
    printable = "".join(character if character.isprintable() else " " for character in body).strip()
    hint = " Check the address, and whether the server needs a header (--header NAME=VALUE)."
    return Error(f"{url} answered {error.code} {error.reason}{f': {printable}' if printable else ''}.{hint}")


def _retry_after(value: str | None) -> float | None:
    """The seconds that `Retry-After` asks for: a number, or a date. At most ten minutes."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), _LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)


class SentTraces:
    """Remembers in a file which traces an endpoint has accepted, so that an interrupted backfill can be resumed.

    A trace is sent again if it changed since.
    """

    def __init__(self, path: Path, endpoint: Endpoint) -> None:
        self._path = path
        self._url = endpoint.url
        self._digests: dict[str, str] = {}
        data = path.read_bytes() if path.exists() else b""
        self._line_end = b"\n" if data and not data.endswith(b"\n") else b""
        """Ends a line that was torn when the last export was killed."""
        for line in data.splitlines():
            try:
                row = msgspec.json.decode(line, type=_SentTrace)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # torn: its trace is sent again
            if row.url == self._url:
                self._digests[row.trace] = row.digest

    def contains(self, spans: Sequence[Span]) -> bool:
        """Whether exactly these spans were accepted."""
        return self._digests.get(_trace_name(spans)) == digest_spans(spans)

    def add(self, spans: Sequence[Span]) -> None:
        """Remember that spans were accepted."""
        row = _SentTrace(self._url, _trace_name(spans), digest_spans(spans))
        self._digests[row.trace] = row.digest
        with self._path.open("ab") as file:
            file.write(self._line_end + msgspec.json.encode(row) + b"\n")
        self._line_end = b""


class _SentTrace(Struct, frozen=True):
    url: str
    trace: str
    digest: str


def _trace_name(spans: Sequence[Span]) -> str:
    """The trace and the main span: a trace may have several."""
    return f"{spans[-1].trace_id.hex()}-{spans[-1].span_id.hex()}"


def digest_spans(spans: Sequence[Span]) -> str:
    """A digest that changes if anything in the spans does."""
    return blake2b(encode_json(spans), digest_size=_DIGEST_BYTES).hexdigest()
