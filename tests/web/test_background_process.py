"""Another process computes as long as the browser waits, and only the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic

import pytest
from starlette.requests import Request

from threadline.files import is_running
from threadline.web.background_process import BackgroundProcess

_SLEEP = """
import os, pathlib, time
path = pathlib.Path({path!r})
path.with_suffix(".new").write_text(str(os.getpid()))
path.with_suffix(".new").rename(path)
time.sleep(60)
"""


def _sleep(path: Path) -> Callable[[], object]:
    """A function that writes its process id and sleeps."""
    return partial(exec, _SLEEP.format(path=str(path)))


async def _wait_for(condition: Callable[[], object]) -> None:
    until = monotonic() + 20
    while not condition():
        assert monotonic() < until
        await asyncio.sleep(0.02)


def _request(closed: asyncio.Event) -> Request:
    """A request whose connection is closed at some point."""

    async def receive() -> dict[str, str]:
        await closed.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http"}, receive)


def test_the_value_comes_back_and_a_failure_is_none() -> None:
    """A function that raises has no value; the next call works."""

    async def call() -> None:
        process, request = BackgroundProcess(), _request(asyncio.Event())
        assert await process.call(partial(sorted, "cab"), request) == ["a", "b", "c"]
        assert await process.call(partial(int, "x"), request) is None
        assert await process.call(partial(abs, -2), request) == 2

    asyncio.run(call())


def test_it_ends_when_the_browser_leaves(tmp_path: Path) -> None:
    """The process is killed, not left to compute for nobody."""

    async def call() -> None:
        closed, path = asyncio.Event(), tmp_path / "pid"
        running = asyncio.ensure_future(BackgroundProcess().call(_sleep(path), _request(closed)))
        await _wait_for(path.exists)
        assert is_running(int(path.read_text()))
        closed.set()
        await asyncio.wait_for(running, 20)
        assert not is_running(int(path.read_text()))

    asyncio.run(call())


def test_a_new_one_replaces_the_one_that_is_running(tmp_path: Path) -> None:
    """There are never two."""

    async def call() -> None:
        process, path = BackgroundProcess(), tmp_path / "pid"
        first = asyncio.ensure_future(process.call(_sleep(path), _request(asyncio.Event())))
        await _wait_for(path.exists)
        assert await process.call(partial(abs, -2), _request(asyncio.Event())) == 2
        await asyncio.wait_for(first, 20)
        assert not is_running(int(path.read_text()))

    asyncio.run(call())


def test_it_goes_on_if_another_request_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who leaves for the page that needs the value gets it."""
    monkeypatch.setattr("threadline.web.background_process._GRACE_SECONDS", 0.0)

    async def call() -> None:
        closed = asyncio.Event()
        closed.set()
        slow = partial(eval, "__import__('time').sleep(0.5) or 'done'")
        assert await BackgroundProcess().call(slow, _request(closed), lambda: True) == "done"

    asyncio.run(call())
