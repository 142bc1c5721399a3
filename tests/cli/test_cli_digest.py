"""`threadline digest`: periods, formats, files, and what is redacted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.insight.spending import NOW, OTHER, REPLY_COST, spend
from tests.transcripts import SESSION, START

from threadline.cli.insight import digest as command


@pytest.fixture
def home(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which two projects spent something, and a clock that stands still."""
    del cli
    monkeypatch.setattr(command, "_now", lambda: NOW)
    spend(tmp_path / "home", START - timedelta(days=6), START)
    return spend(tmp_path / "home", START, session=OTHER, cwd="/home/marlene/site")


def test_json_equals_usage(cli: CliRunner, home: Path) -> None:
    """The document has the sums of `usage` for the same period; rows are sessions."""
    options = ("--home", home, "--tz", "UTC")
    document = cli("digest", *options, "--json").json
    usage = cli("usage", "--since", "2026-01-05", "--until", "2026-01-11", "--by", "session", *options, "--json").json
    assert document["total"] == {**usage["total"], "tokens": 200_000}
    assert document["period"]["name"] == "2026-W02"
    assert document["previous"]["amount"] == REPLY_COST
    rows = cli("digest", *options, "--jsonl").jsonl
    assert {row["session"]: row["amount"] for row in rows} == {row["session"]: row["amount"] for row in usage["rows"]}
    assert [row["session"] for row in cli("digest", *options, "--csv").csv] == [row["session"] for row in rows]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ((), "# Week 2026-W02: 5 Jan - 11 Jan 2026"),
        (("--week",), "# Week 2026-W02: 5 Jan - 11 Jan 2026"),
        (("--week", "last"), "# Week 2026-W01: 29 Dec 2025 - 4 Jan 2026"),
        (("--day",), "# Mon, 5 Jan 2026"),
        (("--month", "2026-01"), "# Jan 2026"),
        (("--since", "2025-12-30", "--until", "2026-01-05"), "# 2025-12-30 to 2026-01-05 (UTC)"),
        (("--since", "0001-01-01", "--until", "9999-12-31"), "# 0001-01-01 to 9999-12-31 (UTC)"),
    ],
)
def test_periods(cli: CliRunner, home: Path, arguments: tuple[str, ...], title: str) -> None:
    """Markdown in a pipe."""
    result = cli("digest", *arguments, "--home", home, "--tz", "UTC")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[0] == title
    assert "## Projects" in result.out


def test_nothing_says_when_something_was_spent(cli: CliRunner, home: Path) -> None:
    """An empty period is not an error."""
    result = cli("digest", "--week", "2020-W01", "--home", home, "--tz", "UTC")
    assert (result.code, result.out) == (1, "")
    assert "The last usage is from 2026-01-05; to see it, use --week 2026-01-05." in result.err
    for options in (["--month", "2020-01"], ["--since", "2020-01-01", "--until", "2020-01-02"]):
        hint = cli("digest", *options, "--home", home, "--tz", "UTC").err.split("use ")[-1].rstrip(".\n").split()
        assert cli("digest", *hint, "--home", home, "--tz", "UTC").code == 0, hint
    assert cli("digest", "--week", "2020-W01", "--home", home, "--json").json["total"]["charges"] == 0
    for number, future in enumerate((datetime(9999, 12, 30, tzinfo=UTC), NOW + timedelta(days=1)), start=3):
        spend(home, future, session=f"5e551011-0000-4000-8000-{number:012}")
        result = cli("digest", "--week", "2020-W01", "--home", home, "--tz", "UTC")
        assert "The last usage is from 2026-01-05" in result.err


def test_file_is_redacted_by_default(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """By its suffix; it is not overwritten without being asked."""
    options = ("--home", home, "--tz", "UTC")
    for name in ("week.md", "week.html", "week.json", "week.txt"):
        target = tmp_path / name
        result = cli("digest", "--out", target, *options)
        assert (result.code, result.out) == (0, "")
        assert "redacted" in result.err
        assert "marlene" not in target.read_text()
        assert cli("digest", "--out", target, *options).code == 2
        assert cli("digest", "--out", target, "--no-redact", "--force", *options).code == 0
        assert "marlene" in target.read_text()
    assert "marlene" not in cli("digest", "--format", "html", *options).out
    assert "marlene" in cli("digest", "--format", "text", *options).out
    assert "marlene" not in cli("digest", "--redact", *options).out


def test_nothing_is_written_into_a_home(cli: CliRunner, home: Path) -> None:
    """As with exports."""
    result = cli("digest", "--out", home / "week.md", "--force", "--home", home)
    assert result.code == 2
    assert "inside a Claude home" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--day", "--week"),
        ("--week", "--since", "7d"),
        ("--until", "today"),
        ("--out", "x.doc"),
        ("--json", "--out", "x.json"),
        ("--week", "never"),
        ("--since", "2026-01-01", "--redact", "--csv"),  # rows are never redacted
        ("--since", "2026-01-01", "--redact", "--jsonl"),
    ],
)
def test_mistakes(cli: CliRunner, home: Path, arguments: tuple[str, ...]) -> None:
    """One period, one place."""
    result = cli("digest", *arguments, "--home", home)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_sessions_are_limited(cli: CliRunner, home: Path) -> None:
    """The rest is summed up."""
    third = "5e551011-0000-4000-8000-000000000003"
    spend(home, START, session=third)
    text = cli("digest", "--sessions", "1", "--home", home, "--tz", "UTC").out
    assert "1 more session: $1.50" in text
    assert SESSION[:8] in text
