"""`threadline history`: the prompts of all projects, newest first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.runner import CliRunner, control_characters, subprocess_environment
from tests.cli.test_cli_hostile import HOSTILE_TEXTS
from tests.transcripts import SESSION, line, prompt, transcript, write

from threadline.reports import history
from threadline.reports.history import _lines_backwards

GONE = "5e551011-0000-4000-8000-00000000dead"
NOON = 1_767_614_400_000  # 2026-01-05T12:00:00Z
HOUR = 3_600_000


def history_row(text: str, hours: int = 0, **fields: Any) -> bytes:
    """A row of history.jsonl."""
    row = {"display": text, "pastedContents": {}, "timestamp": NOON + hours * HOUR, "project": "/work/app"}
    return line({**row, "sessionId": SESSION, **fields})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session, and prompts of it, of a deleted session, and of an unnamed one."""
    write(tmp_path / "projects" / "-work-app" / f"{SESSION}.jsonl", *transcript(prompt("hello")))
    old = line({"display": "of an old version", "timestamp": NOON - 100 * HOUR, "project": "/work/Old"})
    pasted = {"1": {"id": 1, "type": "text", "content": "much"}, "2": {"id": 2, "type": "image"}}
    rows = (
        old,
        history_row("Fix the Parser", 1, sessionId=GONE),
        history_row("hello\nthere", 2),
        history_row("look at this [Pasted text #1]", 3, pastedContents=pasted, project="/work/other"),
    )
    write(tmp_path / "history.jsonl", *rows)
    return tmp_path


def texts(result: Any) -> list[str]:
    """The texts of the rows."""
    return [row["text"] for row in result.jsonl]


def test_table_has_one_line_per_prompt(cli: CliRunner, home: Path) -> None:
    """Time, session, deleted mark, project and text on one line, newest first. Pasted contents are counted."""
    result = cli("history", "--home", home)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "2026-01-05 15:00  5e551011        /work/other       look at this [Pasted text #1]  +2 pasted",
        "2026-01-05 14:00  5e551011        /work/app         hello there",
        "2026-01-05 13:00  5e551011  gone  /work/app         Fix the Parser",
        "2026-01-01 08:00                  /work/Old         of an old version",
        "",
        "Times are UTC.",
    ]


def test_formats_have_the_same_rows(cli: CliRunner, home: Path) -> None:
    """Each format has the same keys. `gone` is null for a prompt without a session."""
    rows = cli("history", "--home", home, "--jsonl").jsonl
    assert [row["gone"] for row in rows] == [False, False, True, None]
    assert [row["pasted"] for row in rows] == [2, 0, 0, 0]
    assert rows[1] == {
        "timestamp": "2026-01-05T14:00:00Z",
        "project": "/work/app",
        "session": SESSION,
        "gone": False,
        "text": "hello\nthere",
        "pasted": 0,
        "home": str(home),
    }
    assert cli("history", "--home", home, "--json").json == rows
    assert [row["text"] for row in cli("history", "--home", home, "--csv").csv] == [row["text"] for row in rows]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["parser"], ["Fix the Parser"]),
        (["THE"], ["hello\nthere", "Fix the Parser"]),
        (["--project", "old"], ["of an old version"]),
        (["--gone"], ["Fix the Parser"]),
        (["--since", "2026-01-05T14:00"], ["look at this [Pasted text #1]", "hello\nthere"]),
        (["--until", "2026-01-04"], ["of an old version"]),
        (["--limit", "1"], ["look at this [Pasted text #1]"]),
    ],
)
def test_filters_prompts(cli: CliRunner, home: Path, words: list[str], expected: list[str]) -> None:
    """Filters by text in any case, project, time, deleted sessions and number."""
    assert texts(cli("history", "--home", home, "--jsonl", *words)) == expected


def test_marks_prompts_of_deleted_sessions(cli: CliRunner, home: Path) -> None:
    """The prompts of a session whose transcript was deleted are marked."""
    (home / "projects" / "-work-app" / f"{SESSION}.jsonl").unlink()
    assert texts(cli("history", "--home", home, "--gone", "--jsonl"))[-1] == "Fix the Parser"
    assert len(texts(cli("history", "--home", home, "--gone", "--jsonl"))) == 3


def test_table_shows_30_prompts(cli: CliRunner, tmp_path: Path) -> None:
    """The table shows thirty prompts and says that there are more. Machine formats have all of them."""
    write(tmp_path / "history.jsonl", *(history_row(f"number {number}", number) for number in range(31)))
    (tmp_path / "projects").mkdir()
    shown = cli("history", "--home", tmp_path).out.splitlines()
    assert len(shown) == 33
    assert shown[-1] == "Showing the newest 30. Use --limit N for more."
    assert len(cli("history", "--home", tmp_path, "--jsonl").jsonl) == 31
    assert len(cli("history", "--home", tmp_path, "--limit", "31").out.splitlines()) == 31 + 2


