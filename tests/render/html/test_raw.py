"""What a line holds is shown as it is, only laid out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calling import SCENE, WHOLE, Page
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
def test_tidy_changes_nothing_but_white_space(value: object) -> None:
    """JSON that was laid out reads as the same value, and its compact form as the same text."""
    text = json.dumps(value)
    assert json.loads(indent_json(text)) == value
    assert to_indented_json(json.loads(indent_json(text))) == to_indented_json(value)


def test_what_only_a_text_can_hold_is_kept(tmp_path: Path) -> None:
    """Numbers beyond a float, keys that stand twice and escapes are shown as the line has them."""
    line = rb'{"type":"x","n":1.50e400,"a":1,"a":2,"u":"\u00e9\n","empty":[],"o":{}}' + b"\n"
    text = Page(render_raw_entry(entry(tmp_path, line), SCENE)).text
    for part in ('"n": 1.50e400', '"a": 1,\n  "a": 2', r'"u": "\u00e9\n"', '"empty": []', '"o": {}'):
        assert part in text
    assert line.decode().strip() in text


def test_an_entry_says_what_and_where_it_is(tmp_path: Path) -> None:
    """Its kind, its line, its time and its size stand above; its text does nothing."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("<script>x</script>")))
    one = next(iter(threadline.entries(path)))
    drawn = Page(render_raw_entry(one, SCENE))
    assert f"user · line 1 · 2026-01-05 09:00 UTC · {len(one.raw):,} bytes" in drawn.text
    assert "<script>" in drawn.text
    assert drawn.is_inert()


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    """A byte that is not UTF-8 is shown by its number, and that there is one is said."""
    text = Page(render_raw_entry(entry(tmp_path, b'{"type":"user","a":"\xff"}\n'), SCENE)).text
    assert r"\xff" in text
    assert "not valid UTF-8" in text


def test_a_line_that_is_no_json_is_shown_as_it_is(tmp_path: Path) -> None:
    """What a torn or foreign line holds is shown, and that it is not JSON is said."""
    text = Page(render_raw_entry(entry(tmp_path, b'{"type":"user", torn\n'), SCENE)).text
    assert '{"type":"user", torn' in text
    assert "not a JSON object" in text
    assert not is_json('{"a":')


@pytest.mark.slow
def test_a_huge_line_is_cut_with_a_note(tmp_path: Path) -> None:
    """A page stays small whatever a line holds, and says what it left out; a whole view leaves out nothing."""
    line = json.dumps({"type": "user", "data": "A" * 500_000, "last": "end of it"}).encode() + b"\n"
    one = entry(tmp_path, line)
    cut, whole = Page(render_raw_entry(one, SCENE)), Page(render_raw_entry(one, WHOLE))
    assert len(cut.text) < 100_000
    assert "more characters" in cut.text
    assert '"last": "end of it"' in cut.text
    assert "A" * 500_000 in whole.text
    many = json.dumps({"type": "user", "data": list(range(200_000))}).encode() + b"\n"
    assert len(render_raw_entry(entry(tmp_path, many), SCENE)) < 400_000
