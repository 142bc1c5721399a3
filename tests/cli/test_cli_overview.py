"""Bare `threadline`: the overview."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, run_in_subprocess
from tests.transcripts import prompt, reply, transcript, write

KEYS = {
    "homes",
    "projects",
    "sessions",
    "transcripts",
    "agents",
    "inline_agents",
    "entries",
    "bytes",
    "kept",
    "kinds",
    "versions",
    "first",
    "last",
    "compactions",
    "compacted_sessions",
    "continuations",
    "titled_by_summary",
    "largest",
    "side_files",
    "problems",
}
PROJECT_KEYS = {"project", "folder", "home", "sessions", "agents", "bytes", "first", "last"}


def test_a_home_is_shown(cli: CliRunner, demo_home: Path) -> None:
    """A newcomer sees home, sessions, projects, versions, dates, subagents, compactions, the largest, what next."""
    result = cli("--home", demo_home)
    assert result.code == 0
    assert result.err == ""
    words = (
        "home",
        "sessions",
        "entries",
        "from",
        "versions",
        "subagents",
        "compactions",
        "continuations",
        "side files",
    )
    for word in (*words, "Projects", "Largest transcripts", "Next: threadline doctor"):
        assert word in result.out
    assert str(demo_home) in result.out
    assert (
        f"{len(home_counts.main_transcripts(demo_home))} in {len(list((demo_home / 'projects').iterdir()))} projects"
        in result.out
    )


def test_the_home_is_found_by_itself(cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`CLAUDE_CONFIG_DIR` and `~/.claude` need no option, and give what `--home` gives."""
    named = cli("--home", demo_home, "--json").json
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(demo_home))
    by_variable = cli("--json").json
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    Path("~/.claude").expanduser().symlink_to(demo_home)
    by_default = cli("--json").json
    for result in (named, by_variable, by_default):
        del result["homes"][0]["source"]
    assert named == by_variable == by_default


