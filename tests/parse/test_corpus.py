"""Every case of the corpus comes out as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.corpus_cases import CASES, CORPUS, expected, inputs, name_in, problem, said, transcripts
from tests.laws import of_entry, of_head

import threadline
from threadline.model.homes import Home, SideFile, SideFileKind


def _stated(case: str, path: Path) -> list[dict[str, Any]]:
    return [stated for stated in expected(case) if stated["file"] == name_in(case, path)]


@pytest.mark.parametrize("case", CASES)
def test_entries_come_out_as_stated(case: str) -> None:
    """Each entry has the kind, place, problems and words that the case states, and there is no entry more."""
    for path in transcripts(case):
        stated = _stated(case, path)
        found = [
            {
                "file": name_in(case, path),
                "kind": entry.kind,
                "line": entry.line.number,
                "offset": entry.line.offset,
                "length": len(entry.raw),
                "problems": [problem(one) for one in entry.problems],
            }
            for entry in threadline.entries(path)
        ]
        assert found == [{key: value for key, value in one.items() if key != "said"} for one in stated]
        for entry, one in zip(threadline.entries(path), stated, strict=True):
            assert said(entry, one["said"]) == one["said"], entry.place


@pytest.mark.parametrize("case", CASES)
def test_side_files_come_out_as_stated(case: str) -> None:
    """A side file has the content, problems and unknown fields that the case states."""
    for path in inputs(case):
        for stated in _stated(case, path):
            if "side" in stated:
                side = SideFile(path, Home(path.parent, "option"), SideFileKind(stated["side"]), path.stat().st_size)
                reading = threadline.read_side_file(side)
                assert type(reading.content).__name__ == stated["content"]
                assert [problem(one) for one in reading.problems] == stated["problems"]
                assert [one.json_path for one in reading.unknown] == stated["unknown"]
                assert said(reading.content, stated["said"]) == stated["said"]


@pytest.mark.parametrize("case", CASES)
def test_raw_lines_join_to_the_file(case: str) -> None:
    """The raw bytes of the entries, joined, are the file, also of a side file read as a transcript."""
    for path in inputs(case):
        assert b"".join(entry.raw for entry in threadline.entries(path)) == path.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_heads_agree_with_entries(case: str) -> None:
    """A head says of its entry what the entry says of itself: kind, line, ids and usage."""
    for path in inputs(case):
        assert [of_head(head) for head in threadline.heads(path)] == [
            of_entry(entry) for entry in threadline.entries(path)
        ]


@pytest.mark.parametrize("case", CASES)
def test_a_case_explains_itself(case: str) -> None:
    """A case says why it is there, in which versions it was seen, and what the evidence is."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert inputs(case)


def test_the_corpus_is_large_enough() -> None:
    """There are 75 cases or more."""
    assert len(CASES) >= 75
