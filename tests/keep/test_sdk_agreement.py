"""The official SDK reads a restored home like the original: the same sessions, the same messages.

The SDK is not a dependency of the tests, because its wheel is 160 MB: `pip install 'threadline[oracle]'` installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.keep.homes import keep_home
from tests.keep.test_round_trip import restore_newest
from tests.real.client import SHARED
from tools.demo import write

from threadline.keep import Store

REAL = SHARED / "corpus/home"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("claude_agent_sdk") is None, reason="claude-agent-sdk is not there"),
]


def read_with_sdk(home: Path, patch: pytest.MonkeyPatch) -> tuple[list[Any], dict[str, list[Any]]]:
    """All sessions of a home, and the messages of each."""
    patch.setenv("CLAUDE_CONFIG_DIR", str(home))
    sdk: Any = importlib.import_module("claude_agent_sdk")
    listed = [asdict(session) for session in sdk.list_sessions()]
    messages = {
        session["session_id"]: [asdict(message) for message in session_messages(sdk, session["session_id"])]
        for session in listed
    }
    return listed, messages


def session_messages(sdk: Any, session: str) -> list[Any]:
    """The messages of a session, or none if the SDK fails."""
    try:
        messages: list[Any] = sdk.get_session_messages(session)
    except (RecursionError, UnicodeDecodeError):  # limits of the SDK: the same in both homes
        return []
    return messages


def assert_reads_alike(home: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """The SDK reads the home and its restored copy alike."""
    before = read_with_sdk(home, patch)
    assert any(before[1].values())
    store = Store.make(folder / "keep")
    keep_home(store, home)
    restored = folder / "restored"
    assert restore_newest(store, home, restored).refused == ()
    assert read_with_sdk(restored, patch) == before


def test_generated_home_reads_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with their titles, times and sizes, and every message."""
    write(tmp_path / "home", megabytes=2)
    assert_reads_alike(tmp_path / "home", tmp_path, monkeypatch)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real home is not there")
def test_real_home_reads_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a home that Claude Code wrote."""
    shutil.copytree(REAL, tmp_path / "home", symlinks=True)
    assert_reads_alike(tmp_path / "home", tmp_path, monkeypatch)
