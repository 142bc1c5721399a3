"""Rows of the newest builds that hold each request exactly as it was sent."""

from __future__ import annotations

from typing import Any

from threadline.model.entries.entry import Entry
from threadline.model.ids import AgentId


class ApiRequestShapeEntry(Entry, frozen=True, tag="api-request-shape"):
    """System prompt and tool list as sent, once for each that differs."""

    shape_hash: str | None = None
    version: str | None = None
    shape: Any = None
    agent_id: AgentId | None = None


class ApiRequestBlobEntry(Entry, frozen=True, tag="api-request-blob"):
    """One message of a request that no other row gives."""

    hash: str | None = None
    message: Any = None
    agent_id: AgentId | None = None


class ApiRequestEntry(Entry, frozen=True, tag="api-request"):
    """One request: which earlier one it builds on, how much of it is kept, and what follows."""

    id: str | None = None
    version: str | None = None
    query_source: str | None = None
    shape_hash: str | None = None
    params: Any = None
    base: str | None = None
    keep: int | None = None
    tail: list[str] | None = None
    cache_control: list[Any] | None = None
    request_digest: str | None = None
    agent_id: AgentId | None = None
