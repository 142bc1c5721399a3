"""The tables of `tests/corpus/README.md` hold what they say they hold."""

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
def test_each_damage_has_its_own_case(damage: str) -> None:
    """Every kind of damage that was seen in the wild has a case that no other kind has."""
    rows = _rows("Damage seen in the wild")
    own = {case.strip("`") for name, case in rows if name.partition(": ")[0] == damage}
    others = {case.strip("`") for name, case in rows if name.partition(": ")[0] != damage}
    assert own
    assert own <= set(CASES)
    assert not own & others


@pytest.mark.parametrize("number", _HOSTILE)
def test_each_hostile_file_is_held(number: int) -> None:
    """Every fault of a file that a reader can meet has a case or a test, and it is there."""
    held = [by.strip("`") for row, _fault, by in _rows("Hostile files") if int(row) == number]
    assert held
    for by in held:
        if "::" in by:
            file, _, test = by.partition("::")
            assert f"def {test}(" in (Path(__file__).parent / file).read_text()
        else:
            assert by in CASES
