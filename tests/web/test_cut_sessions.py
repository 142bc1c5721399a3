"""A session that is truncated or deleted while it is shown is noticed and reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
from tests.transcripts import SESSION, line
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.find import homes
from threadline.web import Live


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The transcript of a home's only session."""
    return next(write_home(tmp_path / "home", session_rows()).glob(f"projects/*/{SESSION}.jsonl"))


def _cut(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)[:4]
    with path.open("r+b") as file:
        file.truncate(sum(map(len, lines)))


async def _next_session(stream: AsyncIterator[str]) -> str:
    """The session that the next event names."""
    async for event in stream:
        if event.startswith("data: "):
            return str(json.loads(event.removeprefix("data: "))["session"])
    return "(ended)"


def test_notifies_listeners_of_truncation_deletion_and_return(tmp_path: Path, path: Path) -> None:
    """The stream of a session reports these changes in the same way as an appended line."""
    live = Live(homes(tmp_path / "home"))
    content = path.read_bytes()

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as stream:
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            for change in (partial(_cut, path), path.unlink, partial(path.write_bytes, content)):
                change()
                assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            live.stop()

    asyncio.run(listen())


def test_reports_agents_beside_sessions_as_their_session(tmp_path: Path, path: Path) -> None:
    """Up to version 2.1.1, only the content of an agent's transcript names its session."""
    live = Live(homes(tmp_path / "home"))

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as stream:
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            row = {"type": "user", "sessionId": SESSION, "isSidechain": True}
            path.with_name("agent-0a1b2c3d.jsonl").write_bytes(line({"type": "summary"}) + line(row))
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            live.stop()

    asyncio.run(listen())


def test_does_not_watch_paths_outside_the_home(tmp_path: Path, path: Path) -> None:
    """A listener of a path outside the home gets no events."""
    live = Live(homes(tmp_path / "home"))
    name = f"{SESSION}/../../../../outside"
    (path.parent / SESSION).mkdir(exist_ok=True)
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(b"{}\n{}\n")

    async def listen() -> None:
        async with aclosing(live.listen(name)) as stream:
            assert await asyncio.wait_for(_next_session(stream), 20) == name  # at the start
            outside.unlink()
            _cut(path)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_next_session(stream), 1)
            live.stop()

    asyncio.run(listen())


@pytest.mark.slow
def test_tells_an_open_page_that_its_session_is_gone(client: Client, tmp_path: Path) -> None:
    """A page that has shown the session gets an answer. Other requests get 404."""
    shape = f"/session/{SESSION}/shape.json"
    assert "gone" not in client.get(f"{shape}?seen=1").json()
    next((tmp_path / "home").glob(f"projects/*/{SESSION}.jsonl")).unlink()
    answer = client.get(f"{shape}?seen=1")
    assert answer.status_code == 200
    assert "no longer exists" in answer.json()["gone"]
    assert client.get(shape).status_code == 404
