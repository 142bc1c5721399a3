"""Remembering that a run of characters is harmless does not hide a credential elsewhere."""

from __future__ import annotations

import re

from tests.profiles import scale_examples
from tests.redact.credentials import seeded, token_value

from threadline.redact import find_spans_in_bytes
from threadline.redact.formats import FORMATS
from threadline.redact.tokens import MIN_RUN

RUN = re.compile(rb"[A-Za-z0-9_+/.~-]{%d,}" % MIN_RUN)


def found_spans(value: bytes) -> list[tuple[int, int, str]]:
    """The position and kind of every finding if the value is surrounded by words."""
    return [(span.start, span.end, span.kind) for span in find_spans_in_bytes(b"see " + value + b" there")]


def test_finds_a_credential_after_its_first_part_was_scanned() -> None:
    """A credential is found even if its first part was scanned by itself before, e.g. in a table or cut off."""
    for rule in FORMATS:
        for seed in range(scale_examples(8)):
            value = token_value(rule, seeded(seed)).encode()
            expected = found_spans(value)
            for run in RUN.finditer(value):
                found_spans(value[: run.end()])
            assert found_spans(value) == expected, (rule.kind, seed)
