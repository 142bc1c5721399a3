"""Tests of titles in damaged lines: an archive finds them with an index and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transcripts import SESSION, lines, prompt, reply, transcript

import threadline


def _title(text: str) -> bytes:
    return lines({"type": "custom-title", "customTitle": text, "sessionId": SESSION})


_LAST_PROMPT = lines({"type": "last-prompt", "lastPrompt": "go", "sessionId": SESSION})


@pytest.mark.parametrize(
    "rows",
    [
        [_title("Old"), _LAST_PROMPT.rstrip() + _title("New")],
        [_title("Old"), b"\0\0" + _title("New")],
        [_title("Old").rstrip() + _LAST_PROMPT, _title("New")],
    ],
    ids=["glued", "after NUL bytes", "glued before"],
)
@pytest.mark.parametrize("index", [False, True])
def test_title_in_a_damaged_line_is_the_title(rows: list[bytes], tmp_path: Path, *, index: bool) -> None:
    """The last title in the file counts, whatever is on its line."""
    path = tmp_path / f"home/projects/-work-app/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(*transcript(prompt("go"), reply("ok"))) + b"".join(rows))
    with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite" if index else False) as archive:
        if index:
            archive.refresh()
        assert archive.titles([SESSION]) == {SESSION: "New"}
        assert [session.title for session in archive.sessions()] == ["New"]
