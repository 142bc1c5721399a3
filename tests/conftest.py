"""What all tests share: an index and a keep of their own; none is made in, or read from, the reader's own folders."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Indexes and keeps lie in folders of this run, unless a test says otherwise."""
    os.environ["THREADLINE_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["THREADLINE_KEEP"] = str(tmp_path_factory.mktemp("keep") / "none")
