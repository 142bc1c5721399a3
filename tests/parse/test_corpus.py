"""Every case of the corpus comes out as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.corpus_cases import CASES, CORPUS, expected, inputs, name_in, problem_json, transcripts, values_at
from tests.reader_properties import entry_fields, head_fields
from tests.subtests import Subtests

import threadline
from threadline.model.entries import Entry
from threadline.model.homes import Home, SideFile, SideFileKind

Reading = dict[Path, list[Entry]]
"""Each file of a case with its entries."""


def _stated(case: str, path: Path) -> list[dict[str, Any]]:
    return [stated for stated in expected(case) if stated["file"] == name_in(case, path)]


def entries_come_out_as_stated(case: str, read: Reading) -> None:
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
                "problems": [problem_json(one) for one in entry.problems],
            }
            for entry in read[path]
        ]
        assert found == [{key: value for key, value in one.items() if key != "said"} for one in stated]
        for entry, one in zip(read[path], stated, strict=True):
            assert values_at(entry, one["said"]) == one["said"], entry.place


def side_files_come_out_as_stated(case: str, read: Reading) -> None:
    """A side file has the content, problems and unknown fields that the case states."""
    for path in read:
        for stated in _stated(case, path):
            if "side" in stated:
                side = SideFile(path, Home(path.parent, "option"), SideFileKind(stated["side"]), path.stat().st_size)
                reading = threadline.read_side_file(side)
                assert type(reading.content).__name__ == stated["content"]
                assert [problem_json(one) for one in reading.problems] == stated["problems"]
                assert [one.json_path for one in reading.unknown] == stated["unknown"]
                assert values_at(reading.content, stated["said"]) == stated["said"]


def raw_lines_join_to_the_file(_case: str, read: Reading) -> None:
    """The raw bytes of the entries, joined, are the file, also of a side file read as a transcript."""
    for path, entries in read.items():
        assert b"".join(entry.raw for entry in entries) == path.read_bytes()


def heads_agree_with_entries(_case: str, read: Reading) -> None:
    """A head says of its entry what the entry says of itself: kind, line, ids and usage."""
    for path, entries in read.items():
        assert [head_fields(head) for head in threadline.heads(path)] == [entry_fields(entry) for entry in entries]


def a_case_explains_itself(case: str, read: Reading) -> None:
    """A case says why it is there, in which versions it was seen, and what the evidence is."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert read


CLAIMS = (
    entries_come_out_as_stated,
    side_files_come_out_as_stated,
    raw_lines_join_to_the_file,
    heads_agree_with_entries,
    a_case_explains_itself,
)


def test_every_case() -> None:
    """Every claim about every case holds, on one reading of its files."""
    with Subtests() as subtests:
        for case in CASES:
            read = {path: list(threadline.entries(path)) for path in inputs(case)}
            for claim in CLAIMS:
                with subtests.test(f"{case}: {claim.__name__}"):
                    claim(case, read)


def test_the_corpus_is_large_enough() -> None:
    """There are 75 cases or more."""
    assert len(CASES) >= 75
