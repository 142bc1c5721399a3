"""Find and remove secrets, personal data and home paths from text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.redact.heuristics import word_set
    from threadline.redact.personal import GENERIC_USER_NAMES
    from threadline.redact.redactor import Finding, FormatWords, Redactor
    from threadline.redact.scanner import (
        KINDS,
        PERSONAL_KINDS,
        find_in_value,
        find_spans,
        find_spans_in_bytes,
        merge_overlapping,
    )
    from threadline.redact.settings import Settings

__getattr__ = lazy_exports(
    __name__,
    {
        "heuristics": ["word_set"],
        "personal": ["GENERIC_USER_NAMES"],
        "redactor": ["Finding", "FormatWords", "Redactor"],
        "scanner": [
            "KINDS",
            "PERSONAL_KINDS",
            "find_in_value",
            "find_spans",
            "find_spans_in_bytes",
            "merge_overlapping",
        ],
        "settings": ["Settings"],
    },
)
