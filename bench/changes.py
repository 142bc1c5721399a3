"""Compare the cost of detecting that nothing changed with a bare walk that lists directories and stats files.

Two homes: a generated one with the size profile of real homes (or the given one), and one of very many tiny
transcripts. The contenders take turns in one process for several rounds; the best round counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from threadline.find import detect_changes, look, make_fingerprint, stat_transcripts
from threadline.find.fingerprint import hash_ends
from threadline.model.homes import Home, TranscriptFingerprint

OUT = Path(__file__).parent / "out"
ROUNDS = 7
FOLDERS = 500
LATER = 1 << 62  # at this time, every file was written long ago


def bare_walk(home: Path) -> int:
    """Do the minimum: list every directory below `projects`, and stat every transcript."""
    count = 0
    waiting = [os.fspath(home / "projects")]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name.endswith(".jsonl"):
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def fingerprints(home: Home) -> list[TranscriptFingerprint]:
    """Return the fingerprints of a home, as after a first reading."""
    return [
        make_fingerprint(change.stat, end_of_lines(change.stat.path))
        for change in detect_changes([], [home], now_ns=LATER).changed
        if change.stat
    ]


def end_of_lines(path: str) -> int:
    """Return the offset after the last complete line."""
    data = Path(path).read_bytes()
    return data.rfind(b"\n") + 1


def measure(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best round of each contender, in milliseconds."""
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            times[name] = min(times[name], (time.perf_counter() - start) * 1000)
    return times


def generate_tiny(home: Path, count: int) -> Path:
    """Generate a home of `count` transcripts of one line, unless it exists."""
    if not home.exists():
        for folder in range(FOLDERS):
            directory = home / "projects" / f"-work-{folder}"
            directory.mkdir(parents=True)
            for number in range(count // FOLDERS):
                name = f"{folder:08x}-{number % 65536:04x}-4000-8000-000000000000.jsonl"
                (directory / name).write_bytes(b'{"type":"user","n":%d}\n' % number)
    return home


def figures(path: Path) -> dict[str, float]:
    """Return the milliseconds of each contender; the bare walk comes first."""
    home = Home(path, "option")
    started = time.perf_counter()
    rows = fingerprints(home)
    milliseconds = (time.perf_counter() - started) * 1000
    size = sum(row.read_to for row in rows) / 1e6
    few = max(1, len(rows) // 100)
    cases = {
        "nothing changed": rows,
        f"{few:,} grown": [_before_last_line(row) for row in rows[:few]] + rows[few:],
        f"all touched, {size:,.0f} MB compared": [replace(row, mtime_ns=row.mtime_ns + 1) for row in rows],
        "all moved": [replace(row, path=row.path + "l") for row in rows],
    }
    if detect_changes(rows, [home], now_ns=LATER).unchanged != len(rows):
        sys.exit(f"{path} changes during the measurement. Name a home that does not change.")
    contenders: dict[str, Callable[[], object]] = {
        f"bare walk of {len(rows):,} transcripts": lambda: bare_walk(path),
        "listing": lambda: sum(1 for _ in stat_transcripts(home)),
        "look(side_files=False), for comparison": lambda: look(home, side_files=False),
    }
    for name, known in cases.items():
        contenders[f"changes, {name}"] = partial(detect_changes, known, [home], now_ns=LATER)
    return measure(contenders) | {f"first fingerprints of {size:,.0f} MB, once": milliseconds}


def _before_last_line(row: TranscriptFingerprint) -> TranscriptFingerprint:
    """Return the fingerprint of the transcript without its last line."""
    data = Path(row.path).read_bytes()[: row.read_to]
    read_to = data.rfind(b"\n", 0, -1) + 1
    head, tail = hash_ends(row.path, read_to)
    return replace(row, size=read_to, read_to=read_to, head_hash=head, tail_hash=tail)


def main() -> None:
    """Measure both homes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", nargs="?", type=Path, help="a home that does not change during the measurement")
    parser.add_argument("--tiny", type=int, default=100_000, help="number of tiny transcripts in the other home")
    options = parser.parse_args()
    home = options.home
    if home is None:
        from tools.demo import write

        home = OUT / "changes-3000"
        if not home.exists():
            write(home, megabytes=300, transcripts=3000)
    for path in (home, generate_tiny(OUT / f"tiny-{options.tiny}", options.tiny)):
        print(path)
        times = figures(path.absolute())
        walk = next(iter(times.values()))
        for name, milliseconds in times.items():
            print(f"  {name:48} {milliseconds:9.1f} ms  {milliseconds / walk:6.2f} times the walk")


if __name__ == "__main__":
    main()
