"""Hostile texts: no input takes much longer per byte than another."""

from __future__ import annotations

import time

import pytest

from threadline.redact import find_spans_in_bytes

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
}


def _measure_seconds(data: bytes) -> float:
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        find_spans_in_bytes(data)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.sample(3)
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_scanned_in_bounded_time(unit: bytes) -> None:
    """Hostile text is compared with plain words of the same length, in the same process."""
    plain = _measure_seconds(b"some plain words of a text that nobody would look at twice. " * (20 * SIZE // 60)) / 20
    assert _measure_seconds((unit * (SIZE // len(unit) + 1))[:SIZE]) < TIMES * plain
