"""`threadline statusline`: always one line, the ledger's own figures, and nothing read that did not change."""

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
from threadline.cli import statusline as command
from threadline.parse import usage
from threadline.reports import read_ledger

OTHER = "5e551011-0000-4000-8000-000000000002"
DAY = timedelta(days=1)
Ask = Callable[..., CliResult]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the clock that the command looks at."""
    monkeypatch.setenv("TZ", "UTC")
    return lambda moment: monkeypatch.setattr(command, "_now", lambda: moment)


@pytest.fixture
def line(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, now: Callable[[datetime], None]) -> Ask:
    """Asks for the line, with what Claude Code gives on standard input: bytes, or a value as JSON."""
    now(START + timedelta(minutes=10))

    def asked(given: Any, *options: str | Path) -> CliResult:
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return cli("statusline", "--no-color", *options)

    return asked


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
        dated(path, datetime.fromisoformat(max(times)) if times else START - 1000 * DAY)
    return home


def dated(path: Path, when: datetime) -> Path:
    """A file that was last written to then."""
    os.utime(path, (when.timestamp(), when.timestamp()))
    return path


def session(home: Path, *parts: Part, name: str = SESSION, start: datetime = START) -> Path:
    """A session's main transcript, written when its last row was."""
    rows = transcript(*parts, pen=Pen(name, start))
    return dated(write(home / f"projects/-work-app/{name}.jsonl", *rows), start + timedelta(minutes=1))


def told(path: Path, **more: Any) -> dict[str, Any]:
    """What Claude Code tells of a session."""
    return {"session_id": path.stem, "transcript_path": str(path), **more}


@contextmanager
def opened() -> Iterator[list[str]]:
    """The transcripts that are opened meanwhile."""
    seen: list[str] = []
    real = os.open

    def spy(path: Any, *arguments: Any, **given: Any) -> int:
        if str(path).endswith(".jsonl"):
            seen.append(str(path))
        return real(path, *arguments, **given)

    os.open = spy
    try:
        yield seen
    finally:
        os.open = real


def test_the_session_costs_what_the_ledger_says(
    line: Ask, now: Callable[[datetime], None], dated_home: Path, megabytes: int
) -> None:
    """For every session of a home, long after: the same Decimal as the ledger of the whole home."""
    whole = read_ledger(dated_home)
    now(datetime(2030, 1, 1, tzinfo=UTC))
    mains = home_counts.main_transcripts(dated_home)
    assert len(mains) > 10 * megabytes
    for path in mains:
        found = line(told(path), "--home", dated_home, "--json").json["session"]
        wanted = whole.where(session=path.stem).total
        assert (found["id"], found["charges"]) == (path.stem, wanted.charges)
        assert Decimal(found["amount"]) == (wanted.amount or 0)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def test_today_costs_what_the_ledger_says(
    line: Ask, now: Callable[[datetime], None], dated_home: Path, megabytes: int, zone: str
) -> None:
    """On every day of a home, shortly after its last charge: the day's row, and the window that is running then."""
    whole = read_ledger(dated_home)
    rows = [row for row in whole.by("day", zone=ZoneInfo(zone)) if not row.keys["day"].startswith("(")]
    assert len(rows) > 10 * megabytes
    last: dict[str, datetime] = {}
    for charge in whole:
        assert charge.timestamp is not None
        day = f"{charge.timestamp.astimezone(ZoneInfo(zone)):%Y-%m-%d}"
        last[day] = max(charge.timestamp, last.get(day, charge.timestamp))
    for row in rows:
        moment = last[row.keys["day"]] + timedelta(milliseconds=1)
        now(moment)
        found = line({}, "--home", dated_home, "--json", "--tz", zone, "--time", "60000").json
        assert found["today"]["day"] == row.keys["day"]
        assert Decimal(found["today"]["amount"]) == (row.amount or 0)
        assert found["today"]["is_whole"]
        running = active_window(usage_windows(whole.where(until=moment), now=moment))
        assert running is not None
        assert datetime.fromisoformat(found["window"]["begins"]) == running.begins
        assert Decimal(found["window"]["amount"]) == (running.sum.amount or 0)


def test_other_days_are_not_opened(line: Ask, now: Callable[[datetime], None], dated_home: Path) -> None:
    """Only the session's transcripts and those that changed within a day are opened."""
    path = max(home_counts.main_transcripts(dated_home), key=lambda main: main.stat().st_mtime)
    moment = datetime.fromtimestamp(path.stat().st_mtime, UTC) + timedelta(minutes=1)
    now(moment)
    with opened() as seen:
        assert line(told(path), "--home", dated_home).code == 0
    fresh = {
        str(file) for file in home_counts.transcripts(dated_home) if file.stat().st_mtime > (moment - DAY).timestamp()
    }
    assert str(path) in seen
    assert set(seen) == fresh
    assert len(fresh) < len(home_counts.transcripts(dated_home)) / 5


