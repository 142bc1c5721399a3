"""Tests of titles from parts of a transcript: they equal those from all of it."""

from __future__ import annotations

import pytest
from tests.thread.rows import decode_rows
from tests.transcripts import meta, prompt, reply, transcript

from threadline.model.entries import SummaryEntry
from threadline.thread import find_acts, session_title, title_from_parts


@pytest.mark.parametrize(
    ("parts", "title"),
    [
        ([], "Sort the shelf"),
        ([reply("Sorted.")], ""),
        ([prompt("Dust the shelf, then the table"), reply("Dusted.")], "Dust the shelf, then the table"),
    ],
)
def test_summary_of_another_session_titles_only_a_transcript_without_a_conversation(
    parts: list[object], title: str
) -> None:
    """It names an entry that the transcript does not have."""
    summary = meta("summary", summary="Sort the shelf", leafUuid="f0000000-0000-4000-8000-000000000001")
    entries = decode_rows(*transcript(*parts, summary))  # type: ignore[arg-type]
    titles = [entry for entry in entries if isinstance(entry, SummaryEntry)]
    assert title_from_parts(entries, titles).text == title
    assert session_title(entries, find_acts(entries)).text == title
