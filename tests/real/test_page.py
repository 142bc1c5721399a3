"""The pages of real transcripts: every session, every agent, every section, and the pages below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.browser.crawler import CrawlResult, crawl
from tests.browser.server import Server, start_server
from tests.profiles import is_long_run
from tests.real.client import SHARED

HOME = SHARED / "corpus/home"
EVERY = 23
"""Every how many entries of a transcript the page of an entry is requested."""
SHARE = 1 if is_long_run() else 8
"""Every how many sessions all sections are requested. In a long run it is every session."""

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`threadline serve` on the real home."""
    with start_server(HOME, tmp_path_factory.mktemp("real-cache")) as started:
        yield started


def mains() -> list[Path]:
    """The main transcripts."""
    return sorted(path for path in HOME.glob("projects/*/*.jsonl") if not path.name.startswith("agent-"))


@pytest.mark.slow
def test_every_link_of_the_real_home_works(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """From the home page on, every kind of page of every session answers, is well-formed, and has a JSON version."""
    with server.client() as client:
        result = crawl(client, alike=3 if SHARE == 1 else 1)
    _report(capsys, result)
    assert result.failures == []
    assert SHARE > 1 or result.pages["/session/ID"] >= len(mains())


def test_renders_every_section_of_the_real_sessions(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions and agents: each section as a fragment, every 23rd entry, and states."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with server.client() as client:
        for path in mains()[::SHARE]:
            session = f"/session/{path.stem}"
            for name, kind in _addresses(client, session, path):
                counts[kind] += 1
                if client.get(name).status_code != 200:
                    failures.append(name)
    with capsys.disabled():
        print(f"\nof the real home: {dict(counts)}")  # noqa: T201 - figures
    assert failures == []
    assert counts["section"] >= counts["session"] == len(mains()[::SHARE])


def _addresses(client: httpx.Client, session: str, path: Path) -> Iterator[tuple[str, str]]:
    """Every requested URL of a session, with its kind."""
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
    paths = sorted(path.with_suffix("").rglob("agent-*.jsonl"))
    return [agent_path.stem.removeprefix("agent-") for agent_path in paths]


def _sections(shape: Any) -> list[dict[str, Any]]:
    sections: list[dict[str, Any]] = shape["sections"] if isinstance(shape, dict) else shape
    return sections


def _report(capsys: pytest.CaptureFixture[str], result: CrawlResult) -> None:
    slow = ", ".join(f"{seconds:.2f} s {path.partition('?')[0][:24]}" for seconds, path in result.slowest[:3])
    with capsys.disabled():
        print(  # noqa: T201 - figures are wanted here
            f"\nreal pages: {dict(result.pages)}, {result.twins} twins, {result.bytes / 1e6:.0f} MB; slowest {slow}"
        )
