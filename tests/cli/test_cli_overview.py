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
    "listed",
    "agents_only",
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
    "not_entered",
    "problems",
}
PROJECT_KEYS = {"project", "folder", "home", "sessions", "agents", "bytes", "first", "last"}


@pytest.mark.parametrize("index", ["on", "off"])
def test_overview_names_side_files_and_directories_that_are_not_searched(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Settings and shell snapshots are listed, and `statsig` is named; none of them is opened."""
    monkeypatch.setenv("THREADLINE_INDEX", index)
    home = tmp_path / "home"
    session = home / "projects/-work/5e551011-0000-4000-8000-000000000001.jsonl"
    for path in (session, home / "settings.json", home / "shell-snapshots/snapshot-zsh-1.sh", home / "statsig/cache"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    for path in (home / "settings.json", home / "shell-snapshots/snapshot-zsh-1.sh", home / "statsig/cache"):
        path.chmod(0)
    data = cli("--home", home, "--json").json
    assert data["side_files"] == {"settings": 1, "shell-snapshot": 1}
    assert data["not_entered"] == [str(home / "statsig")]
    text = " ".join(cli("--home", home).out.split())
    assert "settings 1, shell-snapshot 1" in text
    assert "not searched statsig/: they contain no sessions" in text


def test_overview_shows_a_home(cli: CliRunner, demo_home: Path) -> None:
    """Home, sessions, projects, versions, dates, subagents, compactions, the largest transcripts and next steps."""
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


def test_finds_the_home(cli: CliRunner, demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`CLAUDE_CONFIG_DIR` and `~/.claude` need no option, and give the same result as `--home`."""
    named = cli("--home", demo_home, "--json").json
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(demo_home))
    by_variable = cli("--json").json
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    Path("~/.claude").expanduser().symlink_to(demo_home)
    by_default = cli("--json").json
    for result in (named, by_variable, by_default):
        del result["homes"][0]["source"]
    assert named == by_variable == by_default


