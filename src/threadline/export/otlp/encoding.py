"""Encode spans as OTLP: JSON lines for files, protobuf for requests.

A line of a file is a request in OTLP's JSON encoding, which is what the file exporter of the OpenTelemetry Collector
writes and its `otlpjsonfile` receiver reads. Requests are protobuf, because Phoenix accepts nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from threadline import __version__
from threadline.errors import Missing
from threadline.export.otlp.conventions import SCHEMA_URL, SERVICE_NAME, SERVICE_NAME_KEY
from threadline.export.otlp.spans import Link, Span, split_batches
from threadline.model.text import replace_surrogates

if TYPE_CHECKING:
    from types import ModuleType

_SCOPE_NAME = "threadline"
_ERROR_STATUS = 2
_RESOURCE = {SERVICE_NAME_KEY: SERVICE_NAME}


class OtlpWriter:
    """Writes spans to a file as OTLP/JSON lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.spans = 0

    def send(self, spans: Sequence[Span]) -> None:
        """Write spans, one line per batch."""
        for batch in split_batches(spans):
            self._file.write(encode_json(batch) + b"\n")
            self.spans += len(batch)


def encode_json(spans: Sequence[Span]) -> bytes:
    """Encode a request as OTLP/JSON: ids are hexadecimal, and 64-bit integers are text."""
    scope_spans = {
        "scope": {"name": _SCOPE_NAME, "version": __version__},
        "spans": [_span_object(span) for span in spans],
        "schemaUrl": SCHEMA_URL,
    }
    resource = {"attributes": _attribute_list(_RESOURCE)}
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope_spans]}]})


def _span_object(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        **({"parentSpanId": span.parent_id.hex()} if span.parent_id is not None else {}),
        "name": _clean_text(span.name),
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attribute_list(span.attributes),
        **({"links": [_link_object(link) for link in span.links]} if span.links else {}),
        "status": {"code": _ERROR_STATUS, "message": _clean_text(span.error)} if span.error is not None else {},
    }


def _link_object(link: Link) -> dict[str, Any]:
    return {
        "traceId": link.trace_id.hex(),
        "spanId": link.span_id.hex(),
        "attributes": _attribute_list(link.attributes),
    }


def _attribute_list(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in attributes.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": _clean_text(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _attribute_list(value)}}
    return {"arrayValue": {"values": [_any_value(item) for item in value]}}


def _clean_text(text: str) -> str:
    """Replace what a UTF-8 text or a consumer's database cannot contain."""
    cleaned: str = replace_surrogates(text)
    return cleaned.replace("\0", "\ufffd")


class ProtobufCodec:
    """Encodes requests and decodes responses with OpenTelemetry's generated classes."""

    def __init__(self) -> None:
        try:
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415 - the extra `otlp`
            from opentelemetry.proto.common.v1 import common_pb2  # noqa: PLC0415 - the same
            from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: PLC0415 - the same
        except ModuleNotFoundError:
            raise Missing(
                "Sending traces needs opentelemetry-proto, which is not installed. Run: pip install 'threadline[otlp]'"
            ) from None
        self._service: ModuleType = trace_service_pb2
        self._common: ModuleType = common_pb2
        self._trace: ModuleType = trace_pb2

    def encode(self, spans: Sequence[Span]) -> bytes:
        """Encode a request."""
        request = self._service.ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        self._add_attributes(resource_spans.resource.attributes, _RESOURCE)
        scope_spans = resource_spans.scope_spans.add(schema_url=SCHEMA_URL)
        scope_spans.scope.name = _SCOPE_NAME
        scope_spans.scope.version = __version__
        for span in spans:
            self._add_span(scope_spans.spans, span)
        data: bytes = request.SerializeToString()
        return data

    def decode_rejection(self, body: bytes) -> tuple[int, str]:
        """How many spans of a request the server rejected, and its reason. A body that is not OTLP rejects none."""
        response = self._service.ExportTraceServiceResponse()
        try:
            response.ParseFromString(body)
        except ValueError:  # DecodeError is one
            return 0, ""
        return response.partial_success.rejected_spans, response.partial_success.error_message

    def _add_span(self, spans: Any, span: Span) -> None:
        message = spans.add(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_span_id=span.parent_id or b"",
            name=_clean_text(span.name),
            kind=int(span.kind),
            start_time_unix_nano=span.start,
            end_time_unix_nano=span.end,
        )
        self._add_attributes(message.attributes, span.attributes)
        for link in span.links:
            added = message.links.add(trace_id=link.trace_id, span_id=link.span_id)
            self._add_attributes(added.attributes, link.attributes)
        if span.error is not None:
            message.status.code = self._trace.Status.STATUS_CODE_ERROR
            message.status.message = _clean_text(span.error)

    def _add_attributes(self, target: Any, attributes: dict[str, Any]) -> None:
        for key, value in attributes.items():
            self._set_value(target.add(key=key).value, value)

    def _set_value(self, target: Any, value: Any) -> None:
        if isinstance(value, str):
            target.string_value = _clean_text(value)
        elif isinstance(value, bool):
            target.bool_value = value
        elif isinstance(value, int):
            target.int_value = value
        elif isinstance(value, float):
            target.double_value = value
        elif isinstance(value, dict):
            target.kvlist_value.SetInParent()
            self._add_attributes(target.kvlist_value.values, value)
        else:
            target.array_value.SetInParent()
            for item in value:
                self._set_value(target.array_value.values.add(), item)
