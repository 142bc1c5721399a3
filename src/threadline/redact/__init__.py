"""Find and replace secrets, personal data and home directories in text.

`find_spans` returns what the rules find in a text, as `Span`s with a kind; `KINDS` describes every kind.
`find_spans_in_bytes` does the same for the bytes of a file. Spans may overlap; `merge_overlapping` joins them.

`Redactor` replaces what is found in all texts of one export, and always replaces equal values by the same placeholder.
Let it `learn` every text first, so that a secret found in one place is replaced everywhere. `Settings` adds the user's
own words and patterns, `FormatWords` protects the words of the file format, and each `Finding` says what was replaced.

`SessionRedactor` is the same for the records of sessions, and what every output uses: it also knows what follows from
the structure of a transcript, such as a command whose output is a secret, or a token split between two blocks.
`RecordScanner` finds the same without replacing it. `Level` says how much is removed.

`rules` says what a secret looks like. Importing a rule module compiles many patterns, so nothing that must start fast
imports this package's modules. Others are compiled when they are first needed, or by `compile_patterns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.redact.records import (
        FormatWords,
        Leaf,
        RecordTexts,
        format_vocabulary,
        join_leaves,
        join_lines,
        list_leaves,
    )
    from threadline.redact.redactor import Finding, Redactor
    from threadline.redact.rules.formats import Span
    from threadline.redact.rules.heuristics import word_set
    from threadline.redact.rules.patterns import compile_patterns
    from threadline.redact.rules.personal import GENERIC_USER_NAMES
    from threadline.redact.scanner import (
        KINDS,
        PERSONAL_KINDS,
        find_spans,
        find_spans_in_bytes,
        merge_overlapping,
    )
    from threadline.redact.session import Match, RecordScanner, SessionRedactor
    from threadline.redact.settings import Level, Settings

export_lazily(
    __name__,
    {
        "rules.formats": ["Span"],
        "rules.heuristics": ["word_set"],
        "rules.patterns": ["compile_patterns"],
        "rules.personal": ["GENERIC_USER_NAMES"],
        "records": [
            "FormatWords",
            "Leaf",
            "RecordTexts",
            "format_vocabulary",
            "join_leaves",
            "join_lines",
            "list_leaves",
        ],
        "redactor": ["Finding", "Redactor"],
        "scanner": [
            "KINDS",
            "PERSONAL_KINDS",
            "find_spans",
            "find_spans_in_bytes",
            "merge_overlapping",
        ],
        "session": ["Match", "RecordScanner", "SessionRedactor"],
        "settings": ["Level", "Settings"],
    },
)
