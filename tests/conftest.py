"""Setup for all tests: hypothesis profiles, markers by folder, and an environment without the user's own folders.

`make test` runs the quick tier. `make test-all` runs everything with random seeds. CONTRIBUTING.md describes the tiers.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.opened_files import OpenedFiles
from tests.profiles import CI_EXAMPLES
from tests.shared_folders import shared_folder
from tools import demo

TESTS = Path(__file__).parent

# An example may take long on a busy machine. Tests that use `tmp_path` in a property write to a new place each time.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], print_blob=True
)
settings.register_profile("quick", _COMMON, max_examples=10, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=CI_EXAMPLES)
settings.register_profile("long", _COMMON, max_examples=20 * CI_EXAMPLES)
settings.load_profile("quick")  # unless `--hypothesis-profile` names another

FOLDER_MARKS = {"browser": "browser", "real": "real"}
"""The marker that every test in a folder gets."""
FIXTURE_MARKS = {"browser": "browser"}
"""The marker that every test with a fixture gets."""
FOREIGN_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIRS",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
"""Environment variables that would lead tests to the user's own folders."""


_NUMBERS = count(1)


def pytest_configure() -> None:
    """Make runs alike: times are UTC, and tests can interrupt processes even where SIGINT is ignored."""
    os.environ["TZ"] = "UTC"
    os.environ.pop("COLUMNS", None)  # workers of pytest-xdist have 80: tests that depend on the width set it
    if hasattr(time, "tzset"):
        time.tzset()
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def _folder_mark(path: Path) -> str | None:
    return FOLDER_MARKS.get(path.relative_to(TESTS).parts[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, by the fixtures they use, and by `sample`."""
    numbers = Counter[str]()
    for item in items:
        if sample := item.get_closest_marker("sample"):
            name = item.nodeid.partition("[")[0]
            if numbers[name] % sample.args[0]:
                item.add_marker("slow")
            numbers[name] += 1
        marks = {_folder_mark(item.path), *map(FIXTURE_MARKS.get, getattr(item, "fixturenames", ()))}
        for mark in marks - {None}:
            item.add_marker(str(mark))


def pytest_collection_finish() -> None:
    """Take the thousands of collected tests out of garbage collection: they live until the end of the run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give the run its own home, index and keep folders, so that nothing is written to or read from the user's."""
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)
    home = tmp_path_factory.mktemp("user") / "nobody"
    home.mkdir()
    os.environ["HOME"] = str(home)
    os.environ["THREADLINE_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["THREADLINE_KEEP"] = str(tmp_path_factory.mktemp("keep") / "none")


@pytest.fixture(autouse=True)
def _own_home(_own_folders: None) -> Iterator[None]:
    """Give each test its own user folder: no test finds the annotations or the machine's id that another one wrote."""
    before = os.environ["HOME"]
    home = f"{before}-{next(_NUMBERS)}"
    os.mkdir(home)  # noqa: PTH102 - runs for every test
    os.environ["HOME"] = home
    yield
    os.environ["HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Tests kill processes, but do not turn off the machine, so nothing has to be on the disk."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
        monkeypatch.setattr("threadline.files._sync_data", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session")
def _opened_files() -> OpenedFiles:
    return OpenedFiles()


@pytest.fixture
def opened(_opened_files: OpenedFiles) -> Iterator[OpenedFiles]:
    """Records which files are opened below a folder that the test sets."""
    _opened_files.paths.clear()
    yield _opened_files
    _opened_files.folder = ""


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of 1 MB with everything a home can have, shared by all workers. No test may change it."""
    return shared_folder(tmp_path_factory, "demo-home", lambda home: demo.write(home, megabytes=1))


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home like `demo_home`, of half its size, for tests that copy and change it."""
    return shared_folder(tmp_path_factory, "small-home", lambda home: demo.write(home, megabytes=0.4))
