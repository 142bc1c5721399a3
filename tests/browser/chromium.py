"""Debian's Chromium, launch in the same way for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--no-sandbox",  # root, as in CI, cannot use it
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-smooth-scrolling",  # a wheel event scrolls at once
    # Pages reach no other host.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*, EXCLUDE localhost, EXCLUDE *.localhost",
)


def program() -> str | None:
    """The path of Chromium, or None."""
    return shutil.which("chromium")


def missing() -> str | None:
    """Why there is no browser to test with, or None if there is one."""
    return None if program() else "there is no chromium here (Debian: apt-get install chromium)"


def is_needed() -> bool:
    """Whether tests must not be skipped: CI must have a browser."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


@contextmanager
def launch(*flags: str) -> Iterator[Browser]:
    """Start the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def launch_for_tests() -> Iterator[Browser]:
    """Start the browser for a fixture. Without one, tests are skipped, or fail in CI."""
    if reason := missing():
        if is_needed():
            pytest.fail(f"CI needs a browser, and {reason}.")
        pytest.skip(reason)
    with launch() as browser:
        yield browser
