"""What all tests share: an index of their own, so that none is made in, or read from, the reader's own folder."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Indexes lie in a folder of this run, unless a test says otherwise."""
    os.environ["THREADLINE_CACHE"] = str(tmp_path_factory.mktemp("cache"))
