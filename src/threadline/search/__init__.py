"""Search: the query language, and what it finds.

`search` runs a query on an `Index` and returns `Hits`, best first. `query` parses the query language into a tree;
`ranking` translates the tree to FTS5, and finds and orders entries; `documents` reads them, and the prompts of deleted
sessions; `match` decides whether they match, which full text has to agree with, and cuts snippets. `suggest` looks for
partial matches, other spellings and values that exist; `explain_no_hits` says why nothing was found. `regex` bounds the
time of regular expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.search.documents import entries_around, read_prompt
    from threadline.search.engine import explain_no_hits, search
    from threadline.search.query import FIELDS, value_filters
    from threadline.search.ranking import Sort
    from threadline.search.suggest import explain_unused_tool

export_lazily(
    __name__,
    {
        "documents": ["entries_around", "read_prompt"],
        "engine": ["explain_no_hits", "search"],
        "query": ["FIELDS", "value_filters"],
        "ranking": ["Sort"],
        "suggest": ["explain_unused_tool"],
    },
)
