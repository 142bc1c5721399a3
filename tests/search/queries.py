"""Random queries and documents, built from few words so that many of them match."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from threadline.index import normalize_text
from threadline.index.vocabulary import TOKENIZER
from threadline.search.match import Document, matches
from threadline.search.query import (
    TEXT_FIELDS,
    And,
    Cost,
    Has,
    Is,
    Match,
    Not,
    Or,
    Query,
    Regex,
    Text,
    When,
    all_of,
    any_of,
    negate,
)
from threadline.search.ranking import make_plan

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
WORDS = """
parse timestamp parseTimestamp parse_timestamp HTTPServer http server Café cafe CAFÉ 数据库 据 数据 検索index
foo.bar foo bar foobar src/app.py src app py --dry-run E404 e404 E40 NEAR near and OR a ab abc I18n ГОРОД город
""".split()  # noqa: SIM905 - a list of forty quoted words is harder to read
MARKS = ["", " ", " ", "\n", ".", "/", "-", '"', "*", "(", ":", "\x1b[31m", "\0", "\u0301"]
PATTERNS = [
    "foo",
    r"foo\.bar",
    "foo bar",
    r"\bpars?e",
    "^parse",
    "app.py$",
    "(a|ab)+c",
    r"(\w+\s*)+$",
    "a.*b.*c",
    "数据库",
    "库 foo",
    r"src/\w+ ",
    "[^a-z]foo",
    "timestamp|server",
    "(parse) (timestamp)",
    r"café|\d+",
    "x{0,3}http",
    "e404(?! )",
    "^(?:foo|bar) (?:parse|e404)",
]
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS)).map("".join), max_size=6).map("".join)
documents = st.builds(
    Document,
    **{column: st.just("") | texts for column in TEXT_FIELDS.values()},
    tool=st.sampled_from([(), ("Bash",), ("Edit", "mcp__x__y")]),
    project=st.sampled_from([None, "/home/me/Parse", "/srv/app"]),
    agent=st.sampled_from([(), ("a1b2", "Explore")]),
    kind=st.sampled_from([None, "user", "assistant"]),
    version=st.sampled_from([None, "2.1.7", "2.10.0"]),
    timestamp=st.none() | st.sampled_from([NOW, NOW - timedelta(days=3)]),
    failed=st.booleans(),
    cost=st.none() | st.sampled_from([Decimal(1), Decimal("0.5"), Decimal(20)]),
)

_fields = st.none() | st.sampled_from([*TEXT_FIELDS, "error"])
words = st.builds(Text, st.sampled_from(WORDS), _fields, prefix=st.booleans())
phrases = st.builds(
    Text,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    _fields,
    st.just(value=True),
    st.booleans(),
)
plain = st.builds(Text, st.sampled_from(WORDS))
text_leaves = plain | words | phrases
filters = (
    st.builds(Is, st.just("tool"), st.sampled_from(["bash", "Edit"]))
    | st.builds(Is, st.just("tool"), st.just("mcp__"), st.just(value=True))
    | st.builds(Is, st.just("project"), st.sampled_from(["parse", "/srv"]))
    | st.builds(Is, st.just("version"), st.just("2.1"))
    | st.builds(Has, st.sampled_from(["error", "agent", "tool", "project"]))
    | st.builds(When, st.sampled_from(["since", "until"]), st.just(NOW - timedelta(days=1)))
    | st.builds(Cost, st.sampled_from([">", ">=", "<", "<=", "="]), st.sampled_from([Decimal(1), Decimal("0.50")]))
)
regexes = st.builds(Regex, st.sampled_from(PATTERNS), _fields | st.just("project"), st.booleans())


def trees(leaf: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    """Queries built from such leaves, as flat as the parser builds them."""
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, min_size=2, max_size=4).map(all_of)
            | st.lists(inner, min_size=2, max_size=3).map(any_of)
            | inner.map(negate)
        ),
        max_leaves=8,
    )


@contextmanager
def full_text(documents: list[Document]) -> Iterator[sqlite3.Connection]:
    """A full-text table of documents, like the index's. The rowid of a document is its number."""
    columns = list(TEXT_FIELDS.values())
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            f"CREATE VIRTUAL TABLE text USING fts5({', '.join(columns)}, content='', tokenize='{TOKENIZER}')"
        )
        database.executemany(
            f"INSERT INTO text(rowid, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})",  # noqa: S608 - our own names
            [
                (row, *(normalize_text(getattr(document, name)) for name in columns))
                for row, document in enumerate(documents)
            ],
        )
        yield database


def by_full_text(database: sqlite3.Connection, expression: str) -> set[int]:
    """The rows that match an expression."""
    return {row for (row,) in database.execute("SELECT rowid FROM text WHERE text MATCH ?", (expression,))}


def by_plan(query: Query, documents: list[Document]) -> set[int]:
    """The numbers of the documents that the plan for a query finds."""
    plan = make_plan(query)
    with full_text(documents) as database:
        candidates = by_full_text(database, plan.match) if plan.match is not None else set(range(len(documents)))
        return {
            number
            for number in candidates
            if plan.rest is None or _row_matches(database, plan.rest, number, documents[number])
        }


def by_scan(query: Query, documents: list[Document]) -> set[int]:
    """The numbers of the documents that match, tested one by one."""
    return {number for number, document in enumerate(documents) if matches(query, document)}


def _row_matches(database: sqlite3.Connection, query: Query, row: int, document: Document) -> bool:
    match query:
        case And(terms):
            return all(_row_matches(database, term, row, document) for term in terms)
        case Or(terms):
            return any(_row_matches(database, term, row, document) for term in terms)
        case Not(negated):
            return not _row_matches(database, negated, row, document)
        case Match(expression):
            return row in by_full_text(database, expression)
    return matches(query, document)
