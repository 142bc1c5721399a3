"""What cannot be understood is refused, and the sentence points at it."""

from __future__ import annotations

import pytest
from tests.search.queries import by_plan, by_scan
from tests.subtests import for_each

from threadline.errors import BadQuery
from threadline.search.match import Document
from threadline.search.query import MAX_DEPTH, MAX_QUERY_CHARS, MAX_TERMS, Query, parse_query


@for_each(
    "text, column, says",
    [
        ("foo promt:bar", 5, "Did you mean prompt:?"),
        ("path:a.py", 1, "Did you mean file:?"),
        ("zzz:a", 1, "quote it. Fields: title, prompt,"),
        ("localhost:3000", 1, 'Unknown field "localhost". To search for the text itself, quote it.'),
        ("localhost:a", 1, 'Unknown field "localhost". To search for the text itself, quote it.'),
        ("tol:Bash", 1, "Did you mean tool:?"),
        ("a !gradient", 3, "with a minus: -word"),
        ('!"a b"', 1, "with a minus: -word"),
        ("file:*.go", 6, r"use file:/\.go$/."),
        ('foo "bar', 5, "never closed"),
        ("foo /ba.*r", 5, "never closed with a slash"),
        ("foo OR", 5, "OR needs a term"),
        ("OR foo", 1, "OR needs a term"),
        ("a OR OR b", 3, "OR needs a term"),
        ("(a OR ) b", 4, "OR needs a term"),
        ("a ()", 3, "empty"),
        ("a (  )", 3, "empty"),
        ("(a", 1, "never closed"),
        ("a (", 3, "never closed"),
        ("a) b", 2, "closes nothing"),
        ("a - b", 3, "Write the minus directly before"),
        ("a -", 3, "Write the minus directly before"),
        ("(-)", 2, "Write the minus directly before"),
        ("a /b(c/", 5, "missing ), unterminated subpattern"),
        (r"a /x\/y[/", 8, "unterminated character set"),
        (r"/(a)(?<=b+)\1(c+)+/", 2, "look-behind"),
        (r"/(a+)+\1/", 2, "could take forever"),
        ("a since:soon", 9, "is not a time"),
        ("until:2026-13-01", 7, "is not a time"),
        ("cost:>much", 6, "not an amount"),
        ("cost:1*", 6, "not an amount"),
        ("cost:*", 1, "cost:>1"),
        ("since:*", 1, "since:7d"),
        ("thinking:*", 1, "thinking:word*"),
        ("prompt: foo", 8, "right after the colon"),
        ('a prompt:""', 10, "nothing between"),
        ("a -> b", 4, "no letter or digit"),
        ('a "..."', 3, "no letter or digit"),
        ("fo*o", 3, "A star is only allowed at the end"),
        ("*foo", 1, "A star is only allowed at the end"),
        ("a AND b", 3, "AND is not needed"),
        ("a NOT b", 3, "as a minus"),
    ],
)
def test_an_error_points_at_its_column(text: str, column: int, says: str) -> None:
    """The sentence says what to do; below it stand the query, and a caret under the column."""
    with pytest.raises(BadQuery) as caught:
        parse_query(text)
    sentence, shown, caret = str(caught.value).split("\n")
    assert says in sentence
    assert sentence.endswith(f"(column {column})")
    assert shown == f"  {text}"
    assert caret.index("^") == column + 1


@pytest.mark.parametrize("text", ["hello!", "wow! yes", "a!b", '"!important"', r"\!important"])
def test_a_sign_that_means_nothing_else_is_no_error(text: str) -> None:
    """An exclamation mark is refused only where it stands for a minus."""
    query = parse_query(text)
    assert parse_query(str(query)) == query


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_nothing_is_no_query(text: str) -> None:
    """An empty query is refused with an example of one."""
    with pytest.raises(BadQuery, match=r"is empty\. Write a word"):
        parse_query(text)


def test_the_caret_stands_below_wide_letters() -> None:
    """Letters that take two columns of a terminal are counted so, and a long query is shown around the place."""
    with pytest.raises(BadQuery) as caught:
        parse_query("数据 x:y promt:z")
    assert str(caught.value).split("\n")[2] == "  " + " " * 9 + "^"
    with pytest.raises(BadQuery) as caught:
        parse_query("x " * 100 + "promt:z" + " y" * 100)
    _sentence, shown, caret = str(caught.value).split("\n")
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert shown[caret.index("^") :].startswith("promt:z")


