"""Rebuild the requests that were sent to the API, and verify them against the recorded hashes.

A request names an earlier one (`base`), how many of its messages it keeps, and the hashes of those that follow. A
message is a blob row, or is derived from the transcript's rows: a reply is all blocks of one message id, results of
parallel calls are one message in file order, a prompt is one row. A hash is the SHA-256 of the message's JSON,
compact and with sorted keys, with a content string counted as one text block. A shape is hashed the same way, and a
request's digest is the hash of the whole body with its cache marks inserted. All of this was found by experiment
(docs/format, 2.1.325).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from threadline.errors import NotFound
from threadline.model.context import MessageSource, Request, RequestMessage, RequestOutline
from threadline.model.entries import (
    ApiRequestBlobEntry,
    ApiRequestEntry,
    ApiRequestShapeEntry,
    AssistantEntry,
    Entry,
    UserEntry,
)
from threadline.model.places import Place
from threadline.model.text import no_such_number


class _DerivedMessage(Struct, frozen=True):
    """A message derived from the transcript: the first `count` of a list of blocks that may grow."""

    role: str
    blocks: list[Any]
    count: int
    source: MessageSource
    place: Place


class _GrowingMessage(Struct):
    """A message that grows row by row, and a running hash of its content."""

    role: str
    source: MessageSource
    place: Place
    blocks: list[Any]
    running: Any


class Requests:
    """The requests of one agent's entries, each rebuilt on demand."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.rows: list[ApiRequestEntry] = [entry for entry in entries if isinstance(entry, ApiRequestEntry)]
        self._by_id = {row.id: at for at, row in enumerate(self.rows) if row.id is not None}
        self._shapes: dict[str, Any] = {}
        self._blobs: dict[str, tuple[Any, Place]] = {}
        self._derived: dict[str, _DerivedMessage] = {}
        if self.rows:
            self._collect(entries)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Request]:
        return (self.rebuild(number) for number in range(1, len(self.rows) + 1))

    def outline(self) -> Iterator[RequestOutline]:
        """Yield all requests, for a list. Each takes time for what it adds, not for the whole conversation."""
        counts: dict[str | None, int] = {}
        for number, row in enumerate(self.rows, 1):
            tail = row.tail or []
            kept = max(0, row.keep or 0) if row.base is not None else 0
            count = min(kept, counts.get(row.base, kept)) + len(tail)
            counts[row.id] = count
            yield RequestOutline(
                number=number,
                id=row.id or "",
                place=row.place,
                timestamp=row.timestamp,
                agent=row.agent_id,
                query_source=row.query_source,
                model=_model_of(row),
                messages=count,
                new=len(tail),
                missing=sum(hash_ not in self._blobs and hash_ not in self._derived for hash_ in tail),
            )

    def rebuild(self, number: int) -> Request:
        """Rebuild request `number`, counted from 1.

        Raises:
            NotFound: there are not that many.
        """
        if not 1 <= number <= len(self.rows):
            raise NotFound(no_such_number("request", number, len(self.rows), owner="transcript"))
        row = self.rows[number - 1]
        hashes, unknown = self._hashes(row)
        messages = tuple(self._message(hash_) for hash_ in hashes)
        shape = self._shapes.get(row.shape_hash or "")
        parts: dict[str, Any] = shape if isinstance(shape, dict) else {}
        params = row.params if isinstance(row.params, dict) else {}
        missing = tuple(dict.fromkeys(message.hash for message in messages if message.source is MessageSource.UNKNOWN))
        is_complete = not missing and not unknown and bool(parts)
        return Request(
            id=row.id or "",
            number=number,
            place=row.place,
            timestamp=row.timestamp,
            agent=row.agent_id,
            query_source=row.query_source,
            model=_model_of(row),
            params=params,
            system=parts.get("system"),
            tools=parts.get("tools"),
            messages=messages,
            missing=missing,
            unknown_before=unknown,
            shape_verified=bool(parts) and message_hash(shape) == row.shape_hash,
            digest=row.request_digest,
            digest_verified=_body_digest(row, params, parts, messages) == row.request_digest
            if is_complete and row.request_digest
            else None,
        )

    def _hashes(self, row: ApiRequestEntry) -> tuple[list[str], int]:
        """Return the hashes of all messages, and how many before them belong to a request that is missing."""
        chain = [row]
        visited = {id(row)}
        while (base := chain[-1].base) is not None:
            at = self._by_id.get(base)
            if at is None or id(self.rows[at]) in visited:
                break
            chain.append(self.rows[at])
            visited.add(id(self.rows[at]))
        hashes: list[str] = []
        unknown = max(0, chain[-1].keep or 0) if chain[-1].base is not None else 0
        for base_row in reversed(chain):
            if base_row is not chain[-1]:
                kept = max(0, base_row.keep or 0)
                del hashes[max(0, kept - unknown) :]
                unknown = min(unknown, kept)
            hashes += base_row.tail or []
        return hashes, unknown

    def _message(self, hash_: str) -> RequestMessage:
        blob = self._blobs.get(hash_)
        if blob is not None:
            message, place = blob
            fields = {key: value for key, value in message.items() if key not in ("role", "content")}
            verified = message_hash(message) == hash_
            role, content = str(message.get("role") or ""), message.get("content")
            return RequestMessage(hash_, role, content, verified, MessageSource.BLOB, place, fields)
        derived = self._derived.get(hash_)
        if derived is None:
            return RequestMessage(hash_)
        content = derived.blocks[: derived.count]
        return RequestMessage(hash_, derived.role, content, verified=True, source=derived.source, place=derived.place)

    def _collect(self, entries: Sequence[Entry]) -> None:
        """Collect everything that requests are made of, in one walk."""
        replies: dict[str, _GrowingMessage] = {}
        results: dict[str, _GrowingMessage] = {}
        reply_of_call: dict[str, str] = {}
        for entry in entries:
            match entry:
                case ApiRequestShapeEntry(shape_hash=str(name)):
                    self._shapes[name] = entry.shape
                case ApiRequestBlobEntry(hash=str(name), message=dict(message)):
                    self._blobs[name] = (message, entry.place)
                case AssistantEntry(message=message) if message is not None and message.id:
                    reply = replies.setdefault(
                        message.id, _start_message("assistant", MessageSource.REPLY, entry.place)
                    )
                    for block in _raw_blocks(entry):
                        self._grow(reply, block)
                        if isinstance(call := _get(block, "id"), str):
                            reply_of_call[call] = message.id
                case UserEntry():
                    self._add_user_entry(entry, results, reply_of_call)

    def _add_user_entry(
        self, entry: UserEntry, results: dict[str, _GrowingMessage], reply_of_call: dict[str, str]
    ) -> None:
        """Add a row in the person's place: a message of its own, and possibly one more result of a reply's calls."""
        blocks = _raw_blocks(entry)
        is_result = any(_get(block, "type") == "tool_result" for block in blocks)
        message = _start_message("user", MessageSource.RESULT if is_result else MessageSource.PROMPT, entry.place)
        for block in blocks:
            self._grow(message, block)
            answers = _get(block, "tool_use_id")
            reply = reply_of_call.get(answers) if isinstance(answers, str) else None
            if reply is not None:
                self._grow(results.setdefault(reply, _start_message("user", MessageSource.RESULT, entry.place)), block)

    def _grow(self, message: _GrowingMessage, block: Any) -> None:
        """Add a block: the message so far may be what a request names. The hash is continued, not computed again."""
        text = canonical_json(block)
        if text is None:
            return
        message.running.update((b"," if message.blocks else b"") + text)
        message.blocks.append(block)
        hash_ = message.running.copy()
        hash_.update(f'],"role":"{message.role}"}}'.encode())
        derived = _DerivedMessage(message.role, message.blocks, len(message.blocks), message.source, message.place)
        self._derived.setdefault(hash_.hexdigest(), derived)


