"""Tests of `lenient_loads` and `strip_line`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.model.places import strip_line
from threadline.shape import lenient_loads

DEFECTS: dict[str, tuple[bytes, Any, list[str]]] = {
    "nothing to forgive": (b'{"a":[1,2.5,true,null,"x"]}', {"a": [1, 2.5, True, None, "x"]}, []),
    "NaN": (b"[NaN]", ["NaN"], ["bad-number"]),
    "Infinity": (b"[Infinity,-Infinity]", ["Infinity", "-Infinity"], ["bad-number"]),
    "too large a float": (b"[1e999,-1e999]", ["1e999", "-1e999"], ["bad-number"]),
    "as large as floats go": (b"[1e308]", [1e308], []),
    "too small a float": (b"[1e-999]", [0.0], []),
    "2**64": (b"[18446744073709551616]", [2**64], []),
    "4,300 digits": (b"[%b]" % (b"9" * 4300), [int("9" * 4300)], []),
    "5,000 digits": (b"[%b]" % (b"9" * 5000), ["9" * 5000], ["bad-number"]),
    "half a pair": (b'["\\ud83d"]', ["\ud83d"], ["lone-surrogate"]),
    "the other half": (b'["\\uDE00x"]', ["\ude00x"], ["lone-surrogate"]),
    "half a pair as a key": (b'{"\\ud83d":1}', {"\ud83d": 1}, ["lone-surrogate"]),
    "a whole pair": (b'["\\ud83d\\ude00"]', ["\U0001f600"], []),
    "bytes that are not UTF-8": (b'["caf\xe9"]', ["caf\ufffd"], ["invalid-utf8"]),
    "a surrogate in UTF-8": (b'["\xed\xa0\x80"]', ["\ufffd\ufffd\ufffd"], ["invalid-utf8"]),
    "a tab in a string": (b'["a\tb"]', ["a\tb"], ["control-character"]),
    "a NUL in a string": (b'["a\0b"]', ["a\0b"], ["control-character"]),
    "an escaped NUL": (b'["\\u0000"]', ["\0"], []),
    "a byte order mark": (b"\xef\xbb\xbf[1]", [1], ["byte-order-mark"]),
    "duplicate keys": (b'{"a":1,"a":2}', {"a": 2}, []),
    "several at once": (
        b'["\xff","a\tb",NaN]',
        ["\ufffd", "a\tb", "NaN"],
        ["bad-number", "control-character", "invalid-utf8"],
    ),
}


@pytest.mark.parametrize(("data", "value", "kinds"), DEFECTS.values(), ids=DEFECTS)
def test_accepts_and_reports_defects(data: bytes, value: Any, kinds: list[str]) -> None:
    """Values that the fast decoder refuses are read, and each kind of defect is reported once."""
    loaded = lenient_loads(data)
    assert loaded.value == value
    assert sorted(kind for kind, _message in loaded.defects) == kinds


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b"{}{}", b"nul", b"'a'", b"{a:1}", b"[1,]", b"\xff", b"\xef\xbb\xbf"]
)
def test_refuses_what_is_not_json(data: bytes) -> None:
    """It raises ValueError."""
    with pytest.raises(ValueError, match="char"):
        lenient_loads(data)


def test_too_deep_nesting_is_a_recursion_error() -> None:
    """It never crashes the interpreter."""
    with pytest.raises(RecursionError):
        lenient_loads(b"[" * 200_000 + b"]" * 200_000)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=15,
)


@given(value=_json)
def test_valid_json_equals_the_standard_library(value: Any) -> None:
    """The only possible defect is a lone surrogate."""
    data = json.dumps(value).encode()
    loaded = lenient_loads(data)
    assert loaded.value == json.loads(data)
    assert {kind for kind, _message in loaded.defects} <= {"lone-surrogate"}


@pytest.mark.parametrize(
    ("raw", "stripped"),
    [
        (b"{}\r\n", b"{}"),
        (b"\0\0 {} \0\n", b"{}"),
        (b"\xef\xbb\xbf{}", b"{}"),
        (b" \0\xef\xbb\xbf\0 {}", b"{}"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", b"\xef\xbb\xbf{}"),
        (b"\0\n", b""),
        (b"a\0b", b"a\0b"),
    ],
)
def test_strip_line_removes_padding(raw: bytes, stripped: bytes) -> None:
    """White space, NUL bytes and one byte order mark are removed around the row, and nothing inside it."""
    assert strip_line(raw) == stripped