def test_homes_are_merged_by_time(cli: CliRunner, home: Path, tmp_path: Path) -> None:
    """The prompts of several homes are sorted together, including rows slightly out of order."""
    other = tmp_path / "another"
    write(other / "history.jsonl", history_row("late", 2), history_row("early", -1), history_row("between", 1))
    (other / "projects").mkdir()
    rows = cli("history", "--home", home, "--home", other, "--jsonl").jsonl
    assert [row["timestamp"] for row in rows] == sorted((row["timestamp"] for row in rows), reverse=True)
    assert len(rows) == 7


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing like it"], "None of 4 prompts matches 'nothing like it'."),
        (["parser", "--project", "other"], "1 contain the text, 1 are from a matching project"),
        (["--since", "2026-02-01"], "The newest is from 2026-01-05"),
    ],
)
def test_explains_why_nothing_matches(cli: CliRunner, home: Path, words: list[str], sentence: str) -> None:
    """If nothing matches, the exit code is 1 and a sentence says what would."""
    result = cli("history", "--home", home, *words)
    assert (result.code, result.out) == (1, "")
    assert sentence in result.err


def test_reports_missing_history_and_home(cli: CliRunner, tmp_path: Path) -> None:
    """A home without a history and a missing home exit with 1 and different messages."""
    (tmp_path / "projects").mkdir()
    result = cli("history", "--home", tmp_path)
    assert (result.code, result.out) == (1, "")
    assert "no history.jsonl" in result.err
    result = cli("history")
    assert result.code == 1
    assert "No Claude home found" in result.err


def test_since_after_until_is_an_error(cli: CliRunner, home: Path) -> None:
    """`--since` after `--until` is an error."""
    result = cli("history", "--home", home, "--since", "2026-02-01", "--until", "2026-01-01")
    assert (result.code, result.out) == (2, "")
    assert "since 2026-02-01, until 2026-01-01." in result.err


def test_reports_damaged_rows_and_prints_the_rest(cli: CliRunner, home: Path) -> None:
    """Torn rows, invalid JSON and other shapes are counted in a message. The other rows are printed."""
    path = home / "history.jsonl"
    path.write_bytes(b"garbage\n\n[1]\n" + path.read_bytes() + b'{"display":7,"timestamp":"x"}\n{"displ')
    result = cli("history", "--home", home, "--jsonl")
    assert result.code == 0
    assert {"hello\nthere", "Fix the Parser", "of an old version"} < set(texts(result))
    assert "could not be read. The first is at byte" in result.err


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_escapes_hostile_text(cli: CliRunner, home: Path, text: str) -> None:
    """Hostile text in any field is escaped in the table."""
    row = {"display": text, "timestamp": NOON, "project": f"/{text}", "sessionId": text}
    (home / "history.jsonl").write_bytes(json.dumps(row).encode() + b"\n")
    result = cli("history", "--home", home)
    assert result.code == 0
    assert control_characters(result.out + result.err) == set()


@given(
    st.lists(st.binary(max_size=30).filter(lambda row: b"\n" not in row), max_size=30), st.integers(1, 40), st.data()
)
def test_reading_backwards_gives_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], block: int, data: Any
) -> None:
    """Read backwards in blocks of any size, a file has the same lines at the same offsets."""
    path = tmp_path_factory.mktemp("rows") / "history.jsonl"
    content = b"\n".join(rows) + data.draw(st.sampled_from([b"", b"\n"]))
    path.write_bytes(content)
    expected, offset = [], 0
    for row in content.split(b"\n"):
        if row.strip(b"\0 \t\r"):
            expected.append((row, offset))
        offset += len(row) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "_BLOCK", block)
        assert list(_lines_backwards(path)) == expected[::-1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to see a process's own memory in")
def test_large_history_is_streamed(tmp_path: Path) -> None:
    """A history of 200 MB is printed with a fraction of its size in memory."""
    (tmp_path / "projects").mkdir()
    row = history_row("x", pastedContents={"1": {"id": 1, "type": "text", "content": "y" * 100_000}})
    with (tmp_path / "history.jsonl").open("wb") as file:
        for _ in range(200_000_000 // len(row)):
            file.write(row)
    code = (
        "from threadline.cli import run;"
        f"run(['history', '--home', {str(tmp_path)!r}, '--jsonl']);"
        "import sys; peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')];"
        "print(peak[0].split()[1], file=sys.stderr)"
    )
    process = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", code], env=subprocess_environment(), capture_output=True, check=True, timeout=120
    )
    assert process.stdout.count(b"\n") == 200_000_000 // len(row)
    assert int(process.stderr) * 1024 < 100_000_000
