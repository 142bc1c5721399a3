"""Request: what the model saw, rebuilt from the rows that newer versions write for each request."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.model.ids import AgentId
from threadline.model.place import Place


class MessageSource(StrEnum):
    """Where a message of a request was found."""

    BLOB = "blob"
    REPLY = "reply"
    RESULT = "result"
    PROMPT = "prompt"
    UNKNOWN = "unknown"


class RequestMessage(Struct, frozen=True):
    """One message of a request as it was sent, without its cache marks.

    `verified`: its content has the hash that the request names. `place` is the row it was found in, the first of them
    where it is made of several.
    """

    hash: str
    role: str = ""
    content: Any = None
    verified: bool = False
    source: MessageSource = MessageSource.UNKNOWN
    place: Place | None = None
    fields: dict[str, Any] = {}


class RequestOutline(Struct, frozen=True):
    """One request in a list: how many messages it has, how many of them are new, and how many of those are missing."""

    number: int
    id: str
    place: Place
    timestamp: datetime | None
    agent: AgentId | None
    query_source: str | None
    model: str | None
    messages: int
    new: int
    missing: int


class Request(Struct, frozen=True):
    """One request: system prompt, tools, parameters and messages, as far as the transcript gives them back.

    `missing` are the hashes that nothing in the transcript has; `unknown_before` counts messages of an earlier request
    that is not here. `shape_verified` speaks for system prompt and tools, `digest_verified` for all of it together;
    None where there is nothing to hold it against.
    """

    id: str
    number: int
    place: Place
    timestamp: datetime | None
    agent: AgentId | None
    query_source: str | None
    model: str | None
    params: dict[str, Any]
    system: Any
    tools: Any
    messages: tuple[RequestMessage, ...]
    missing: tuple[str, ...] = ()
    unknown_before: int = 0
    shape_verified: bool = False
    digest: str | None = None
    digest_verified: bool | None = None

    @property
    def verified(self) -> bool:
        """Whether every part of it has the hash that the client wrote."""
        parts = self.shape_verified and not self.unknown_before and all(one.verified for one in self.messages)
        return parts and self.digest_verified is not False

    def __repr__(self) -> str:
        said = f"{len(self.messages)} messages, model={self.model!r}, verified={self.verified}"
        return f"Request({self.number}, {self.id!r}, {said})"
