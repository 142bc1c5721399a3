"""Properties of every page: well-formed, inert, with working links and a JSON version."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.subtests import for_each
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.pages.requests import PAGES, ParsedPage, ask, data, parse_page

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
    "/files/blame",
    "/files/blame?path=shelf.py",
    "/files/log",
    "/files/log?path=py&limit=2",
    "/files/log?path=shelf.py&limit=2",
    "/why",
    "/why?since=all&by=tool",
    "/why?since=all&by=session&limit=3",
    "/why?since=2001-01-01&until=2001-02-01",
    "/waste",
    "/waste?since=all&min=0&large_output=10",
    "/waste?since=all&min=0&only=failed-call",
    "/tools",
    "/tools?since=all&by=command&sort=failed",
    "/tools?since=all&by=week&tool=Bash",
    "/outcomes",
    "/outcomes?since=all&by=project&kind=all",
    "/outcomes?since=all&by=day&kind=test&limit=2",
    "/outcomes",
    "/outcomes?since=all&by=project&kind=all",
    "/outcomes?since=all&by=day&kind=test&limit=2",
    "/digest",
    "/digest?since=all",
    "/digest?unit=month&when=last&project=a",
    "/digest?unit=day&when=2001-01-01",
    "/digest?since=30d&sessions=1",
    "/digest?since=0001-01-01&until=9999-12-31",
    "/digest?unit=week&when=9999-12-31",
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
    "/files/log?path=a&limit=100000",
    "/search?q=a&sort=colour",
    "/why?by=colour",
    "/why?since=2026-02-01&until=2026-01-01",
    "/waste?only=colour",
    "/waste?min=-1",
    "/waste?min=NaN",
    "/waste?min=much",
    "/waste?min=1e999999999",  # written out, it would have a billion digits
    "/waste?min=1e-99999999",
    "/waste?large_output=0",
    "/tools?by=colour",
    "/tools?sort=colour",
    "/outcomes?by=colour",
    "/outcomes?kind=colour",
    "/digest?unit=year",
    "/digest?when=soon",
    "/digest?since=2026-02-01&until=2026-01-01",
    "/digest?sessions=0",
)


def _check_inert(page: ParsedPage) -> None:
    assert "script" not in page.names
    assert not {"style", "iframe", "object", "embed", "base"} & set(page.names)
    for attributes in page.attributes:
        assert not any(name == "style" or name.startswith("on") for name in attributes)
        href = attributes.get("href") or attributes.get("action") or "/"
        assert href.startswith(("/", "#"))
        assert not href.startswith("//")


@for_each("address", _ADDRESSES)
def test_pages_are_well_formed_and_inert(demo: Archive, address: str) -> None:
    """Every element is closed, nothing runs, links stay on this server, and there is one h1."""
    page = parse_page(demo, address)
    _check_inert(page)
    assert page.names.count("h1") == 1
    ids = [attribute["id"] for attribute in page.attributes if attribute.get("id")]
    assert len(ids) == len(set(ids))


@for_each("address", _ADDRESSES)
def test_hostile_names_are_only_displayed(hostile: Archive, address: str) -> None:
    """Titles, projects, models, branches, tools and files full of HTML, colours and reversed text are displayed."""
    page = parse_page(hostile, address)
    _check_inert(page)
    assert "\x1b" not in page.html
    assert "\u202e" not in page.html
    assert "<img" not in page.html


@for_each("address", _ADDRESSES)
def test_every_page_has_a_json_version(hostile: Archive, address: str) -> None:
    """The data of a page is JSON, whatever the transcripts contain."""
    assert data(ask(hostile, address)) is not None


@pytest.mark.parametrize("address", _ADDRESSES)
def test_every_page_works_for_an_empty_home(tmp_path: Path, address: str) -> None:
    """With no sessions yet, a page has a text and does not fail."""
    (tmp_path / "home" / "projects").mkdir(parents=True)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        assert parse_page(archive, address).words


@pytest.mark.parametrize("address", _BAD)
def test_rejects_bad_values_with_a_sentence(demo: Archive, address: str) -> None:
    """The error message is a sentence."""
    try:
        message = data(ask(demo, address))["error"]  # a page with a form keeps it
    except BadQuery as error:
        message = str(error)
    assert message.endswith((".", "?"))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "address", ["/", "/sessions", "/usage?since=all&by=model", "/calls", "/files", "/search?q=the"]
)
def test_links_lead_to_pages(demo: Archive, address: str) -> None:
    """Every link to a list leads to an existing page that understands it."""
    links = {link for link in parse_page(demo, address).links if not link.startswith(("/session/", "#"))}
    assert links
    for link in sorted(links)[:40]:
        assert urlsplit(link).path in PAGES
        assert ask(demo, link).kind


def test_pages_show_new_sessions(tmp_path: Path) -> None:
    """Cached values are dropped when something is written."""
    home = tmp_path / "home"
    path = home / "projects" / "-work-app" / f"{SESSION}.jsonl"
    write(path, *transcript(prompt("first words"), reply("ok")))
    with Archive(threadline.open(home).homes, stale_ok=True) as archive:
        assert [session["title"] for session in data(ask(archive, "/sessions"))["sessions"]] == ["first words"]
    other = Pen(session="5e551011-0000-4000-8000-000000000002")
    write(path.with_name(f"{other.session}.jsonl"), *transcript(prompt("other words"), pen=other))
    with Archive(threadline.open(home).homes, stale_ok=True) as archive:
        assert {session["title"] for session in data(ask(archive, "/sessions"))["sessions"]} == {
            "first words",
            "other words",
        }
        assert data(ask(archive, "/"))["spans"][-1]["done"]["sessions"] == 2
