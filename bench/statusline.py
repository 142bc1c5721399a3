"""The time of a status line in a small home, for the same session in a large home, and of a bare interpreter.

Each contender runs in its own process, in turn, in several rounds; the best round counts, since noise only adds time.
The session is the same file in both homes. A few of the other transcripts changed today and the rest long ago, as in a
home in use.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

OUT = Path(__file__).parent / "out"
SOURCE = Path(__file__).parents[1] / "src"
COMMAND = ("-c", "from threadline.cli import main; main()", "statusline", "--json")
BARE = {"interpreter alone": ("-c", "pass"), "import msgspec, click": ("-c", "import msgspec, click")}
_LONG_AGO = 30 * 86400
_CHANGED_TODAY = 5
_SESSION = "5e551011-0000-4000-8000-0000000000be"


def generated_home(megabytes: int) -> Path:
    """A home of about that size, generated once and kept in bench/out."""
    from tools.demo import write

    home = OUT / f"statusline-{megabytes}"
    if not home.exists():
        write(home, megabytes=megabytes)
    return home


def add_session(home: Path, session: Path) -> Path:
    """Copy the session to a home, of whose other transcripts few changed today; returns the path of the copy."""
    long_ago = time.time() - _LONG_AGO
    paths = sorted(home.glob("projects/**/*.jsonl"))
    for path in paths:
        os.utime(path, (long_ago, long_ago))
    for path in sorted(paths, key=_size)[-_CHANGED_TODAY:]:
        path.touch()
    own = home / f"projects/-bench/{_SESSION}.jsonl"
    own.parent.mkdir(exist_ok=True)
    if own != session:
        shutil.copyfile(session, own)
    return own


def _size(path: Path) -> int:
    return path.stat().st_size


def best(contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]], rounds: int) -> dict[str, float]:
    """The best time of each contender, in seconds."""
    best_seconds = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, (arguments, home, session) in contenders.items():
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "CLAUDE_CONFIG_DIR": str(home)}
            event = json.dumps({"transcript_path": str(session), "model": {"display_name": "Opus"}}).encode()
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=env, input=event, capture_output=True, check=True)  # noqa: S603 - ours
            best_seconds[name] = min(best_seconds[name], time.perf_counter() - start)
    return best_seconds


def main() -> None:
    """Measure, and print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20, metavar="MB")
    parser.add_argument("--large", type=int, default=1200, metavar="MB")
    parser.add_argument(
        "--home",
        type=Path,
        help="an existing large home, instead of a generated one; its modification times are changed",
    )
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    homes = {"small": generated_home(options.small), "large": options.home or generated_home(options.large)}
    session = max(homes["small"].glob("projects/*/*-*-*-*-*.jsonl"), key=_size)
    contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]] = {
        name: (arguments, None, None) for name, arguments in BARE.items()
    }
    for name, home in homes.items():
        contenders[f"statusline, {name} home"] = (COMMAND, home, add_session(home, session))
    best_seconds = best(contenders, options.rounds)
    for name, home in homes.items():
        size = sum(path.stat().st_size for path in home.glob("projects/**/*.jsonl"))
        print(f"{name} home: {size / 1e6:,.0f} MB; this session {session.stat().st_size / 1e6:.1f} MB")
    base = best_seconds["import msgspec, click"]
    for name, seconds in best_seconds.items():
        print(f"{name:28} {seconds * 1000:7.1f} ms {seconds / base:6.2f} times the libraries")
    ratio = best_seconds["statusline, large home"] / best_seconds["statusline, small home"]
    print(f"large home against small: {ratio:.2f} times")


if __name__ == "__main__":
    main()
