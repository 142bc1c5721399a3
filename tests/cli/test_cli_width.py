"""No command prints a line that is wider than the terminal, down to 60 columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.golden import demo_home
from tests.interfaces.entry_points import isolated, run_command
from tests.transcripts import Pen, call, prompt, reply, transcript, write

from threadline.render import display_width

pytestmark = pytest.mark.sample(6)

WIDE = "e0000000-0000-4000-8000-00000000000a"
"""A session whose texts have characters of two columns, in a project with such a name."""
LISTINGS = {
    "overview": [],
    "list": ["list"],
    "search": ["search", "the"],
    "search-wide": ["search", "港"],
    "search-all": ["search", "shelf", "--all", "--context", "1"],
    "usage": ["usage"],
    "usage-nested": ["usage", "--by", "project,model"],
    "usage-session": ["usage", "--by", "session", "--exact"],
    "usage-both": ["usage", "--mode", "both"],
    "usage-reported": ["usage", "--mode", "reported"],
    "digest": ["digest", "--month", "2026-10", "--format", "text"],
    "blocks": ["blocks"],
    "explain": ["explain", "last"],
    "explain-wide": ["explain", WIDE],
    "show": ["show", WIDE],
    "tree": ["tree", WIDE],
    "tree-agents": ["tree", demo_home.BRANCHED],
    "calls": ["calls"],
    "calls-session": ["calls", WIDE],
    "errors": ["errors"],
    "errors-session": ["errors", demo_home.PLANTED],
    "files": ["files"],
    "files-session": ["files", demo_home.PLANTED],
    "todos": ["todos", demo_home.LISTED],
    "request": ["request", demo_home.REQUESTED],
    "context": ["context", demo_home.BRANCHED],
    "prices": ["prices"],
    "doctor": ["doctor"],
    "scan": ["scan"],
    "entries": ["entries", demo_home.BRANCHED],
    "entries-wide": ["entries", WIDE],
    "history": ["history"],
    "index": ["index"],
    "keep-status": ["keep", "status"],
    "keep-list": ["keep", "list"],
    "keep-diff": ["keep", "diff"],
    "keep-runs": ["keep", "diff", "--runs"],
    "sql": ["sql", "SELECT session, project, title FROM sessions"],
    "sql-wide": ["sql", "SELECT * FROM sessions LIMIT 3"],
    "sql-schema": ["sql", "--schema"],
    "schema": ["schema", "--list"],
}
"""Every command that lists something, with arguments that make it list a lot."""
_WITHOUT_HOME = {"prices", "keep-list", "keep-diff", "keep-runs", "schema"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo home with a session of wide characters, indexed and kept."""
    folder = tmp_path_factory.mktemp("width").resolve()
    home = demo_home.write(folder / "home")
    path = "/work/港の店/とても長い名前のフォルダ/src/日本語のファイル名.py"
    rows = transcript(
        prompt("港の倉庫を調べて、棚の数を数えてください。" * 6),
        call("Bash", "ls 港/棚/日本語のとても長いファイル名" * 3, result="エラー" * 40, error=True),
        call("Read", path, result="内容"),
        reply("棚は二つあります。" * 20, output=1234567, read=98765432),
        pen=Pen(session=WIDE, cwd="/work/港の店/とても長い名前のフォルダ"),
    )
    write(home / f"projects/-work-wide/{WIDE}.jsonl", *rows)
    with isolated(folder):
        assert run_command("keep", "--home", str(home)).code == 0
        assert run_command("index", "refresh", "--home", str(home)).code == 0
        yield folder


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", LISTINGS)
def test_no_line_is_wider_than_the_terminal(folder: Path, name: str, width: int) -> None:
    """Columns shrink, long texts are cut or wrapped, whatever characters they have."""
    home = [] if name in _WITHOUT_HOME else ["--home", str(folder / "home")]
    result = run_command(*LISTINGS[name], *home, environment={**os.environ, "COLUMNS": str(width)})
    lines = result.out.decode().splitlines()
    assert lines
    assert [line for line in lines if display_width(line) > width] == []


