"""The pages about costs: they show what the library computes, and every figure leads to its place."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC
from decimal import Decimal
from html import unescape
from pathlib import Path
from threading import Event
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit

import pytest
from tests.transcripts import SESSION, Part, Row, call, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.pages.requests import NOW, PAGES, ParsedPage, ask, data, parse_page

import threadline
from threadline import insight
from threadline.archive import Archive
from threadline.json_values import encode_json
from threadline.model.insight.waste import WasteLimits
from threadline.web import ROUTES, ArchivePool, Page, PageRequest, SessionCache

AGENT = "a1b2c3d4e"
FILE = "/work/app/<b>data</b>.json"


NOTES = "/work/app/notes <i>.md"
OTHER = "/work/app/sub/other.md"
_TEXT = "# Notes\n\n<b>bold</b>\n"


def _written(path: str, text: str) -> Row:
    """The result of a call that created a file."""
    return {"type": "create", "filePath": path, "content": text, "structuredPatch": []}


def _parts() -> list[Part]:
    """A session with a file that is read twice, a failed call, an MCP call and an agent."""
    read = {"type": "text", "file": {"filePath": FILE, "content": "words " * 500, "numLines": 1}}
    return [
        prompt("Look at the <i>data</i>"),
        call("Read", {"file_path": FILE}, "words " * 500, details=read),
        reply("It is long.", output=50, read=5_000, write=3_000),
        call("Read", {"file_path": FILE}, "words " * 500, details=read),
        call("Bash", "false", result="Exit code 1", error=True),
        call("mcp__shelves__count", {"shelf": "north"}, result="12"),
        call("Write", {"file_path": NOTES, "content": _TEXT}, "created", details=_written(NOTES, _TEXT)),
        call("Write", {"file_path": OTHER, "content": "x\n"}, "created", details=_written(OTHER, "x\n")),
        prompt("Sort it"),
        reply("Sorted.", output=400, read=9_000, write=2_000),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with such a session."""
    folder = tmp_path_factory.mktemp("insight") / "home"
    write(folder / "projects" / "-work-app" / f"{SESSION}.jsonl", *transcript(*_parts()))
    return folder


@pytest.fixture
def archive(home: Path) -> Iterator[Archive]:
    """Its archive."""
    with Archive(threadline.open(home).homes, stale_ok=True) as opened:
        yield opened


def _session_page(archive: Archive, below: str) -> Page:
    """A page below the session's."""
    parts = urlsplit(below)
    route = next(route for route in ROUTES if route.path == f"/session/{{session}}/{parts.path}")
    page = route.page(
        PageRequest(
            path=f"/session/{SESSION}/{parts.path}",
            query=parse_qsl(parts.query),
            archive=archive,
            pool=ArchivePool(archive.homes, index=archive.index),
            session_cache=SessionCache(),
            path_values={"session": SESSION},
            wants_data=True,
        )
    )
    assert isinstance(page, Page)
    return page


def _plain(value: object) -> object:
    """A value as a program reads it from JSON."""
    return json.loads(encode_json(value), parse_float=Decimal)


def test_why_page_of_a_session_equals_the_library(archive: Archive) -> None:
    """The JSON has the rows of the attribution, which sum to the session's amount; the text shows that amount."""
    page = _session_page(archive, "why")
    attribution = archive.attribution(SESSION)
    document = data(page)
    assert document["rows"] == _plain(insight.attribution_record(attribution))["rows"]  # type: ignore[index]
    assert sum(Decimal(row["amount"]) for row in document["rows"]) == attribution.amount
    assert attribution.amount == archive.ledger().total.amount
    assert f"${attribution.amount:.2f}" in ParsedPage(page).words


@pytest.mark.parametrize("by", ["kind", "tool", "file", "server", "turn", "agent"])
def test_why_page_groups_by_every_key(archive: Archive, by: str) -> None:
    """Groups add up to the amount, have a rectangle and a row each, and lead to a page of their own."""
    page = _session_page(archive, f"why?by={by}")
    document = data(page)
    assert document["groups"] == _plain(
        [insight.group_record(group, by) for group in insight.group_rows(archive.attribution(SESSION).rows, by)]
    )
    assert sum(Decimal(group["amount"]) for group in document["groups"]) == Decimal(document["amount"])
    parsed = ParsedPage(page)
    links = [link for link in parsed.links if "group=" in link]
    assert links
    for link in dict.fromkeys(links):
        inner = _session_page(archive, f"why?{urlsplit(link).query}")
        assert data(inner)["amount"] == document["amount"]
        assert "Show everything" in ParsedPage(inner).words


