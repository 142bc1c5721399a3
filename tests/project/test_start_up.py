"""Tests of start-up: nothing is imported before it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELP = ("-c", "from threadline.cli import main; main()", "--help")
LIBRARIES = ("-c", "import msgspec, click")


def run_python(*arguments: str) -> str:
    """Run Python and return what it prints."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, *arguments], env=env, capture_output=True, check=True, text=True, timeout=60
    )
    return process.stdout


def modules_after(code: str) -> set[str]:
    """Return the modules that the code loads, beyond those that Python itself loads."""
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(); print(*set(sys.modules) - before)"
    return set(run_python("-c", program).splitlines()[-1].split())


def test_importing_threadline_loads_nothing_else() -> None:
    """`import threadline` loads no other part of it, no library, and nothing large of the standard library."""
    loaded = modules_after("import threadline")
    assert {name for name in loaded if name.startswith("threadline")} == {"threadline", "threadline.lazy"}
    assert not loaded & {"msgspec", "click", "pathlib", "datetime", "json", "asyncio"}


def test_public_name_loads_only_what_it_needs() -> None:
    """`threadline.entries` loads the reader, but neither the command line nor reports."""
    loaded = modules_after("import threadline; threadline.entries")
    assert "threadline.parse" in loaded
    parts = {name.split(".")[1] for name in loaded if name.startswith("threadline.")}
    assert not parts & {"cli", "reports", "summary", "watch", "parallel", "find"}
    assert "click" not in loaded


def test_server_loads_a_page_when_it_is_requested() -> None:
    """The server starts without what exports and reports need. Every page of its table exists."""
    loaded = modules_after("import threadline.web.app")
    parts = {name.split(".")[1] for name in loaded if name.startswith("threadline.")}
    assert not parts & {"export", "redact", "reports"}
    program = "from threadline.web.app import LAKE_ROUTES, ROUTES; print([r.page for r in ROUTES + LAKE_ROUTES])"
    assert "threadline.redact.redactor" in modules_after(program)


def test_help_loads_no_reader() -> None:
    """`threadline --help` loads click and the commands' help, and nothing that reads."""
    loaded = modules_after("from threadline.cli import run; run(['--help'])")
    parts = {name.split(".")[1] for name in loaded if name.startswith("threadline.")}
    assert parts == {"cli", "errors", "lazy"}
    assert "click" in loaded
    assert not {
        name for name in loaded if name.split(".")[0] in {"msgspec", "concurrent", "multiprocessing", "asyncio"}
    }


@pytest.mark.slow
def test_help_is_fast() -> None:
    """`threadline --help` takes less than twice as long as `python -c "import msgspec, click"`."""
    best = dict.fromkeys((HELP, LIBRARIES), float("inf"))
    for _ in range(10):
        for arguments in best:
            started = time.perf_counter()
            run_python(*arguments)
            best[arguments] = min(best[arguments], time.perf_counter() - started)
    ratio = best[HELP] / best[LIBRARIES]
    print(f"--help {best[HELP] * 1000:.0f} ms, libraries {best[LIBRARIES] * 1000:.0f} ms: {ratio:.2f}")  # noqa: T201 - a figure
    assert ratio < 2


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "command", [[], ["list"], ["usage"], ["budget", "check"]], ids=["overview", "list", "usage", "budget check"]
)
def test_fresh_index_loads_no_reader(command: list[str], tmp_path: Path) -> None:
    """With a fresh index, nothing is loaded that reads transcripts, starts processes or defines entries."""
    home = tmp_path / "home"
    folder = home / "projects" / "-work"
    folder.mkdir(parents=True)
    session = "00000000-0000-4000-8000-000000000001"
    common = {"sessionId": session, "version": "2.1.9", "cwd": "/work", "timestamp": "2026-02-01T10:00:00.000Z"}
    row = {"type": "user", "uuid": "a", "message": {"role": "user", "content": "Hello"}, **common}
    (folder / f"{session}.jsonl").write_text(json.dumps(row) + "\n")
    # An agent of the old layout, whose path does not name its session.
    (folder / "agent-0a1b2c3d.jsonl").write_text(json.dumps({**row, "isSidechain": True, "agentId": "0a1b2c3d"}) + "\n")
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))  # one that was just written to would be opened again
    (tmp_path / "threadline").mkdir()
    (tmp_path / "threadline/budgets.conf").write_text("9/day\n9/month\n9/5h\n")
    arguments = [*command, "--home", str(home)]
    code = (
        f"import os, sys; os.environ['THREADLINE_CACHE'] = {str(tmp_path / 'cache')!r}\n"
        f"os.environ['XDG_CONFIG_HOME'] = {str(tmp_path)!r}\n"
        f"from threadline.cli import run; run({arguments!r})"
    )
    run_python("-c", code)  # makes the index
    loaded = modules_after(code)
    assert "threadline.index.index" in loaded
    assert not {name for name in loaded if name.startswith(("threadline.model.entries", "threadline.thread"))}
    assert not loaded & {
        "threadline.parse.reader",
        "threadline.index.refresh",
        "threadline.parallel",
        "threadline.summary.fold",
        "_hashlib",  # OpenSSL
        "multiprocessing",
        "pickle",
        "shutil",
        "csv",
    }