_WHOLE_AT_60_COLUMNS = {
    "calls": ("time (UTC)", "session", "outcome"),
    "errors": ("time (UTC)", "session", "what"),
    "context": ("turn", "time (UTC)", "full", "cache breaks"),
    "prices": ("model", "input", "output", "period"),
    "keep-list": ("session", "last written (UTC)", "title"),
    "outcomes": ("amount", "commits", "survive", "session"),
    "tools": ("calls", "failed", "median", "tool"),
    "waste": ("amount", "detector", "place", "what"),
    "blocks": ("window", "tokens", "amount", "share"),
}


@pytest.mark.parametrize("name", _WHOLE_AT_60_COLUMNS)
def test_narrow_tables_drop_columns_before_they_cut_them(folder: Path, name: str) -> None:
    """At 60 columns the headings that matter are complete, and a note names the columns that were left out."""
    home = [] if name in _WITHOUT_HOME else ["--home", str(folder / "home")]
    arguments = LISTINGS.get(name, [name, *(["--since", "2020"] if name == "waste" else [])])
    zone = [] if name == "prices" else ["--tz", "UTC"]
    result = run_command(*arguments, *home, *zone, environment={**os.environ, "COLUMNS": "60"})
    text = result.out.decode()
    heading = next(line for line in text.splitlines() if _WHOLE_AT_60_COLUMNS[name][0] in line)
    missing = [part for part in _WHOLE_AT_60_COLUMNS[name] if part not in heading]
    assert (missing, "…" in heading) == ([], False), heading
    assert "Not shown at this width: " in text
    assert "set COLUMNS" in " ".join(text.split())  # a pipe has no terminal to make wider


def test_messages_wrap_at_words(folder: Path) -> None:
    """A message on standard error fits the terminal, and no word is split."""
    home = ["--home", str(folder / "home")]
    narrow = run_command("show", "nosuch", *home, environment={**os.environ, "COLUMNS": "60"}).err.decode()
    wide = run_command("show", "nosuch", *home, environment={**os.environ, "COLUMNS": "400"}).err.decode()
    assert max(map(len, narrow.splitlines())) <= 60 < len(wide.splitlines()[0])
    assert narrow.split() == wide.split()


def test_usage_names_the_columns_that_it_drops(folder: Path) -> None:
    """At 60 columns some columns do not fit, and a note says which."""
    home = ["--home", str(folder / "home")]
    narrow = run_command("usage", *home, environment={**os.environ, "COLUMNS": "60"}).out.decode()
    wide = run_command("usage", *home, environment={**os.environ, "COLUMNS": "120"}).out.decode()
    assert "Not shown at this width: input, cache write." in " ".join(narrow.split())
    assert "Not shown" not in wide


def test_rows_with_many_columns_are_blocks(folder: Path) -> None:
    """A SELECT with more columns than fit shows every column and the whole value, instead of `…` in every cell."""
    home = ["--home", str(folder / "home")]
    query = "SELECT * FROM sessions ORDER BY session DESC LIMIT 1"
    narrow = run_command("sql", query, *home, environment={**os.environ, "COLUMNS": "80"}).out.decode()
    (row,) = run_command("sql", query, *home, "--json").json
    lines = narrow.splitlines()
    assert lines[0] == "row 1"
    assert [line.split()[0] for line in lines[1:] if line[2] != " "] == list(row)
    assert f"session        {row['session']}\n" in narrow
    two = run_command("sql", "SELECT session, turns FROM sessions", *home, environment={**os.environ, "COLUMNS": "80"})
    assert two.out.decode().splitlines()[0].split() == ["session", "turns"]


@pytest.mark.parametrize("width", ["60", "120"])
def test_kinds_of_the_schema_are_complete(width: str) -> None:
    """`--kind` needs the whole name, however narrow the terminal is; descriptions wrap."""
    rows = run_command("schema", "--list", "--json").json
    text = run_command("schema", "--list", environment={**os.environ, "COLUMNS": width}).out.decode()
    assert [row["kind"] for row in rows if f"  {row['kind']}" not in text] == []
    assert "…" not in text
