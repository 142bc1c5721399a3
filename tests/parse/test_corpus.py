"""Every case of the corpus matches its `out.json`."""

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


def _expected(case: str, path: Path) -> list[dict[str, Any]]:
    return [item for item in expected(case) if item["file"] == name_in(case, path)]


def check_entries(case: str, reading: Reading) -> None:
    """Each entry has the kind, place, problems and values that the case states, and there is no other entry."""
    for path in transcripts(case):
        expectations = _expected(case, path)
        result = [
            {
                "file": name_in(case, path),
                "kind": entry.kind,
                "line": entry.line.number,
                "offset": entry.line.offset,
                "length": len(entry.raw),
                "problems": [problem_json(problem) for problem in entry.problems],
            }
            for entry in reading[path]
        ]
        assert result == [
            {key: value for key, value in expectation.items() if key != "said"} for expectation in expectations
        ]
        for entry, expectation in zip(reading[path], expectations, strict=True):
            assert values_at(entry, expectation["said"]) == expectation["said"], entry.place


def check_side_files(case: str, files: Reading) -> None:
    """A side file has the content, problems and unknown fields that the case states."""
    for path in files:
        for expectation in _expected(case, path):
            if "side" in expectation:
                side = SideFile(
                    path, Home(path.parent, "option"), SideFileKind(expectation["side"]), path.stat().st_size
                )
                reading = threadline.read_side_file(side)
                assert type(reading.content).__name__ == expectation["content"]
                assert [problem_json(problem) for problem in reading.problems] == expectation["problems"]
                assert [unknown.json_path for unknown in reading.unknown] == expectation["unknown"]
                assert values_at(reading.content, expectation["said"]) == expectation["said"]


def check_raw_bytes(_case: str, reading: Reading) -> None:
    """The raw bytes of the entries join to the file, also if a side file is read as a transcript."""
    for path, entries in reading.items():
        assert b"".join(entry.raw for entry in entries) == path.read_bytes()


def check_heads(_case: str, reading: Reading) -> None:
    """A head has the kind, line, ids and usage of its entry."""
    for path, entries in reading.items():
        assert [head_fields(head) for head in threadline.heads(path)] == [entry_fields(entry) for entry in entries]


def check_explanation(case: str, reading: Reading) -> None:
    """A case says why it exists, in which versions it was seen, and what the evidence is."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert reading


CHECKS = (
    check_entries,
    check_side_files,
    check_raw_bytes,
    check_heads,
    check_explanation,
)


def test_every_case() -> None:
    """All checks of every case pass on one reading of its files."""
    with Subtests() as subtests:
        for case in CASES:
            reading = {path: list(threadline.entries(path)) for path in inputs(case)}
            for check in CHECKS:
                with subtests.test(f"{case}: {check.__name__}"):
                    check(case, reading)


def test_there_are_enough_cases() -> None:
    """There are at least 75 cases."""
    assert len(CASES) >= 75