def test_several_homes_are_one_overview(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """Two homes, by option or by variable, are summed; the same home twice is one."""
    write(tmp_path / "other/projects/-a/5e551011-0000-4000-8000-000000000009.jsonl", *transcript(prompt("hi")))
    one = cli("--home", demo_home, "--json").json
    both = cli("--home", demo_home, "--home", tmp_path / "other", "--home", demo_home, "--json").json
    assert len(both["homes"]) == 2
    assert both["sessions"] == one["sessions"] + 1
    assert both["entries"] == one["entries"] + 1


def test_figures_equal_an_independent_count(cli: CliRunner, demo_home: Path) -> None:
    """Every figure equals one that was counted with nothing but json and open."""
    seen = cli("--home", demo_home, "--json").json
    paths = home_counts.transcripts(demo_home)
    kinds = home_counts.count_kinds(demo_home)
    mains = list(map(home_counts.rows, home_counts.main_transcripts(demo_home)))
    assert seen["transcripts"] == len(paths)
    assert seen["sessions"] == len({path.stem for path in home_counts.main_transcripts(demo_home)})
    assert seen["agents"] == sum(path.name.startswith("agent-") for path in paths)
    assert seen["bytes"] == home_counts.total_size(demo_home)
    assert seen["entries"] == sum(kinds.values())
    assert {kind: count for kind, count in seen["kinds"].items() if kind != "pending"} == kinds
    assert seen["versions"] == home_counts.count_versions(demo_home)
    assert list(seen["versions"]) == sorted(seen["versions"], key=lambda name: [int(part) for part in name.split(".")])
    first, *_between, last = home_counts.timestamps(demo_home)
    assert (seen["first"][:19], seen["last"][:19]) == (first[:19], last[:19])
    summaries = [sum(bool(row.get("isCompactSummary")) for row in rows) for rows in mains]
    assert (seen["compactions"], seen["compacted_sessions"]) == (sum(summaries), sum(map(bool, summaries)))
    largest = sorted((path.stat().st_size for path in paths), reverse=True)[:5]
    assert [one["bytes"] for one in seen["largest"]] == largest
    assert sum(project["sessions"] for project in seen["projects"]) == seen["sessions"]
    assert sum(project["bytes"] for project in seen["projects"]) == seen["bytes"]


def test_keys_are_stable(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """The keys of the JSON are these words, whether there is a home or none."""
    seen = cli("--home", demo_home, "--json").json
    assert set(seen) == KEYS
    assert set(seen["homes"][0]) == {"path", "source"}
    assert {frozenset(project) for project in seen["projects"]} == {frozenset(PROJECT_KEYS)}
    assert set(seen["largest"][0]) == {"path", "project", "bytes", "entries"}
    assert set(cli("--json").json) == KEYS
    (tmp_path / "projects").mkdir()
    assert set(cli("--home", tmp_path, "--json").json) == KEYS


def test_rows_are_the_projects(cli: CliRunner, demo_home: Path) -> None:
    """`--jsonl` and `--csv` print the projects, the same ones that `--json` holds."""
    projects = cli("--home", demo_home, "--json").json["projects"]
    assert cli("--home", demo_home, "--jsonl").jsonl == projects
    table = cli("--home", demo_home, "--csv").csv
    assert [row["project"] for row in table] == [project["project"] for project in projects]
    assert [int(row["bytes"]) for row in table] == [project["bytes"] for project in projects]


def test_no_home_is_nothing_found(cli: CliRunner) -> None:
    """Without a home the exit code is 1, and a sentence on standard error says what to do."""
    result = cli()
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: No Claude home found.")
    assert "threadline demo" in result.err
    assert result.err.count("\n") == 1
    assert cli("--json").code == 1


def test_an_empty_home_is_nothing_found(cli: CliRunner, tmp_path: Path) -> None:
    """A home without a transcript is shown as such; the exit code is 1."""
    (tmp_path / "projects").mkdir()
    result = cli("--home", tmp_path)
    assert result.code == 1
    assert "none yet" in result.out


def test_a_home_that_is_not_there_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    """A home that was named and is none is an error: exit code 2 and a sentence."""
    for wrong in (tmp_path / "nowhere", tmp_path):
        result = cli("--home", wrong)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("threadline: ")
        assert result.err.rstrip().endswith(".")


def test_empty_transcripts_are_listed_and_hold_no_session(cli: CliRunner, tmp_path: Path) -> None:
    """Files of no bytes or only newlines count as transcripts, without sessions or entries, and raise nothing."""
    for number, content in enumerate((b"", b"\n", b"\n\r\n\n")):
        write(tmp_path / f"projects/-a/5e551011-0000-4000-8000-00000000000{number}.jsonl", content)
    seen = cli("--home", tmp_path, "--json").json
    assert (seen["transcripts"], seen["sessions"], seen["entries"], seen["problems"]) == (3, 0, 0, [])


def test_a_session_in_two_transcripts_is_one(cli: CliRunner, tmp_path: Path) -> None:
    """A session whose id two folders hold is one session."""
    for folder in ("-a", "-b"):
        name = f"projects/{folder}/5e551011-0000-4000-8000-000000000001.jsonl"
        write(tmp_path / name, *transcript(prompt("hi"), reply("ok")))
    seen = cli("--home", tmp_path, "--json").json
    assert (seen["transcripts"], seen["sessions"]) == (2, 1)


def test_workers_give_the_same_answer(demo_home: Path) -> None:
    """Read with two workers or with one, the answer is the same."""
    one, two = (run_in_subprocess("--home", demo_home, "--json", "--jobs", jobs) for jobs in ("1", "2"))
    assert one.code == two.code == 0
    assert one.json == two.json


def test_options_before_a_command_are_passed_on(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """An option before a command means what it means after it; one that the command does not have is refused."""
    path = home_counts.main_transcripts(demo_home)[0]
    home = ("--home", demo_home)
    assert cli(*home, "doctor").out == cli("doctor", *home).out != ""
    assert cli(*home, "--json", "--jobs", "1", "doctor").json == cli("doctor", *home, "--json", "--jobs", "1").json
    assert cli("--csv", "entries", path).out == cli("entries", path, "--csv").out
    assert cli(*home, "entries", path.stem, "--limit", "1").code == 0
    both = cli("--json", "entries", path, "--csv")
    assert (both.code, both.out) == (2, "")
    refused = cli(*home, "demo", tmp_path / "new")
    assert (refused.code, refused.out) == (2, "")
    assert "`threadline demo` has no option --home" in refused.err
    assert not (tmp_path / "new").exists()


def test_what_next_is_for_the_same_home(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """What to type next names the homes that were named, and where there is nothing yet, how to get something."""
    link = tmp_path / "a home"
    link.symlink_to(demo_home)
    shown = cli("--home", link).out
    for command in ("doctor", "list", "show last"):
        assert f"threadline {command} --home '{link}'" in shown
    (tmp_path / "empty/projects").mkdir(parents=True)
    assert "Next: threadline demo demo-home" in cli("--home", tmp_path / "empty").out


def test_a_narrow_page_fits(cli: CliRunner, demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS is honoured in a pipe: at 80 only a home's own path may be longer, and paths keep their ends."""
    monkeypatch.setenv("COLUMNS", "80")
    link = tmp_path / "h"
    link.symlink_to(demo_home)
    monkeypatch.chdir(tmp_path)
    shown = cli("--home", "h").out.splitlines()
    assert [text for text in shown if len(text) > 80 and not text.lstrip().startswith("home ")] == []
    largest = cli("--home", "h", "--json").json["largest"][0]["path"]
    assert any(text.endswith(largest[-40:]) for text in shown)
    monkeypatch.setenv("COLUMNS", "nonsense")
    assert cli("--home", "h").code == 0


def test_what_there_is_not_is_not_counted(cli: CliRunner, tmp_path: Path) -> None:
    """Rows of nothing are left out, and one of a thing is singular."""
    write(tmp_path / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", *transcript(prompt("hi")))
    shown = cli("--home", tmp_path).out
    assert "1 in 1 project\n" in shown
    assert "1 in 1 transcript, " in shown
    assert "1 version of Claude Code" in shown
    for word in ("subagents", "compactions", "continuations", "side files"):
        assert f"  {word} " not in shown
