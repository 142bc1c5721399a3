"""Compare the time of `statusline` in a small and a large home with that of a bare interpreter.

The contenders take turns, each in its own process, for several rounds; the best round counts, because noise only adds.
The session is the same file in both homes. Of the other transcripts, some changed today and the rest long ago.
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
_TODAY = 5
_SESSION = "5e551011-0000-4000-8000-0000000000be"


def generate(megabytes: int) -> Path:
    """Generate a home of about that size, unless it exists."""
    from tools.demo import write

    home = OUT / f"statusline-{megabytes}"
    if not home.exists():
        write(home, megabytes=megabytes)
    return home


def add_session(home: Path, session: Path) -> Path:
    """Copy the session into a home, make most other transcripts old, and return the path of the copy."""
    then = time.time() - _LONG_AGO
    paths = sorted(home.glob("projects/**/*.jsonl"))
    for path in paths:
        os.utime(path, (then, then))
    for path in sorted(paths, key=lambda path: path.stat().st_size)[-_TODAY:]:
        path.touch()
    copy = home / f"projects/-bench/{_SESSION}.jsonl"
    copy.parent.mkdir(exist_ok=True)
    if copy != session:
        shutil.copyfile(session, copy)
    return copy


def best(contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]], rounds: int) -> dict[str, float]:
    """Return the best time of each contender, in seconds."""
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, (arguments, home, session) in contenders.items():
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "CLAUDE_CONFIG_DIR": str(home)}
            status = json.dumps({"transcript_path": str(session), "model": {"display_name": "Opus"}}).encode()
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=env, input=status, capture_output=True, check=True)  # noqa: S603 - ours
            times[name] = min(times[name], time.perf_counter() - started)
    return times


def main() -> None:
    """Measure, and print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20, metavar="MB")
    parser.add_argument("--large", type=int, default=1200, metavar="MB")
    parser.add_argument("--home", type=Path, help="a large home to use instead; its mtimes change")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    homes = {"small": generate(options.small), "large": options.home or generate(options.large)}
    session = max(homes["small"].glob("projects/*/*-*-*-*-*.jsonl"), key=lambda path: path.stat().st_size)
    contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]] = {
        name: (arguments, None, None) for name, arguments in BARE.items()
    }
    for name, home in homes.items():
        contenders[f"statusline, {name} home"] = (COMMAND, home, add_session(home, session))
    times = best(contenders, options.rounds)
    for name, home in homes.items():
        size = sum(path.stat().st_size for path in home.glob("projects/**/*.jsonl"))
        print(f"{name} home: {size / 1e6:,.0f} MB; this session {session.stat().st_size / 1e6:.1f} MB")
    base = times["import msgspec, click"]
    for name, seconds in times.items():
        print(f"{name:28} {seconds * 1000:7.1f} ms {seconds / base:6.2f} times the libraries")
    ratio = times["statusline, large home"] / times["statusline, small home"]
    print(f"large home against small: {ratio:.2f} times")


if __name__ == "__main__":
    main()
