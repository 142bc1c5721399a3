"""`threadline statusline`: always one line, the ledger's figures, and only changed files are read."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.cli import home_counts
from tests.cli.runner import COMMAND, CliResult, CliRunner, control_characters, subprocess_environment
from tests.shared_folders import shared_folder
from tests.transcripts import MODEL, SESSION, START, Part, Pen, chain, prompt, reply, transcript, write
from tools import demo

from threadline.account import active_window
from threadline.account.windows import usage_windows
from threadline.cli.cost import statusline as command
from threadline.cli.resolve import program_words
from threadline.parse import usage
from threadline.reports import read_ledger

OTHER = "5e551011-0000-4000-8000-000000000002"
DAY = timedelta(days=1)
RunLine = Callable[..., CliResult]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the clock of the command."""
    monkeypatch.setenv("TZ", "UTC")
    return lambda moment: monkeypatch.setattr(command, "_now", lambda: moment)


@pytest.fixture
def run_line(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, now: Callable[[datetime], None]) -> RunLine:
    """Runs the command, with Claude Code's input on standard input: bytes, or a value as JSON."""
    now(START + timedelta(minutes=10))

    def run(status_input: Any, *options: str | Path) -> CliResult:
        data = status_input if isinstance(status_input, bytes) else json.dumps(status_input).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return cli("statusline", "--no-color", *options)

    return run


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.slow)], ids=["1 MB", "2 MB"])
def megabytes(request: pytest.FixtureRequest) -> int:
    """The size of `dated_home`. It has more than ten sessions and more than ten days per megabyte."""
    return int(request.param)


