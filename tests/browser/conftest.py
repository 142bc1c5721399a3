"""What tests in a browser share: homes made once a run, a server a worker, a browser, and a visitor who notices all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.browser import chromium, homes, hostile
from tests.browser.serving import Served, serving
from tests.browser.visiting import Visitor
from tests.shared_folders import shared_folder


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. It ends with these tests, since the loop that drives it would be in the way of others'."""
    with chromium.for_tests() as started:
        yield started


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`threadline serve` on a home of this worker: that of `homes`, whose growing session is a file of its own."""
    made = shared_folder(tmp_path_factory, "browsed", homes.make)
    home = tmp_path_factory.mktemp("browsed") / "home"
    shutil.copytree(made, home, copy_function=os.link)
    for path in home.glob(f"projects/*/{homes.GROWING}.jsonl"):
        path.unlink()
        shutil.copyfile(made / path.relative_to(home), path)
    with serving(home, tmp_path_factory.mktemp("browsed-cache")) as server:
        yield server


@pytest.fixture(scope="session")
def hostile_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`threadline serve` on the hostile home."""
    home = shared_folder(tmp_path_factory, "hostile", hostile.make)
    with serving(home, tmp_path_factory.mktemp("hostile-cache")) as server:
        yield server


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visitor]:
    """Opens pages in fresh profiles; a complaint of any of them fails the test.

    `page = visit("/usage", width=390, theme="dark", javascript=False)`
    """
    yield from _visiting(browser, served)


@pytest.fixture
def visit_hostile(browser: Browser, hostile_served: Served) -> Iterator[Visitor]:
    """The same for the hostile home."""
    yield from _visiting(browser, hostile_served)


def _visiting(browser: Browser, server: Served) -> Iterator[Visitor]:
    visitor = Visitor(browser, server)
    try:
        yield visitor
    finally:
        visitor.close()
    assert visitor.watched.complaints == []
