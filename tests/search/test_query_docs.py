"""The page about queries tells what is so."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import DOCS, quoted, sections

from threadline.errors import BadQuery
from threadline.index import FIELDS as COLUMNS
from threadline.search.match import Document
from threadline.search.query import FIELDS, MAX_DEPTH, MAX_QUERY_CHARS, MAX_TERMS, TEXT_FIELDS, parse_query
from threadline.search.regex import CHUNK_CHARS, CHUNK_OVERLAP

PAGE = DOCS / "search.md"


def test_every_field_has_its_row() -> None:
    """The table has every field, in the order that an error lists them, and no other."""
    rows = [quoted(row["field"])[0].rstrip(":") for row in sections(PAGE)["Fields"].table]
    assert rows == list(FIELDS)


def test_every_example_is_a_query() -> None:
    """All queries on the page are understood."""
    shown = [re.split(r"\s{3,}", line)[0] for line in sections(PAGE)["Search"].code("query")]
    inline = [one for row in sections(PAGE)["Fields"].table for one in quoted(row["matches"])]
    assert len(shown) >= 10
    assert all(parse_query(one) is not None for one in [*shown, *inline])


def test_the_error_is_as_it_is_shown() -> None:
    """The example of an error is what such a query gives."""
    with pytest.raises(BadQuery) as caught:
        parse_query("foo promt:bar")
    assert f"```\n{caught.value}\n```" in PAGE.read_text()


def test_the_limits_are_as_they_are_told() -> None:
    """The figures on the page are those of the code."""
    page = PAGE.read_text()
    assert f"at most {MAX_QUERY_CHARS:,} characters and {MAX_TERMS} terms, and parentheses {MAX_DEPTH} deep" in page
    assert f"more than {CHUNK_CHARS:,} characters, a match of up to {CHUNK_OVERLAP} characters" in page


def test_the_columns_are_those_of_the_index() -> None:
    """Every column of full text has a field that asks for it, and a document has them all."""
    assert tuple(TEXT_FIELDS.values()) == COLUMNS
    assert Document.__struct_fields__[: len(COLUMNS)] == COLUMNS