def test_several_homes_are_added_up(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """Two homes are added up. The same home twice counts once."""
    write(tmp_path / "other/projects/-a/5e551011-0000-4000-8000-000000000009.jsonl", *transcript(prompt("hi")))
    single = cli("--home", demo_home, "--json").json
    both = cli("--home", demo_home, "--home", tmp_path / "other", "--home", demo_home, "--json").json
    assert len(both["homes"]) == 2
    assert both["sessions"] == single["sessions"] + 1
    assert both["entries"] == single["entries"] + 1


def test_counts_equal_an_independent_count(cli: CliRunner, demo_home: Path) -> None:
    """Every figure equals an independent count."""
    report = cli("--home", demo_home, "--json").json
    paths = home_counts.transcripts(demo_home)
    kinds = home_counts.count_kinds(demo_home)
    mains = list(map(home_counts.rows, home_counts.main_transcripts(demo_home)))
    assert report["transcripts"] == len(paths)
    assert report["sessions"] == len({path.stem for path in home_counts.main_transcripts(demo_home)})
    assert report["agents"] == sum(path.name.startswith("agent-") for path in paths)
    assert report["bytes"] == home_counts.total_size(demo_home)
    assert report["entries"] == sum(kinds.values())
    assert {kind: count for kind, count in report["kinds"].items() if kind != "pending"} == kinds
    assert report["versions"] == home_counts.count_versions(demo_home)
    assert list(report["versions"]) == sorted(
        report["versions"], key=lambda name: [int(part) for part in name.split(".")]
    )
    first, *_between, last = home_counts.timestamps(demo_home)
    assert (report["first"][:19], report["last"][:19]) == (first[:19], last[:19])
    summaries = [sum(bool(row.get("isCompactSummary")) for row in rows) for rows in mains]
    assert (report["compactions"], report["compacted_sessions"]) == (sum(summaries), sum(map(bool, summaries)))
    largest = sorted((path.stat().st_size for path in paths), reverse=True)[:5]
    assert [transcript["bytes"] for transcript in report["largest"]] == largest
    assert sum(project["sessions"] for project in report["projects"]) == report["sessions"]
    assert sum(project["bytes"] for project in report["projects"]) == report["bytes"]


def test_json_keys_are_stable(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """The JSON always has these keys, with or without a home."""
    report = cli("--home", demo_home, "--json").json
    assert set(report) == KEYS
    assert set(report["homes"][0]) == {"path", "source"}
    assert {frozenset(project) for project in report["projects"]} == {frozenset(PROJECT_KEYS)}
    assert set(report["largest"][0]) == {"path", "project", "bytes", "entries"}
    assert set(cli("--json").json) == KEYS
    (tmp_path / "projects").mkdir()
    assert set(cli("--home", tmp_path, "--json").json) == KEYS


def test_rows_are_projects(cli: CliRunner, demo_home: Path) -> None:
    """`--jsonl` and `--csv` print the projects of the JSON."""
    projects = cli("--home", demo_home, "--json").json["projects"]
    assert cli("--home", demo_home, "--jsonl").jsonl == projects
    table = cli("--home", demo_home, "--csv").csv
    assert [row["project"] for row in table] == [project["project"] for project in projects]
    assert [int(row["bytes"]) for row in table] == [project["bytes"] for project in projects]


def test_no_home_exits_with_1(cli: CliRunner) -> None:
    """Without a home the exit code is 1, and a sentence on standard error says what to do."""
    result = cli()
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("threadline: No Claude home found.")
    assert "threadline demo" in result.err
    assert result.err.count("\n") == 1
    assert cli("--json").code == 1


@pytest.mark.parametrize("variable", ["CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"])
@pytest.mark.parametrize("command", [[], ["list"], ["usage"], ["history"]])
def test_variable_that_leads_nowhere_is_named(
    cli: CliRunner, monkeypatch: pytest.MonkeyPatch, variable: str, command: list[str]
) -> None:
    """The message says which variable is wrong."""
    monkeypatch.setenv(variable, "/no/such/home")
    result = cli(*command)
    assert result.code == 1
    assert f"{variable} is '/no/such/home', which does not exist." in result.err


def test_empty_home_exits_with_1(cli: CliRunner, tmp_path: Path) -> None:
    """A home without transcripts is shown as such."""
    (tmp_path / "projects").mkdir()
    result = cli("--home", tmp_path)
    assert result.code == 1
    assert "none yet" in result.out


def test_missing_home_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    """A path that is not a home exits with 2 and a sentence."""
    for wrong in (tmp_path / "nowhere", tmp_path):
        result = cli("--home", wrong)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("threadline: ")
        assert result.err.rstrip().endswith(".")


def test_empty_transcripts_have_no_sessions(cli: CliRunner, tmp_path: Path) -> None:
    """Empty files and files with only newlines count as transcripts, without sessions, entries or problems."""
    for number, content in enumerate((b"", b"\n", b"\n\r\n\n")):
        write(tmp_path / f"projects/-a/5e551011-0000-4000-8000-00000000000{number}.jsonl", content)
    report = cli("--home", tmp_path, "--json").json
    assert (report["transcripts"], report["sessions"], report["entries"], report["problems"]) == (3, 0, 0, [])


def test_session_in_two_folders_is_counted_once(cli: CliRunner, tmp_path: Path) -> None:
    """A session id that occurs in two folders is one session."""
    for folder in ("-a", "-b"):
        name = f"projects/{folder}/5e551011-0000-4000-8000-000000000001.jsonl"
        write(tmp_path / name, *transcript(prompt("hi"), reply("ok")))
    report = cli("--home", tmp_path, "--json").json
    assert (report["transcripts"], report["sessions"]) == (2, 1)


def test_result_does_not_depend_on_jobs(demo_home: Path) -> None:
    """One worker and two workers give the same result."""
    single, parallel = (run_in_subprocess("--home", demo_home, "--json", "--jobs", jobs) for jobs in ("1", "2"))
    assert single.code == parallel.code == 0
    assert single.json == parallel.json


def test_options_before_a_command_are_passed_on(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """An option before a command means the same as after it. An option that the command does not have is refused."""
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
    assert "--home does not apply to `threadline demo`" in refused.err
    assert not (tmp_path / "new").exists()


def test_next_steps_name_the_same_home(
    cli: CliRunner, demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suggested commands name the given homes. An empty home gets a suggestion, too."""
    monkeypatch.setenv("COLUMNS", "500")  # paths may be long
    link = tmp_path / "a home"
    link.symlink_to(demo_home)
    output = cli("--home", link).out
    for command in ("doctor", "list", "show last"):
        assert f"threadline {command} --home '{link}'" in output
    (tmp_path / "empty/projects").mkdir(parents=True)
    assert "Next: threadline demo demo-home" in cli("--home", tmp_path / "empty").out


def test_narrow_page_fits(cli: CliRunner, demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS applies in a pipe. At 80 only the home's path may be longer, and paths keep their ends."""
    monkeypatch.setenv("COLUMNS", "80")
    link = tmp_path / "h"
    link.symlink_to(demo_home)
    monkeypatch.chdir(tmp_path)
    lines = cli("--home", "h").out.splitlines()
    assert [text for text in lines if len(text) > 80 and not text.lstrip().startswith("home ")] == []
    largest = cli("--home", "h", "--json").json["largest"][0]["path"]
    assert any(text.endswith(largest[-40:]) for text in lines)
    monkeypatch.setenv("COLUMNS", "nonsense")
    assert cli("--home", "h").code == 0


def test_omits_empty_rows_and_uses_singular(cli: CliRunner, tmp_path: Path) -> None:
    """Rows with a count of zero are omitted, and a count of one is singular."""
    write(tmp_path / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", *transcript(prompt("hi")))
    output = cli("--home", tmp_path).out
    assert "1 in 1 project\n" in output
    assert "1 in 1 transcript, " in output
    assert "1 version of Claude Code" in output
    for word in ("subagents", "compactions", "continuations", "side files"):
        assert f"  {word} " not in output
