"""Pages are told that something was written: soon, once for a burst, and no longer than anybody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from time import monotonic, sleep

from tests.transcripts import SESSION, Pen, lines, prompt, transcript
from tests.web.conftest import session_rows, write_home

from threadline.find import homes
from threadline.web import Live

_OTHER = "0" * 8 + "-0000-4000-8000-000000000002"


def _append(home: Path, text: str) -> None:
    path = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    with path.open("ab") as file:
        file.write(lines(*transcript(prompt(text), pen=Pen())))


async def _told(stream: AsyncIterator[str]) -> str:
    """The session that the next notice names."""
    async for event in stream:
        if event.startswith("data: "):
            return str(json.loads(event.removeprefix("data: "))["session"])
    return "(ended)"


def test_an_appended_line_is_told_and_other_sessions_are_not(tmp_path: Path) -> None:
    """Who listens to a session hears of it, with its id and nothing more; who listens to another hears nothing."""
    home = write_home(tmp_path / "home", session_rows())
    live = Live(homes(home))

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as own, aclosing(live.listen(_OTHER)) as other:
            assert await asyncio.wait_for(_told(own), 20) == SESSION  # at the start: what was written before may be new
            assert await asyncio.wait_for(_told(other), 20) == _OTHER
            waiting = asyncio.ensure_future(_told(other))
            _append(home, "a word")
            assert await asyncio.wait_for(_told(own), 20) == SESSION
            await asyncio.sleep(0.5)
            assert not waiting.done()
            live.stop()
            assert await asyncio.wait_for(waiting, 20) == "(ended)"

    asyncio.run(listen())


def test_a_burst_is_told_a_few_times_only(tmp_path: Path) -> None:
    """However many lines come, a page hears of them no more than five times a second."""
    home = write_home(tmp_path / "home", session_rows())
    live = Live(homes(home))

    async def listen() -> int:
        async with aclosing(live.listen(SESSION)) as own:
            await _told(own)
            heard = 0
            began = monotonic()
            writing = asyncio.get_running_loop().run_in_executor(None, _many, home)
            while not writing.done():
                await asyncio.wait_for(_told(own), 20)
                heard += 1
            live.stop()
            assert heard <= 5 * (monotonic() - began) + 2
            return heard

    assert asyncio.run(listen()) >= 1


def _many(home: Path) -> None:
    for number in range(400):
        _append(home, f"line {number}")
        sleep(0.002)


def test_the_follower_ends_with_the_last_listener(tmp_path: Path) -> None:
    """Nobody listens: nothing is looked at any more; and it begins again with the next."""
    live = Live(homes(write_home(tmp_path / "home", session_rows())))

    async def listen() -> None:
        for _ in range(2):
            async with aclosing(live.listen(SESSION)) as own:
                assert await asyncio.wait_for(_told(own), 20) == SESSION
                assert live.is_following
            for _ in range(100):
                if not live.is_following:
                    break
                await asyncio.sleep(0.1)
            assert not live.is_following

    asyncio.run(listen())