@pytest.fixture
def dated_home(megabytes: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A demo home whose files have plausible modification times."""
    original = shared_folder(tmp_path_factory, f"demo-{megabytes}", lambda path: demo.write(path, megabytes=megabytes))
    home = tmp_path / "home"
    shutil.copytree(original, home)
    for path in home_counts.transcripts(home):
        times = [row["timestamp"] for row in home_counts.rows(path) if isinstance(row.get("timestamp"), str)]
        set_mtime(path, datetime.fromisoformat(max(times)) if times else START - 1000 * DAY)
    return home


def set_mtime(path: Path, when: datetime) -> Path:
    """Set the modification time of a file."""
    os.utime(path, (when.timestamp(), when.timestamp()))
    return path


def write_session(home: Path, *parts: Part, name: str = SESSION, start: datetime = START) -> Path:
    """The main transcript of a session, with the mtime of its last row."""
    rows = transcript(*parts, pen=Pen(name, start))
    return set_mtime(write(home / f"projects/-work-app/{name}.jsonl", *rows), start + timedelta(minutes=1))


def input_for(path: Path, **more: Any) -> dict[str, Any]:
    """What Claude Code passes for a session."""
    return {"session_id": path.stem, "transcript_path": str(path), **more}


@contextmanager
def opened_transcripts() -> Iterator[list[str]]:
    """The transcripts that are opened meanwhile."""
    paths: list[str] = []
    real_open = os.open

    def spy(path: Any, *arguments: Any, **keywords: Any) -> int:
        if str(path).endswith(".jsonl"):
            paths.append(str(path))
        return real_open(path, *arguments, **keywords)

    os.open = spy
    try:
        yield paths
    finally:
        os.open = real_open


def test_session_cost_equals_ledger(
    run_line: RunLine, now: Callable[[datetime], None], dated_home: Path, megabytes: int
) -> None:
    """For every session of a home, long after: the same Decimal as the ledger of the whole home."""
    ledger = read_ledger(dated_home)
    now(datetime(2030, 1, 1, tzinfo=UTC))
    mains = home_counts.main_transcripts(dated_home)
    assert len(mains) > 10 * megabytes
    for path in mains:
        report = run_line(input_for(path), "--home", dated_home, "--json").json["session"]
        expected = ledger.where(session=path.stem).total
        assert (report["session"], report["charges"]) == (path.stem, expected.charges)
        assert Decimal(report["amount"]) == (expected.amount or 0)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def test_cost_of_today_equals_ledger(
    run_line: RunLine, now: Callable[[datetime], None], dated_home: Path, megabytes: int, zone: str
) -> None:
    """On every day of a home, shortly after its last charge: the day's row, and the active window."""
    ledger = read_ledger(dated_home)
    rows = [row for row in ledger.by("day", zone=ZoneInfo(zone)) if not row.keys["day"].startswith("(")]
    assert len(rows) > 10 * megabytes
    last: dict[str, datetime] = {}
    for charge in ledger:
        assert charge.timestamp is not None
        day = f"{charge.timestamp.astimezone(ZoneInfo(zone)):%Y-%m-%d}"
        last[day] = max(charge.timestamp, last.get(day, charge.timestamp))
    for row in rows:
        moment = last[row.keys["day"]] + timedelta(milliseconds=1)
        now(moment)
        report = run_line({}, "--home", dated_home, "--json", "--tz", zone, "--time", "60000").json
        assert report["today"]["day"] == row.keys["day"]
        assert Decimal(report["today"]["amount"]) == (row.amount or 0)
        assert report["today"]["is_whole"]
        running = active_window(usage_windows(ledger.where(until=moment), now=moment))
        assert running is not None
        assert datetime.fromisoformat(report["window"]["begins"]) == running.begins
        assert Decimal(report["window"]["amount"]) == (running.sum.amount or 0)


def test_opens_only_recent_transcripts(run_line: RunLine, now: Callable[[datetime], None], dated_home: Path) -> None:
    """Only the session's transcripts and those that changed within a day are opened."""
    path = max(home_counts.main_transcripts(dated_home), key=lambda main: main.stat().st_mtime)
    moment = datetime.fromtimestamp(path.stat().st_mtime, UTC) + timedelta(minutes=1)
    now(moment)
    with opened_transcripts() as paths:
        assert run_line(input_for(path), "--home", dated_home).code == 0
    recent = {
        str(file) for file in home_counts.transcripts(dated_home) if file.stat().st_mtime > (moment - DAY).timestamp()
    }
    assert str(path) in paths
    assert set(paths) == recent
    assert len(recent) < len(home_counts.transcripts(dated_home)) / 5


def test_reads_only_the_end_of_a_long_transcript(
    run_line: RunLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For another session's old transcript, the work does not grow with its size. The figures are equal."""
    old = [prompt("x" * 3000), reply("y" * 3000, output=1000)] * 2000
    rows = transcript(*old, pen=Pen(start=START - 9 * DAY))
    rows += transcript(prompt("now"), reply("ok", output=500), pen=Pen(OTHER))
    path = set_mtime(write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *rows), START)
    assert path.stat().st_size > 10_000_000
    bytes_read = 0
    real_read = os.read

    def spy(descriptor: int, size: int) -> bytes:
        nonlocal bytes_read
        data = real_read(descriptor, size)
        bytes_read += len(data)
        return data

    monkeypatch.setattr(os, "read", spy)
    today = run_line({}, "--home", tmp_path, "--json").json["today"]
    monkeypatch.setattr(os, "read", real_read)
    assert bytes_read < path.stat().st_size / 5
    expected = next(row for row in read_ledger(tmp_path).by("day") if row.keys["day"] == f"{START:%Y-%m-%d}")
    assert (Decimal(today["amount"]), today["charges"]) == (expected.amount, 1)


@pytest.mark.parametrize("block", [300, 5000, 50_000])
def test_result_does_not_depend_on_block_size(
    run_line: RunLine, now: Callable[[datetime], None], dated_home: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """A day's figures do not depend on the blocks in which a file is read backwards."""
    monkeypatch.setattr(usage, "_SMALL_FILE_SIZE", 0)
    monkeypatch.setattr(usage, "_TAIL_BLOCK_SIZE", block)
    ledger = read_ledger(dated_home)
    for row in [row for row in ledger.by("day") if not row.keys["day"].startswith("(")][::3]:
        now(datetime.fromisoformat(f"{row.keys['day']}T23:59:59+00:00"))
        today = run_line({}, "--home", dated_home, "--json", "--tz", "UTC", "--time", "60000").json["today"]
        assert Decimal(today["amount"]) == (row.amount or 0)


INVALID_INPUTS: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"what?",
    "half of it": b'{"model": {"id": "claude-op',
    "no object": b"[1, 2]",
    "null": b"null",
    "NaN": b'{"cost": {"total_cost_usd": NaN}}',
    "no UTF-8": b'{"model": {"display_name": "\xff\xfe"}}',
    "half a character": b'{"cwd": "\\ud800", "model": {"display_name": "Opus"}}',
    "NULs": b"\0" * 100,
    "deep": b"[" * 100_000,
    "10 MB": b'{"x": "' + b"a" * 10_000_000 + b'", "model": {"display_name": "Opus"}}',
    "wrong types": json.dumps(
        {
            "session_id": 7,
            "transcript_path": ["a"],
            "model": "Opus",
            "cost": {"total_cost_usd": "much"},
            "context_window": [],
            "workspace": None,
        }
    ).encode(),
    "wrong values": json.dumps(
        {
            "session_id": "../../etc",
            "transcript_path": "/a\0b.jsonl",
            "model": {"id": {}, "display_name": 3},
            "cost": {"total_cost_usd": -1},
            "context_window": {"context_window_size": 0, "current_usage": {"input_tokens": 1e300}},
        }
    ).encode(),
    "truth for numbers": b'{"cost": {"total_cost_usd": true}, "context_window": {"context_window_size": true}}',
    "endless numbers": b'{"cost": {"total_cost_usd": 1e999}, "context_window": {"context_window_size": 9e99}}',
    "no such file": b'{"session_id": "x", "transcript_path": "/nonexistent/x.jsonl"}',
    "a directory": b'{"transcript_path": "/tmp"}',
    "an empty path": b'{"session_id": "", "transcript_path": ""}',
}


@pytest.mark.parametrize("name", INVALID_INPUTS)
def test_invalid_input_gives_one_line(run_line: RunLine, name: str) -> None:
    """Invalid input: exit code 0, one line, nothing on standard error, and JSON for a program."""
    result = run_line(INVALID_INPUTS[name])
    assert (result.code, result.err) == (0, "")
    assert result.out.count("\n") == 1
    assert "today $0.00" in result.out
    figures = run_line(INVALID_INPUTS[name], "--json")
    assert (figures.code, figures.err) == (0, "")
    keys = {"model", "session", "today", "window", "context", "not_read", "problems", "prices", "budgets"}
    assert set(figures.json) == keys


@pytest.mark.parametrize("kind", ["fifo", "directory", "secret", "link to a secret", "device", "not a transcript"])
def test_does_not_read_other_files(run_line: RunLine, tmp_path: Path, kind: str) -> None:
    """A path to something else: no waiting, no secret opened, and still a line."""
    path = tmp_path / "projects/-a" / ("notes.txt" if kind == "not a transcript" else f"{SESSION}.jsonl")
    path.parent.mkdir(parents=True)
    secret = write(tmp_path / ".credentials.json", *transcript(reply("s", output=9)))
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "secret":
        path = write(path.with_name(".env.jsonl"), *transcript(reply("s", output=9)))
    elif kind == "not a transcript":
        write(path, *transcript(reply("s", output=9)))
    else:
        path.symlink_to("/dev/zero" if kind == "device" else secret)
    with opened_transcripts() as paths:
        result = run_line({"transcript_path": str(path)}, "--json")
    assert (result.code, result.json["session"]["charges"] or 0, result.json["today"]["charges"]) == (0, 0, 0)
    assert str(secret) not in paths


def test_transcript_outside_any_home(run_line: RunLine, tmp_path: Path) -> None:
    """Its session is counted for today. Files next to it are not read."""
    path = set_mtime(write(tmp_path / "loose.jsonl", *transcript(reply("a", output=100))), START)
    write(tmp_path / "other.jsonl", *transcript(reply("b", output=100), pen=Pen(OTHER)))
    report = run_line({"transcript_path": str(path)}, "--json").json
    assert report["today"]["charges"] == 1
    assert Decimal(report["today"]["amount"]) == reply_cost(100)


def reply_cost(output: int) -> Decimal:
    """The cost of a reply with that output: 3 and 15 USD per million, 4 tokens of input."""
    return Decimal(4 * 3 + output * 15) / 1_000_000


def test_line_format(run_line: RunLine, tmp_path: Path) -> None:
    """Model, session, today, block and context, each once, in cents."""
    parts = [reply("a", output=100_000, read=50_000), reply("b", output=200_000, read=84_000)]
    path = write_session(tmp_path, prompt("hi"), *parts)
    write_session(tmp_path, reply("c", output=1_000_000), name=OTHER, start=START - timedelta(hours=8))
    status_input = input_for(path, model={"id": MODEL, "display_name": "Sonnet 4.5"}, cost={"total_cost_usd": 4.6})
    cost = "4.54"
    expected = f"Sonnet 4.5 | session ${cost} | today $19.54 | block ${cost}, 4h 50m left | context 84.0k (42%)\n"
    assert run_line(status_input, "--home", tmp_path).out == expected
    assert (
        run_line(status_input, "--home", tmp_path, "--cost", "both").out.count(f"session ${cost} (reported $4.60)") == 1
    )
    assert run_line(status_input, "--home", tmp_path, "--cost", "reported").out.count("session $4.60 reported") == 1
    template = "{model}: {session}/{reported} {today} [{block}, {left}] {burn} {context}={share} {}"
    assert run_line(status_input, "--home", tmp_path, "--format", template[:-3]).out == (
        f"Sonnet 4.5: ${cost}/$4.60 $19.54 [${cost}, 4h 50m] - 84.0k=42%\n"
    )


def test_burn_rate_needs_five_minutes(run_line: RunLine, tmp_path: Path) -> None:
    """The cost per hour is shown once a window has lasted five minutes."""
    row = transcript(reply("b", output=100_000), pen=Pen(OTHER, START + timedelta(minutes=6)))
    path = write_session(tmp_path, reply("a", output=100_000), *row)
    assert "$30.00/h" in run_line(input_for(path), "--home", tmp_path).out


def test_context_from_claude_code_takes_precedence(run_line: RunLine, tmp_path: Path) -> None:
    """Claude Code's tokens and size are used before the transcript's.

    Without a size, a million if something indicates it.
    """
    path = write_session(tmp_path, reply("a", read=99_996))
    agent = transcript(reply("b", read=150_000), pen=Pen(agentId="a1", isSidechain=True))
    write(path.with_suffix("") / "subagents/agent-a1.jsonl", *agent)
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 249_900}
    window = {"context_window_size": 500_000, "current_usage": usage}
    shares: dict[str, dict[str, Any]] = {
        "100.0k (50%)": {},
        "250.0k (50%)": {"context_window": window},
        "250.0k (25%)": {"context_window": {"current_usage": usage}},
        "100.0k (20%)": {"context_window": {"context_window_size": 500_000, "current_usage": None}},
        "100.0k (10%)": {"model": {"id": "claude-sonnet-4-5[1m]"}},
    }
    for shown, fields in shares.items():
        assert run_line(input_for(path, **fields)).out.endswith(f"context {shown}\n")
    assert run_line({"context_window": {"used_percentage": 37}}).out.endswith("context 37%\n")


