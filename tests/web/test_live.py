"""Pages are notified of writes: soon, once per burst, and only while somebody listens."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from time import monotonic, sleep

from starlette.requests import Request
from starlette.responses import StreamingResponse
from tests.transcripts import SESSION, Pen, lines, prompt, transcript, write
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

from threadline.find import homes
from threadline.web import Live

_OTHER = "0" * 8 + "-0000-4000-8000-000000000002"


def _append(home: Path, text: str) -> None:
    path = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    with path.open("ab") as file:
        file.write(lines(*transcript(prompt(text), pen=Pen())))


async def _next_session(stream: AsyncIterator[str]) -> str:
    """The session that the next event names."""
    async for event in stream:
        if event.startswith("data: "):
            return str(json.loads(event.removeprefix("data: "))["session"])
    return "(ended)"


def test_notifies_only_listeners_of_the_changed_session(tmp_path: Path) -> None:
    """A listener gets the id of its session and nothing more. Listeners of other sessions get nothing."""
    home = write_home(tmp_path / "home", session_rows())
    live = Live(homes(home))

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as stream, aclosing(live.listen(_OTHER)) as other:
            # The first event comes at the start, because something may have been written before.
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            assert await asyncio.wait_for(_next_session(other), 20) == _OTHER
            waiting = asyncio.ensure_future(_next_session(other))
            _append(home, "a word")
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            await asyncio.sleep(0.5)
            assert not waiting.done()
            live.stop()
            assert await asyncio.wait_for(waiting, 20) == "(ended)"

    asyncio.run(listen())


def test_a_page_of_one_of_several_sessions_with_an_id_is_notified(tmp_path: Path) -> None:
    """The name of such a session in URLs begins with its folder. Events name the id."""
    home = write_home(tmp_path / "home", session_rows())
    write(home / "projects" / "-work-other" / f"{SESSION}.jsonl", *session_rows(turns=1))
    client = Client(home)
    (name,) = re.findall(r'data-session="(-work-other[^"]+)"', client.get(f"/session/-work-other~2F{SESSION}").text)

    async def listen() -> None:
        request = Request({"type": "http", "method": "GET", "query_string": f"session={name}".encode(), "headers": []})
        response = await client.app.live.respond(request, lambda: True)
        assert isinstance(response, StreamingResponse)
        stream = (str(event) async for event in response.body_iterator)
        assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
        _append(home, "a word")
        assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
        client.app.live.notify(f"-work-other/{SESSION}")  # read in the background
        assert await asyncio.wait_for(_next_session(stream), 20) == SESSION

    asyncio.run(listen())


def test_a_page_that_is_current_gets_no_first_event(tmp_path: Path) -> None:
    """The first event is only for pages that were computed before the last change, also if others listen already."""
    home = write_home(tmp_path / "home", session_rows())
    live = Live(homes(home))
    before = next(home.glob(f"projects/*/{SESSION}.jsonl")).stat().st_mtime - 1

    async def listen() -> None:
        async with (
            aclosing(live.listen(None, before)) as old,
            aclosing(live.listen(None, before + 3600)) as current,
        ):
            waiting = asyncio.ensure_future(_next_session(current))
            assert await asyncio.wait_for(_next_session(old), 20) == ""
            async with aclosing(live.listen(None, before)) as later:
                assert await asyncio.wait_for(_next_session(later), 20) == ""
            await asyncio.sleep(0.3)
            assert not waiting.done()
            _append(home, "a word")
            assert await asyncio.wait_for(waiting, 20) == SESSION
            live.stop()

    asyncio.run(listen())


def test_reports_a_change_before_pages_are_notified(tmp_path: Path) -> None:
    """What was read before the change is dropped first: pages ask again as soon as they are notified."""
    home = write_home(tmp_path / "home", session_rows())
    changes: list[str] = []
    live = Live(homes(home), on_change=lambda: changes.append("changed"))

    async def listen() -> None:
        async with aclosing(live.listen()) as stream:
            await asyncio.wait_for(_next_session(stream), 20)
            assert changes == []
            next(home.glob(f"projects/*/{SESSION}.jsonl")).unlink()
            assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
            assert changes
            live.stop()

    asyncio.run(listen())


def test_limits_notifications_during_a_burst(tmp_path: Path) -> None:
    """However many lines are written, a page is notified at most five times a second."""
    home = write_home(tmp_path / "home", session_rows())
    live = Live(homes(home))

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as stream:
            await _next_session(stream)
            started = monotonic()
            counting = asyncio.ensure_future(_count_events(stream))
            await asyncio.get_running_loop().run_in_executor(None, _append_many, home)
            await asyncio.sleep(1)  # for the event of the last lines
            live.stop()
            events = await asyncio.wait_for(counting, 20)
            assert 1 <= events <= 5 * (monotonic() - started) + 2

    asyncio.run(listen())


async def _count_events(stream: AsyncIterator[str]) -> int:
    """How many events there are until the stream ends."""
    events = 0
    while await _next_session(stream) != "(ended)":
        events += 1
    return events


def _append_many(home: Path) -> None:
    for number in range(400):
        _append(home, f"line {number}")
        sleep(0.002)


def test_following_stops_with_the_last_listener(tmp_path: Path) -> None:
    """Without listeners nothing is watched. Watching starts again with the next listener."""
    live = Live(homes(write_home(tmp_path / "home", session_rows())))

    async def listen() -> None:
        for _ in range(2):
            async with aclosing(live.listen(SESSION)) as stream:
                assert await asyncio.wait_for(_next_session(stream), 20) == SESSION
                assert live.is_following
            for _ in range(100):
                if not live.is_following:
                    break
                await asyncio.sleep(0.1)
            assert not live.is_following

    asyncio.run(listen())
