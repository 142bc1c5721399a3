"""Answers stay as they are: the JSON of every command and page, the library, and every case folder.

Where an answer is meant to change: `python -m tests.golden.update`, and the diff says what did.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.golden.suites import COMMANDS, KEEP, KEEP_LATER, PAGES, SUITES, WITHOUT, answers
from tests.golden.text import differences, path_of, text_of
from tests.interfaces import entry_points


@pytest.mark.parametrize(
    "suite", [pytest.param(suite, marks=[pytest.mark.slow] * (suite == "cases")) for suite in SUITES]
)
def test_answers_are_the_golden_ones(suite: str, tmp_path: Path) -> None:
    """Every answer is the one in its golden file, and every golden file has its answer."""
    found = differences(suite, answers(suite, tmp_path))
    assert not found, "\n\n".join([f"{len(found)} answers of {suite!r} changed:", *found])


def test_every_twentieth_case_has_its_golden_answer(tmp_path: Path) -> None:
    """The answers for every twentieth case folder are those in the golden files. The suite `cases` asks about each."""
    for corpus, cases in answers("cases", tmp_path, every=20).items():
        golden = json.loads(path_of("cases", corpus).read_text(encoding="utf-8"))
        assert text_of(cases) == text_of({name: golden[name] for name in cases}), corpus


def test_every_command_is_asked() -> None:
    """Each command that `threadline --help` lists has a golden answer, but for those that say why not."""
    asked = {given[0] for given in COMMANDS.values() if given} | {"demo", "export", "keep", "prices", "statusline"}
    assert sorted(asked | WITHOUT.keys()) == sorted(_listed())
    assert not asked & WITHOUT.keys()


def test_every_keep_action_is_asked() -> None:
    """Each action that `threadline keep --help` lists has a golden answer."""
    assert {given[0] for _, given in (*KEEP, *KEEP_LATER) if not given[0].startswith("-")} == _listed("keep")


def test_every_page_is_asked() -> None:
    """Each address that the server knows has a golden answer."""
    asked = [address.partition("?")[0].removesuffix(".json") for address in PAGES.values()]
    for route in entry_points.page_routes():
        pattern = re.sub(r"\{\w+(:path)?\}", "[^/]+", "/index" if route == "/" else route)
        assert any(re.fullmatch(pattern, path) for path in asked), route


def _listed(*command: str) -> set[str]:
    """The names under `Commands:`, or `Actions:`, in a help."""
    said = re.split(r"\n(?:Commands|Actions):\n", entry_points.run_command(*command, "--help").out.decode())[1]
    return set(re.findall(r"^  (\S+)", said.partition("\n\n")[0], re.MULTILINE))