def test_context_after_a_compaction_is_unknown(run_line: RunLine, tmp_path: Path) -> None:
    """Until the next request, the size of the window is unknown. The last prompt is not shown instead."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    parts = [reply("a", read=99_996), boundary, prompt("summary", isCompactSummary=True)]
    assert "context" not in run_line(input_for(write_session(tmp_path, *parts))).out
    assert run_line(input_for(write_session(tmp_path, *parts, reply("b", read=9_996)))).out.endswith(
        "context 10.0k (5.0%)\n"
    )


def test_finds_session_by_id(run_line: RunLine, tmp_path: Path) -> None:
    """Without a path, or if the path belongs to another session, the id decides."""
    path = write_session(tmp_path, reply("a", output=100))
    other = write_session(tmp_path, reply("b", output=200), name=OTHER)
    for status_input in ({"session_id": path.stem}, {"session_id": path.stem, "transcript_path": str(other)}):
        report = run_line(status_input, "--home", tmp_path, "--json").json["session"]
        assert (report["session"], Decimal(report["amount"])) == (path.stem, reply_cost(100))


def test_agents_belong_to_their_session(run_line: RunLine, tmp_path: Path) -> None:
    """In the session's folder, in another project's folder, or next to it, but not another session's agents."""
    path = write_session(tmp_path, reply("a", output=1))
    folder = path.parent
    for number, place in enumerate(
        (
            folder / f"{path.stem}/subagents/agent-a1.jsonl",
            folder.with_name("-elsewhere") / f"{path.stem}/subagents/workflows/wf_1/agent-a2.jsonl",
            folder / "agent-a3.jsonl",
        )
    ):
        pen = Pen(SESSION, START + timedelta(minutes=number + 1), agentId=f"a{number}")
        write(
            place,
            *transcript(reply("b", output=1, message={"id": f"msg_01abcdefghij234567{number}"}), pen=pen),
        )
    write(folder / "agent-a4.jsonl", *transcript(reply("c"), pen=Pen(OTHER, agentId="a4")))
    assert run_line(input_for(path), "--json").json["session"]["charges"] == 4
    assert read_ledger(tmp_path).where(session=path.stem).total.charges == 4


