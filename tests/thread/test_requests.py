"""Requests: what the model saw, rebuilt from request rows and held against their hashes."""

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
    """The hash as the client makes it, written down a second time."""
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    ).hexdigest()


def text(said: str) -> Row:
    """A text block."""
    return {"type": "text", "text": said}


def shape(value: Any = SHAPE) -> Row:
    """A row with system prompt and tools."""
    return {"type": "api-request-shape", "sessionId": SESSION, "shapeHash": digest(value), "shape": value}


def blob(message: Row, hash_: str | None = None) -> Row:
    """A row with a message that no other row has."""
    return {"type": "api-request-blob", "sessionId": SESSION, "hash": hash_ or digest(message), "message": message}


def request(id_: str, tail: Iterable[Any], base: str | None = None, keep: int = 0, **fields: Any) -> Row:
    """A request row; messages are given by their hashes or themselves."""
    hashes = [one if isinstance(one, str) else digest(one) for one in tail]
    row = {"type": "api-request", "sessionId": SESSION, "id": id_, "shapeHash": digest(SHAPE), "params": PARAMS}
    return {**row, "keep": keep, "tail": hashes, **({"base": base} if base else {}), **fields}


def entries(*parts: Part) -> list[Entry]:
    """The entries of parts."""
    with TemporaryDirectory() as folder:
        return list(threadline.entries(write(Path(folder) / "a.jsonl", *transcript(*parts, pen=Pen()))))


def user(*said: str) -> Row:
    """A message of the person's."""
    return {"role": "user", "content": [text(one) for one in said]}


def test_a_request_is_rebuilt_from_blobs_prompts_replies_and_results() -> None:
    """Blobs, prompts, replies of several blocks and results of parallel calls are found by their hashes."""
    uses = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"b": 1, "a": 2}} for name in ("t1", "t2")]
    rows = transcript(prompt("do it"), reply("Well.", *uses))
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in ("t2", "t1")]
    answers = [
        {"type": "user", "uuid": result["content"], "message": {"role": "user", "content": [result]}}
        for result in results
    ]
    said = [row["message"]["content"][0] for row in rows[1:] if isinstance(row, dict)]
    messages = [
        user("hint"),
        user("do it"),
        {"role": "assistant", "content": said},
        {"role": "user", "content": results},
    ]
    found = entries(shape(), blob(user("hint")), *rows, *answers, request("r1", messages))
    one = rebuild_request(found, 1)
    assert [message.source for message in one.messages] == [
        MessageSource.BLOB,
        MessageSource.PROMPT,
        MessageSource.REPLY,
        MessageSource.RESULT,
    ]
    assert [{"role": message.role, "content": message.content} for message in one.messages] == messages
    assert (one.system, one.tools, one.model) == (SHAPE["system"], SHAPE["tools"], "claude-opus-5-5")
    assert (one.verified, one.missing, one.digest_verified) == (True, (), None)


def test_a_reply_that_was_cut_is_found() -> None:
    """After a rewind into the middle of a reply, a request names its first blocks only."""
    found = entries(shape(), reply("one", "two"), request("r1", [{"role": "assistant", "content": [text("one")]}]))
    assert rebuild_request(found, 1).verified


def test_a_string_of_content_counts_as_a_text_block() -> None:
    """A blob whose content is a string has the hash of the same text as a block."""
    message = {"role": "user", "content": "words", "output_config": {"effort": "low"}}
    found = entries(shape(), blob(message, digest({**message, "content": [text("words")]})))
    one = rebuild_request([*found, *entries(request("r1", [message_hash(message)]))], 1)
    assert (one.messages[0].verified, one.messages[0].fields) == (True, {"output_config": {"effort": "low"}})


def test_what_is_missing_is_named() -> None:
    """A hash that nothing has, a blob that is not what it says, a shape that is not there: nothing is made up."""
    found = entries(blob(user("x"), "f" * 64), request("r1", ["e" * 64, "f" * 64]))
    one = rebuild_request(found, 1)
    assert one.missing == ("e" * 64,)
    assert [(message.source, message.verified) for message in one.messages] == [
        (MessageSource.UNKNOWN, False),
        (MessageSource.BLOB, False),
    ]
    assert (one.shape_verified, one.system, one.verified) == (False, None, False)


