"""The tables of `tests/corpus/README.md` name existing cases and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.corpus_cases import CASES, CORPUS

_README = (CORPUS / "README.md").read_text()
_DAMAGE = (
    "truncated last line",
    "missing newline",
    "write splice",
    "tail of a row alone",
    "foreign bytes",
    "NUL runs",
    "NUL inside strings",
    "lone surrogates",
    "U+2028/2029/0085 in strings",
    "invalid UTF-8",
    "BOM",
    "CRLF",
    "duplicate rows",
    "non-object lines",
    "missing tool_result",
    "wrong shapes",
    "JSON depth / huge ints",
    "rewritten by tools",
    "secrets",
)
_HOSTILE = (*range(1, 21), 23, 24)


def _rows(heading: str) -> list[list[str]]:
    section = _README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)[2:]
    ]


@pytest.mark.parametrize("damage", _DAMAGE)
def test_each_kind_of_damage_has_its_own_case(damage: str) -> None:
    """Every kind of damage seen in practice has a case that no other kind has."""
    rows = _rows("Damage seen in the wild")
    cases = {case.strip("`") for name, case in rows if name.partition(": ")[0] == damage}
    other_cases = {case.strip("`") for name, case in rows if name.partition(": ")[0] != damage}
    assert cases
    assert cases <= set(CASES)
    assert not cases & other_cases


@pytest.mark.parametrize("number", _HOSTILE)
def test_each_hostile_file_has_a_case_or_test(number: int) -> None:
    """Every fault of a file that a reader can meet has an existing case or test."""
    references = [reference.strip("`") for row, _fault, reference in _rows("Hostile files") if int(row) == number]
    assert references
    for reference in references:
        if "::" in reference:
            file, _, test = reference.partition("::")
            assert f"def {test}(" in (Path(__file__).parent / file).read_text()
        else:
            assert reference in CASES