def test_missing_price_is_not_shown_as_free(run_line: RunLine, tmp_path: Path) -> None:
    """No amount if nothing has a price, and a + if only some of it has none."""
    unknown = reply("a", message={"model": "nobody-knows-1"})
    assert (
        "session no price | today no price"
        in run_line(input_for(write_session(tmp_path, unknown)), "--home", tmp_path).out
    )
    both = write_session(tmp_path, unknown, reply("b", output=100_000))
    assert "session $1.50+ | today $1.50+" in run_line(input_for(both), "--home", tmp_path).out


def test_today_is_partial_when_time_is_up(run_line: RunLine, tmp_path: Path) -> None:
    """If the time for other sessions is up, the line shows a +. This session is still complete."""
    path = write_session(tmp_path, reply("a", output=100_000))
    write_session(tmp_path, reply("b", output=100_000), name=OTHER)
    result = run_line(input_for(path), "--home", tmp_path, "--time", "0")
    assert "session $1.50 | today $1.50+ | block $1.50+," in result.out
    report = run_line(input_for(path), "--home", tmp_path, "--time", "0", "--json").json
    assert (report["today"]["is_whole"], report["not_read"]["is_listed"]) == (False, False)
    assert "today $3.00 |" in run_line(input_for(path), "--home", tmp_path, "--time", "60000").out


