"""Fixtures for tests of commands."""

from __future__ import annotations

import pytest
from tests.cli.asking import Asker


@pytest.fixture
def ask(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Asker:
    """Asks the command, in this process, as somebody who has no home of their own."""
    nobody = tmp_path_factory.mktemp("nobody")
    monkeypatch.setenv("HOME", str(nobody))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(nobody)
    return Asker(capfdbinary)
