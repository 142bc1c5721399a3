"""Hostile texts: no input takes much longer per byte than another."""

from __future__ import annotations

import gc
import time
from functools import cache

import pytest

from threadline.redact import find_spans, find_spans_in_bytes
from threadline.redact.rejoining import find_carriage_returns

SIZE = 100_000
TIMES = 1500
"""How much longer than plain words a hostile text may take. Some of these once took ten thousand times as long."""
HOSTILE = {
    "beginnings of keys on one line": b"b3BlbnNzaC1rZXktdjAAAA1234 ",
    "beginnings of keys, a line each": b"b3BlbnNzaC1rZXktdjAAAA1234\n",
    "armour that never ends": b"-----BEGIN RSA PRIVATE KEY-----",
    "armour that never begins": b"-----END RSA PRIVATE KEY-----\n",
    "anchors, a line each": b"sk-a\n",
    "other anchors": b"re_a\n",
    "halves of strings": b'sk-a1B2c3D4e5"\n+ "',
    "names of names": b'password: "token": ',
    "labels of seed phrases": b"seed phrase: about able ",
    "lists of numbers": b"wallet [1,2,3,",
    "random words": b"aB3dE6gH9jK2mN5pQ8sT1vW4yZ7 ",
    "random lines": b"aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hL\n",
    "prefixes of every kind": b"sk-ant-xoxb-ghp_glpat-hvs.npm_aB3",
    "joined words": b"aB3:dE6!gH9|jK2$mN5:",
    "records": b'"name":"password","value":',
    "header lines": b"a|password|b\n",
    "aligned columns": b"name    password    x\n",
    "column lists": b"insert into t (" + b"password," * 80 + b") values (1,2,3)\n",
    "pipes": b"echo abcdef1 | docker login --password-stdin ",
    "options": b" -p abc1 -w abc2 -P x ",
    "expected prompts": b'expect "password" { send ',
    "calls": b'login("a", "b", ',
    "objects without a brace": b'"kty":',
    "a name without an end": b"password....................",
    "lines of sentences": b"use abc1 as the password for the user ann is ",
}


@cache
def _plain_seconds() -> float:
    data = b"some plain words of a text that nobody would look at twice. " * (5 * SIZE // 60)
    return min(_measure_seconds(data) for _ in range(2)) / 5


def _measure_seconds(data: bytes) -> float:
    started = time.process_time()
    find_spans_in_bytes(data)
    return time.process_time() - started


@pytest.mark.sample(8)
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_scanned_in_bounded_time(unit: bytes) -> None:
    """Hostile text is compared with plain words of the same length, in the same process."""
    data = (unit * (SIZE // len(unit) + 1))[:SIZE]
    assert any(_measure_seconds(data) < TIMES * _plain_seconds() for _ in range(2))


ENCODED = {
    "escapes": "\\x73",
    "percent signs": "%2573",
    "entities": "&#115;",
    "quoted-printable": "=73",
    "base64": "cGFzc3dvcmQ9aHVudGVyMjIy ",
    "lines of base64": "cGFzc3dvcmQ9aHVudGVyMjJkc2ZkZmRzZmRzZmRzZmRzZmRz\n",
    "lines of base32 that spell nothing": "E" * 64 + "\n",
    "pairs of hex": "73:6b:",
    "codes": "115, 107, 45, 110, 111, 112, 999 ",
    "codes that end at once": "72, 900, ",
    "calls": "chr(115)+chr(107)+chr(1)+",
    "letters": "'s'+'k'+",
    "dumps": "00000000: 736b 2d61 6e74 2d61\n",
    "spaced letters": "s - k _ ",
    "carriage returns": "abc\rde\n",
    "word diffs that never end": "{+",
    "tables": "|abcdefgh| |\n",
    "boxes": "\u2502 abcdefgh \u2502\n",
    "line numbers": "abcdefgh\n 12 | abcdefgh",
    "names before line numbers": "key:\n 1 |",
    "strings": '"ab" + ',
    "calls of join": '"".join(["a","b"',
    "lookalikes": "\u0430b",
    "addresses in codes": ", ".join(str(ord(letter)) for letter in "ann@corp.test ") + ", ",
    "addresses in escapes": "".join(f"%{ord(letter):02x}" for letter in "ann@corp.test "),
}
SMALL = 40_000


@pytest.mark.sample(12)
@pytest.mark.parametrize("unit", ENCODED.values(), ids=ENCODED)
def test_hostile_encodings_are_scanned_in_bounded_time(unit: str) -> None:
    """Twice as much encoded text takes about twice as long, and not much longer than plain words."""
    plain = _plain_text_seconds()
    text = unit * (SMALL // len(unit) + 1)
    assert _measure_text(text) < TIMES * plain
    assert _measure_text(text) < 4 * _measure_text(text[: len(text) // 2]) + 20 * plain


def test_a_line_that_is_overwritten_often() -> None:
    """A long line, overwritten by many short texts as by a progress bar, takes time in proportion to its length."""

    def seconds(size: int) -> float:
        gc.collect()
        gc.disable()  # a collection also visits the objects of all other tests
        started = time.process_time()
        assert list(find_carriage_returns("a" * size + "\rb" * size))
        ended = time.process_time()
        gc.enable()
        return ended - started

    assert any(seconds(200_000) < 6 * seconds(50_000) + 20 * _plain_text_seconds() for _ in range(3))


@cache
def _plain_text_seconds() -> float:
    return _measure_text("some plain words of a text that nobody would look at twice. " * (20 * SMALL // 60)) / 20


def _measure_text(text: str) -> float:
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        find_spans(text)
        best = min(best, time.process_time() - started)
    return best
