"""Manifests are read as they were written, or reported as damaged."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.errors import Unreadable
from threadline.keep.manifest import (
    MANIFEST_VERSION,
    AnyRow,
    EndRow,
    FileRow,
    ForgetRow,
    GoneRow,
    RunRow,
    compress_manifest,
    decompress_manifest,
    encode_rows,
    parse_manifest,
    path_from_json,
    path_to_json,
)

_MOMENT = "2026-11-15T00:00:00Z"
_RUN = RunRow(MANIFEST_VERSION, "here_1", "here", 1, None, _MOMENT, ("/home",))
_END = EndRow(_MOMENT, 1, 2)
_hashes = st.binary(max_size=4).map(lambda data: sha256(data).hexdigest())
_counts = st.integers(0, 2**63 - 1)
_rows = st.one_of(
    st.builds(
        FileRow,
        st.text(),
        st.text(),
        _counts,
        st.integers(-(2**60), 2**60),
        _counts,
        st.lists(_hashes, max_size=3).map(tuple),
        _counts,
        st.none() | _hashes,
    ),
    st.builds(GoneRow, st.text(), st.text()),
    st.builds(ForgetRow, st.text(), st.text(), st.lists(st.text(), max_size=3).map(tuple)),
)


@given(st.lists(_rows, max_size=5))
def test_rows_round_trip(rows: list[AnyRow]) -> None:
    """Any rows, with any text in them, are read as they were written, and the hash is that of the text."""
    text = encode_rows([_RUN, *rows, _END])
    manifest = parse_manifest(decompress_manifest(compress_manifest(text), "one"), "one")
    assert (manifest.run, manifest.rows) == (_RUN, (*rows, _END))
    assert manifest.hash == sha256(text).hexdigest()


@given(st.binary(max_size=60))
def test_random_bytes_are_not_a_manifest(data: bytes) -> None:
    """Bytes that are not a manifest are an error."""
    with pytest.raises(Unreadable):
        parse_manifest(decompress_manifest(data, "one"), "one")
    with pytest.raises(Unreadable):
        parse_manifest(data, "one")


def test_text_that_is_not_utf8_is_an_error() -> None:
    """A manifest whose label is not UTF-8 is damaged."""
    text = encode_rows([_RUN, _END]).replace(b'"here"', b'"\xff"')
    with pytest.raises(Unreadable, match="damaged"):
        parse_manifest(text, "one")


@pytest.mark.parametrize("rows", [[], [_RUN], [_END], [_END, _RUN]])
def test_truncated_manifest_is_an_error(rows: list[AnyRow]) -> None:
    """A manifest begins with its run and ends with its end."""
    with pytest.raises(Unreadable):
        parse_manifest(encode_rows(rows), "one")


def test_later_version_is_an_error() -> None:
    """The message for a later version says to update."""
    later = RunRow(MANIFEST_VERSION + 1, "here_1", "here", 1, None, _MOMENT, ())
    with pytest.raises(Unreadable, match="Update threadline"):
        parse_manifest(encode_rows([later, _END]), "one")


@given(st.binary(max_size=30).filter(lambda data: b"\0" not in data))
def test_any_path_round_trips(raw: bytes) -> None:
    """A path of any bytes round-trips, as text that JSON can hold."""
    text, encoded = path_to_json(os.fsdecode(raw))
    assert os.fsencode(path_from_json(text, encoded)) == raw
    assert text.encode().decode() == text
