"""The raw view of a line shows exactly its content, only formatted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calls_and_pages import SCENE, UNCUT_SCENE, Page
from tests.transcripts import prompt, transcript, write

import threadline
from threadline.model.entries import Entry
from threadline.render.html import render_raw_entry
from threadline.render.html.code import indent_json, is_json, to_indented_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


def entry(folder: Path, line: bytes) -> Entry:
    """The entry of a line."""
    return next(iter(threadline.entries(write(folder / "a.jsonl", line))))


@given(JSON)
def test_indenting_changes_only_white_space(value: object) -> None:
    """Indented JSON parses to the same value."""
    text = json.dumps(value)
    assert json.loads(indent_json(text)) == value
    assert to_indented_json(json.loads(indent_json(text))) == to_indented_json(value)


def test_keeps_what_only_text_can_represent(tmp_path: Path) -> None:
    """Numbers beyond a float, duplicate keys and escapes are shown as in the line."""
    line = rb'{"type":"x","n":1.50e400,"a":1,"a":2,"u":"\u00e9\n","empty":[],"o":{}}' + b"\n"
    text = Page(render_raw_entry(entry(tmp_path, line), SCENE)).text
    for part in ('"n": 1.50e400', '"a": 1,\n  "a": 2', r'"u": "\u00e9\n"', '"empty": []', '"o": {}'):
        assert part in text
    assert line.decode().strip() in text


def test_shows_kind_line_time_and_size(tmp_path: Path) -> None:
    """The header has kind, line, time and size, and the text is inert."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("<script>x</script>")))
    first = next(iter(threadline.entries(path)))
    page = Page(render_raw_entry(first, SCENE))
    assert f"user · line 1 · 2026-01-05 09:00 UTC · {len(first.raw):,} bytes" in page.text
    assert "<script>" in page.text
    assert page.is_inert()


def test_reports_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    """An invalid byte is shown as an escape, with a note."""
    text = Page(render_raw_entry(entry(tmp_path, b'{"type":"user","a":"\xff"}\n'), SCENE)).text
    assert r"\xff" in text
    assert "not valid UTF-8" in text


def test_shows_a_line_that_is_not_json(tmp_path: Path) -> None:
    """A torn or foreign line is shown with a note that it is not JSON."""
    text = Page(render_raw_entry(entry(tmp_path, b'{"type":"user", torn\n'), SCENE)).text
    assert '{"type":"user", torn' in text
    assert "not a JSON object" in text
    assert not is_json('{"a":')


@pytest.mark.slow
def test_truncates_a_huge_line_with_a_note(tmp_path: Path) -> None:
    """A page stays small and says what it left out. An uncut view leaves out nothing."""
    line = json.dumps({"type": "user", "data": "A" * 500_000, "last": "end of it"}).encode() + b"\n"
    long_entry = entry(tmp_path, line)
    truncated, uncut = Page(render_raw_entry(long_entry, SCENE)), Page(render_raw_entry(long_entry, UNCUT_SCENE))
    assert len(truncated.text) < 100_000
    assert "more characters" in truncated.text
    assert '"last": "end of it"' in truncated.text
    assert "A" * 500_000 in uncut.text
    many_values = json.dumps({"type": "user", "data": list(range(200_000))}).encode() + b"\n"
    assert len(render_raw_entry(entry(tmp_path, many_values), SCENE)) < 400_000
