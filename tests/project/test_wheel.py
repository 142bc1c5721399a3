"""The wheel, and what it is alone."""

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
    """Run a program of ours, far from the source."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "THREADLINE_CACHE", "THREADLINE_KEEP")}
    return subprocess.run(  # noqa: S603 - our own programs
        [str(word) for word in command], env=env, cwd="/", capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with what is installed here."""
    out = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """The wheel holds every module, `py.typed`, the prices, style and scripts, the licence; no tests, no documents."""
    source = ROOT / "src"
    expected = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    expected |= {str(path.relative_to(source)) for kind in ("css", "js") for path in source.rglob(f"assets/*.{kind}")}
    expected |= {"threadline/py.typed", "threadline/account/prices.json", "threadline/cli/data/demo-home.zip"}
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        about = f"{wheel.name.split('-py3')[0]}.dist-info"
        metadata = opened.read(f"{about}/METADATA").decode()
        commands = opened.read(f"{about}/entry_points.txt").decode()
    assert {name for name in names if not name.startswith(about)} == expected
    assert f"{about}/licenses/LICENSE" in names
    assert "threadline = threadline.cli:main" in commands
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert [line.split()[1].partition(">")[0] for line in needed] == ["msgspec"]
    assert "Requires-Python: >=3.11" in metadata


def test_the_library_alone_needs_msgspec_alone(wheel: Path, tmp_path: Path) -> None:
    """Installed without extras, the library reads; the command says in one sentence what to install, and fails."""
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    shutil.copytree(Path(msgspec.__file__).parent, packages / "msgspec")
    path = write(tmp_path / "a.jsonl", *transcript(prompt("hi")))
    read = run(
        python, "-W", "error", "-c", f"import threadline; print(*[e.kind for e in threadline.entries({str(path)!r})])"
    )
    assert (read.returncode, read.stdout, read.stderr) == (0, "user\n", "")
    command = run(tmp_path / "bare/bin/threadline")
    assert (command.returncode, command.stdout) == (2, "")
    assert command.stderr.startswith("threadline: click is not installed.")
    assert command.stderr.endswith("pip install 'threadline[all]'\n")
    assert command.stderr.count("\n") == 1


def test_versions_agree() -> None:
    """The version that is installed is the version that the package says it is."""
    assert importlib.metadata.version("threadline") == threadline.__version__
