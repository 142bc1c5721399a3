"""The JSON Schema of Agent Trace 0.1.0 records, as https://agent-trace.dev/schemas/v1/trace-record.json defines them.

Stricter than the README's version of it: no other fields are allowed except in `metadata`.
"""

from __future__ import annotations

from typing import Any


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_LINE = {"type": "integer", "minimum": 1}
_CONTRIBUTOR = _object(
    {"type": {"enum": ["human", "ai", "mixed", "unknown"]}, "model_id": {"type": "string", "maxLength": 250}}, "type"
)
_RANGE = _object(
    {"start_line": _LINE, "end_line": _LINE, "content_hash": _TEXT, "contributor": _CONTRIBUTOR},
    "start_line",
    "end_line",
)
_URI = {"type": "string", "format": "uri", "pattern": r"^[a-z][a-z0-9+.-]*:[^\s]+$"}
_CONVERSATION = _object(
    {
        "url": _URI,
        "contributor": _CONTRIBUTOR,
        "ranges": {"type": "array", "items": _RANGE},
        "related": {"type": "array", "items": _object({"type": _TEXT, "url": _URI}, "type", "url")},
    },
    "ranges",
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        {
            "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
            "id": {"type": "string", "format": "uuid", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
            "timestamp": {"type": "string", "format": "date-time"},
            "vcs": _object({"type": {"enum": ["git", "jj", "hg", "svn"]}, "revision": _TEXT}, "type", "revision"),
            "tool": _object({"name": _TEXT, "version": _TEXT}),
            "files": {
                "type": "array",
                "items": _object(
                    {"path": _TEXT, "conversations": {"type": "array", "items": _CONVERSATION}},
                    "path",
                    "conversations",
                ),
            },
            "metadata": {"type": "object"},
        },
        "version",
        "id",
        "timestamp",
        "files",
    ),
}
