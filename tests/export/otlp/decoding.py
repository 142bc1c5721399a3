"""Decode OTLP requests, and check what is true of the traces of any archive."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from threadline.archive import Archive
from threadline.export import OtlpWriter, Span, TraceOptions, TraceReader
from threadline.model.ledger import Sum, sum_amounts
from threadline.model.places import is_uuid


@dataclass
class DecodedSpan:
    """A span as a consumer sees it."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    status: int
    message: str
    attributes: dict[str, Any] = field(default_factory=dict)
    links: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


def decode_protobuf(body: bytes) -> list[DecodedSpan]:
    """Decode a compressed request."""
    request = ExportTraceServiceRequest()
    request.ParseFromString(gzip.decompress(body))
    return _decode(request)


def decode_json(line: str) -> list[DecodedSpan]:
    """Decode a line of a file. Ids are hexadecimal in OTLP, and base64 in protobuf's JSON."""
    value = json.loads(line)
    for resource in value["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for item in (span, *span.get("links", ())):
                    for key in {"traceId", "spanId", "parentSpanId"} & item.keys():
                        item[key] = _base64(item[key])
    request = ExportTraceServiceRequest()
    Parse(json.dumps(value), request)
    return _decode(request)


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _decode(request: Any) -> list[DecodedSpan]:
    return [
        DecodedSpan(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            kind=span.kind,
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            status=span.status.code,
            message=span.status.message,
            attributes=_attributes(span.attributes),
            links=[(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)) for link in span.links],
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind)


def sum_spans(spans: Iterable[DecodedSpan]) -> Sum:
    """What spans say was spent, as the ledger would sum it."""
    charged = [span.attributes for span in spans if "gen_ai.usage.input_tokens" in span.attributes]
    amounts = [Decimal(item["threadline.amount"]) for item in charged if "threadline.amount" in item]
    cached = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens")
    return Sum(
        charges=sum("threadline.part" not in item for item in charged),
        input=sum(item["gen_ai.usage.input_tokens"] - sum(item[key] for key in cached) for item in charged),
        output=sum(item["gen_ai.usage.output_tokens"] for item in charged),
        cache_write=sum(item[cached[1]] for item in charged),
        cache_write_1h=sum(item["threadline.usage.cache_write_1h_tokens"] for item in charged),
        cache_read=sum(item[cached[0]] for item in charged),
        web_searches=sum(item["threadline.usage.web_searches"] for item in charged),
        amount=sum_amounts(amounts) if amounts else None,
        unpriced=sum("unpriced" in item["threadline.flags"] for item in charged),
        lower_bound=sum("lower-bound" in item["threadline.flags"] for item in charged),
    )


def read_traces(archive: Archive, options: TraceOptions | None = None) -> dict[str, list[DecodedSpan]]:
    """Every trace of an archive, decoded, by session id."""
    reader = TraceReader(archive, options or TraceOptions())
    traces: dict[str, list[DecodedSpan]] = {}
    for path in reader.list_all():
        trace = reader.read(path)
        traces.setdefault(trace.session, []).extend(encode_and_decode(trace.spans))
    return traces


def encode_and_decode(spans: list[Span]) -> list[DecodedSpan]:
    """The spans as a reader of the file sees them."""
    file = io.BytesIO()
    OtlpWriter(file).send(spans)
    return [span for line in file.getvalue().decode().splitlines() for span in decode_json(line)]


def check_traces(archive: Archive) -> list[DecodedSpan]:
    """Check the laws of traces, and return all spans.

    Ids are unique, parents exist and cover their children, every call is one span, and sums are the ledger's.
    """
    archive.open_index()
    traces = read_traces(archive)
    spans = [span for trace in traces.values() for span in trace]
    by_id = {(span.trace, span.id): span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert span.start <= span.end
        if span.parent:
            parent = by_id[span.trace, span.parent]
            assert parent.start <= span.start
            assert span.end <= parent.end
    calls = Counter(span.attributes["gen_ai.tool.call.id"] for span in spans if span.name.startswith("execute_tool"))
    listed = Counter(call.id for call in archive.calls())
    assert calls == listed
    ledger = archive.ledger()
    assert sum_spans(spans) == ledger.total
    for session, trace in traces.items():
        if is_uuid(session):
            assert len({span.trace for span in trace}) == 1
            expected = ledger.where(session=session).total if session in ledger.sessions else Sum()
            assert sum_spans(trace) == expected
    return spans