def test_rectangles_link_to_places_and_have_titles(archive: Archive) -> None:
    """The treemap needs no scripts: each rectangle is a link with a title, to an entry that the session has."""
    parsed = ParsedPage(_session_page(archive, "why"))
    places = [link for link in parsed.links if "?at=L" in link]
    assert len(places) > 10
    assert parsed.names.count("rect") > 10
    assert "Result of Read" in parsed.words
    assert "carried by" in parsed.words
    client = Client(*(found.path for found in archive.homes))
    for link in dict.fromkeys(places):
        answer = client.get(link)
        if answer.is_redirect:  # to the branch that has the entry
            answer = client.get(answer.headers["location"])
        assert answer.status_code == 200, link


def test_hostile_names_are_inert_in_a_treemap(archive: Archive) -> None:
    """Tags in file names and prompts are text."""
    for below in ("why", "why?by=file", "why?by=turn", "waste?min=0"):
        parsed = ParsedPage(_session_page(archive, below))
        assert "b" not in [name for name, attributes in zip(parsed.names, parsed.attributes, strict=True) if attributes]
        assert "<b>data" not in parsed.html
        assert "<i>data" not in parsed.html


def test_waste_page_of_a_session_equals_the_library(archive: Archive) -> None:
    """Findings with evidence, advice and links to their places; the JSON is that of the command."""
    page = _session_page(archive, "waste?min=0")
    found = archive.session_waste(SESSION, limits=WasteLimits(min_amount=Decimal(0)))
    assert found
    assert data(page) == _plain([insight.waste_record(finding) for finding in found])
    parsed = ParsedPage(page)
    for finding in found:
        assert finding.advice in parsed.words
        assert finding.evidence in parsed.words
    assert any("?at=L" in link for link in parsed.links)
    only = data(_session_page(archive, "waste?min=0&only=failed-call"))
    assert {row["detector"] for row in only} == {"failed-call"}


def test_outcomes_page_of_a_session_equals_the_library(archive: Archive) -> None:
    """The JSON has the outcomes of the session."""
    outcomes = archive.outcomes(SESSION)
    assert outcomes
    assert data(_session_page(archive, "outcomes")) == _plain(list(map(insight.outcome_record, outcomes)))