def test_the_digest_speaks_for_the_whole() -> None:
    """The digest is that of the body with its cache marks; a blob that stands twice is marked where it was."""
    mark = {"type": "ephemeral"}
    hint = {"role": "user", "content": "hint"}
    marked = {"role": "user", "content": [{**text("hint"), "cache_control": mark}]}
    system = [{**text("You help."), "cache_control": mark}]
    body = {**PARAMS, **SHAPE, "system": system, "messages": [user("hint"), marked]}
    marks = [{"path": path, "value": mark} for path in (["system", 0], ["messages", 1, "content", 0])]
    hash_ = digest(user("hint"))
    rows = [shape(), blob(hint, hash_)]
    for value, expected in ((digest(body), True), (digest({}), False)):
        row = request("r1", [hash_, hash_], cacheControl=marks, requestDigest=value)
        one = rebuild_request(entries(*rows, row), 1)
        assert (one.digest_verified, one.verified) == (expected, expected)
    nowhere = request("r1", [hash_], cacheControl=[{"path": ["messages", 9], "value": mark}], requestDigest="0")
    assert rebuild_request(entries(*rows, nowhere), 1).digest_verified is False


@given(st.data())
def test_requests_that_build_on_each_other_give_what_was_sent(data: st.DataObject) -> None:
    """However requests keep and add, each gives its own messages back, in order, and the list counts them."""
    sent: list[list[Row]] = []
    rows: list[Row] = [shape()]
    for number in range(data.draw(st.integers(1, 8))):
        added = [user(said) for said in data.draw(st.lists(TEXTS, max_size=3))]
        base = data.draw(st.integers(-1, number - 1))
        keep = data.draw(st.integers(0, len(sent[base]))) if base >= 0 else 0
        rows += [blob(message) for message in added]
        rows.append(request(f"r{number}", added, f"r{base}" if base >= 0 else None, keep))
        sent.append([*(sent[base][:keep] if base >= 0 else []), *added])
    requests = Requests(entries(*rows))
    assert [[{"role": m.role, "content": m.content} for m in request.messages] for request in requests] == sent
    assert all(request.verified for request in requests)
    assert [one.messages for one in requests.outline()] == [len(messages) for messages in sent]
    assert [one.missing for one in requests.outline()] == [0] * len(sent)


def test_a_base_that_is_not_here_is_counted() -> None:
    """What a request keeps of one that is not in the transcript is unknown, and said to be."""
    rows = [shape(), blob(user("x")), request("r2", [user("x")], "r1", 5), request("r3", [user("x")], "r2", 5)]
    first, second = Requests(entries(*rows))
    assert (first.unknown_before, len(first.messages), first.verified) == (5, 1, False)
    assert (second.unknown_before, len(second.messages)) == (5, 1)
    (third,) = Requests(entries(shape(), blob(user("x")), request("r2", [user("x")], "r1", 10**18)))
    assert third.unknown_before == 10**18


def test_requests_in_a_circle_end() -> None:
    """Requests that name each other, or themselves, are given as far as they go."""
    rows = [request("r1", ["a" * 64], "r2", 1), request("r2", ["b" * 64], "r1", 1), request("r3", [], "r3", 2)]
    found = [(len(Request.messages), Request.unknown_before) for Request in Requests(entries(*rows))]
    assert found == [(1, 1), (1, 1), (0, 2)]


@pytest.mark.slow
def test_a_long_conversation_is_rebuilt_without_recursion() -> None:
    """Ten thousand requests, each on the one before, are one walk."""
    rows = [request(f"r{n}", [f"{n:064d}"], f"r{n - 1}" if n else None, n) for n in range(10_000)]
    requests = Requests(entries(*rows))
    assert len(requests.rebuild(10_000).messages) == 10_000
    assert [one.messages for one in requests.outline()][-1] == 10_000


@pytest.mark.parametrize("number", [0, -1, 2])
def test_a_number_that_is_not_there_is_a_sentence(number: int) -> None:
    """Asking for a request that is not there is the caller's mistake."""
    with pytest.raises(NotFound, match=f"There is no request {number}. The transcript has 1"):
        rebuild_request(entries(request("r1", [])), number)


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
    """Whatever a request row holds, there is an answer."""
    deep: Any = "x"
    for _ in range(2000):
        deep = [deep]
    odd = [{"type": "user", "message": {"content": [None, 3, {"type": "tool_result", "tool_use_id": ["x"]}]}}]
    found = entries({"type": "api-request-shape", "shapeHash": "s", "shape": [1]}, *odd, {"type": "assistant"}, row)
    one = rebuild_request(found, 1)
    assert not one.verified
    assert repr(one)
    assert list(Requests(found).outline())
    assert canonical_json(deep) is None or message_hash(deep)


def test_older_transcripts_have_no_requests() -> None:
    """Without request rows there is nothing to rebuild."""
    assert len(Requests(entries(prompt("hi"), reply("ok"), call("Bash", "ls", "a")))) == 0
