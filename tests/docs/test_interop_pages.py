"""The quick starts of the pages about other programs run: archives, the session store, OpenTelemetry, MCP.

Those of trajectories and data sets are in tests/export/test_docs.py, those with Claude Code in tests/real.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.doc_commands import ROOT, run_shell_lines, shell_lines
from tests.export.otlp.receiver import receive

DOCS = ROOT / "docs"
_OTHER_PROGRAMS = ("pip ", "mlflow ", "claude ", "cd ", "export ")

pytestmark = pytest.mark.slow


def run_python(page: Path, folder: Path) -> str:
    """Run the first Python block of a page in a folder; return what it prints."""
    (code, *_) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    process = subprocess.run(  # noqa: S603 - our own examples
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def run_page(page: Path, folder: Path, home: Path, **options: object) -> list[str]:
    """Run the commands of a page, except those that wait for Ctrl-C or need other programs; return those that ran."""

    def is_other(line: str) -> bool:
        return line.startswith(_OTHER_PROGRAMS) or " serve " in line or "--follow" in line or "mcp --http" in line

    results = dict(run_shell_lines(page, folder, home, is_done=is_other, **options))  # type: ignore[arg-type]
    assert {line: result.stderr for line, result in results.items() if result.returncode} == {}
    return list(results)


def test_archives(demo_home: Path, tmp_path: Path) -> None:
    """A packed home is listed, searched and priced, by commands and by the library."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.claude").symlink_to(demo_home)
    page = tmp_path / "archives.md"
    page.write_text((DOCS / "archives.md").read_text().replace("tar -C ~ -czf", f"tar -C {tmp_path}/home -chzf"))
    assert len(run_page(page, tmp_path, tmp_path / "none")) == 5
    assert len(run_python(page, tmp_path / "work").splitlines()) == 3


def test_session_store(tmp_path: Path) -> None:
    """What the example stores is a home that `list` reads."""
    work = tmp_path / "work"
    code_folder = tmp_path / "code"
    code_folder.mkdir()
    assert "5e551011-0000-4000-8000-000000000001" in run_python(DOCS / "session-store.md", code_folder)
    page = tmp_path / "page.md"
    page.write_text((DOCS / "session-store.md").read_text().replace("agent-sessions", f"{code_folder}/agent-sessions"))
    assert len(run_page(page, tmp_path, tmp_path / "none")) == 1
    assert work.is_dir()


def test_opentelemetry(demo_home: Path, tmp_path: Path) -> None:
    """Traces are written to files, and sent to every address of the page."""
    with receive() as receiver:
        page = tmp_path / "page.md"
        page.write_text(re.sub(r"http://127\.0\.0\.1:\d+", receiver.url, (DOCS / "opentelemetry.md").read_text()))
        lines = run_page(page, tmp_path, demo_home)
        assert sum("--endpoint" in line or "--send" in line for line in lines) == 4
        assert receiver.spans
    assert (tmp_path / "work/trace.otlp.jsonl").stat().st_size


def test_mcp(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of the quick start is built, and the example in Python answers."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(demo_home))
    assert run_page(DOCS / "mcp.md", tmp_path, demo_home) == ["threadline index refresh --insight"]
    assert "session" in run_python(DOCS / "mcp.md", tmp_path)


def test_every_quick_start_is_short() -> None:
    """The first block of commands has at most ten lines; of the session store, the program is the quick start."""
    for name in ("mcp", "claude-code", "opentelemetry", "trajectories", "datasets", "archives", "session-store"):
        block = re.search(r"^```sh\n(.*?)^```$", (DOCS / f"{name}.md").read_text(), re.MULTILINE | re.DOTALL)
        assert block is not None
        assert 2 <= len(block[1].splitlines()) <= 10, name
        assert shell_lines(DOCS / f"{name}.md")
