"""Property: no export format contains a planted secret."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.redact.credentials import seeded, token_value
from tests.redact.test_formats import CONTEXTS
from tests.transcripts import Pen, call, lines, prompt, reply, transcript

from threadline.export import ExportFormat, ExportOptions
from threadline.export.exporter import _Exporter
from threadline.export.redacted_copies import RedactedCopies
from threadline.redact import Settings
from threadline.redact.rules.formats import FORMATS
from threadline.render import Detail, View

FULL_VIEW = View(thinking=Detail.FULL, calls=Detail.FULL, agents=Detail.FULL, images=False, everything=True)
AROUND = st.text(alphabet=" \nabcXYZ09.,:;-_/\"'{}[]<>&`*#|\\é→", max_size=30)


@settings(max_examples=scale_examples(25))
@given(st.data())
def test_no_format_contains_a_planted_secret(data: st.DataObject) -> None:
    """A credential of any kind, in any context, in a prompt, a reply, a call or its result, is in no file."""
    rule = data.draw(st.sampled_from(FORMATS))
    value = token_value(rule, seeded(data.draw(st.integers(0, 2**32))))
    outer, inner = (CONTEXTS[data.draw(st.sampled_from(sorted(CONTEXTS)))] for _ in range(2))
    texts = [f"{data.draw(AROUND)} {outer(inner(value))} {data.draw(AROUND)}" for _ in range(4)]
    parts = (prompt(texts[0]), reply(texts[1]), call("Bash", texts[2], result=texts[3]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"{Pen().session}.jsonl"
        path.write_bytes(lines(*transcript(*parts)))
        copies = RedactedCopies(folder / "copies", Settings())
        redacted = copies.make([path])
        for export_format in (
            ExportFormat.HTML,
            ExportFormat.MD,
            ExportFormat.JSON,
            ExportFormat.JSONL,
            ExportFormat.TXT,
        ):
            (file,) = _Exporter(
                ExportOptions(export_format, FULL_VIEW), folder / str(export_format), copies.sessions
            ).export(redacted)
            text = file.path.read_text(encoding="utf-8")
            assert value not in text, export_format
            assert value not in html.unescape(text), export_format
