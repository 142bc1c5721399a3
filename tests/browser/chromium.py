"""Chromium: Debian's, started the same way for tests and for measuring."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_FLAGS = (
    "--no-sandbox",  # root, as in CI, may not have one
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-smooth-scrolling",  # a wheel moves by what it says, at once
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # whatever a page asks for, nobody is called
)


def program() -> str | None:
    """Where it lies."""
    return shutil.which("chromium")


def missing() -> str | None:
    """Why there is no browser to test with; None where there is one."""
    return None if program() else "there is no chromium here (Debian: apt-get install chromium)"


def is_needed() -> bool:
    """Whether tests must not be skipped: CI has a browser, or is broken."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


@contextmanager
def started(*flags: str) -> Iterator[Browser]:
    """The browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def for_tests() -> Iterator[Browser]:
    """The browser for a fixture; without one, tests are skipped, or fail in CI."""
    if why := missing():
        if is_needed():
            pytest.fail(f"CI needs a browser, and {why}.")
        pytest.skip(why)
    with started() as browser:
        yield browser
