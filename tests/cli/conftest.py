"""Fixtures for tests of commands."""

from __future__ import annotations

import pytest
from tests.cli.runner import CliRunner


@pytest.fixture
def cli(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> CliRunner:
    """Runs the command in this process, for a user without a home."""
    user_folder = tmp_path_factory.mktemp("nobody")
    monkeypatch.setenv("HOME", str(user_folder))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(user_folder)
    return CliRunner(capfdbinary)
