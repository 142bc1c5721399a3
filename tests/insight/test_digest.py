"""Tests of digests: periods, sums, the comparison with the period before, time worked, causes and redaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from tests.insight.spending import NOW, OTHER, REPLY_COST, spend
from tests.transcripts import SESSION, START, Pen, call, prompt, reply, transcript, write

import threadline
from threadline.errors import BadQuery
from threadline.export import render_digest_file
from threadline.model.insight.digest import Digest, DigestPeriod, PeriodUnit
from threadline.model.times import total_time, work_spans
from threadline.redact import Level, Settings

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 1, 7, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("unit", "value", "name"),
    [
        ("day", "", "2026-01-07"),
        ("day", "yesterday", "2026-01-06"),
        ("day", "last", "2026-01-06"),
        ("week", "this", "2026-W02"),
        ("week", "last", "2026-W01"),
        ("week", "-2", "2025-W52"),
        ("week", "2025-W45", "2025-W45"),
        ("week", "w3", "2026-W03"),
        ("week", "2025-12-31", "2026-W01"),
        ("month", "", "2026-01"),
        ("month", "last", "2025-12"),
        ("month", "-13", "2024-12"),
        ("month", "2025-10", "2025-10"),
        ("month", "2024-02-29", "2024-02"),
        ("month", "nov", "2025-11"),
        ("month", "1", "2026-01"),
    ],
)
def test_period_by_name(unit: str, value: str, name: str) -> None:
    """A name, a date in it, or how long ago. Weeks are those of ISO 8601."""
    period = DigestPeriod.parse(PeriodUnit(unit), value, now=WEDNESDAY, zone=UTC)
    assert period.name == name
    assert DigestPeriod.parse(PeriodUnit(unit), name, now=WEDNESDAY, zone=UTC) == period
    before = period.previous(UTC)
    assert before.until == period.since - timedelta(microseconds=1)
    assert before.unit == period.unit


@pytest.mark.parametrize(
    ("unit", "value"),
    [("week", "2026-W60"), ("week", "soon"), ("day", "x"), ("month", "-99999"), ("month", "00113"), ("month", "13")],
)
def test_unknown_period(unit: str, value: str) -> None:
    """The message says what to write."""
    with pytest.raises(BadQuery):
        DigestPeriod.parse(PeriodUnit(unit), value, now=WEDNESDAY, zone=UTC)


def test_week_in_which_clocks_change() -> None:
    """It is an hour shorter, and the one before is not."""
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    week = DigestPeriod.parse(PeriodUnit.WEEK, now=now, zone=BERLIN)
    assert week.until - week.since == 167 * HOUR - timedelta(microseconds=1)
    before = week.previous(BERLIN)
    assert before.until - before.since == 168 * HOUR - timedelta(microseconds=1)


def test_range_is_compared_with_the_same_length() -> None:
    """A range of days has their dates as its name; without an end, it ends now."""
    days = DigestPeriod.between("2026-01-03", "2026-01-04", now=WEDNESDAY, zone=UTC)
    assert days.name == "2026-01-03 to 2026-01-04"
    assert days.previous(UTC).name == "2026-01-01 to 2026-01-02"
    day = DigestPeriod.between("24h", now=WEDNESDAY, zone=UTC)
    assert (day.name, day.previous(UTC).name) == (
        "2026-01-06 12:00 to 2026-01-07 12:00",
        "2026-01-05 11:59 to 2026-01-06 11:59",
    )


@pytest.mark.parametrize("zone", [UTC, BERLIN, ZoneInfo("America/New_York")])
def test_ends_of_the_calendar(zone: ZoneInfo) -> None:
    """There is nothing before the first day, and nothing after the last one."""
    everything = DigestPeriod.between("0001-01-01", "9999-12-31", now=WEDNESDAY, zone=zone)
    before = everything.previous(zone)
    assert before.since <= before.until <= everything.since
    assert DigestPeriod.between("0001-01-01", now=WEDNESDAY, zone=zone).previous(zone).until <= everything.since
    late = DigestPeriod.between("2020-01-01", "9999-12-31", now=WEDNESDAY, zone=zone)
    assert late.name == "2020-01-01 to 9999-12-31"
    assert late.previous(zone).since <= everything.since
    for unit in (PeriodUnit.DAY, PeriodUnit.WEEK, PeriodUnit.MONTH):
        for value in ("0001-01-01", "9999-12-31"):
            period = DigestPeriod.parse(unit, value, now=WEDNESDAY, zone=zone)
            before = period.previous(zone)
            assert before.since <= before.until <= period.until


def test_time_worked() -> None:
    """Pauses of more than ten minutes are left out, and what overlaps counts once."""
    minutes = [0, 5, 14, 30, 31, 100]
    spans = work_spans(START + timedelta(minutes=minute) for minute in minutes)
    assert [(end - start) for start, end in spans] == [timedelta(minutes=14), timedelta(minutes=1)]
    assert total_time(spans) == timedelta(minutes=15)
    assert total_time([*spans, (START + timedelta(minutes=10), START + timedelta(minutes=20))]) == timedelta(minutes=21)
    assert total_time([]) == timedelta(0)


def digest_of(home: Path, *arguments: str, now: datetime = NOW, project: str | None = None) -> Digest:
    """The digest of a home, in UTC."""
    with threadline.open(home, tz="UTC") as archive:
        return archive.digest(*arguments, now=now, project=project)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two projects, used in two weeks."""
    week = timedelta(days=7)
    spend(tmp_path, START - week, START - week + HOUR * 30, START, START + timedelta(minutes=4))
    return spend(tmp_path, START + HOUR, session=OTHER, cwd="/work/site")


