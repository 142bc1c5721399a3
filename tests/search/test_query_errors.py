"""Invalid queries are rejected with a message that points at the error."""

from __future__ import annotations

import pytest
from tests.search.queries import by_plan, by_scan
from tests.subtests import for_each

from threadline.errors import BadQuery
from threadline.search.match import Document
from threadline.search.query import MAX_DEPTH, MAX_QUERY_CHARS, MAX_TERMS, Query, parse_query


@for_each(
    "text, column, message",
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
        ("cost:5", 6, "Say how to compare: cost:>5, cost:<5, or cost:=5 (exactly)."),
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
def test_errors_point_at_their_column(text: str, column: int, message: str) -> None:
    """The message says what to do. Below it are the query and a caret under the column."""
    with pytest.raises(BadQuery) as caught:
        parse_query(text)
    sentence, query, caret = str(caught.value).split("\n")
    assert message in sentence
    assert sentence.endswith(f"(column {column})")
    assert query == f"  {text}"
    assert caret.index("^") == column + 1


@pytest.mark.parametrize("text", ["hello!", "wow! yes", "a!b", '"!important"', r"\!important"])
def test_accepts_an_exclamation_mark_that_is_not_a_minus(text: str) -> None:
    """An exclamation mark is rejected only if it is used like a minus."""
    query = parse_query(text)
    assert parse_query(str(query)) == query


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_rejects_an_empty_query(text: str) -> None:
    """The message contains an example."""
    with pytest.raises(BadQuery, match=r"is empty\. Write a word"):
        parse_query(text)


def test_the_caret_accounts_for_wide_letters() -> None:
    """Letters that take two columns in a terminal count as two. A long query is shown around the error."""
    with pytest.raises(BadQuery) as caught:
        parse_query("数据 x:y promt:z")
    assert str(caught.value).split("\n")[2] == "  " + " " * 9 + "^"
    with pytest.raises(BadQuery) as caught:
        parse_query("x " * 100 + "promt:z" + " y" * 100)
    _sentence, shown, caret = str(caught.value).split("\n")
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert shown[caret.index("^") :].startswith("promt:z")


def test_errors_contain_no_escape_sequences() -> None:
    """A query with escape sequences is shown without them."""
    with pytest.raises(BadQuery) as caught:
        parse_query("\x1b[31m\x07 promt:x\u202e")
    assert all(char.isprintable() for line in str(caught.value).split("\n") for char in line)


def parse_or_error(text: str) -> tuple[Query | None, str]:
    """The query, or the message that rejects it."""
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
def test_hostile_queries_are_rejected_or_answered(text: str) -> None:
    """Any query ends soon, with an error or with an answer on which full text and a scan agree (hostile.md 38)."""
    documents = [Document(prompt="a b"), Document(prompt=text[:100])]
    query, message = parse_or_error(text)
    assert len(message) < 1_000
    assert query is None or by_plan(query, documents) == by_scan(query, documents)


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
def test_full_text_syntax_is_plain_text(text: str) -> None:
    """FTS5 operators, quotes and SQL are ordinary words, or rejected by us. SQLite never raises an error."""
    documents = [
        Document(prompt="near a b"),
        Document(prompt="a b c"),
        Document(reply="prompt a"),
        Document(prompt="b"),
    ]
    query, message = parse_or_error(text)
    assert "no letter or digit" in message if query is None else by_plan(query, documents) == by_scan(query, documents)


def test_full_text_accepts_the_largest_query() -> None:
    """SQLite accepts the maximum number of terms and nested parentheses."""
    documents = [Document(prompt="parseTimestamp a b"), Document(prompt="b")]
    wide = parse_query(" ".join(["parseTimestamp", "a"] * (MAX_TERMS // 2)))
    assert by_plan(wide, documents) == by_scan(wide, documents) == {0}
    either = parse_query(" OR ".join(["parseTimestamp", "-zzz"] * (MAX_TERMS // 2)))
    assert by_plan(either, documents) == by_scan(either, documents) == {0, 1}
    for opening in ("(a OR b zzz -(", "(aB prompt:cD -(x OR aB OR ", "(a -(b OR "):
        levels = MAX_DEPTH // opening.count("(")
        deep = parse_query(opening * levels + "b" + ")" * opening.count("(") * levels)
        assert by_plan(deep, documents) == by_scan(deep, documents)


def test_rejects_queries_over_the_limits() -> None:
    """A query with too many terms or characters says how many are allowed."""
    with pytest.raises(BadQuery, match=f"at most {MAX_TERMS} terms"):
        parse_query("a " * (MAX_TERMS + 1))
    with pytest.raises(BadQuery, match=f"At most {MAX_QUERY_CHARS:,} are allowed"):
        parse_query("a" * (MAX_QUERY_CHARS + 1))
