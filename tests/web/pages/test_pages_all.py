"""What holds of every page: it is whole, inert, leads somewhere, and has a twin."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.subtests import for_each
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.pages.requests import PAGES, Seen, ask, data, seen

import threadline
from threadline.archive import Archive
from threadline.errors import BadQuery

_ADDRESSES = (
    "/",
    "/?tz=Asia/Kathmandu",
    "/sessions",
    "/sessions?sort=cost&limit=3&after=3",
    "/sessions?sort=calls&project=a",
    "/sessions?grep=zzz&model=x&branch=y&since=7d&until=today",
    "/search",
    "/search?q=the",
    "/search?q=the&every=1&sort=time&limit=5",
    "/search?q=zzzzqqqq",
    "/search?q=%22open",
    "/usage",
    "/usage?since=all&by=model",
    "/usage?since=all&by=project,model&measure=tokens",
    "/usage?since=all&by=session&limit=2",
    "/usage?since=all&by=agent-type&measure=replies",
    "/usage?since=all&by=tool&measure=output",
    "/usage?since=2001-01-01&until=2001-02-01",
    "/calls",
    "/calls?outcome=error&limit=2",
    "/calls?tool=Nothing",
    "/files",
    "/files?path=nowhere/none.py",
    "/doctor",
    "/keys",
    "/palette",
    "/palette?q=the",
)
_LISTS = ("/", "/sessions", "/usage?since=all&by=model", "/calls", "/files", "/search?q=the")
_BAD = (
    "/sessions?sort=sideways",
    "/sessions?limit=0",
    "/sessions?since=whenever",
    "/sessions?since=2026-02-01&until=2026-01-01",
    "/sessions?tz=Nowhere/None",
    "/usage?by=colour",
    "/usage?measure=weight",
    "/usage?since=2026-02-01&until=2026-01-01",
    "/calls?outcome=splendid",
    "/calls?after=-1",
    "/files?limit=100000",
    "/search?q=a&sort=colour",
)


def _is_inert(page: Seen) -> None:
    assert "script" not in page.names
    assert not {"style", "iframe", "object", "embed", "base"} & set(page.names)
    for attributes in page.attributes:
        assert not any(name == "style" or name.startswith("on") for name in attributes)
        href = attributes.get("href") or attributes.get("action") or "/"
        assert href.startswith(("/", "#"))
        assert not href.startswith("//")


@for_each("address", _ADDRESSES)
def test_a_page_is_whole_and_inert(demo: Archive, address: str) -> None:
    """Whatever begins ends, nothing runs, links stay on this server, and there is one heading of the first level."""
    page = seen(demo, address)
    _is_inert(page)
    assert page.names.count("h1") == 1
    ids = [attribute["id"] for attribute in page.attributes if attribute.get("id")]
    assert len(ids) == len(set(ids))


@for_each("address", _ADDRESSES)
def test_hostile_names_run_nothing(hostile: Archive, address: str) -> None:
    """Titles, projects, models, branches, tools and files full of HTML, colours and turned text are only shown."""
    page = seen(hostile, address)
    _is_inert(page)
    assert "\x1b" not in page.html
    assert "\u202e" not in page.html
    assert "<img" not in page.html


@for_each("address", _ADDRESSES)
def test_a_page_has_a_twin(hostile: Archive, address: str) -> None:
    """Its data is JSON, whatever the transcripts hold."""
    assert data(ask(hostile, address)) is not None


@pytest.mark.parametrize("address", _ADDRESSES)
def test_an_empty_home_has_every_page(tmp_path: Path, address: str) -> None:
    """Where there is nothing yet, a page says so, and does not fail."""
    (tmp_path / "home" / "projects").mkdir(parents=True)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        assert seen(archive, address).words


@pytest.mark.parametrize("address", _BAD)
def test_what_says_nothing_sensible_is_refused_in_a_sentence(demo: Archive, address: str) -> None:
    """The sentence ends, and says what could be written."""
    try:
        told = data(ask(demo, address))["error"]  # a page with a form keeps it
    except BadQuery as error:
        told = str(error)
    assert told.endswith((".", "?"))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "address", ["/", "/sessions", "/usage?since=all&by=model", "/calls", "/files", "/search?q=the"]
)
def test_links_lead_to_pages(demo: Archive, address: str) -> None:
    """Every link to a list is to a page that is there and understands it."""
    links = {link for link in seen(demo, address).links if not link.startswith(("/session/", "#"))}
    assert links
    for link in sorted(links)[:40]:
        assert urlsplit(link).path in PAGES
        assert ask(demo, link).kind


def test_what_changes_is_seen(tmp_path: Path) -> None:
    """What was worked out is kept only as long as nothing is written."""
    home = tmp_path / "home"
    path = home / "projects" / "-work-app" / f"{SESSION}.jsonl"
    write(path, *transcript(prompt("first words"), reply("ok")))
    with Archive(threadline.open(home).homes, stale_ok=True) as archive:
        assert [one["title"] for one in data(ask(archive, "/sessions"))["sessions"]] == ["first words"]
    other = Pen(session="5e551011-0000-4000-8000-000000000002")
    write(path.with_name(f"{other.session}.jsonl"), *transcript(prompt("other words"), pen=other))
    with Archive(threadline.open(home).homes, stale_ok=True) as archive:
        assert {one["title"] for one in data(ask(archive, "/sessions"))["sessions"]} == {"first words", "other words"}
        assert data(ask(archive, "/"))["spans"][-1]["done"]["sessions"] == 2