def test_the_chart_of_turns_has_those_without_a_reply(tmp_path: Path) -> None:
    """A prompt that was never answered is a turn, too: otherwise, the last number would look like an error."""
    rows = transcript(prompt("Sort it"), reply("Sorted.", output=400), prompt("Again"), reply("So.", output=40))
    rows += transcript(prompt("Once more"))
    write(tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    text = Client(tmp_path / "home").get(f"/session/{SESSION}/cost").text
    chart = text[text.index("turn-costs") :].partition("</svg>")[0]
    assert re.findall(r"<text[^>]*>(\d+)</text>", chart) == ["1", "2", "3"]


def test_session_page_links_to_why(home: Path) -> None:
    """The head of a session has a link, and so does the bar."""
    client = Client(home)
    text = client.get(f"/session/{SESSION}").text
    assert f'href="/session/{SESSION}/cost"' in text
    assert "Why it cost this much" in text
    assert 'href="/why"' in text
    assert f'href="/session/{SESSION}/why"' in client.get(f"/session/{SESSION}/cost").text


@pytest.mark.parametrize("by", ["kind", "tool", "file", "server", "session", "project"])
def test_why_page_of_a_period_equals_the_library(demo: Archive, by: str) -> None:
    """The groups are those of `Archive.causes`, and sum to the ledger's amount."""
    document = data(ask(demo, f"/why?since=all&by={by}"))
    causes = demo.causes()
    assert document["rows"] == _plain([insight.group_record(group, by) for group in causes.by(by)])
    assert Decimal(document["amount"]) == demo.ledger().total.amount
    assert sum(Decimal(row["amount"]) for row in document["rows"]) == causes.amount
    assert document["causes"] == _plain([insight.cause_record(cause) for cause in causes.largest(100)])


def test_waste_page_of_a_period_equals_the_library(demo: Archive) -> None:
    """The findings are those of `Archive.waste`, with a link to the session of each."""
    document = data(ask(demo, "/waste?since=all&min=0"))
    found = demo.waste(limits=WasteLimits(min_amount=Decimal(0)))
    assert document["rows"] == _plain([insight.waste_record(finding) for finding in found])
    assert Decimal(document["total"]) == found.total
    parsed = parse_page(demo, "/waste?since=all&min=0")
    assert any(link.startswith("/session/") and "at=" in link for link in parsed.links)


def test_findings_with_advice_come_first(tmp_path: Path) -> None:
    """A cache break whose cause is unknown is below one that something can be done about, even if it cost more."""
    parts = [
        prompt("Look", timestamp="2026-11-02T10:00:00Z"),
        reply("One.", written=300_000, timestamp="2026-11-02T10:00:05Z"),
        prompt("And", timestamp="2026-11-02T10:00:10Z"),
        reply("Two.", written=300_000, timestamp="2026-11-02T10:00:15Z"),
        prompt("Back", timestamp="2026-11-02T15:00:00Z"),
        reply("Three.", written=200_000, timestamp="2026-11-02T15:00:05Z"),
    ]
    write(tmp_path / "projects" / "-work-app" / f"{SESSION}.jsonl", *transcript(*parts))
    with Archive(threadline.open(tmp_path).homes, stale_ok=True) as archive:
        page = str(ask(archive, "/waste?since=all&min=0&only=cache-break").main)
    known, unknown = re.findall(r'<p class="advice">(.*?)</p>', page)
    assert known.startswith("<b>What to do: </b>Compact or finish before a break")
    assert unknown.startswith("The transcript does not show the cause.")


def test_period_applies_to_both_pages(demo: Archive) -> None:
    """A period without charges says so; links between the pages keep the period."""
    parsed = parse_page(demo, "/why?since=2001-01-01&until=2001-02-01")
    assert "No cost in this period" in parsed.words
    assert "/waste?since=2001-01-01&until=2001-02-01" in parsed.links


def test_usage_shows_what_is_left_of_budgets(demo: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the command does; a wrong file hides nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "threadline/budgets.conf"
    path.parent.mkdir()
    path.write_text("50/day\n")
    assert [use["budget"] for use in data(ask(demo, "/usage"))["budgets"]] == ["50/day"]
    assert "Budget 50/day: $" in parse_page(demo, "/usage").words
    path.write_text("fifty\n")
    assert data(ask(demo, "/usage"))["budgets"] == []


def test_digest_page_equals_the_library(demo: Archive) -> None:
    """The newest week with usage by default; sessions and days are links, and so are the months around it."""
    months = [row.keys["month"] for row in demo.ledger().by("month") if row.charges > 50]
    address = f"/digest?unit=month&when={months[-1]}"
    digest = demo.digest("month", months[-1])
    assert data(ask(demo, address)) == _plain(digest.record())
    parsed = parse_page(demo, address)
    assert f"/session/{digest.sessions[0].session}" in parsed.links
    assert any("unit=day" in link and f"when={digest.days[0][0]}" in link for link in parsed.links)
    by_month = parse_page(demo, f"/digest?month={months[-1]}")
    assert [link for link in by_month.links if link.startswith("/digest?") and "month=" in link] == []
    assert any(f"unit=month&when={digest.previous_period.name}" in link for link in by_month.links)
    before = digest.previous_period.name
    assert any("unit=month" in link and f"when={before}" in link for link in parsed.links)
    assert data(ask(demo, "/digest"))["total"]["charges"]
    assert "Nothing was spent in this period" in parse_page(demo, "/digest?when=2001-01-01").words


def test_costs_are_attributed_in_the_background_first(demo: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """If much has to be read, the page shows the progress and comes when it is done; its JSON waits."""
    monkeypatch.setattr("threadline.archive.insight_preparation._MAX_BYTES", 0)
    is_allowed = Event()
    stored = Archive.store_insights

    def store_insights(archive: Archive) -> None:
        assert is_allowed.wait(20)
        stored(archive)

    monkeypatch.setattr(Archive, "store_insights", store_insights)
    monkeypatch.setattr(Archive, "unstored_insights", lambda _archive: 0 if is_allowed.is_set() else 5_000_000)
    pool = ArchivePool(demo.homes, index=demo.index)
    assert "Attributing costs" in ParsedPage(_period_page(demo, pool, "/why?since=all")).words
    assert _poll(demo, pool) == {"state": "at work", "done": 0, "total": 5_000_000}
    is_allowed.set()
    for _ in range(200):
        if _poll(demo, pool)["state"] == "done":
            break
        time.sleep(0.02)
    assert "Tool results" in ParsedPage(_period_page(demo, pool, "/why?since=all")).words


def _poll(archive: Archive, pool: ArchivePool) -> dict[str, object]:
    progress: dict[str, object] = data(_period_page(archive, pool, "/why?progress=1", wants_data=True))
    return progress


def _period_page(archive: Archive, pool: ArchivePool, path: str, *, wants_data: bool = False) -> Page:
    parts = urlsplit(path)
    request = PageRequest(
        path=parts.path,
        query=parse_qsl(parts.query),
        archive=archive,
        pool=pool,
        session_cache=SessionCache(),
        now=NOW,
        wants_data=wants_data,
    )
    page = PAGES[parts.path](request)
    assert isinstance(page, Page)
    return page


@pytest.mark.parametrize("by", ["session", "project", "day", "model"])
def test_outcomes_page_equals_the_library(demo: Archive, by: str) -> None:
    """The groups and outcomes are those of the library; each outcome leads to its place."""
    document = data(ask(demo, f"/outcomes?since=all&by={by}&kind=all&limit=20&tz=UTC"))
    demo.zone = UTC
    groups = demo.outcome_groups(by)
    assert document["rows"] == _plain([insight.outcome_group_record(group, by) for group in groups])
    outcomes = list(reversed(demo.outcomes()))[:20]
    assert outcomes
    assert document["outcomes"] == _plain(list(map(insight.outcome_record, outcomes)))
    parsed = parse_page(demo, f"/outcomes?since=all&by={by}&kind=all&limit=20&tz=UTC")
    assert any("at=" in link for link in parsed.links)


@pytest.mark.parametrize(
    ("page", "by", "path"),
    [
        ("/why", "tool", "/calls"),
        ("/why", "file", "/files"),
        ("/why", "project", "/why"),
        ("/tools", "tool", "/calls"),
        ("/tools", "day", "/calls"),
        ("/outcomes", "project", "/outcomes"),
        ("/outcomes", "day", "/sessions"),
    ],
)
def test_groups_lead_to_lists_with_the_same_filters(demo: Archive, page: str, by: str, path: str) -> None:
    """A list that a group of a period and project leads to is about that period and project, too."""
    demo.store_insights()
    chosen = {"since": "2020-01-01", "until": "2026-11-14", "project": "loom"}
    parsed = parse_page(demo, f"{page}?by={by}&tz=UTC&{urlencode(chosen)}")
    tables = parsed.html.partition("<tbody")[2]
    targets = [urlsplit(unescape(link)) for link in re.findall(r'href="([^"]+)"', tables)]
    queries = [dict(parse_qsl(target.query)) for target in targets if target.path == path]
    groups = [query for query in queries if {"tool", "path", "project"} & query.keys()]
    assert groups
    for query in groups:
        assert query.get("until", "") >= "2020-01-01"
        assert "loom" in query["project"]
        assert query["since"] == chosen["since"] or query["since"] == query["until"]


def test_blame_page_equals_the_library(archive: Archive) -> None:
    """The text of a file beside its writers: lines are links, the writer leads to the edit, and tags are text."""
    address = f"/files/blame?path={quote(NOTES)}"
    assert data(ask(archive, address)) == _plain(insight.blame_record(archive.blame(NOTES)))
    parsed = parse_page(archive, address)
    assert "<b>bold</b>" in parsed.words
    assert "<b>bold" not in parsed.html
    assert any(f"/session/{SESSION}?at=L" in link for link in parsed.links)
    assert {"#L1", "#L2", "#L3"} <= set(parsed.links)
    assert f"/files/blame?path={quote_plus(NOTES)}" in parse_page(archive, f"/files?path={quote(NOTES)}").links


def test_blame_page_opens_only_files_that_sessions_wrote(archive: Archive, tmp_path: Path) -> None:
    """Another file of the disk is not shown, also if a session has read it; several files are a choice."""
    secret = tmp_path / "secret.txt"
    secret.write_text("not for this page\n")
    for path in (str(secret), "/etc/hostname", FILE):
        page = parse_page(archive, f"/files/blame?path={quote(path)}")
        assert "No session has written" in page.words
        assert "not for this page" not in page.html
    assert "Enter the path" in parse_page(archive, "/files/blame").words
    assert "other.md" in parse_page(archive, "/files/blame?path=other.md").html


def test_blame_page_leads_to_edits_if_the_text_is_unknown(tmp_path: Path) -> None:
    """A file that is gone, and that a session has edited but never read or written as a whole."""
    path = r"C:\work\notes.md"
    edit = call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, result="The file has been updated.")
    write(tmp_path / f"projects/-work/{SESSION}.jsonl", *transcript(prompt("Edit"), edit, reply("Done.")))
    with threadline.open(tmp_path) as archive:
        page = parse_page(archive, f"/files/blame?path={quote(path)}")
        assert "no transcript has its complete text" in page.words
        assert f"/files/log?path={quote_plus(path)}" in page.links


@pytest.mark.parametrize("by", ["tool", "server", "command", "model", "version", "day", "week", "project"])
def test_tools_page_equals_the_library(demo: Archive, by: str) -> None:
    """The groups are those of `Archive.tools`, in the order that is asked for."""
    document = data(ask(demo, f"/tools?since=all&by={by}&tz=UTC"))
    demo.zone = UTC
    expected = _plain([insight.tool_group_record(group, by) for group in demo.tools(by)])
    assert isinstance(expected, list)
    assert sorted(document["rows"], key=lambda row: str(row[by])) == sorted(expected, key=lambda row: str(row[by]))
    ordered = data(ask(demo, f"/tools?since=all&by={by}&sort=errors&tz=UTC"))["rows"]
    errors = [row["errors"] - row["exit_codes"] for row in ordered]
    assert errors == sorted(errors, reverse=True)
