"""Start-up is lean: nothing is imported before it is used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
HELP = ("-c", "from threadline.cli import main; main()", "--help")
LIBRARIES = ("-c", "import msgspec, click")


def python(*arguments: str) -> str:
    """What Python prints."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, *arguments], env=env, capture_output=True, check=True, text=True, timeout=60
    )
    return done.stdout


def modules_after(code: str) -> set[str]:
    """The modules that are loaded once the code has run, beyond those that Python itself loads."""
    shown = f"import sys; before = set(sys.modules)\n{code}\nprint(); print(*set(sys.modules) - before)"
    return set(python("-c", shown).splitlines()[-1].split())


def test_importing_threadline_costs_next_to_nothing() -> None:
    """`import threadline` loads no other part of it, no library, and nothing heavy of Python's own."""
    loaded = modules_after("import threadline")
    assert {name for name in loaded if name.startswith("threadline")} == {"threadline"}
    assert not loaded & {"msgspec", "click", "pathlib", "datetime", "json", "asyncio"}


def test_a_name_loads_what_it_needs() -> None:
    """`threadline.entries` loads the reader, and neither the command nor the demo nor the survey."""
    loaded = modules_after("import threadline; threadline.entries")
    assert "threadline.parse" in loaded
    parts = {name.split(".")[1] for name in loaded if name.startswith("threadline.")}
    assert not parts & {"cli", "demo", "survey", "find"}
    assert "click" not in loaded


def test_help_loads_no_reader() -> None:
    """`threadline --help` loads click and the commands' own help, and nothing that reads."""
    loaded = modules_after("from threadline.cli import run; run(['--help'])")
    parts = {name.split(".")[1] for name in loaded if name.startswith("threadline.")}
    assert parts == {"cli", "errors"}
    assert "click" in loaded
    assert not {
        name for name in loaded if name.split(".")[0] in {"msgspec", "concurrent", "multiprocessing", "asyncio"}
    }


def test_help_answers_at_once() -> None:
    """`threadline --help` takes less than twice the time of `python -c "import msgspec, click"`."""
    best = dict.fromkeys((HELP, LIBRARIES), float("inf"))
    for _ in range(10):
        for arguments in best:
            started = time.perf_counter()
            python(*arguments)
            best[arguments] = min(best[arguments], time.perf_counter() - started)
    ratio = best[HELP] / best[LIBRARIES]
    print(f"--help {best[HELP] * 1000:.0f} ms, libraries {best[LIBRARIES] * 1000:.0f} ms: {ratio:.2f}")  # noqa: T201 - a figure
    assert ratio < 2
