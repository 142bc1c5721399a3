"""The environment of tests that ask several interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interfaces import entry_points


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path) -> Iterator[None]:
    """No home, index or keep of the user."""
    with entry_points.isolated(tmp_path / "environment", frozen=False):
        yield
