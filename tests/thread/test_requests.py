"""Tests of requests: what the model saw, rebuilt from request rows and verified with their hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import SESSION, Part, Pen, Row, call, prompt, reply, transcript, write

import threadline
from threadline.errors import NotFound
from threadline.model.context import MessageSource
from threadline.model.entries import Entry
from threadline.thread import Requests, rebuild_request
from threadline.thread.requests import canonical_json, message_hash

SHAPE = {"system": [{"type": "text", "text": "You help."}], "tools": [{"name": "Bash", "input_schema": {}}]}
PARAMS = {"model": "claude-opus-5-5", "max_tokens": 10, "betas": ["b"]}
TEXTS = st.text(max_size=8)


def digest(value: Any) -> str:
    """Return the hash as the client computes it, implemented a second time."""
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    ).hexdigest()


def text_block(words: str) -> Row:
    """Return a text block."""
    return {"type": "text", "text": words}


def shape_row(value: Any = SHAPE) -> Row:
    """Return a row with system prompt and tools."""
    return {"type": "api-request-shape", "sessionId": SESSION, "shapeHash": digest(value), "shape": value}


def blob_row(message: Row, hash_: str | None = None) -> Row:
    """Return a row with a message that no other row has."""
    return {"type": "api-request-blob", "sessionId": SESSION, "hash": hash_ or digest(message), "message": message}


def request_row(id_: str, tail: Iterable[Any], base: str | None = None, keep: int = 0, **fields: Any) -> Row:
    """Return a request row. Messages are given by their hashes or themselves."""
    hashes = [message if isinstance(message, str) else digest(message) for message in tail]
    row = {"type": "api-request", "sessionId": SESSION, "id": id_, "shapeHash": digest(SHAPE), "params": PARAMS}
    return {**row, "keep": keep, "tail": hashes, **({"base": base} if base else {}), **fields}


def entries_of(*parts: Part) -> list[Entry]:
    """Return the entries of parts."""
    with TemporaryDirectory() as folder:
        return list(threadline.entries(write(Path(folder) / "a.jsonl", *transcript(*parts, pen=Pen()))))


def user_message(*texts: str) -> Row:
    """Return a message of the user."""
    return {"role": "user", "content": [text_block(words) for words in texts]}


def test_rebuilds_a_request_from_blobs_prompts_replies_and_results() -> None:
    """They are found by their hashes, including replies of several blocks and results of parallel calls."""
    uses = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"b": 1, "a": 2}} for name in ("t1", "t2")]
    rows = transcript(prompt("do it"), reply("Well.", *uses))
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in ("t2", "t1")]
    answers = [
        {"type": "user", "uuid": result["content"], "message": {"role": "user", "content": [result]}}
        for result in results
    ]
    blocks = [row["message"]["content"][0] for row in rows[1:] if isinstance(row, dict)]
    messages = [
        user_message("hint"),
        user_message("do it"),
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": results},
    ]
    entries = entries_of(shape_row(), blob_row(user_message("hint")), *rows, *answers, request_row("r1", messages))
    rebuilt = rebuild_request(entries, 1)
    assert [message.source for message in rebuilt.messages] == [
        MessageSource.BLOB,
        MessageSource.PROMPT,
        MessageSource.REPLY,
        MessageSource.RESULT,
    ]
    assert [{"role": message.role, "content": message.content} for message in rebuilt.messages] == messages
    assert (rebuilt.system, rebuilt.tools, rebuilt.model) == (SHAPE["system"], SHAPE["tools"], "claude-opus-5-5")
    assert (rebuilt.verified, rebuilt.missing, rebuilt.digest_verified) == (True, (), None)


def test_finds_the_beginning_of_a_reply() -> None:
    """After a rewind into a reply, a request has only its first blocks."""
    entries = entries_of(
        shape_row(), reply("one", "two"), request_row("r1", [{"role": "assistant", "content": [text_block("one")]}])
    )
    assert rebuild_request(entries, 1).verified


def test_string_content_counts_as_a_text_block() -> None:
    """A blob whose content is a string has the hash of the same text as a block."""
    message = {"role": "user", "content": "words", "output_config": {"effort": "low"}}
    entries = entries_of(shape_row(), blob_row(message, digest({**message, "content": [text_block("words")]})))
    rebuilt = rebuild_request([*entries, *entries_of(request_row("r1", [message_hash(message)]))], 1)
    assert (rebuilt.messages[0].verified, rebuilt.messages[0].fields) == (True, {"output_config": {"effort": "low"}})


def test_missing_messages_and_shapes_are_reported() -> None:
    """An unknown hash, a blob with a wrong hash and a missing shape are not verified. Nothing is invented."""
    entries = entries_of(blob_row(user_message("x"), "f" * 64), request_row("r1", ["e" * 64, "f" * 64]))
    rebuilt = rebuild_request(entries, 1)
    assert rebuilt.missing == ("e" * 64,)
    assert [(message.source, message.verified) for message in rebuilt.messages] == [
        (MessageSource.UNKNOWN, False),
        (MessageSource.BLOB, False),
    ]
    assert (rebuilt.shape_verified, rebuilt.system, rebuilt.verified) == (False, None, False)


def test_digest_covers_the_whole_request() -> None:
    """It includes cache marks. A blob that occurs twice is marked where it was."""
    mark = {"type": "ephemeral"}
    hint = {"role": "user", "content": "hint"}
    marked = {"role": "user", "content": [{**text_block("hint"), "cache_control": mark}]}
    system = [{**text_block("You help."), "cache_control": mark}]
    body = {**PARAMS, **SHAPE, "system": system, "messages": [user_message("hint"), marked]}
    marks = [{"path": path, "value": mark} for path in (["system", 0], ["messages", 1, "content", 0])]
    hash_ = digest(user_message("hint"))
    rows = [shape_row(), blob_row(hint, hash_)]
    for value, expected in ((digest(body), True), (digest({}), False)):
        row = request_row("r1", [hash_, hash_], cacheControl=marks, requestDigest=value)
        rebuilt = rebuild_request(entries_of(*rows, row), 1)
        assert (rebuilt.digest_verified, rebuilt.verified) == (expected, expected)
    nowhere = request_row("r1", [hash_], cacheControl=[{"path": ["messages", 9], "value": mark}], requestDigest="0")
    assert rebuild_request(entries_of(*rows, nowhere), 1).digest_verified is False


@given(st.data())
def test_incremental_requests_give_what_was_sent(data: st.DataObject) -> None:
    """However requests keep and add messages, each has its own in order, and the outline counts them."""
    sent: list[list[Row]] = []
    rows: list[Row] = [shape_row()]
    for number in range(data.draw(st.integers(1, 8))):
        added = [user_message(words) for words in data.draw(st.lists(TEXTS, max_size=3))]
        base = data.draw(st.integers(-1, number - 1))
        keep = data.draw(st.integers(0, len(sent[base]))) if base >= 0 else 0
        rows += [blob_row(message) for message in added]
        rows.append(request_row(f"r{number}", added, f"r{base}" if base >= 0 else None, keep))
        sent.append([*(sent[base][:keep] if base >= 0 else []), *added])
    requests = Requests(entries_of(*rows))
    assert [[{"role": m.role, "content": m.content} for m in request_row.messages] for request_row in requests] == sent
    assert all(request_row.verified for request_row in requests)
    assert [outline.messages for outline in requests.outline()] == [len(messages) for messages in sent]
    assert [outline.missing for outline in requests.outline()] == [0] * len(sent)


def test_messages_of_a_missing_base_are_unknown() -> None:
    """Their number is reported."""
    rows = [
        shape_row(),
        blob_row(user_message("x")),
        request_row("r2", [user_message("x")], "r1", 5),
        request_row("r3", [user_message("x")], "r2", 5),
    ]
    first, second = Requests(entries_of(*rows))
    assert (first.unknown_before, len(first.messages), first.verified) == (5, 1, False)
    assert (second.unknown_before, len(second.messages)) == (5, 1)
    (third,) = Requests(
        entries_of(shape_row(), blob_row(user_message("x")), request_row("r2", [user_message("x")], "r1", 10**18))
    )
    assert third.unknown_before == 10**18


def test_circular_requests_end() -> None:
    """Requests that name each other, or themselves, are rebuilt as far as possible."""
    rows = [
        request_row("r1", ["a" * 64], "r2", 1),
        request_row("r2", ["b" * 64], "r1", 1),
        request_row("r3", [], "r3", 2),
    ]
    sizes = [(len(rebuilt.messages), rebuilt.unknown_before) for rebuilt in Requests(entries_of(*rows))]
    assert sizes == [(1, 1), (1, 1), (0, 2)]


@pytest.mark.slow
def test_long_conversation_needs_no_recursion() -> None:
    """Ten thousand requests, each based on the previous one, are rebuilt."""
    rows = [request_row(f"r{n}", [f"{n:064d}"], f"r{n - 1}" if n else None, n) for n in range(10_000)]
    requests = Requests(entries_of(*rows))
    assert len(requests.rebuild(10_000).messages) == 10_000
    assert [outline.messages for outline in requests.outline()][-1] == 10_000


@pytest.mark.parametrize("number", [0, -1, 2])
def test_missing_request_number_is_an_error(number: int) -> None:
    """Asking for it is the caller's mistake."""
    with pytest.raises(NotFound, match=f"No request {number}: the transcript has 1 request"):
        rebuild_request(entries_of(request_row("r1", [])), number)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "api-request"},
        {
            "type": "api-request",
            "params": [],
            "tail": None,
            "keep": -5,
            "base": "x",
            "cacheControl": [1, {"path": "x"}],
        },
        {"type": "api-request", "id": "r", "base": "r", "shapeHash": "s", "params": {"model": 3}, "requestDigest": "d"},
    ],
)
def test_damaged_rows_do_not_raise(row: Row) -> None:
    """Whatever a request row contains, there is a result."""
    deep: Any = "x"
    for _ in range(2000):
        deep = [deep]
    odd = [{"type": "user", "message": {"content": [None, 3, {"type": "tool_result", "tool_use_id": ["x"]}]}}]
    entries = entries_of(
        {"type": "api-request-shape", "shapeHash": "s", "shape": [1]}, *odd, {"type": "assistant"}, row
    )
    rebuilt = rebuild_request(entries, 1)
    assert not rebuilt.verified
    assert repr(rebuilt)
    assert list(Requests(entries).outline())
    assert canonical_json(deep) is None or message_hash(deep)


def test_older_transcripts_have_no_requests() -> None:
    """Without request rows, there is nothing to rebuild."""
    assert len(Requests(entries_of(prompt("hi"), reply("ok"), call("Bash", "ls", "a")))) == 0
