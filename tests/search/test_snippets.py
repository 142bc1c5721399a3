"""Snippets show what was asked for, and nothing in them can do harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.model.hits import SNIPPET_LENGTH
from threadline.search.match import Snippet, snippet
from threadline.search.query import parse_query


def _marked(shown: Snippet) -> list[str]:
    return [shown.text[start:end] for start, end in shown.highlights]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("needle", "a Needle, and another needle", ["Needle", "needle"]),
        ("cafe", "the CAFÉ is open", ["CAFÉ"]),
        ("parseTimestamp", "see parse_timestamp and parseTimestamp", ["parse_timestamp", "parseTimestamp"]),
        ("src/app.py", "in ./src/app.py:12", ["src/app.py"]),
        ("据库", "数据库连接", ["据库"]),
        ('"no such file"', "there is no such\nfile", ["no such file"]),
        ("conf*", "a configuration", ["configuration"]),
        (r"/retry in \d+/", "will retry in 30 s", ["retry in 30"]),
        ("needle -hay", "a needle here", ["needle"]),
        ("/Needle/c", "no needle, a Needle", ["Needle"]),
        ("conf*", "a Configuration → so", ["Configuration"]),
        ("eat", "a needle, seated, to eat", ["eat"]),
    ],
)
def test_what_was_asked_for_is_marked(query: str, text: str, marked: list[str]) -> None:
    """As it is written there."""
    assert _marked(snippet(parse_query(query), {"reply": text})) == marked


def test_the_field_that_has_most_of_it_counts() -> None:
    """And of equals the one that a person sees first."""
    said = {"result": "rate limit", "prompt": "the rate", "reply": "the rate"}
    assert snippet(parse_query("rate limit"), said).field == "result"
    assert snippet(parse_query("rate"), said).field == "prompt"
    assert snippet(parse_query("result:rate"), said).field == "result"


def test_a_long_text_is_cut_around_it() -> None:
    """Where all that was asked for stands close together."""
    text = "alpha " * 500 + "and then alpha beside beta " + "gamma " * 500
    shown = snippet(parse_query("alpha beta"), {"reply": text})
    assert "alpha beside beta" in shown.text
    assert shown.text.startswith("…")
    assert shown.text.endswith("…")


def test_without_text_to_show_the_beginning_is_shown() -> None:
    """A filter alone marks nothing."""
    shown = snippet(parse_query("kind:user"), {"prompt": "what was typed", "result": "printed"})
    assert (shown.field, shown.text, shown.highlights) == ("prompt", "what was typed", ())


@given(st.text(max_size=600), st.sampled_from(["a", "needle", "a b", "/./", "据", "e*"]))
def test_snippets_are_harmless(text: str, query: str) -> None:
    """One line without controls, not long, with spans inside it and in order."""
    shown = snippet(parse_query(query), {"reply": f"{text} needle a 据 {text}"})
    assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in shown.text)
    assert len(shown.text) <= SNIPPET_LENGTH + 2
    ends = [0, *(edge for span in shown.highlights for edge in span)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(shown.text)
    assert all(_marked(shown))
