"""A restored home beside the one that was kept, as the official SDK reads them: the same sessions, the same messages.

The SDK is no dependency of the tests, as its wheel is 160 MB: `pip install 'threadline[oracle]'` brings it.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.keep.homes import kept
from tests.keep.test_round_trip import given_back
from tests.real.client import SHARED
from tools.demo import write

from threadline.keep import Store

REAL = SHARED / "corpus/home"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("claude_agent_sdk") is None, reason="claude-agent-sdk is not there"),
]


def _as_the_sdk_reads_it(home: Path, patch: pytest.MonkeyPatch) -> tuple[list[Any], dict[str, list[Any]]]:
    """All sessions of a home, and the messages of each."""
    patch.setenv("CLAUDE_CONFIG_DIR", str(home))
    sdk: Any = importlib.import_module("claude_agent_sdk")
    listed = [asdict(session) for session in sdk.list_sessions()]
    messages = {one["session_id"]: [asdict(each) for each in _messages(sdk, one["session_id"])] for one in listed}
    return listed, messages


def _messages(sdk: Any, session: str) -> list[Any]:
    try:
        found: list[Any] = sdk.get_session_messages(session)
    except (RecursionError, UnicodeDecodeError):  # its limits, not ours: the same in both homes
        return []
    return found


def _assert_read_alike(home: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
    before = _as_the_sdk_reads_it(home, patch)
    assert any(before[1].values())
    store = Store.make(folder / "keep")
    kept(store, home)
    restored = folder / "restored"
    assert given_back(store, home, restored).refused == ()
    assert _as_the_sdk_reads_it(restored, patch) == before


def test_a_made_up_home_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with their titles, times and sizes, and every message of each."""
    write(tmp_path / "home", megabytes=2)
    _assert_read_alike(tmp_path / "home", tmp_path, monkeypatch)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real home is not there")
def test_the_real_home_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of a home that Claude Code wrote."""
    shutil.copytree(REAL, tmp_path / "home", symlinks=True)
    _assert_read_alike(tmp_path / "home", tmp_path, monkeypatch)
