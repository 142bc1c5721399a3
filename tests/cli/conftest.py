"""Fixtures for tests of commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.cli.runner import CliRunner


@pytest.fixture
def cli(
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> CliRunner:
    """Runs the command in this process, for a user without a home."""
    # One folder for the users of all tests: beside the folders of tests, they would slow down the search for a name.
    users = tmp_path_factory.getbasetemp() / "users"
    users.mkdir(exist_ok=True)
    user_folder = mkdtemp(dir=users)
    monkeypatch.setenv("HOME", user_folder)
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(user_folder)
    return CliRunner(capfdbinary)


@pytest.fixture(scope="session")
def indexed_folder(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`home`, a copy of the demo home, and `cache`, where the first command indexes it. No test may change them."""
    folder = tmp_path_factory.mktemp("indexed")
    shutil.copytree(demo_home, folder / "home")
    return folder


@pytest.fixture
def indexed_home(indexed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo home whose index stays from test to test. No test may change it."""
    monkeypatch.setenv("THREADLINE_CACHE", str(indexed_folder / "cache"))
    return indexed_folder / "home"
