"""Secrets in encodings, layouts and structures are removed from the content of spans, as from every export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.export.otlp.decoding import DecodedSpan, encode_and_decode
from tests.redact.planted import Case, cases
from tests.subtests import Subtests

from threadline import archive as archives
from threadline.export import TraceOptions, TraceReader
from threadline.redact import Settings


def _read_content(case: Case, home: Path, settings: Settings | None) -> str:
    """Every text in the spans of a case, without blanks."""
    main = home / "projects" / "-srv-app" / f"{case.rows[0]['sessionId']}.jsonl"
    main.parent.mkdir(parents=True, exist_ok=True)
    main.write_text("".join(json.dumps(row) + "\n" for row in case.rows), encoding="utf-8")
    with archives.open([str(home)], index=False) as archive:
        spans = TraceReader(archive, TraceOptions(content=True, settings=settings)).read(main).spans
    return "\n".join("".join(text.split()) for span in encode_and_decode(spans) for text in _texts(span))


def _texts(span: DecodedSpan) -> Iterator[str]:
    for name, value in span.attributes.items():
        if isinstance(value, str):
            yield value
            yield from _leaves(json.loads(value) if name.endswith((".messages", ".arguments")) else None)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


@pytest.mark.slow
def test_no_planted_secret_is_in_the_content(tmp_path: Path) -> None:
    """Of more than five hundred secrets none is in a span; without redaction, most are."""
    planted = list(cases())
    assert len(planted) >= 500
    with Subtests() as subtests:
        for number, case in enumerate(planted):
            with subtests.test(case.name):
                text = _read_content(case, tmp_path / str(number), Settings())
                assert not any("".join(trace.split()) in text for trace in case.traces)
    visible = 0
    for number, case in enumerate(planted[::10]):
        text = _read_content(case, tmp_path / str(10 * number), None)
        visible += any("".join(trace.split()) in text for trace in case.traces)
    assert visible > len(planted[::10]) // 2