def test_nothing_in_an_error_steers_a_terminal() -> None:
    """A query with escape sequences is shown without them."""
    with pytest.raises(BadQuery) as caught:
        parse_query("\x1b[31m\x07 promt:x\u202e")
    assert all(one.isprintable() for line in str(caught.value).split("\n") for one in line)


def understood(text: str) -> tuple[Query | None, str]:
    """The query, or the sentence that refuses it."""
    try:
        return parse_query(text), ""
    except BadQuery as error:
        return None, str(error)


HOSTILE = {
    "ten thousand quotes": '"' * 10_000,
    "ten thousand and one": '"' * 10_001,
    "a megabyte of words": "word " * 200_000,
    "a megabyte of one": "x" * 1_000_000,
    "deep": "(" * 10_000,
    "deep and closed": "(" * 9_000 + "a" + ")" * 9_000,
    "closed and never opened": ")" * 10_000,
    "minuses": "-" * 10_000,
    "nested minuses": "-(" * 5_000 + "a",
    "backslashes": "\\" * 19_999,
    "slashes": "/" * 19_999,
    "slashes and flags": "/i" * 9_999,
    "regular expressions never closed": "/( " * 6_000,
    "deep regular expression": "/" + "(" * 400 + ")" * 400 + "/",
    "colons": "a:" * 9_000,
    "stars": "*" * 10_000,
    "OR": "OR " * 6_000,
    "words": "a " * 9_000,
    "NUL": "a\0b",
    "only NUL": "\0",
    "half a pair": "\ud800 a",
    "one long word": "x" * MAX_QUERY_CHARS,
    "one long name": "aB" * (MAX_QUERY_CHARS // 2),
    "one long phrase": '"' + "a " * (MAX_QUERY_CHARS // 2 - 1) + '"',
    "nothing repeated": "/((((){500}){500}){500}){500}x/",
    "much repeated": "/((((a{99}){99}){99}){99}){99}/",
    "nothing very often": "/(?:){4000000000}/",
    "a long unknown field": "x" * 9_000 + ":y",
}


@for_each("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_queries_are_refused_or_found(text: str) -> None:
    """Whatever is typed ends soon, in a sentence or in an answer that full text and a scan agree on (hostile.md 38)."""
    them = [Document(prompt="a b"), Document(prompt=text[:100])]
    query, sentence = understood(text)
    assert len(sentence) < 1_000
    assert query is None or by_plan(query, them) == by_scan(query, them)


@pytest.mark.parametrize(
    "text",
    [
        "NEAR(a b)",
        "a NEAR b",
        "NEAR",
        "{prompt}:a",
        "^a",
        "a+b",
        "a'b",
        "a;b--",
        "%a_",
        '\\"',
        "a*\tb",
        "near/2",
        "a&b|c",
    ],
)
def test_what_full_text_takes_for_syntax_is_text_here(text: str) -> None:
    """Operators of FTS5, quotes and SQL are words like any other, or are refused by us; SQLite never complains."""
    them = [Document(prompt="near a b"), Document(prompt="a b c"), Document(reply="prompt a"), Document(prompt="b")]
    query, sentence = understood(text)
    assert "no letter or digit" in sentence if query is None else by_plan(query, them) == by_scan(query, them)


def test_the_largest_query_is_taken_by_full_text() -> None:
    """As many terms and as many nested parentheses as a query may have are none too many for SQLite."""
    them = [Document(prompt="parseTimestamp a b"), Document(prompt="b")]
    wide = parse_query(" ".join(["parseTimestamp", "a"] * (MAX_TERMS // 2)))
    assert by_plan(wide, them) == by_scan(wide, them) == {0}
    either = parse_query(" OR ".join(["parseTimestamp", "-zzz"] * (MAX_TERMS // 2)))
    assert by_plan(either, them) == by_scan(either, them) == {0, 1}
    for opened in ("(a OR b zzz -(", "(aB prompt:cD -(x OR aB OR ", "(a -(b OR "):
        levels = MAX_DEPTH // opened.count("(")
        deep = parse_query(opened * levels + "b" + ")" * opened.count("(") * levels)
        assert by_plan(deep, them) == by_scan(deep, them)


def test_more_terms_than_that_are_refused() -> None:
    """A query with too many terms or characters says how many there may be."""
    with pytest.raises(BadQuery, match=f"at most {MAX_TERMS} terms"):
        parse_query("a " * (MAX_TERMS + 1))
    with pytest.raises(BadQuery, match=f"At most {MAX_QUERY_CHARS:,} are allowed"):
        parse_query("a" * (MAX_QUERY_CHARS + 1))
