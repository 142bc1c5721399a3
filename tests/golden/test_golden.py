"""Results stay the same: the JSON of every command and page, the library, and every case folder.

If a result should change: `python -m tests.golden.update`, and the diff shows what did.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.golden.suites import COMMANDS, KEEP, KEEP_LATER, NOT_TESTED, PAGES, SUITES, run_suite
from tests.golden.text import differences, format_json, golden_path
from tests.interfaces import entry_points


@pytest.mark.parametrize(
    "suite", [pytest.param(suite, marks=[pytest.mark.slow] * (suite == "cases")) for suite in SUITES]
)
def test_results_equal_the_golden_files(suite: str, tmp_path: Path) -> None:
    """Every result equals its golden file, and every golden file has a result."""
    messages = differences(suite, run_suite(suite, tmp_path))
    assert not messages, "\n\n".join([f"{len(messages)} results of {suite!r} changed:", *messages])


def test_every_twentieth_case_equals_its_golden_file(tmp_path: Path) -> None:
    """The results of every twentieth case folder equal the golden files. The suite `cases` checks all of them."""
    for corpus, cases in run_suite("cases", tmp_path, every=20).items():
        golden = json.loads(golden_path("cases", corpus).read_text(encoding="utf-8"))
        assert format_json(cases) == format_json({name: golden[name] for name in cases}), corpus


def test_every_command_has_a_golden_file() -> None:
    """Each command in `threadline --help` has a golden file, or a reason why not."""
    tested = {arguments[0] for arguments in COMMANDS.values() if arguments} | {
        "budget",
        "convert",
        "demo",
        "export",
        "keep",
        "prices",
        "schema",
        "statusline",
    }
    assert sorted(tested | NOT_TESTED.keys()) == sorted(listed_names())
    assert not tested & NOT_TESTED.keys()


def test_every_keep_action_has_a_golden_file() -> None:
    """Each action in `threadline keep --help` has a golden file."""
    assert {arguments[0] for _, arguments in (*KEEP, *KEEP_LATER) if not arguments[0].startswith("-")} == listed_names(
        "keep"
    )


def test_every_page_has_a_golden_file() -> None:
    """Each address of the server has a golden file."""
    tested = [address.partition("?")[0].removesuffix(".json") for address in PAGES.values()]
    for route in entry_points.page_routes():
        pattern = re.sub(r"\{\w+(:path)?\}", "[^/]+", "/index" if route == "/" else route)
        assert any(re.fullmatch(pattern, path) for path in tested), route


def listed_names(*command: str) -> set[str]:
    """The names of commands or actions that a help text lists between its options and its examples."""
    text = entry_points.run_command(*command, "--help").out.decode().partition("\nOptions:\n")[2]
    names = set(re.findall(r"^  ([a-z][a-z-]*)  ", text.partition("\n  Examples:\n")[0], re.MULTILINE))
    assert names
    return names
