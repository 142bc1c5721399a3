"""Snippets show the matches and contain nothing harmful."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.model.hits import SNIPPET_LENGTH
from threadline.search.match import Snippet, snippet
from threadline.search.query import parse_query


def _highlighted(result: Snippet) -> list[str]:
    return [result.text[start:end] for start, end in result.highlights]


@pytest.mark.parametrize(
    ("query", "text", "highlights"),
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
def test_highlights_matches(query: str, text: str, highlights: list[str]) -> None:
    """Highlights have the spelling of the text."""
    assert _highlighted(snippet(parse_query(query), {"reply": text})) == highlights


def test_chooses_the_field_with_most_matches() -> None:
    """Of equal fields, the most prominent one is chosen."""
    fields = {"result": "rate limit", "prompt": "the rate", "reply": "the rate"}
    assert snippet(parse_query("rate limit"), fields).field == "result"
    assert snippet(parse_query("rate"), fields).field == "prompt"
    assert snippet(parse_query("result:rate"), fields).field == "result"


def test_truncates_a_long_text_around_the_matches() -> None:
    """The snippet shows the place where the matches are closest together."""
    text = "alpha " * 500 + "and then alpha beside beta " + "gamma " * 500
    result = snippet(parse_query("alpha beta"), {"reply": text})
    assert "alpha beside beta" in result.text
    assert result.text.startswith("…")
    assert result.text.endswith("…")


def test_shows_the_beginning_without_matches() -> None:
    """A filter highlights nothing."""
    result = snippet(parse_query("kind:user"), {"prompt": "what was typed", "result": "printed"})
    assert (result.field, result.text, result.highlights) == ("prompt", "what was typed", ())


@given(st.text(max_size=600), st.sampled_from(["a", "needle", "a b", "/./", "据", "e*"]))
def test_snippets_are_harmless(text: str, query: str) -> None:
    """A snippet is one short line without control characters, and its highlights are in order."""
    result = snippet(parse_query(query), {"reply": f"{text} needle a 据 {text}"})
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in result.text)
    assert len(result.text) <= SNIPPET_LENGTH + 2
    ends = [0, *(edge for span in result.highlights for edge in span)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(result.text)
    assert all(_highlighted(result))
