"""A session that is cut or deleted while it is looked at is noticed, and said to be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.make import SESSION
from tests.web.asking import Client
from tests.web.conftest import session_rows, write_home

from threadline.find import homes
from threadline.watch import ShrinkDetector
from threadline.watch import follower as module
from threadline.web.live import Live


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The transcript of a home's only session."""
    return next(write_home(tmp_path / "home", session_rows()).glob(f"projects/*/{SESSION}.jsonl"))


@pytest.fixture
def shrinking(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> ShrinkDetector:
    """Has looked at it once."""
    monkeypatch.setattr(module, "_SEARCH", 0.0)
    made = ShrinkDetector(homes(tmp_path / "home"))
    assert path.exists()
    assert made.look({SESSION}) == []
    return made


def _cut(path: Path) -> None:
    kept = path.read_bytes().splitlines(keepends=True)[:4]
    with path.open("r+b") as file:
        file.truncate(sum(map(len, kept)))


def test_growing_is_left_to_others_and_cutting_is_told_once(shrinking: ShrinkDetector, path: Path) -> None:
    """What is added is the follower's to tell; what is cut is told, and not again."""
    with path.open("ab") as file:
        file.write(b"{}\n")
    assert shrinking.look({SESSION}) == []
    _cut(path)
    assert shrinking.look({SESSION}) == [SESSION]
    assert shrinking.look({SESSION}) == []


def test_deletion_and_return_are_told(shrinking: ShrinkDetector, path: Path) -> None:
    """Gone, and there again, if in another folder."""
    held = path.read_bytes()
    path.unlink()
    assert shrinking.look({SESSION}) == [SESSION]
    assert shrinking.look({SESSION}) == []
    other = path.parent.parent / "-work-other" / path.name
    other.parent.mkdir()
    other.write_bytes(held)
    assert shrinking.look({SESSION}) == [SESSION]


def test_a_name_that_leads_elsewhere_is_not_looked_for(shrinking: ShrinkDetector, path: Path, tmp_path: Path) -> None:
    """Whoever asks for news of a path gets none."""
    name = f"{SESSION}/../../../../outside"
    (path.parent / SESSION).mkdir(exist_ok=True)
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(b"{}\n{}\n")
    assert shrinking.look({name}) == []
    outside.unlink()
    assert shrinking.look({name}) == []


def test_who_listens_hears_of_a_cut(tmp_path: Path, path: Path) -> None:
    """The stream of a session tells that it was cut, as it tells that it grew."""
    live = Live(homes(tmp_path / "home"))

    async def told(stream: AsyncIterator[str]) -> str:
        async for event in stream:
            if event.startswith("data: "):
                return str(json.loads(event.removeprefix("data: "))["session"])
        return "(ended)"

    async def listen() -> None:
        async with aclosing(live.listen(SESSION)) as own:
            assert await asyncio.wait_for(told(own), 20) == SESSION
            await asyncio.sleep(1.5)  # it was looked at by then
            _cut(path)
            assert await asyncio.wait_for(told(own), 20) == SESSION
            live.stop()

    asyncio.run(listen())


def test_a_page_that_has_shown_it_is_told_that_it_is_gone(client: Client, tmp_path: Path) -> None:
    """That is an answer to whoever has seen it, and not found for anybody else."""
    shape = f"/session/{SESSION}/shape.json"
    assert "gone" not in client.get(f"{shape}?seen=1").json()
    next((tmp_path / "home").glob(f"projects/*/{SESSION}.jsonl")).unlink()
    answer = client.get(f"{shape}?seen=1")
    assert answer.status_code == 200
    assert "not there any more" in answer.json()["gone"]
    assert client.get(shape).status_code == 404
