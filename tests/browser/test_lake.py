"""The pages of a lake in a browser: readable, accessible, every link works, and hostile names are only text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser import hostile
from tests.browser.conftest import visiting
from tests.browser.crawler import crawl
from tests.browser.server import Server, start_server
from tests.browser.test_accessibility import check_in_all_themes
from tests.browser.test_hostile import NOTHING, foreign_content
from tests.browser.visitor import Visitor
from tests.lake.machines import machine, make_homes

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.find import look
from threadline.lake import Policy, PushOptions, build_lake, create_lake, push_sessions, write_teams
from threadline.storage import Bucket

HOSTILE_NAME = "<img src=x onerror=alert(1) id=evil>\"'"
WIDTHS = (1400, 390)


@pytest.fixture(scope="module")
def lake_server(tmp_path_factory: pytest.TempPathFactory, demo_home: Path) -> Iterator[Server]:
    """A server for a lake of six people, one with hostile sessions and a hostile name, in a hostile team."""
    folder = tmp_path_factory.mktemp("lake")
    home = folder / "hostile"
    hostile.make(home)
    bucket = Bucket(str(folder / "lake"))
    create_lake(bucket, Policy.FULL)
    people = ["alice", "bob", "carol", "dave", "erin", HOSTILE_NAME]
    for number, (person, path) in enumerate(zip(people, [*make_homes(folder / "homes", demo_home), home], strict=True)):
        push_sessions(bucket, [look(path)], machine(number), PushOptions(person=person, accepted=Policy.FULL))
    build_lake(bucket, jobs=1)
    write_teams(bucket, f"[teams]\nsearch = ['alice', 'bob']\n'<b id=evil>' = [{json.dumps(HOSTILE_NAME)}]\n".encode())
    with start_server(bucket.folder, folder / "cache", source="--lake") as server:
        yield server


@pytest.fixture
def visit_lake(browser: Browser, lake_server: Server) -> Iterator[Visitor]:
    """Opens pages of the lake."""
    yield from visiting(browser, lake_server)


def test_every_link_of_a_lake_works(lake_server: Server) -> None:
    """From the dashboard on, each link gives 200, each page is well-formed, and each JSON version is valid."""
    with lake_server.client() as client:
        result = crawl(client, ["/", "/keys"])
    assert [failure for failure in result.failures if "%2F" not in failure.partition("?")[0]] == []
    assert {"/", "/sessions", "/search", "/usage", "/session/ID", "/session/ID/agent/AGENT"} <= set(result.pages)


@pytest.mark.parametrize(
    "path", ["/?since=all", "/usage?since=all&by=team,person,project", "/sessions", "/search?q=evil"]
)
def test_hostile_names_run_nothing_and_pages_fit(visit_lake: Visitor, path: str) -> None:
    """Names of people, teams, projects and sessions are only text; no page is too wide; axe-core reports nothing."""
    page = visit_lake(path)
    assert foreign_content(page) == NOTHING
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    check_in_all_themes(page)


def test_a_session_of_a_lake_opens_from_the_list(visit_lake: Visitor) -> None:
    """A click on a session in the dashboard opens the page that local sessions have, with who pushed it."""
    page = visit_lake("/?since=all")
    link = page.locator("table.sessions a").first
    title = link.inner_text()
    link.click()
    page.locator("article.item").first.wait_for()
    assert page.locator("h1").inner_text() == title
    assert page.locator("header.head a[title='who pushed it']").count() == 1


def test_no_column_of_the_dashboard_is_cut_off(visit_lake: Visitor) -> None:
    """Long names of people, projects and machines wrap, so that every table shows its last column."""
    page = visit_lake("/?since=all")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        tables = "[...document.querySelectorAll('main table.list')]"
        is_cut = "t => t.offsetWidth > t.parentElement.clientWidth"
        assert page.evaluate(f"{tables}.filter({is_cut}).map(t => t.caption.innerText)") == [], width
