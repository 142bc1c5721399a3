"""`threadline context`: context windows, cache breaks and what fills the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters
from tests.thread.context_rows import cached_call, cached_reply, usage
from tests.transcripts import SESSION, Pen, call, chain, prompt, reply, transcript, write

from threadline.model.text import format_tokens
from threadline.render import padded_bar

HOSTILE = "\x1b]0;owned\x07\u202ename\x9b31m"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session of three turns, a cache break in the second, and an agent."""
    rows = transcript(
        prompt("go"),
        cached_call(0, 20_000, "Read", "/a", "line\n" * 400, output=60),
        cached_reply(20_000, 760, "done", after=2),
        prompt("on"),
        cached_reply(0, 21_000, "yes", after=40),
        call(f"mcp__{HOSTILE}", "x", "y" * 9_000, message={"usage": usage(21_000, 100), "model": f"m{HOSTILE}"}),
        chain("attachment", attachment={"type": HOSTILE, "text": "z" * 9_000}),
        cached_reply(21_100, 9_000, after=41, message={"model": f"m{HOSTILE}"}),
        prompt("<command-name>/cost</command-name>"),
    )
    main = tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl"
    write(main, *rows)
    pen = Pen(f"{SESSION[:-1]}2", sessionId=SESSION, agentId="a1b2", isSidechain=True)
    agent = transcript(prompt("look"), cached_reply(0, 3_000), pen=pen)
    write(main.with_suffix("") / "subagents/agent-a1b2.jsonl", *agent)
    return tmp_path / "home"


def test_json_has_turns_breaks_and_filling(cli: CliRunner, home: Path) -> None:
    """`--json` prints everything. Amounts add up to the window, and a break names its cause and evidence."""
    result = cli("context", "last", "--home", home, "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert (report["window"], report["limit"], report["measured"], report["requests"]) == (30_102, 200_000, True, 5)
    assert sum(part["tokens"] for part in report["filling"]) == report["window"]
    assert [turn["requests"] for turn in report["turns"]] == [2, 3, 0]
    (cache_break,) = report["breaks"]
    assert (cache_break["cause"], cache_break["rewritten"], cache_break["seconds"] > 300) == ("idle", 20_760, True)
    assert "5 minutes" in cache_break["evidence"]
    read = next(part for part in report["filling"] if part["name"] == "Read")
    assert (read["tokens"], read["measured"], read["how"]) == (700, 700, "measured")


def test_rows_are_turns(cli: CliRunner, home: Path) -> None:
    """`--jsonl` and `--csv` print one row per turn, equal to the JSON."""
    turns = cli("context", SESSION[:8], "--home", home, "--json").json["turns"]
    assert cli("context", SESSION[:8], "--home", home, "--jsonl").jsonl == turns
    assert [row["window"] for row in cli("context", "--home", home, "--csv").csv] == ["20762", "30102", ""]


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_page_fits_terminal_and_escapes_names(
    cli: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    """The page shows each turn with requests and what fills the window. Hostile names are escaped."""
    monkeypatch.setattr("threadline.cli.output.page_width", lambda: int(width))
    result = cli("context", "--home", home, "--all", "--breaks")
    assert result.code == 0
    assert not control_characters(result.out)
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= int(width)
    assert "1 cache break" in result.out
    assert [line.split()[0] for line in lines if line[:4].strip().isdecimal()][:2] == ["1", "2"]
    assert "system prompt and tools" in result.out
    assert "results of Read" in result.out


def test_selects_agent_turn_or_place(cli: CliRunner, home: Path) -> None:
    """`--agent`, `--turn` and `--at` choose the window.

    With `--agent`, a number is a line of the agent's transcript.
    """
    assert cli("context", "--home", home, "--agent", "a1", "--json").json["window"] == 3_002
    assert cli("context", "--home", home, "--agent", "a1", "--at", "2", "--json").json["window"] == 3_002
    assert cli("context", "--home", home, "--turn", "1", "--json").json["window"] == 20_762
    assert cli("context", "--home", home, "--at", "2", "--json").json["window"] == 20_002
    assert cli("context", "--home", home, "--agent", "main", "--json").json["agent"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agent", "zz"], "no agent 'zz'"),
        (["--turn", "9"], "No turn 9: the session has"),
        (["--at", "999"], "no entry at"),
        (["--at", "2", "--turn", "1"], "not both"),
        (["--at", "nowhere"], "not a place"),
    ],
)
def test_unknown_agent_turn_or_place_is_an_error(cli: CliRunner, home: Path, options: list[str], sentence: str) -> None:
    """An unknown agent, turn or place is an error that says so."""
    result = cli("context", "--home", home, *options)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_session_without_requests_exits_with_1(cli: CliRunner, tmp_path: Path) -> None:
    """Without a reply from a model, the exit code is 1 and a sentence says so, in every format."""
    path = write(tmp_path / f"{SESSION}.jsonl", *transcript(prompt("go"), reply("x", message={"model": "<synthetic>"})))
    for output in ([], ["--json"], ["--jsonl"], ["--csv"]):
        result = cli("context", path, *output)
        assert (result.code, "No requests" in result.err) == (1, True)


def test_demo_windows_equal_the_sum_of_their_parts(cli: CliRunner, demo_home: Path) -> None:
    """For each demo session, the amounts add up to the window."""
    sessions = 0
    for path in sorted(demo_home.glob("projects/*/*.jsonl")):
        result = cli("context", path, "--json")
        if result.code == 0:
            sessions += 1
            assert sum(part["tokens"] for part in result.json["filling"]) == result.json["window"]
    assert sessions


def test_format_tokens_and_padded_bar() -> None:
    """Token counts take at most six columns up to a billion, and a bar has the requested width."""
    figures = [0, 999, 1_000, 9_949, 9_950, 167_300, 999_499, 999_500, 1_200_000, -60_300]
    assert [format_tokens(figure) for figure in figures] == [
        "0", "999", "1.0k", "9.9k", "9.9k", "167.3k", "999.5k", "999.5k", "1.2M", "-60.3k",
    ]  # fmt: skip
    assert [padded_bar(share, 4) for share in (None, 0, 0.0001, 0.5, 1, 7)] == [
        "    ",
        "    ",
        "▏   ",
        "██  ",
        "████",
        "████",
    ]
