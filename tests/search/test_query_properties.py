"""Properties of the query language."""

from __future__ import annotations

import re

from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.search.queries import (
    NOW,
    by_plan,
    by_scan,
    documents,
    filters,
    phrases,
    plain,
    regexes,
    text_leaves,
    trees,
    words,
)

from threadline.errors import BadQuery
from threadline.search.match import Document, matches
from threadline.search.query import (
    FIELDS,
    MAX_TERMS,
    TEXT_FIELDS,
    VALUE_FIELDS,
    Cost,
    Has,
    Is,
    Query,
    Regex,
    Text,
    When,
    leaves,
    parse_query,
)
from threadline.search.ranking import make_plan

_ANY_TEXT = st.text(st.sampled_from('aZ0é中 -/\\"()*:.\n\0') | st.characters(), min_size=1, max_size=8)
_ANY_LEAF = (
    st.builds(Text, _ANY_TEXT.map(lambda text: f"{text}x"), st.none() | st.sampled_from([*TEXT_FIELDS, "error"]))
    | st.builds(
        Text,
        st.tuples(_ANY_TEXT, st.sampled_from(["x", "OR", "true", "prompt:x", "-x"])).map("".join),
        st.none() | st.sampled_from([*TEXT_FIELDS, "error"]),
        st.booleans(),
        st.booleans(),
    )
    | st.builds(Text, st.sampled_from(["OR", "AND", "NOT", "true", "/a/", "/a", "-a", "--a", "a:b", "http://a"]))
    | st.builds(Text, st.sampled_from(["true", "no", "OR", "/a/"]), st.just("error"))
    | st.builds(Is, st.sampled_from(VALUE_FIELDS), _ANY_TEXT, st.booleans())
    | st.builds(Is, st.just("agent"), st.sampled_from(["main", "sub"]), st.booleans())
    | st.builds(
        Regex,
        _ANY_TEXT.map(re.escape),
        st.none() | st.sampled_from([*TEXT_FIELDS, *VALUE_FIELDS, "error"]),
        st.booleans(),
    )
    | st.builds(Regex, st.sampled_from([r"a\\/b", r"[/]", r"/", r"a/ b", r"\\/ "]))
    | st.builds(Has, st.sampled_from([*VALUE_FIELDS, "error"]))
    | st.builds(When, st.sampled_from(["since", "until"]), st.datetimes(timezones=st.just(NOW.tzinfo)))
    | st.builds(Cost, st.sampled_from([">", ">=", "<", "<=", "="]), st.decimals(0, 10**9, places=6))
)
_FRAGMENTS = st.sampled_from(
    ['"', "(", ")", "-", "OR", "*", "/", "\\", ":", " ", "a", "中", "\0", *(f"{field}:" for field in FIELDS)]
)


@given(trees(_ANY_LEAF))
def test_a_query_survives_formatting_and_parsing(query: Query) -> None:
    """Parsing the text form of any tree gives that tree, whatever its words contain."""
    assume(_depth(str(query)) <= 12)
    assert parse_query(str(query)) == query


@given(st.lists(_FRAGMENTS | _ANY_TEXT, max_size=20).map("".join))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    """Any text is a query that survives formatting and parsing, or is rejected with a message."""
    try:
        query = parse_query(text)
    except BadQuery:
        return
    assert parse_query(str(query)) == query
    assert make_plan(query) is not None
    assert matches(query, Document(prompt="a 中")) in {True, False}


@given(trees(text_leaves), st.lists(documents, min_size=1, max_size=5))
def test_full_text_finds_what_a_scan_finds(query: Query, docs: list[Document]) -> None:
    """Words, phrases, prefixes, fields, OR and NOT, in any script: FTS5 gives exactly the documents that match."""
    assert by_plan(query, docs) == by_scan(query, docs)


@given(st.lists(plain, min_size=2, max_size=4), st.lists(documents, min_size=1, max_size=5))
def test_adjacent_words_need_one_full_text_expression(terms: list[Query], docs: list[Document]) -> None:
    """A query of words only needs no check after full text, and finds what a scan finds."""
    query = parse_query(" ".join(map(str, terms)))
    assert make_plan(query).rest is None
    assert by_plan(query, docs) == by_scan(query, docs)


@given(trees(plain | words | phrases | filters | regexes), st.lists(documents, min_size=1, max_size=5))
@example(Regex("kiss"), [Document(prompt="\u212aI\u017f\u017f"), Document(prompt="k\u0131ss")])
@example(Regex(r"\[0m foo"), [Document(result="\x1b[0m foo"), Document(result="[0m foo")])
def test_every_kind_of_query_finds_what_a_scan_finds(query: Query, docs: list[Document]) -> None:
    """Filters and regular expressions among words, in any nesting: the plan finds what a scan finds."""
    assert by_plan(query, docs) == by_scan(query, docs)


@given(trees(text_leaves))
def test_only_tokens_reach_full_text(query: Query) -> None:
    """An expression contains only our own operators and, in quotes, letters and digits."""
    expression = make_plan(query).match
    outside = re.sub(r'"[^"]*"', "", expression or "")
    assert re.fullmatch(r"(?:AND|OR|NOT|\{\w+\}:|[()* ])*", outside)
    assert all(
        char.isalnum() or char in " \u0301" for token in re.findall(r'"([^"]*)"', expression or "") for char in token
    )


@given(trees(text_leaves))
def test_a_query_has_a_bounded_number_of_terms(query: Query) -> None:
    """The leaves of a tree are its terms."""
    assert 1 <= len(list(leaves(query))) <= MAX_TERMS


def _depth(text: str) -> int:
    """An upper bound for the nesting of parentheses in a text."""
    return text.count("(")
