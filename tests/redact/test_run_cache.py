"""What is remembered of a run that was nothing hides nothing elsewhere."""

from __future__ import annotations

import re

from tests.redact.credentials import formed_value, seeded

from threadline.redact import find_spans_in_bytes
from threadline.redact.tokens import FORMATS, MIN_RUN

RUN = re.compile(rb"[A-Za-z0-9_+/.~-]{%d,}" % MIN_RUN)


def found(value: bytes) -> list[tuple[int, int, str]]:
    """Where a value is found among words, and as what."""
    return [(span.start, span.end, span.kind) for span in find_spans_in_bytes(b"see " + value + b" there")]


def test_a_part_that_was_seen_before_does_not_hide_the_whole() -> None:
    """A credential is found after its first part has stood somewhere by itself: in a table, or cut off."""
    for rule in FORMATS:
        for seed in range(8):
            value = formed_value(rule, seeded(seed)).encode()
            alone = found(value)
            for run in RUN.finditer(value):
                found(value[: run.end()])
            assert found(value) == alone, (rule.kind, seed)
