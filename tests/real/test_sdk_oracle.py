"""The active thread compared with the official SDK: the same uuids, or the reason why not.

The SDK is not a dependency of the tests, because its wheel is 160 MB: `pip install 'threadline[oracle]'` installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests import corpus_cases
from tests.real.client import SHARED
from tests.thread.session_cases import CASES, main_transcripts

from threadline.find import homes, look
from threadline.load import read
from threadline.model.homes import TranscriptKind

HOME = SHARED / "corpus/home"
SESSION = "5e551011-0000-4000-8000-000000000001"
DIFFERENT = {
    "rewind-is-told-by-the-pointer-alone": "the SDK does not read `last-prompt`: it takes the branch that was left",
    "rewound-to-the-very-start": "the SDK does not read `last-prompt`: it shows what was taken back",
    "cycle-is-opened-at-its-first-row": "in a circle every row is a parent: the SDK finds no leaf, and shows nothing",
    "same-uuid-twice-is-two-entries": "the row that comes again is its own parent: to the SDK it is no leaf",
    "byte-order-mark-does-not-hide-the-first-row": "the SDK cannot read a row behind a byte order mark",
    "byte-order-mark-before-glued-rows": "the same, and glued rows",
    "glued-rows-are-both-kept": "the SDK cannot read a line with two rows",
    "nul-run-around-a-row-does-not-hide-it": "the SDK cannot read a row among NULs",
    "raw-control-character-in-a-string-is-forgiven": "the SDK cannot read a row with a raw control character",
    "row-torn-before-a-value-is-found-whole": "the SDK cannot read a line with a torn and a whole row",
    "row-torn-twice-is-found-once": "the same",
    "spliced-row-is-found-after-its-torn-beginning": "the same",
    "deep-and-huge-values-do-not-stop-the-file": "the SDK stops with an exception",
    "invalid-utf8-is-shown-replaced": "the SDK stops with an exception",
    "rows-without-ids-are-in-file-order": "no row has an id: the SDK shows nothing",
    "seed-000-rows-without-ids": "the same",
    "calls-as-rows-are-calls": "no row names a parent, which Claude Code always does: the SDK shows the last row only",
    "calls-as-rows-that-fail": "the same",
    "calls-as-rows-with-ids-of-their-own": "the same",
    "calls-as-rows-touch-files": "the same",
    "calls-as-rows-in-the-shape-of-blocks": "the same",
    "seed-003-tools-as-rows": "the same",
    "last-of-duplicate-keys-wins": "the same",
    "stream-json-dump-is-another-dialect": "the same",
}
"""Cases in which the two differ, each with the reason."""

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("claude_agent_sdk") is None, reason="claude-agent-sdk is not there"),
]


def _real_transcripts() -> list[Path]:
    if not HOME.is_dir():
        return []
    return [
        transcript.path for transcript in look(homes(HOME)[0]).transcripts if transcript.kind is TranscriptKind.MAIN
    ]


def _ours(path: Path) -> list[str | None]:
    return [entry.uuid for entry in read(path, continued=False).thread.visible]


def _theirs(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the SDK returns for a transcript that is alone in a home."""
    project = home / "projects" / "-work-app"
    project.mkdir(parents=True)
    (project / f"{SESSION}.jsonl").symlink_to(path.resolve())
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    sdk: Any = importlib.import_module("claude_agent_sdk")
    try:
        return [message.uuid for message in sdk.get_session_messages(SESSION)]
    except (RecursionError, UnicodeDecodeError) as error:
        return [f"no answer: {type(error).__name__}"]


def _cases() -> list[tuple[str, Path]]:
    sessions = [(case, path) for case in CASES for path in main_transcripts(case)]
    rows = [(case, path) for case in corpus_cases.CASES for path in corpus_cases.transcripts(case)]
    return [*sessions, *((case, path) for case, path in rows if not path.name.startswith("agent-"))]


@pytest.mark.parametrize(("case", "path"), _cases(), ids=lambda part: part if isinstance(part, str) else part.stem[:8])
def test_cases_agree_with_the_sdk(case: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The visible messages of each case are the SDK's, except for the listed cases."""
    assert (_ours(path) == _theirs(path, tmp_path, monkeypatch)) is (case not in DIFFERENT), DIFFERENT.get(case)


@pytest.mark.parametrize("path", _real_transcripts(), ids=lambda path: path.stem[:8])
def test_real_sessions_agree_with_the_sdk(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The visible messages of each real session are the SDK's."""
    assert _ours(path) == _theirs(path, tmp_path, monkeypatch)
