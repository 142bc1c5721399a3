"""What a statusline takes: in a small home, for the same session in a large one, and beside a bare interpreter.

Each contender runs in a process of its own, in turn, several rounds; the best round counts, as noise only adds. The
session is the same file in both homes; of the others, some changed today and the rest long ago, as in a home in use.
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


def made(megabytes: int) -> Path:
    """A home of about that size; made once, and kept for the next time."""
    from tools.demo import write

    home = OUT / f"statusline-{megabytes}"
    if not home.exists():
        write(home, megabytes=megabytes)
    return home


def aged(home: Path, session: Path) -> Path:
    """Put the session into a home of which little changed today; give where it lies."""
    then = time.time() - _LONG_AGO
    paths = sorted(home.glob("projects/**/*.jsonl"))
    for path in paths:
        os.utime(path, (then, then))
    for path in sorted(paths, key=lambda one: one.stat().st_size)[-_TODAY:]:
        path.touch()
    own = home / f"projects/-bench/{_SESSION}.jsonl"
    own.parent.mkdir(exist_ok=True)
    if own != session:
        shutil.copyfile(session, own)
    return own


def best(contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]], rounds: int) -> dict[str, float]:
    """The best time of each, in seconds."""
    found = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, (arguments, home, session) in contenders.items():
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "CLAUDE_CONFIG_DIR": str(home)}
            given = json.dumps({"transcript_path": str(session), "model": {"display_name": "Opus"}}).encode()
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=env, input=given, capture_output=True, check=True)  # noqa: S603 - ours
            found[name] = min(found[name], time.perf_counter() - started)
    return found


def main() -> None:
    """Measure, and print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20, metavar="MB")
    parser.add_argument("--large", type=int, default=1200, metavar="MB")
    parser.add_argument("--home", type=Path, help="a large home at hand, instead of one that is made; its times change")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    homes = {"small": made(given.small), "large": given.home or made(given.large)}
    session = max(homes["small"].glob("projects/*/*-*-*-*-*.jsonl"), key=lambda one: one.stat().st_size)
    contenders: dict[str, tuple[tuple[str, ...], Path | None, Path | None]] = {
        name: (arguments, None, None) for name, arguments in BARE.items()
    }
    for name, home in homes.items():
        contenders[f"statusline, {name} home"] = (COMMAND, home, aged(home, session))
    found = best(contenders, given.rounds)
    for name, home in homes.items():
        size = sum(path.stat().st_size for path in home.glob("projects/**/*.jsonl"))
        print(f"{name} home: {size / 1e6:,.0f} MB; this session {session.stat().st_size / 1e6:.1f} MB")
    base = found["import msgspec, click"]
    for name, seconds in found.items():
        print(f"{name:28} {seconds * 1000:7.1f} ms {seconds / base:6.2f} times the libraries")
    ratio = found["statusline, large home"] / found["statusline, small home"]
    print(f"large home against small: {ratio:.2f} times")


if __name__ == "__main__":
    main()
