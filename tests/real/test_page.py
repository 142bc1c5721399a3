"""The page on real transcripts: every session, every agent, every section of each, and what lies behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.browser.crawling import Crawled, crawl
from tests.browser.serving import Served, serving
from tests.profiles import is_long_run
from tests.real.client import SHARED

HOME = SHARED / "corpus/home"
EVERY = 23
"""Of the entries of a transcript, one of so many is looked at alone."""
SHARE = 1 if is_long_run() else 8
"""One session of so many is looked at section by section; in a long run all are."""

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`threadline serve` on the real home."""
    with serving(HOME, tmp_path_factory.mktemp("real-cache")) as server:
        yield server


def mains() -> list[Path]:
    """The main transcripts."""
    return sorted(path for path in HOME.glob("projects/*/*.jsonl") if not path.name.startswith("agent-"))


@pytest.mark.slow
def test_every_link_of_the_real_home_answers(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """From the home page on, every kind of page of every session answers, is well-formed, and has a twin."""
    with served.client() as client:
        done = crawl(client, alike=3 if SHARE == 1 else 1)
    _report(capsys, done)
    assert done.failures == []
    assert SHARE > 1 or done.pages["/session/ID"] >= len(mains())


def test_every_section_of_every_real_session_is_drawn(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions and agents: each section as a fragment, one entry of 23 alone, and the state at the end."""
    asked: Counter[str] = Counter()
    wrong: list[str] = []
    with served.client() as client:
        for path in mains()[::SHARE]:
            session = f"/session/{path.stem}"
            for name, kind in _addresses(client, session, path):
                asked[kind] += 1
                if client.get(name).status_code != 200:
                    wrong.append(name)
    with capsys.disabled():
        print(f"\nof the real home: {dict(asked)}")  # noqa: T201 - figures
    assert wrong == []
    assert asked["section"] >= asked["session"] == len(mains()[::SHARE])


def _addresses(client: httpx.Client, session: str, path: Path) -> Iterator[tuple[str, str]]:
    """Everything that is looked at of a session, with its kind."""
    for agent in (None, *_agents(path)):
        query = f"?agent={agent}" if agent else ""
        yield (f"{session}/agent/{agent}", "agent") if agent else (session, "session")
        sections = _sections(client.get(f"{session}/shape.json{query}").json())
        for section in sections:
            yield f"{session}/part/{section['number']}{query}", "section"
        for section in sections[::EVERY] or ():
            yield f"{session}/state/{section['first']}", "state"
    lines = path.read_bytes().count(b"\n")
    for line in range(1, lines + 1, EVERY):
        yield f"{session}/entry/L{line}", "entry"


def _agents(path: Path) -> list[str]:
    below = sorted(path.with_suffix("").rglob("agent-*.jsonl"))
    return [one.stem.removeprefix("agent-") for one in below]


def _sections(shape: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shape["sections"] if isinstance(shape, dict) else shape
    return found


def _report(capsys: pytest.CaptureFixture[str], done: Crawled) -> None:
    slow = ", ".join(f"{seconds:.2f} s {path.partition('?')[0][:24]}" for seconds, path in done.slowest[:3])
    with capsys.disabled():
        print(  # noqa: T201 - figures are wanted here
            f"\nreal pages: {dict(done.pages)}, {done.twins} twins, {done.bytes / 1e6:.0f} MB; slowest {slow}"
        )
