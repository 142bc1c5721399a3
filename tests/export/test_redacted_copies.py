"""Redacted copies of transcripts: nothing is hidden in overlong lines, or in values that look like media."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.transcripts import SESSION

from threadline.export import redacted_copies
from threadline.export.leak_check import find_leftovers
from threadline.export.redacted_copies import LineRedactor, RedactedCopies
from threadline.redact import SessionRedactor, Settings

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
_LIMIT = 2000


def redacted_copy(tmp_path: Path, lines: list[bytes]) -> bytes:
    """The redacted copy of a transcript with these lines."""
    main = tmp_path / f"{SESSION}.jsonl"
    main.write_bytes(b"".join(lines))
    copies = RedactedCopies(tmp_path / "copies", Settings())
    (copy,) = copies.make([main])
    return copy.main.read_bytes()


@pytest.mark.parametrize("position", range(_LIMIT - len(TOKEN), _LIMIT + 2, 7))
def test_line_over_the_limit_is_omitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    """It would be read in parts, and a secret could span two of them."""
    monkeypatch.setattr(redacted_copies, "_MAX_LINE", _LIMIT)
    long = b"x" * (position - 1) + b" " + TOKEN.encode() + b" " + b"y" * 3 * _LIMIT
    text = redacted_copy(tmp_path, [b'{"type":"a"}\n', long, b"\n", b'{"type":"b"}\n', long])
    assert text == b'{"type":"a"}\n{"type":"b"}\n'


def test_line_at_the_limit_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With or without a newline."""
    monkeypatch.setattr(redacted_copies, "_MAX_LINE", _LIMIT)
    lines = [b"x" * (_LIMIT - 1) + b"\n", b"y" * (_LIMIT - 1)]
    assert redacted_copy(tmp_path, lines) == b"".join(lines)


def test_check_skips_only_stripped_media(tmp_path: Path) -> None:
    """A value under `data` that is not an image source is checked."""
    copies = RedactedCopies(tmp_path / "copies", Settings())
    plain = {"data": TOKEN, "note": "x" * 300}
    media = {"type": "base64", "media_type": "image/png", "data": TOKEN + "A" * 300}
    for export_format in ("json", "jsonl"):
        assert find_leftovers(copies.redactor, export_format, json.dumps(plain), "x")
        assert not find_leftovers(copies.redactor, export_format, json.dumps(media), "x")


@pytest.mark.parametrize(
    "line",
    [
        '{"source":{"type":"base64","data":"IMAGE"}}',
        '{"source" : {"type" : "base64", "data" : "IMAGE"}}',
        '{"source":{"media_type":"image/png","\\u0064ata":"IMAGE"}}',
        '{"source":{"media_type":"image/png","base64":"IMAGE"}}',
        '{"source":{"media_type":"image/png","b\\u0061se64":"IMAGE"}}',
        "[" * 310 + '{"deep":"IMAGE"}' + "]" * 310,
    ],
)
def test_media_are_removed_from_lines_however_their_fields_are_written(line: str) -> None:
    """Lines that visibly contain no media are not searched for them. An escape or a blank hides none."""
    image = "iVBORw0KGgo" * 40
    redactor = LineRedactor(SessionRedactor(), images=False)
    raw = line.replace("IMAGE", image).encode()
    redactor.learn([raw], lambda _done: None)
    assert image.encode() not in b"".join(redactor.redact([raw], "x"))
