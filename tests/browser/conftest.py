"""Fixtures for browser tests: shared homes, one server per worker, a browser, and a visitor that reports errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser import chromium, homes, hostile
from tests.browser.server import Server, start_server
from tests.browser.visitor import Visitor
from tests.shared_folders import shared_folder


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. It is closed after these tests, because its event loop would disturb others."""
    with chromium.launch_for_tests() as chromium_browser:
        yield chromium_browser


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`threadline serve` on a home of this worker: links to the home of `homes`, and a copy of its growing session."""
    original = shared_folder(tmp_path_factory, "browsed", homes.make)
    yield from _serve(original, tmp_path_factory)


@pytest.fixture(scope="session")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same without the long session and with less of the demo, for smoke tests."""
    original = shared_folder(
        tmp_path_factory, "browsed-small", lambda home: homes.make_without_long_session(home, megabytes=0.2)
    )
    yield from _serve(original, tmp_path_factory)


def _serve(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("browsed") / "home"
    shutil.copytree(original, home, copy_function=os.link)
    for path in home.glob(f"projects/*/{homes.GROWING}.jsonl"):
        path.unlink()
        shutil.copyfile(original / path.relative_to(home), path)
    with start_server(home, tmp_path_factory.mktemp("browsed-cache")) as started:
        yield started


@pytest.fixture(scope="session")
def hostile_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`threadline serve` on the hostile home."""
    home = shared_folder(tmp_path_factory, "hostile", hostile.make)
    with start_server(home, tmp_path_factory.mktemp("hostile-cache")) as server:
        yield server


@pytest.fixture
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """Opens pages in fresh profiles. An error on any of them fails the test. Smoke tests have a small home.

    `page = visit("/usage", width=390, theme="dark", javascript=False)`
    """
    name = "small_server" if request.node.get_closest_marker("smoke") else "server"
    yield from visiting(browser, request.getfixturevalue(name))


@pytest.fixture
def visit_hostile(browser: Browser, hostile_server: Server) -> Iterator[Visitor]:
    """The same for the hostile home."""
    yield from visiting(browser, hostile_server)


def visiting(browser: Browser, server: Server) -> Iterator[Visitor]:
    """Yield a visitor of a server; then check that no page had an error."""
    visitor = Visitor(browser, server)
    try:
        yield visitor
    finally:
        visitor.close()
    assert visitor.errors.messages == []