def test_of_a_long_transcript_only_the_end_is_read(line: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another session's transcript that grew for days, what is read does not grow with it; the figures are equal."""
    old = [prompt("x" * 3000), reply("y" * 3000, output=1000)] * 2000
    rows = transcript(*old, pen=Pen(start=START - 9 * DAY))
    rows += transcript(prompt("now"), reply("ok", output=500), pen=Pen(OTHER))
    path = dated(write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *rows), START)
    assert path.stat().st_size > 10_000_000
    read = 0
    real = os.read

    def spy(descriptor: int, size: int) -> bytes:
        nonlocal read
        data = real(descriptor, size)
        read += len(data)
        return data

    monkeypatch.setattr(os, "read", spy)
    found = line({}, "--home", tmp_path, "--json").json["today"]
    monkeypatch.setattr(os, "read", real)
    assert read < path.stat().st_size / 5
    wanted = next(row for row in read_ledger(tmp_path).by("day") if row.keys["day"] == f"{START:%Y-%m-%d}")
    assert (Decimal(found["amount"]), found["charges"]) == (wanted.amount, 1)


@pytest.mark.parametrize("block", [300, 5000, 50_000])
def test_the_end_is_found_however_blocks_fall(
    line: Ask, now: Callable[[datetime], None], dated_home: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """A day's figures do not depend on how the reading goes back."""
    monkeypatch.setattr(usage, "_SMALL_FILE_SIZE", 0)
    monkeypatch.setattr(usage, "_TAIL_BLOCK_SIZE", block)
    whole = read_ledger(dated_home)
    for row in [row for row in whole.by("day") if not row.keys["day"].startswith("(")][::3]:
        now(datetime.fromisoformat(f"{row.keys['day']}T23:59:59+00:00"))
        found = line({}, "--home", dated_home, "--json", "--tz", "UTC", "--time", "60000").json["today"]
        assert Decimal(found["amount"]) == (row.amount or 0)


ODD: dict[str, bytes] = {
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


@pytest.mark.parametrize("name", ODD)
def test_whatever_comes_there_is_one_line(line: Ask, name: str) -> None:
    """Odd input: exit code 0, one line, nothing on standard error; and JSON for a program."""
    result = line(ODD[name])
    assert (result.code, result.err) == (0, "")
    assert result.out.count("\n") == 1
    assert "today $0.00" in result.out
    figures = line(ODD[name], "--json")
    assert (figures.code, figures.err) == (0, "")
    assert set(figures.json) == {"model", "session", "today", "window", "context", "not_read", "problems", "prices"}


@pytest.mark.parametrize("kind", ["fifo", "directory", "secret", "link to a secret", "device", "not a transcript"])
def test_what_is_no_transcript_is_not_read(line: Ask, tmp_path: Path, kind: str) -> None:
    """A path that leads to something else: no waiting, no secret opened, and a line all the same."""
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
    with opened() as seen:
        result = line({"transcript_path": str(path)}, "--json")
    assert (result.code, result.json["session"]["charges"] or 0, result.json["today"]["charges"]) == (0, 0, 0)
    assert str(secret) not in seen


def test_a_transcript_outside_of_any_home(line: Ask, tmp_path: Path) -> None:
    """Its session is told, and counted to today; what lies around it is not read."""
    path = dated(write(tmp_path / "loose.jsonl", *transcript(reply("a", output=100))), START)
    write(tmp_path / "other.jsonl", *transcript(reply("b", output=100), pen=Pen(OTHER)))
    found = line({"transcript_path": str(path)}, "--json").json
    assert found["today"]["charges"] == 1
    assert Decimal(found["today"]["amount"]) == ledger_of_rows(100)


def ledger_of_rows(output: int) -> Decimal:
    """What a reply of that output costs: 3 and 15 USD a million, 4 tokens of input."""
    return Decimal(4 * 3 + output * 15) / 1_000_000


def test_the_line(line: Ask, tmp_path: Path) -> None:
    """Model, session, today, block and context, each once, in cents."""
    parts = [reply("a", output=100_000, read=50_000), reply("b", output=200_000, read=84_000)]
    path = session(tmp_path, prompt("hi"), *parts)
    session(tmp_path, reply("c", output=1_000_000), name=OTHER, start=START - timedelta(hours=8))
    given = told(path, model={"id": MODEL, "display_name": "Sonnet 4.5"}, cost={"total_cost_usd": 4.6})
    own = "4.54"
    line_of = f"Sonnet 4.5 | session ${own} | today $19.54 | block ${own}, 4h 50m left | context 84k (42%)\n"
    assert line(given, "--home", tmp_path).out == line_of
    assert line(given, "--home", tmp_path, "--cost", "both").out.count(f"session ${own} (reported $4.60)") == 1
    assert line(given, "--home", tmp_path, "--cost", "reported").out.count("session $4.60 reported") == 1
    template = "{model}: {session}/{reported} {today} [{block}, {left}] {burn} {context}={share} {}"
    assert line(given, "--home", tmp_path, "--format", template[:-3]).out == (
        f"Sonnet 4.5: ${own}/$4.60 $19.54 [${own}, 4h 50m] - 84k=42%\n"
    )


def test_burn_needs_some_minutes(line: Ask, tmp_path: Path) -> None:
    """What an hour costs is told once a window has gone on for five minutes."""
    row = transcript(reply("b", output=100_000), pen=Pen(OTHER, START + timedelta(minutes=6)))
    path = session(tmp_path, reply("a", output=100_000), *row)
    assert "$30.00/h" in line(told(path), "--home", tmp_path).out


def test_context_is_what_claude_code_tells(line: Ask, tmp_path: Path) -> None:
    """Its own tokens and size go before the transcript's; without a size, a million where something tells of that."""
    path = session(tmp_path, reply("a", read=99_996))
    agent = transcript(reply("b", read=150_000), pen=Pen(agentId="a1", isSidechain=True))
    write(path.with_suffix("") / "subagents/agent-a1.jsonl", *agent)
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 249_900}
    window = {"context_window_size": 500_000, "current_usage": usage}
    shares: dict[str, dict[str, Any]] = {
        "100k (50%)": {},
        "250k (50%)": {"context_window": window},
        "250k (25%)": {"context_window": {"current_usage": usage}},
        "100k (20%)": {"context_window": {"context_window_size": 500_000, "current_usage": None}},
        "100k (10%)": {"model": {"id": "claude-sonnet-4-5[1m]"}},
    }
    for shown, given in shares.items():
        assert line(told(path, **given)).out.endswith(f"context {shown}\n")
    assert line({"context_window": {"used_percentage": 37}}).out.endswith("context 37%\n")


def test_context_after_a_compaction_is_not_known(line: Ask, tmp_path: Path) -> None:
    """Until the next request, nothing tells how large the window is; the last prompt is not shown in its place."""
    boundary = chain("system", subtype="compact_boundary", content="Conversation compacted")
    parts = [reply("a", read=99_996), boundary, prompt("summary", isCompactSummary=True)]
    assert "context" not in line(told(session(tmp_path, *parts))).out
    assert line(told(session(tmp_path, *parts, reply("b", read=9_996)))).out.endswith("context 10k (5%)\n")


def test_a_session_is_found_by_its_id(line: Ask, tmp_path: Path) -> None:
    """Without a path, and where the path is that of another session, the id decides."""
    path = session(tmp_path, reply("a", output=100))
    other = session(tmp_path, reply("b", output=200), name=OTHER)
    for given in ({"session_id": path.stem}, {"session_id": path.stem, "transcript_path": str(other)}):
        found = line(given, "--home", tmp_path, "--json").json["session"]
        assert (found["id"], Decimal(found["amount"])) == (path.stem, ledger_of_rows(100))


def test_agents_belong_to_their_session_wherever_they_lie(line: Ask, tmp_path: Path) -> None:
    """Below the session, below it in another project's folder, and beside it; another session's beside it does not."""
    path = session(tmp_path, reply("a", output=1))
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
    assert line(told(path), "--json").json["session"]["charges"] == 4
    assert read_ledger(tmp_path).where(session=path.stem).total.charges == 4


def test_what_has_no_price_is_not_called_free(line: Ask, tmp_path: Path) -> None:
    """No amount where nothing has a price; a + where some of it has none."""
    unknown = reply("a", message={"model": "nobody-knows-1"})
    assert "session no price | today no price" in line(told(session(tmp_path, unknown)), "--home", tmp_path).out
    both = session(tmp_path, unknown, reply("b", output=100_000))
    assert "session $1.50+ | today $1.50+" in line(told(both), "--home", tmp_path).out


def test_without_time_today_is_partial(line: Ask, tmp_path: Path) -> None:
    """When the time for other sessions is up, the line shows a +; this session is whole all the same."""
    path = session(tmp_path, reply("a", output=100_000))
    session(tmp_path, reply("b", output=100_000), name=OTHER)
    result = line(told(path), "--home", tmp_path, "--time", "0")
    assert "session $1.50 | today $1.50+ | block $1.50+," in result.out
    found = line(told(path), "--home", tmp_path, "--time", "0", "--json").json
    assert (found["today"]["is_whole"], found["not_read"]["is_listed"]) == (False, False)
    assert "today $3.00 |" in line(told(path), "--home", tmp_path, "--time", "60000").out


def test_a_window_without_a_pause_before_it_is_not_certain(line: Ask, tmp_path: Path) -> None:
    """Where nobody paused for five hours within a day, where a window begins is a guess, and a ~ says so."""
    for hours in range(0, 28, 3):
        name = f"{OTHER[:-2]}{hours:02d}"
        session(tmp_path, reply("a", output=1000), name=name, start=START - timedelta(hours=hours))
    assert "block ~$" in line({}, "--home", tmp_path, "--time", "60000").out
    assert line({}, "--home", tmp_path, "--json").json["window"]["is_certain"] is False


HOSTILE = ("Opus\x1b[2J\x1b]0;owned\x07", "a\nb\r\nc", "\u202eevil", "x" * 100_000, "日本" * 500, "\x9b31m", "\ud800")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_steers_no_terminal(line: Ask, name: str) -> None:
    """The model's name is on one line, short, with nothing in it that could steer a terminal; in a template, too."""
    for options in ([], ["--format", "{model}"]):
        result = line({"model": {"display_name": name}}, *options)
        assert result.code == 0
        assert result.out.count("\n") == 1
        assert not control_characters(result.out)
        assert len(result.out) < 200


def test_colours_are_for_a_pipe_as_well(cli: CliRunner, line: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code shows the colours of what it reads, so they are there unless somebody does not want them."""
    given = {"model": {"display_name": "Opus"}, "context_window": {"used_percentage": 95}}
    assert "\x1b" not in line(given).out

    def coloured() -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(given).encode())))
        return cli("statusline").out

    assert "\x1b[31m95%\x1b[0m" in coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in coloured()


def test_what_the_user_wrote_wrong_is_a_sentence(line: Ask, tmp_path: Path) -> None:
    """A part, a zone, a home or a price file that is none: exit code 2, and what to write instead."""
    wrong: dict[str, list[str | Path]] = {
        "Unknown part {cost} in --format. Parts: {model}": ["--format", "{cost}"],
        "Unknown time zone 'Berlin-on-Sea'": ["--tz", "Berlin-on-Sea"],
        "There is no directory": ["--home", tmp_path / "gone"],
        "not found": ["--prices", str(tmp_path / "gone.json")],
    }
    for sentence, options in wrong.items():
        result = line({}, *options)
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err


def test_a_mistake_of_ours_does_not_break_the_prompt(
    line: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the reading fails in a way that nobody foresaw, the line shows what Claude Code told."""

    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("threadline.reports.statusline.ledger_from_sightings", fails)
    given = told(session(tmp_path, reply("a")), model={"display_name": "Opus"}, cost={"total_cost_usd": 2.5})
    result = line(given)
    assert (result.code, result.out) == (0, "Opus | session $2.50 reported\n")
    assert "ZeroDivisionError" in result.err


def test_install_prints_and_changes_nothing(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--install` prints settings that are JSON and name this command; no file is written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = write(tmp_path / ".claude/settings.json", b"{}")
    result = cli("statusline", "--install")
    assert result.json["statusLine"] == {"type": "command", "command": "threadline statusline"}
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [settings]
    assert settings.read_bytes() == b"{}"
    assert "statusLine" in cli("statusline", "--help").out


def alone(data: bytes, *, shell: str = '"$@"', **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, run by a shell that may close its streams."""
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
    """In any locale, with a name that it lacks characters for: one line of ASCII."""
    given = json.dumps({"model": {"display_name": "Opus \u00fc"}, "cost": {"total_cost_usd": 1}}).encode()
    done = alone(given, **env, NO_COLOR="1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Opus ")
    assert b"session $1.00 reported | today $0.00\n" in done.stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "shell", ['"$@" >&-', '"$@" <&-', '"$@" 2>&-', '"$@" >&- 2>&- <&-', '"$@" | true', '"$@" </dev/null']
)
def test_closed_streams(shell: str) -> None:
    """With any stream closed, or nobody reading: no traceback, exit code 0."""
    done = alone(b"{}", shell=shell)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
