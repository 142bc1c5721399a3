"""The messages that requests send, with the hashes by which the newest versions name them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Json = dict[str, Any]


def canonical_json(value: Any) -> bytes:
    """The JSON that is hashed: compact, with sorted keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def hash_json(value: Any) -> str:
    """The hash of a message or a shape."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


class SentMessages:
    """Collects messages from the rows of a transcript: a reply is one message, and so are the results of its calls.

    Memory stays bounded: of messages that were sent, only hashes are remembered.
    """

    def __init__(self) -> None:
        self.hashes: list[str] = []
        self._waiting: list[Json] = []
        self._last: tuple[str, str | None] = ("", None)
        self._reply_of_call: dict[str, str | None] = {}
        self._running: Any = None

    def add(self, message: Json) -> None:
        """Add the message of a row, or a part of it."""
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        role, reply = message["role"], message.get("id")
        for block in blocks:
            if block["type"] == "tool_use":
                self._reply_of_call[block["id"]] = reply
            elif block["type"] == "tool_result":
                reply = self._reply_of_call.get(block["tool_use_id"])
        if self._waiting and reply is not None and self._last == (role, reply):
            self._waiting[-1]["content"] += blocks
        else:
            self._waiting.append({"role": role, "content": list(blocks)})
        self._last = role, reply

    def send(self, params: Json, shape: Json, mark: Json) -> tuple[list[str], list[Json], str]:
        """The hashes that a request adds, its cache marks, and its digest.

        The digest is the hash of the whole body. It is continued from request to request: keys are sorted, so the
        messages come after the parameters that never change.
        """
        body = {**params, **shape, "system": [{**shape["system"][0], "cache_control": mark}, *shape["system"][1:]]}
        before = {key: value for key, value in body.items() if key < "messages"}
        after = {key: value for key, value in body.items() if key > "messages"}
        if self._running is None:
            self._running = hashlib.sha256(canonical_json(before)[:-1] + b',"messages":[')
        added = [hash_json(message) for message in self._waiting]
        *earlier, last = self._waiting
        for message in earlier:
            self._running.update(canonical_json(message) + b",")
        digest = self._running.copy()
        digest.update(canonical_json({**last, "cache_control": mark}) + b"]," + canonical_json(after)[1:])
        self._running.update(canonical_json(last) + b",")
        self.hashes += added
        self._waiting = []
        self._last = ("", None)
        marks = [{"path": ["system", 0], "value": mark}, {"path": ["messages", len(self.hashes) - 1], "value": mark}]
        return added, marks, digest.hexdigest()
