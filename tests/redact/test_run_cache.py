"""Remembering that a run of characters is harmless does not hide a credential elsewhere."""

from __future__ import annotations

import re

from tests.profiles import scale_examples
from tests.redact.credentials import seeded, token_value

from threadline.redact import find_spans_in_bytes, runs
from threadline.redact.rules import tokens
from threadline.redact.rules.formats import FORMATS

RUN = re.compile(rb"[A-Za-z0-9_+/.~-]{%d,}" % tokens.MIN_RUN)


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


def test_finds_a_credential_after_it_was_scanned_behind_an_escape() -> None:
    """A credential is found even if it was scanned before in a place where it cannot be one, or after an escape."""
    escapes = (
        b"%20",
        b"%22",
        b"%3D",
        b"%0A",
        b"\\n",
        b"\\u0022",
        b"\\u003d",
        b"\\x20",
        b"&#39;",
        b"=3D",
        b"1",
        b"a",
        b"_",
    )
    for number, rule in enumerate(FORMATS):
        for escape in escapes:
            value = token_value(rule, seeded(100_000 + number * len(escapes) + escapes.index(escape))).encode()
            found_spans(escape + value)
            after = found_spans(value)
            assert after == _found_in_a_new_cache(value), (rule.kind, escape)


def _found_in_a_new_cache(value: bytes) -> list[tuple[int, int, str]]:
    for traits, joined in (runs._KNOWN, runs._KNOWN_AFTER_DECODING):
        traits.clear()
        joined.clear()
    tokens._HARMLESS_CACHE.clear()
    return found_spans(value)