def test_window_without_a_preceding_pause_is_uncertain(run_line: RunLine, tmp_path: Path) -> None:
    """Without a pause of five hours within a day, the start of a window is a guess, marked with ~."""
    for hours in range(0, 28, 3):
        name = f"{OTHER[:-2]}{hours:02d}"
        write_session(tmp_path, reply("a", output=1000), name=name, start=START - timedelta(hours=hours))
    assert "block ~$" in run_line({}, "--home", tmp_path, "--time", "60000").out
    assert run_line({}, "--home", tmp_path, "--json").json["window"]["is_certain"] is False


HOSTILE = ("Opus\x1b[2J\x1b]0;owned\x07", "a\nb\r\nc", "\u202eevil", "x" * 100_000, "日本" * 500, "\x9b31m", "\ud800")


@pytest.mark.parametrize("name", HOSTILE)
def test_escapes_hostile_model_name(run_line: RunLine, name: str) -> None:
    """The model name is on one short line without control characters, also in a template."""
    for options in ([], ["--format", "{model}"]):
        result = run_line({"model": {"display_name": name}}, *options)
        assert result.code == 0
        assert result.out.count("\n") == 1
        assert not control_characters(result.out)
        assert len(result.out) < 200


def test_colours_also_in_a_pipe(cli: CliRunner, run_line: RunLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code displays the colours it reads, so they are printed unless turned off."""
    status_input = {"model": {"display_name": "Opus"}, "context_window": {"used_percentage": 95}}
    assert "\x1b" not in run_line(status_input).out

    def coloured() -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(status_input).encode())))
        return cli("statusline").out

    assert "\x1b[31m95%\x1b[0m" in coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in coloured()


def test_invalid_options_are_errors(run_line: RunLine, tmp_path: Path) -> None:
    """An invalid part, zone, home or price file exits with 2, and the message says what to write instead."""
    errors: dict[str, list[str | Path]] = {
        "Unknown part {cost} in --format. Parts: {model}": ["--format", "{cost}"],
        "Unknown time zone 'Berlin-on-Sea'": ["--tz", "Berlin-on-Sea"],
        "There is no directory": ["--home", tmp_path / "gone"],
        "not found": ["--prices", str(tmp_path / "gone.json")],
    }
    for sentence, options in errors.items():
        result = run_line({}, *options)
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err


def test_internal_error_still_prints_a_line(run_line: RunLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If reading fails unexpectedly, the line shows what Claude Code passed."""

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("threadline.reports.statusline.ledger_from_sightings", fail)
    status_input = input_for(
        write_session(tmp_path, reply("a")), model={"display_name": "Opus"}, cost={"total_cost_usd": 2.5}
    )
    result = run_line(status_input)
    assert (result.code, result.out) == (0, "Opus | session $2.50 reported\n")
    assert "ZeroDivisionError" in result.err


def test_install_prints_and_changes_nothing(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--install` prints settings as JSON that name this command. No file is written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = write(tmp_path / ".claude/settings.json", b"{}")
    result = cli("statusline", "--install")
    command = " ".join([*program_words(), "statusline"])
    assert result.json["statusLine"] == {"type": "command", "command": command}
    assert "~/.claude/settings.json" in result.err
    assert Path(program_words()[0]).is_absolute()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [settings]
    assert settings.read_bytes() == b"{}"
    assert "statusLine" in cli("statusline", "--help").out


def run_in_shell(data: bytes, *, shell: str = '"$@"', **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a new process, started by a shell that may close its streams."""
    return subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", shell, "sh", *COMMAND, "statusline"],
        input=data,
        env=subprocess_environment(**env),
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}, {"TZ": "Nowhere/At"}]
)
def test_any_locale(env: dict[str, str]) -> None:
    """In any locale, with a name that it cannot encode: one line of ASCII."""
    status_input = json.dumps({"model": {"display_name": "Opus \u00fc"}, "cost": {"total_cost_usd": 1}}).encode()
    process = run_in_shell(status_input, **env, NO_COLOR="1")
    assert (process.returncode, process.stderr) == (0, b"")
    assert process.stdout.startswith(b"Opus ")
    assert b"session $1.00 reported | today $0.00\n" in process.stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "shell", ['"$@" >&-', '"$@" <&-', '"$@" 2>&-', '"$@" >&- 2>&- <&-', '"$@" | true', '"$@" </dev/null']
)
def test_closed_streams(shell: str) -> None:
    """With any stream closed, or nobody reading: exit code 0, no traceback."""
    process = run_in_shell(b"{}", shell=shell)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr
