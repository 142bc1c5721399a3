"""What a person asks for, understood: the query language, and what it means for an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.search.deleted_prompts import read_prompt
    from threadline.search.documents import entries_around
    from threadline.search.engine import explain_no_hits, search
    from threadline.search.ranking import Sort
    from threadline.search.suggest import explain_unused_tool

__getattr__ = lazy_exports(
    __name__,
    {
        "deleted_prompts": ["read_prompt"],
        "documents": ["entries_around"],
        "engine": ["explain_no_hits", "search"],
        "ranking": ["Sort"],
        "suggest": ["explain_unused_tool"],
    },
)