def _model_of(row: ApiRequestEntry) -> str | None:
    model = _get(row.params, "model")
    return model if isinstance(model, str) else None


def _start_message(role: str, source: MessageSource, place: Place) -> _GrowingMessage:
    return _GrowingMessage(role, source, place, [], hashlib.sha256(b'{"content":['))


def rebuild_request(entries: Sequence[Entry], number: int) -> Request:
    """Rebuild request `number`, counted from 1, of one agent's entries.

    Raises:
        NotFound: there are not that many.
    """
    return Requests(entries).rebuild(number)


def canonical_json(value: Any) -> bytes | None:
    """Return the JSON that is hashed: compact, keys sorted. None for values that are nested too deeply.

    >>> canonical_json({"b": 1, "a": "é"}).decode()
    '{"a":"é","b":1}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (RecursionError, ValueError):
        return None
    return text.encode(errors="backslashreplace")  # half a surrogate pair is written as an escape, as JavaScript does


def message_hash(message: Any) -> str | None:
    """Return the hash of a message or a shape. A content string counts as one text block."""
    text = canonical_json(_with_text_block(message))
    return hashlib.sha256(text).hexdigest() if text is not None else None


def _with_text_block(message: Any) -> Any:
    if isinstance(message, dict) and isinstance(message.get("content"), str):
        return {**message, "content": [{"type": "text", "text": message["content"]}]}
    return message


def _body_digest(
    row: ApiRequestEntry, params: dict[str, Any], shape: dict[str, Any], messages: Sequence[RequestMessage]
) -> str | None:
    """Return the hash of the body as it was sent: parameters, shape and messages, with cache marks inserted."""
    sent = [
        _with_text_block({"role": message.role, "content": message.content, **message.fields}) for message in messages
    ]
    # Copied through JSON: the same blob may be used in several places, and only one of them has the mark.
    encoded = canonical_json({**params, **shape, "messages": sent})
    if encoded is None:
        return None
    body = json.loads(encoded)
    for mark in row.cache_control or ():
        if not _insert_cache_mark(body, _get(mark, "path"), _get(mark, "value")):
            return None
    text = canonical_json(body)
    return hashlib.sha256(text).hexdigest() if text is not None else None


def _insert_cache_mark(body: Any, path: Any, value: Any) -> bool:
    """Insert a cache mark where it was sent; return False if there is no such place."""
    for step in path if isinstance(path, list) else ():
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not isinstance(body, dict):
        return False
    body["cache_control"] = value
    return True


def _raw_blocks(entry: Entry) -> list[Any]:
    """Return the blocks of an entry's message as written: hashes include all fields, known or not."""
    content = _get(_get(entry.data, "message"), "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