def test_figures_are_those_of_usage(home: Path) -> None:
    """Total, projects, sessions and days are sums of the same charges."""
    digest = digest_of(home, now=START + 100 * HOUR)
    with threadline.open(home, tz="UTC") as archive:
        ledger = archive.ledger(since="2026-01-05", until="2026-01-11")
        assert digest.sum == ledger.total
        assert [(project.project, project.sum.amount) for project in digest.projects] == [
            (row.keys["project"], row.amount) for row in ledger.by("project")
        ]
    assert digest.sum.amount == 3 * REPLY_COST
    assert sum((session.sum.amount or 0) for session in digest.sessions) == digest.sum.amount
    assert [day for day, _total in digest.days] == ["2026-01-05"]
    app, site = digest.projects
    assert (app.previous.amount, site.previous.amount) == (2 * REPLY_COST, None)
    assert [session.session for session in digest.sessions] == [SESSION, OTHER]


def test_running_week_is_compared_by_the_same_time(home: Path) -> None:
    """On Monday noon, with what was spent until the Monday noon before."""
    running = digest_of(home, now=START + 3 * HOUR)
    assert running.previous_so_far is not None
    assert (running.previous.amount, running.previous_so_far.amount) == (2 * REPLY_COST, REPLY_COST)
    assert running.change == 2
    over = digest_of(home, "week", "2026-W02", now=START + 1000 * HOUR)
    assert (over.previous_so_far, over.change) == (None, Decimal("0.5"))


def test_sessions_have_their_work(home: Path) -> None:
    """Time, prompts and calls of the period only."""
    digest = digest_of(home, now=START + 100 * HOUR)
    session = digest.sessions[0]
    assert (session.first, session.last) == (START + timedelta(seconds=1), START + timedelta(minutes=4, seconds=3))
    assert (session.worked, session.prompts, session.calls) == (timedelta(minutes=4, seconds=2), 2, 0)
    assert digest.worked == timedelta(minutes=4, seconds=4)


def test_project_filter(home: Path) -> None:
    """Everything is about the projects that match."""
    digest = digest_of(home, project="site", now=START + 100 * HOUR)
    assert (digest.sum.amount, [project.project for project in digest.projects]) == (REPLY_COST, ["/work/site"])
    assert digest.previous.charges == 0
    assert digest.change is None


def test_causes_have_suggestions(tmp_path: Path) -> None:
    """The three most expensive kinds, none of which includes another, each with its largest example."""
    parts = [
        prompt("go"),
        *(call("Bash", f"make {number}", "line\n" * 3000, output=2000, read=20_000) for number in range(3)),
        *(call("Bash", "cat missing", "no such file", error=True, read=30_000, output=500) for _ in range(6)),
        reply("done", read=40_000, output=100),
    ]
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *transcript(*parts))
    digest = digest_of(tmp_path)
    assert 0 < len(digest.causes) <= 3
    first = digest.causes[0]
    assert first.label == "Bash calls and their results"
    assert "Limit the output" in first.suggestion
    assert first.session == SESSION
    assert first.place is not None
    assert first.example_amount is not None
    assert first.example_amount <= first.amount
    assert sum(cause.share for cause in digest.causes) <= 1
    assert digest.sessions[0].failed_calls == 6
    assert any("6 of 9 calls failed" in reason for hint in digest.hints for reason in hint.reasons)


