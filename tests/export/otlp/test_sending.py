"""Tests of sending: requests, retries, rate, resuming, and that sending twice changes nothing."""

from __future__ import annotations

import email.utils
import socket
import time
from pathlib import Path

import pytest
from tests.export.otlp.decoding import encode_and_decode, sum_spans
from tests.export.otlp.receiver import Receiver, receive

from threadline import archive as archives
from threadline.errors import BadQuery, Error
from threadline.export import Endpoint, OtlpSender, SentTraces, Span, SpanKind, TraceOptions, TraceReader


def _make_spans(count: int, text: str = "") -> list[Span]:
    return [
        Span(b"t" * 16, at.to_bytes(8, "big"), None, "chat m", SpanKind.CLIENT, 1, 2, {"text": text})
        for at in range(count)
    ]


class _Waits:
    """Stands for `time.sleep` and `time.monotonic`: remembers waits, and lets no time pass otherwise."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.all.append(seconds)

    def clock(self) -> float:
        return sum(self.all)


def _sender(receiver: Receiver, waits: _Waits | None = None, *, rate: float | None = None) -> OtlpSender:
    fake = waits or _Waits()
    return OtlpSender(Endpoint.parse(receiver.url, environ={}), rate=rate, sleep=fake.sleep, clock=fake.clock)


def test_backfill_arrives_complete_and_twice_is_once(small_home: Path) -> None:
    """A receiver gets what the ledger has. Sending everything again repeats the same spans, and adds none."""
    with receive() as receiver, archives.open([str(small_home)]) as archive:
        archive.open_index()
        reader = TraceReader(archive, TraceOptions())
        sender = _sender(receiver)
        written = []
        for path in reader.list_all():
            spans = reader.read(path).spans
            sender.send(spans)
            written += encode_and_decode(spans)
        first = receiver.stored
        assert list(first.values()) == written, "both encodings say the same"
        assert sum_spans(first.values()) == archive.ledger().total
        assert sender.spans == len(first) == len(receiver.spans)
        again = TraceReader(archive, TraceOptions())
        for path in again.list_all():
            sender.send(again.read(path).spans)
        assert receiver.stored == first
        assert len(receiver.spans) == 2 * len(first)


def test_requests_are_compressed_protobuf_with_headers() -> None:
    """Requests have the media type of OTLP, and the headers of the option and of the variables."""
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b,x-team=red"}
    with receive() as receiver:
        endpoint = Endpoint.parse(receiver.url + "/otel/", ["X-Team=blue"], environ)
        OtlpSender(endpoint).send(_make_spans(1))
        (headers,) = receiver.headers
        assert receiver.paths == ["/otel/v1/traces"]
        assert headers["content-type"] == "application/x-protobuf"
        assert headers["content-encoding"] == "gzip"
        assert (headers["api-key"], headers["x-team"]) == ("a b", "blue")


def test_batches_are_bounded() -> None:
    """A request has at most 512 spans and about 2 MB; every span is sent once, in order."""
    with receive() as receiver:
        sender = _sender(receiver)
        sender.send(_make_spans(1100))
        sender.send(_make_spans(3, "x" * 1_500_000))
        assert [len(batch) for batch in receiver.batches] == [512, 512, 76, 1, 1, 1]
        assert [int(span.id, 16) for span in receiver.spans[:1100]] == list(range(1100))


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_busy_server_is_asked_again(status: int) -> None:
    """A request that the server refuses for the moment is repeated after the time that it asks for."""
    waits = _Waits()
    with receive() as receiver:
        receiver.answers = [(status, {"Retry-After": "7"}), (status, {}), (status, {"Retry-After": "soon"})]
        sender = _sender(receiver, waits)
        sender.send(_make_spans(3))
        assert len(receiver.spans) == 3
    assert waits.all == [7, 2, 4]
    assert (sender.retries, sender.requests, sender.spans) == (3, 1, 3)


def test_long_wait_is_reported() -> None:
    """Before it waits for long, the sender says why and for how long. It waits ten minutes at most."""
    sentences: list[str] = []
    waits = _Waits()
    with receive() as receiver:
        receiver.answers = [(429, {"Retry-After": "999999"}), (503, {"Retry-After": "1"})]
        sender = OtlpSender(Endpoint.parse(receiver.url, environ={}), report=sentences.append, sleep=waits.sleep)
        sender.send(_make_spans(1))
    assert waits.all == [600, 1]
    (sentence,) = sentences
    assert "answered 429 " in sentence
    assert sentence.endswith("Trying again in 600 seconds.")


@pytest.mark.parametrize("answer", [b"x" * 100_000, b"x"])
def test_endless_answer_is_not_read(answer: bytes) -> None:
    """A server that never stops answering, fast or slowly, costs neither memory nor more than a minute."""
    read = 0

    class Answer:
        def read1(self, size: int) -> bytes:
            nonlocal read
            part = answer[:size]
            read += len(part)
            return part

    ticks = iter(range(1_000_000))
    sender = OtlpSender(Endpoint.parse("http://127.0.0.1:1", environ={}), clock=lambda: next(ticks))
    assert len(sender._read_answer(Answer())) == read <= 64 * 1024


def test_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that it did not answer in time, not that it cannot be reached."""
    monkeypatch.setattr("threadline.export.otlp.sender._TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint.parse(f"http://127.0.0.1:{server.getsockname()[1]}", environ={})
        with pytest.raises(Error, match="did not answer within 0 seconds"):
            OtlpSender(endpoint).send(_make_spans(1))


def test_retry_after_may_be_a_date() -> None:
    """`Retry-After` may be a date; one in the past means at once."""
    waits = _Waits()
    with receive() as receiver:
        later = email.utils.formatdate(time.time() + 100, usegmt=True)
        receiver.answers = [(503, {"Retry-After": later}), (503, {"Retry-After": "Mon, 01 Jan 2024 00:00:00 GMT"})]
        _sender(receiver, waits).send(_make_spans(1))
        receiver.answers = [(503, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 -0800"})]  # in the year 10000 in UTC
        _sender(receiver, waits).send(_make_spans(1))
    assert 0 < waits.all[0] <= 100
    assert waits.all[1:] == [0, 1]


def test_server_that_stays_busy_is_an_error() -> None:
    """After six attempts, the error says what the server answered."""
    with receive() as receiver:
        receiver.answers = [(503, {})] * 6
        with pytest.raises(Error, match="answered 503"):
            _sender(receiver).send(_make_spans(1))
        assert not receiver.spans


@pytest.mark.parametrize("status", [400, 401, 404, 415])
def test_refusal_is_an_error_at_once(status: int) -> None:
    """Other answers are not repeated; the error mentions headers."""
    waits = _Waits()
    with receive() as receiver:
        receiver.answers = [(status, {})]
        with pytest.raises(Error, match=f"answered {status} .*: not now.*--header"):
            _sender(receiver, waits).send(_make_spans(1))
    assert not waits.all


def test_redirect_is_not_followed() -> None:
    """A redirect is an error: it could lead to a server that nobody named."""
    with receive() as other, receive() as receiver:
        receiver.answers = [(307, {"Location": f"{other.url}/v1/traces"})]
        with pytest.raises(Error, match="answered 307"):
            _sender(receiver).send(_make_spans(1))
        assert not other.paths


def test_missing_server_is_an_error_at_once() -> None:
    """If nothing listens, the error says so without waiting."""
    with receive() as receiver:
        pass
    waits = _Waits()
    with pytest.raises(Error, match=r"cannot be reached: .*Is the server running"):
        _sender(receiver, waits).send(_make_spans(1))
    assert not waits.all


def test_rejected_spans_are_counted() -> None:
    """Spans that the server rejects are counted, with its reason."""
    with receive() as receiver:
        receiver.rejects = 2
        sender = _sender(receiver)
        sender.send(_make_spans(5))
    assert (sender.spans, sender.rejected, sender.rejection) == (3, 2, "too old")


def test_rate_limits_spans_per_second() -> None:
    """After a batch, the next one waits as long as the rate demands."""
    waits = _Waits()
    with receive() as receiver:
        _sender(receiver, waits, rate=256).send(_make_spans(1100))
    assert waits.all == [2, 2]


def test_resumed_backfill_sends_what_is_new(tmp_path: Path) -> None:
    """What an endpoint accepted is not sent again, unless it changed; another endpoint gets everything."""
    file = tmp_path / "sent.jsonl"
    endpoint = Endpoint("http://a/v1/traces")
    spans = _make_spans(2)
    sent = SentTraces(file, endpoint)
    assert not sent.contains(spans)
    sent.add(spans)
    file.write_bytes(file.read_bytes() + b'{"url": "torn')
    again = SentTraces(file, endpoint)
    assert again.contains(spans)
    assert not again.contains(_make_spans(2, "changed"))
    again.add(_make_spans(2, "changed"))
    assert SentTraces(file, endpoint).contains(_make_spans(2, "changed"))
    assert not SentTraces(file, Endpoint("http://b/v1/traces")).contains(spans)


def test_addresses() -> None:
    """`/v1/traces` is added unless it is there; what is not an address, or has a password, is refused."""
    assert Endpoint.parse("http://h:1", environ={}).url == "http://h:1/v1/traces"
    assert Endpoint.parse("https://h/v1/traces/", environ={}).url == "https://h/v1/traces"
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}
    assert Endpoint.from_environment(environ=environ).url == "http://h:4318/v1/traces"
    for address in ("h:4318", "file:///etc/passwd", "http://", "http://me:secret@h"):
        with pytest.raises(BadQuery):
            Endpoint.parse(address, environ={})
    for header in ("name", "=value", "a=b\r\nc: d"):
        with pytest.raises(BadQuery, match="NAME=VALUE"):
            Endpoint.parse("http://h", [header], {})
    with pytest.raises(BadQuery, match="OTEL_EXPORTER_OTLP_ENDPOINT is not set"):
        Endpoint.from_environment(environ={})
