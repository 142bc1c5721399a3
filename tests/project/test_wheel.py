"""Tests of the wheel and of an installation without extras."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import msgspec
import pytest
from tests.transcripts import prompt, transcript, write

import threadline

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run one of our programs, away from the source."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "THREADLINE_CACHE", "THREADLINE_KEEP")}
    return subprocess.run(  # noqa: S603 - our own programs
        [str(word) for word in command], env=env, cwd="/", capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the installed tools."""
    out = tmp_path_factory.mktemp("wheel")
    process = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT)
    assert process.returncode == 0, process.stdout + process.stderr
    (path,) = out.glob("*.whl")
    return path


def test_wheel_contains_exactly_the_package(wheel: Path) -> None:
    """It has every module, `py.typed`, the prices, style and scripts, and the licence, but no tests or documents."""
    source = ROOT / "src"
    expected = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    expected |= {str(path.relative_to(source)) for kind in ("css", "js") for path in source.rglob(f"assets/*.{kind}")}
    expected |= {str(path.relative_to(source)) for path in source.rglob("redact/rules/*.txt")}
    expected |= {"threadline/py.typed", "threadline/account/prices.json", "threadline/cli/data/demo-home.zip"}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"{wheel.name.split('-py3')[0]}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        commands = archive.read(f"{info}/entry_points.txt").decode()
    assert {name for name in names if not name.startswith(info)} == expected
    assert f"{info}/licenses/LICENSE" in names
    assert "threadline = threadline.cli:main" in commands
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert [line.split()[1].partition(">")[0] for line in needed] == ["msgspec"]
    assert "Requires-Python: >=3.11" in metadata


def test_library_without_extras_needs_only_msgspec(wheel: Path, tmp_path: Path) -> None:
    """The library reads. The command fails with one sentence that says what to install."""
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    process = run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel
    )
    assert process.returncode == 0, process.stderr
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    shutil.copytree(Path(msgspec.__file__).parent, packages / "msgspec")
    path = write(tmp_path / "a.jsonl", *transcript(prompt("hi")))
    reading = run(
        python, "-W", "error", "-c", f"import threadline; print(*[e.kind for e in threadline.entries({str(path)!r})])"
    )
    assert (reading.returncode, reading.stdout, reading.stderr) == (0, "user\n", "")
    command = run(tmp_path / "bare/bin/threadline")
    assert (command.returncode, command.stdout) == (2, "")
    assert command.stderr.startswith("threadline: click is not installed.")
    assert f"uv pip install --python {python} 'threadline[all] @ file://" in command.stderr
    assert command.stderr.count("\n") == 1


def test_versions_agree() -> None:
    """The installed version is the version in the package."""
    assert importlib.metadata.version("threadline") == threadline.__version__