def test_sessions_have_their_results(tmp_path: Path) -> None:
    """Commits, files and test runs of the period, with the subjects of commits."""
    edit = {"file_path": "/work/app/a.py", "old_string": "a", "new_string": "b"}
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}]
    details = {"filePath": "/work/app/a.py", "oldString": "a", "newString": "b", "structuredPatch": patch}
    parts = [
        prompt("go"),
        call("Edit", edit, "ok", details=details),
        call("Bash", "pytest -q", "..F\n1 failed, 2 passed in 0.10s", error=True),
        call("Bash", "git commit -am 'Add a and b'", "[main 1234abc] Add a and b\n 1 file changed, 2 insertions(+)"),
        reply("done", output=1000),
    ]
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *transcript(*parts))
    digest = digest_of(tmp_path)
    work = digest.sessions[0].work
    assert (work.commits, work.files, work.test_runs, work.failed_runs) == (1, 1, 1, 1)
    assert work.results == ("Add a and b",)
    assert digest.work.commits == digest.projects[0].work.commits == 1
    text = render_digest_file(digest, "md", UTC, max_sessions=9, settings=None)
    assert "1 commit, 1 file changed" in text
    assert "  - Add a and b" in text


def test_empty_period(home: Path) -> None:
    """There is nothing to say, and nothing fails."""
    digest = digest_of(home, "day", "2020-01-01")
    assert digest_of(home, "day", "9999-12-31").sum.charges == 0
    assert (digest.sum.charges, digest.projects, digest.causes, digest.hints) == (0, (), (), ())
    assert digest.record()["total"]["amount"] == 0


@pytest.fixture
def titled(tmp_path: Path) -> Digest:
    """The digest of a session whose title and project have a name and an address."""
    pen = Pen(cwd="/home/marlene/app")
    parts = [prompt("Ask marlene@corp.example.com about it"), reply("ok", output=1000)]
    write(tmp_path / f"projects/-home-marlene-app/{SESSION}.jsonl", *transcript(*parts, pen=pen))
    return digest_of(tmp_path)


@pytest.mark.parametrize("form", ["md", "html", "json", "text"])
def test_file_is_redacted(titled: Digest, form: str) -> None:
    """Names, addresses and home directories are removed in every format, unless that is not wanted."""
    plain = render_digest_file(titled, form, UTC, max_sessions=9, settings=None)  # type: ignore[arg-type] # a name
    redacted = render_digest_file(titled, form, UTC, max_sessions=9, settings=Settings())  # type: ignore[arg-type] # the same
    assert "marlene" in plain
    assert "marlene" not in redacted
    assert "app" in redacted


def test_cut_words_are_removed(titled: Digest) -> None:
    """The start of a token may be too short to be recognized."""
    cause = replace(titled.causes[0], example="Call of Bash curl -u me:hunte…", example_amount=Decimal(1))
    cut = replace(titled, causes=(cause,))
    text = render_digest_file(cut, "md", UTC, max_sessions=9, settings=Settings())
    assert "Largest: Call of Bash curl -u …" in text
    assert "hunte" not in text


def test_metrics_have_no_text(titled: Digest) -> None:
    """At the level `metrics`, titles and paths are numbers."""
    text = render_digest_file(titled, "md", UTC, max_sessions=9, settings=Settings(level=Level.METRICS))
    assert "project 1" in text
    assert "characters)" in text
    assert "about it" not in text


def test_html_is_self_contained(titled: Digest) -> None:
    """No script, nothing to load, both colour schemes, and escaped text."""
    page = render_digest_file(titled, "html", UTC, max_sessions=9, settings=Settings())
    assert "<script" not in page
    assert "default-src &#39;none&#39;" in page
    assert 'content="light dark"' in page
    assert "src=" not in page


def test_markdown_escapes_titles(tmp_path: Path) -> None:
    """A title cannot change the document."""
    parts = [prompt("# a *b* `c` <img src=x> | d"), reply("ok", output=1000)]
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *transcript(*parts))
    text = render_digest_file(digest_of(tmp_path), "md", UTC, max_sessions=9, settings=None)
    assert r"**# a \*b\* \`c\` \<img src=x> \| d**" in text
