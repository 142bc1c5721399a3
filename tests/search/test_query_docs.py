"""The documentation of queries agrees with the code."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import DOCS, code_names, sections

from threadline.errors import BadQuery
from threadline.index import FIELDS as COLUMNS
from threadline.search.match import Document
from threadline.search.query import FIELDS, MAX_DEPTH, MAX_QUERY_CHARS, MAX_TERMS, TEXT_FIELDS, parse_query
from threadline.search.regex import CHUNK_CHARS, CHUNK_OVERLAP

PAGE = DOCS / "search.md"


def test_the_table_has_every_field() -> None:
    """The table has every field, in the order in which an error lists them, and no other."""
    rows = [code_names(row["field"])[0].rstrip(":") for row in sections(PAGE)["Fields"].table]
    assert rows == list(FIELDS)


def test_every_example_can_be_parsed() -> None:
    """All queries on the page can be parsed."""
    examples = [re.split(r"\s{3,}", line)[0] for line in sections(PAGE)["Search"].code("query")]
    inline = [query for row in sections(PAGE)["Fields"].table for query in code_names(row["matches"])]
    assert len(examples) >= 10
    assert all(parse_query(query) is not None for query in [*examples, *inline])


def test_the_error_example_is_exact() -> None:
    """The example of an error is what such a query gives."""
    with pytest.raises(BadQuery) as caught:
        parse_query("foo promt:bar")
    assert f"```\n{caught.value}\n```" in PAGE.read_text()


def test_the_limits_are_those_of_the_code() -> None:
    """The figures on the page are those of the code."""
    page = PAGE.read_text()
    assert f"at most {MAX_QUERY_CHARS:,} characters and {MAX_TERMS} terms, and parentheses {MAX_DEPTH} deep" in page
    assert f"more than {CHUNK_CHARS:,} characters, a match of up to {CHUNK_OVERLAP} characters" in page


def test_every_full_text_column_has_a_field() -> None:
    """Every full-text column has a field, and a document has them all."""
    assert tuple(TEXT_FIELDS.values()) == COLUMNS
    assert Document.__struct_fields__[: len(COLUMNS)] == COLUMNS
