"""What tests of the faces share: a made-up home, and a person who asks the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.asking import Asker
from tools.demo import write


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that `threadline demo` writes. No test may change it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    write(home)
    return home


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
