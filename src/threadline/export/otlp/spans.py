"""Spans and their ids, before they are encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from threadline.export.otlp.conventions import MAPPING_VERSION
from threadline.model.places import is_uuid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LATEST = 2**63 - 1
_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8
_MAX_BATCH_SPANS = 512
_MAX_BATCH_BYTES = 2 * 1024 * 1024
_SPAN_OVERHEAD = 512


class SpanKind(IntEnum):
    """The kinds of spans that sessions have, numbered as in OTLP."""

    INTERNAL = 1
    CLIENT = 3


class Link(Struct, frozen=True):
    """A link to a span, which may be in another trace."""

    trace_id: bytes
    span_id: bytes
    attributes: dict[str, Any] = {}


class Span(Struct, frozen=True):
    """One span. Times are nanoseconds since 1970, in UTC.

    `error` is the status message of a failed operation; None if it did not fail. `is_finished` says whether the
    operation has ended, so that the span will not change any more.
    """

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    name: str
    kind: SpanKind
    start: int
    end: int
    attributes: dict[str, Any]
    error: str | None = None
    links: tuple[Link, ...] = ()
    is_finished: bool = True


def trace_key(session: str, folder: str) -> str:
    """What identifies a session: a UUID, which has no second meaning, or else its name and the folder it is in."""
    return session if is_uuid(session) else f"{folder}\0{session}"


def trace_id(key: str) -> bytes:
    """The trace id of a session, by its key: the same on every machine and in every run."""
    return _hash(_TRACE_ID_BYTES, "trace", key)


def span_id(scope: str, kind: str, *parts: str) -> bytes:
    """The id of a span. `scope` is the session's key, or more than that if several transcripts have the same."""
    return _hash(_SPAN_ID_BYTES, kind, scope, *parts)


def root_span_id(scope: str) -> bytes:
    """The id of the span of a session's main agent."""
    return span_id(scope, "agent")


def _hash(size: int, *parts: str) -> bytes:
    # A length precedes each part, so that no two lists of parts are hashed alike.
    text = "".join(f"{len(part)}:{part}" for part in (MAPPING_VERSION, *parts))
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size, person=b"threadline otlp").digest()


def to_nanoseconds(moment: datetime) -> int:
    """A time in nanoseconds since 1970; the nearest that OTLP can encode for times before 1970 and after 2262."""
    return min(max(0, (moment - _EPOCH) // _MICROSECOND * 1000), _LATEST)


def split_batches(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Split spans into batches for one request each: at most 512 spans, and about 2 MB unless one span is larger."""
    batch: list[Span] = []
    size = 0
    for span in spans:
        span_size = _estimate_size(span.attributes) + _SPAN_OVERHEAD
        if batch and (len(batch) == _MAX_BATCH_SPANS or size + span_size > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(span)
        size += span_size
    if batch:
        yield batch


def _estimate_size(attributes: dict[str, Any]) -> int:
    return sum(len(value) for value in attributes.values() if isinstance(value, str))
