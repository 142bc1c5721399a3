"""Lists and charts show what people look for: recognisable titles, days, what happened, how much."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from re import findall
from typing import Any

import pytest
from tests import transcripts
from tests.web.client import Client
from tests.web.pages.requests import NOW, ask, data, parse_page

import threadline
from threadline.archive import Archive
from threadline.insight import find_commits
from threadline.render.html import DayActivity, activity_calendar, weekday_hour_map


def _write_session(home: Path, *parts: transcripts.Part, session: str = transcripts.SESSION) -> None:
    rows = transcripts.transcript(*parts, pen=transcripts.Pen(session, gitBranch="feature/shelf"))
    transcripts.write(home / "projects" / "-work-app" / f"{session}.jsonl", *rows)


@pytest.fixture
def shelf_home(tmp_path: Path) -> Path:
    """A home with one session that began with a greeting and ended with "1"."""
    _write_session(
        tmp_path / "home",
        transcripts.prompt("hi"),
        transcripts.reply("Hello."),
        transcripts.prompt("Sort the books on the shelf"),
        transcripts.call("Bash", "false", result="Exit code 1", error=True),
        transcripts.call("Agent", {"description": "count", "prompt": "Count", "subagent_type": "Explore"}, result="2"),
        transcripts.reply("Sorted."),
        transcripts.prompt("1"),
        transcripts.reply("Which one?"),
        {"type": "last-prompt", "sessionId": transcripts.SESSION, "lastPrompt": "1"},
    )
    return tmp_path / "home"


def test_a_session_is_titled_by_its_first_real_prompt(shelf_home: Path) -> None:
    """D8: neither the greeting nor the last thing typed is the title."""
    with Archive(threadline.open(shelf_home).homes, stale_ok=True) as archive:
        (row,) = data(ask(archive, "/sessions"))["sessions"]
    assert row["title"] == "Sort the books on the shelf"


def test_a_row_says_what_happened(shelf_home: Path) -> None:
    """D7: the second line has the last prompt, the git branch, failures, and agents without a transcript."""
    with Archive(threadline.open(shelf_home).homes, stale_ok=True) as archive:
        (row,) = data(ask(archive, "/sessions"))["sessions"]
        words = parse_page(archive, "/sessions").words
    assert (row["agents"], row["started_agents"], row["failed_calls"]) == (0, 1, 1)
    assert (row["last_prompt"], row["branch"]) == ("1", "feature/shelf")
    assert all(text in words for text in ("feature/shelf", "1 agent", "1 failed"))


def test_agents_without_a_transcript_count_in_filter_and_order(shelf_home: Path) -> None:
    """A session whose row shows agents is found by the filter and comes first when sorted by agents."""
    newer = "5e551011-0000-4000-8000-00000000000a"
    replies = [transcripts.reply(f"Board {number} is painted.") for number in range(30)]
    _write_session(shelf_home, transcripts.prompt("Paint the shelf"), *replies, session=newer)
    with Archive(threadline.open(shelf_home).homes, stale_ok=True) as archive:
        listed, ordered, filtered = (
            [row["session"] for row in data(ask(archive, f"/sessions{query}"))["sessions"]]
            for query in ("", "?sort=agents", "?only=agents")
        )
    assert listed == [newer, transcripts.SESSION]
    assert ordered == [transcripts.SESSION, newer]
    assert filtered == [transcripts.SESSION]


def test_the_end_of_the_last_window_is_shown(tmp_path: Path) -> None:
    """A window may have ended soon after its last request. If nothing was ever spent, the page names no window."""
    folder = tmp_path / "home" / "projects" / "-work-app"
    transcripts.write(folder / "empty.jsonl", *transcripts.transcript(transcripts.prompt("Sort the shelf")))
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        assert "window is active" not in parse_page(archive, "/blocks").words
    for session, time in (("5e551011-0000-4000-8000-00000000000a", "06:30"), (transcripts.SESSION, "10:59")):
        pen = transcripts.Pen(session, start=datetime.fromisoformat(f"{NOW:%Y-%m-%d}T{time}:00+00:00"))
        rows = transcripts.transcript(transcripts.prompt("Sort the shelf"), transcripts.reply("Sorted."), pen=pen)
        transcripts.write(folder / f"{session}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        words = parse_page(archive, "/blocks?tz=UTC").words
    assert f"No window is active. The last one ended at {NOW:%Y-%m-%d} 11:00." in words


def test_sessions_are_grouped_by_day(demo: Archive) -> None:
    """Each day has one heading, newest first; with another order there are none."""
    rows = data(ask(demo, "/sessions?tz=UTC"))["sessions"]
    days = list(dict.fromkeys(row["last"][:10] for row in rows if row["last"]))
    html = parse_page(demo, "/sessions?tz=UTC").html
    assert html.count('<tr class="group">') == len(days)
    assert '<tr class="group">' not in parse_page(demo, "/sessions?sort=amount").html


def test_every_month_of_the_calendar_has_a_label() -> None:
    """D15: December is labelled, although November has only begun two weeks before it."""
    days = {date(2026, 11, 17): DayActivity(1, "1 session")}
    labels = findall(r">([A-Z][a-z]{2})</text>", activity_calendar(days, date(2026, 11, 17), link_of=lambda _day: None))
    months = [label for label in labels if label not in {"Mon", "Wed", "Fri"}]
    assert months[:3] == ["Dec", "Jan", "Feb"]


def test_the_darkest_shade_is_only_for_the_busiest_hours() -> None:
    """D15: 85 and 232 charges have different shades, however many hours are quiet."""
    counts = {(day, hour): 5 for day in range(7) for hour in range(8)} | {(4, 0): 85, (3, 15): 232}
    html = weekday_hour_map(counts, unit="charge", zone="UTC")
    shades = {title: shade for shade, title in findall(r'class="(shade-\d)"><title>(\w+ \d\d:00: \d+)', html)}
    assert shades["Thursday 15:00: 232"] == "shade-4"
    assert shades["Friday 00:00: 85"] == "shade-3"
    assert shades["Monday 00:00: 5"] == "shade-1"


def test_a_page_without_access_has_a_style(client: Client) -> None:
    """D16: the page for a missing cookie loads the style sheet, which needs no cookie, and has no skip link."""
    refused = client.get("/", cookie="none=1")
    assert refused.status_code == 403
    assert "Skip to content" not in refused.text
    (style,) = findall(r'rel="stylesheet" href="([^"]+)"', refused.text)
    assert client.get(style, cookie="none=1").status_code == 200
    assert client.get("/assets/page.js", cookie="none=1").status_code == 403


def test_home_begins_with_the_newest_week_that_has_work(demo: Archive) -> None:
    """The week, its costs, causes and trend come first; nothing is a column of zeros."""
    page = data(ask(demo, "/?tz=UTC"))
    newest = max(day for day in page["days"] if day[:1].isdigit())
    assert page["week"]["period"]["since"][:10] <= newest <= page["week"]["period"]["until"][:10]
    week = demo.ledger().where(since=page["week"]["period"]["since"], until=page["week"]["period"]["until"])
    assert page["week"]["spent"]["output"] == week.total.output
    html = parse_page(demo, "/?tz=UTC").html
    assert html.index("week") < html.index("Resume where you left off") < html.index("Busiest hours")
    assert "claude --resume" in html


@pytest.mark.parametrize(
    ("start", "title"),
    [
        (datetime(2025, 6, 3, tzinfo=UTC), "Last week with usage: 2 June to 8 June 2025 "),
        (datetime(2026, 1, 5, tzinfo=UTC), "Last week with usage: 5 January to 11 January "),
        (NOW, "This week "),
    ],
)
def test_home_says_which_week_it_shows(tmp_path: Path, start: datetime, title: str) -> None:
    """If there is no usage this week, it is the last week with usage, with its year unless it is this year."""
    pen = transcripts.Pen(start=start)
    rows = transcripts.transcript(transcripts.prompt("go"), transcripts.reply("Done."), pen=pen)
    transcripts.write(tmp_path / "home" / "projects" / "-work" / f"{transcripts.SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, index=tmp_path / "index.sqlite", stale_ok=True) as archive:
        assert title in parse_page(archive, "/?tz=UTC").words + " "


def test_home_shows_causes_once_they_are_known(demo: Archive) -> None:
    """Costs are attributed by other pages; then home names the largest causes."""
    demo.store_insights()
    page = data(ask(demo, "/?tz=UTC"))
    assert page["week"]["digest"]["causes"]
    assert page["week"]["digest"]["causes"][0]["label"] in parse_page(demo, "/?tz=UTC").words


def test_an_empty_archive_says_where_it_looked(tmp_path: Path) -> None:
    """The page names the home, and how to read another one or the demo."""
    (tmp_path / "home" / "projects").mkdir(parents=True)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = parse_page(archive, "/")
    assert str(tmp_path / "home") in page.words
    assert "threadline demo" in page.words


@pytest.mark.parametrize("by", ["project", "session", "tool", "model", "branch"])
def test_the_usage_chart_follows_the_grouping(demo: Archive, by: str) -> None:
    """The chart is stacked by the chosen key; times are stacked by model."""
    words = parse_page(demo, f"/usage?since=all&by={by}").words
    assert f"by {'week' if 'by week and' in words else 'day' if 'by day and' in words else 'month'} and {by}" in words


def test_the_usage_chart_ends_with_the_data(demo: Archive) -> None:
    """Without a start, columns end with the last usage, and the axis has short dates."""
    html = parse_page(demo, "/usage?since=all&by=month&tz=UTC").html
    newest = max(row.keys["month"] for row in demo.ledger().by("month") if row.keys["month"][:1].isdigit())
    labels = findall(r'class="label middle" aria-hidden="true">([^<]+)</text>', html)
    assert labels
    assert not any(label[:1].isdigit() for label in labels)
    assert f"to {newest};" in html


def test_five_groupings_come_first(demo: Archive) -> None:
    """The other keys are folded."""
    html = parse_page(demo, "/usage").html
    first, _, folded = html.partition("more-keys")
    assert [key for key in ("day", "project", "session", "model", "tool") if f">{key}</a>" not in first] == []
    assert ">service-tier</a>" not in first
    assert ">service-tier</a>" in folded


def test_the_treemap_adds_up(demo: Archive) -> None:
    """Projects and their sessions are rectangles that lead on."""
    page = parse_page(demo, "/usage?since=all")
    assert "Amount by project and session" in page.words
    assert any("/why" in link and link.startswith("/session/") for link in page.links)


def test_calls_can_be_sorted_by_duration(demo: Archive) -> None:
    """The slowest come first, and none is lost."""
    calls = data(ask(demo, "/calls?sort=duration&limit=500"))["calls"]
    durations = (
        [call["seconds"] or 0 for call in calls] if "seconds" in calls[0] else [call["duration"] or 0 for call in calls]
    )
    assert [float(value) for value in durations] == sorted((float(value) for value in durations), reverse=True)


def test_reports_of_the_terminal_are_pages(demo: Archive) -> None:
    """Errors, windows and prompt history are those of the archive."""
    errors = data(ask(demo, "/errors?since=all&limit=500"))
    assert errors["total"] == len(list(demo.errors()))
    windows = [window for window in demo.ledger().windows(now=NOW) if not window.is_gap]
    assert data(ask(demo, "/blocks"))["total"] == len(windows)
    prompts = data(ask(demo, "/history?limit=3"))["prompts"]
    assert [prompt["text"] for prompt in prompts] == [prompt.text for prompt in demo.history(limit=3)]


def test_sessions_are_listed_by_their_id(tmp_path: Path) -> None:
    """The filter and the palette take an id in upper and lower case, also one that two folders have."""
    for folder, session in (("-a", transcripts.SESSION), ("-b", transcripts.SESSION), ("-b", "Heron-Notes")):
        rows = transcripts.transcript(transcripts.prompt("Sort"), pen=transcripts.Pen(session, cwd=f"/work/{folder}"))
        transcripts.write(tmp_path / "projects" / folder / f"{session}.jsonl", *rows)
    client = Client(tmp_path)
    for text, number in ((transcripts.SESSION, 2), (transcripts.SESSION.upper(), 2), ("heron", 1), ("Heron", 1)):
        assert client.get(f"/sessions.json?grep={text}").json()["total"] == number
        found = client.get(f"/palette.json?q={text}").json()
        assert sum(item["title"] == "Sort" and item["action"] == "" for item in found) >= number


def test_the_second_session_of_a_comparison_is_one_click_away(demo: Archive) -> None:
    """With one session, the page links to comparisons with others: first with those of the same project."""
    rows = data(ask(demo, "/sessions?limit=500"))["sessions"]
    project = Counter(row["project"] for row in rows).most_common(1)[0][0]
    same = [row["session"] for row in rows if row["project"] == project]
    page = parse_page(demo, f"/compare?a={same[0]}")
    links = [link for link in page.links if link.startswith("/compare?") and "b=" in link]
    assert [link.partition("b=")[2] for link in links[: len(same) - 1]] == same[1:]
    assert len(data(ask(demo, links[0]))) == 2


def test_two_sessions_can_be_compared(demo: Archive) -> None:
    """Both have their figures, tools, files and prompts, which are those of the archive."""
    sessions = [str(session.id) for session in demo.sessions().sessions]
    first = next(name for name in sessions if find_commits(demo.session(name)))
    second = next(name for name in sessions if name != first)
    page = data(ask(demo, f"/compare?a={first}&b={second}"))
    assert [session["row"]["session"] for session in page] == [first, second]
    for session in page:
        name = session["row"]["session"]
        assert sum(session["tools"].values()) == len(list(demo.calls(session=name, limit=None)))
        assert len(session["prompts"]) == sum(turn.act is not None for turn in demo.session(name).turns)
        commits = [commit for _call, commit in find_commits(demo.session(name)) if not commit.is_replaced]
        assert session["row"]["commits"] == len(commits)
    assert any(session["row"]["commits"] for session in page)
    words = parse_page(demo, f"/compare?a={first}&b={second}").words
    assert "Context window" in words
    # Two sessions may have the same title.
    assert words.count("A: ") == words.count("B: ") >= 2


def test_the_palette_has_turns_entries_and_actions(demo: Archive) -> None:
    """Without a text, sessions come first; with one, also turns of the open session, entries and actions."""
    items = data(ask(demo, "/palette"))
    assert items[0]["address"].startswith("/session/")
    session = next(session for session in demo.sessions().sessions if session.turns > 1)
    prompt = next(turn.act.text for turn in demo.session(str(session.id)).turns if turn.act and len(turn.act.text) > 20)
    words = " ".join(prompt.split()[:3])
    found = data(ask(demo, f"/palette?session={session.id}&q={words}"))
    assert any(item["detail"].startswith("turn ") for item in found)
    assert any("at=" in item["address"] and not item["detail"].startswith("turn ") for item in found)
    assert [item["action"] for item in data(ask(demo, "/palette?q=theme")) if item["action"]] == ["theme"]


def test_the_palette_works_on_the_page_of_a_deleted_session(demo: Archive) -> None:
    """The open page of a session that was deleted since still leads to other pages."""
    items = data(ask(demo, "/palette?session=00000000-0000-4000-8000-000000000000&q=usage"))
    assert "/usage" in [item["address"] for item in items]


def test_the_time_zone_is_chosen_once(client: Client) -> None:
    """The page goes back to the same view in the zone, whose links keep it. Other hosts are no place to go back to."""
    answer = client.get("/time-zone?zone=Asia/Tokyo&back=/sessions%3Fsort%3Damount")
    assert answer.headers["location"] == "/sessions?sort=amount&tz=Asia%2FTokyo"
    assert "tz=Asia%2FTokyo" in client.get(answer.headers["location"]).text
    assert client.get("/time-zone?zone=Asia/Tokyo&back=//example.org/").headers["location"] == "/?tz=Asia%2FTokyo"
    assert client.get("/time-zone?zone=Nowhere/Land").status_code == 400


def test_calls_can_be_sorted_by_failures(demo: Archive) -> None:
    """Failed calls come first, newest first among equals, before every call that succeeded."""
    calls = data(ask(demo, "/calls?sort=outcome&limit=500"))["calls"]
    outcomes = [call["outcome"] for call in calls]
    first_ok = outcomes.index("ok")
    assert first_ok
    assert set(outcomes[first_ok:]) == {"ok"}
    errors = [call["timestamp"] for call in calls if call["outcome"] == "error"]
    assert errors == sorted(errors, reverse=True)
    assert any("sort=outcome" in link for link in parse_page(demo, "/calls").links)


def test_the_most_called_tools_are_those_of_the_period_in_the_zone(
    demo: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`yesterday` is another day in another time zone, so the figures are computed again."""
    ask(demo, "/why")  # attributes costs, which the figures include
    tools, days = Archive.tools, []

    def record_day(archive: Archive, *args: Any, **options: Any) -> Any:
        days.append(options["since"])
        return tools(archive, *args, **options)

    monkeypatch.setattr(Archive, "tools", record_day)
    for zone in ("UTC", "Asia/Tokyo", "UTC"):
        ask(demo, f"/calls?since=yesterday&tz={zone}")
    assert len(set(days)) == len(days) == 2
