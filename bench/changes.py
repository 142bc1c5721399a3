"""Measure how long it takes to detect that nothing changed, compared with a walk that only calls `stat` on each file.

Two homes: a generated one with the sizes of real transcripts (or a given one), and one of very many tiny transcripts.
All contenders run in turn in one process, for several rounds; the best round counts, because noise only adds.
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
NEVER = 1 << 62  # a time at which no file was modified recently


def bare_walk(home: Path) -> int:
    """The minimum: list every directory below `projects`, and call `stat` on every transcript."""
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


def fingerprint_home(home: Home) -> list[TranscriptFingerprint]:
    """The fingerprints of all transcripts of a home, as after a first reading."""
    return [
        make_fingerprint(change.stat, complete_length(change.stat.path))
        for change in detect_changes([], [home], now_ns=NEVER).changed
        if change.stat
    ]


def complete_length(path: str) -> int:
    """The offset after the last complete line."""
    data = Path(path).read_bytes()
    return data.rfind(b"\n") + 1


def time_all(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best round of each contender, in milliseconds."""
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            times[name] = min(times[name], (time.perf_counter() - start) * 1000)
    return times


def tiny_home(home: Path, count: int) -> Path:
    """A home of `count` transcripts of one line."""
    if not home.exists():
        for folder in range(FOLDERS):
            directory = home / "projects" / f"-work-{folder}"
            directory.mkdir(parents=True)
            for number in range(count // FOLDERS):
                name = f"{folder:08x}-{number % 65536:04x}-4000-8000-000000000000.jsonl"
                (directory / name).write_bytes(b'{"type":"user","n":%d}\n' % number)
    return home


def figures(path: Path) -> dict[str, float]:
    """The milliseconds of each contender. The bare walk comes first."""
    home = Home(path, "option")
    started = time.perf_counter()
    rows = fingerprint_home(home)
    milliseconds = (time.perf_counter() - started) * 1000
    size = sum(row.read_to for row in rows) / 1e6
    few = max(1, len(rows) // 100)
    memories = {
        "nothing changed": rows,
        f"{few:,} grown": [_before_last_line(row) for row in rows[:few]] + rows[few:],
        f"all touched, {size:,.0f} MB compared": [replace(row, mtime_ns=row.mtime_ns + 1) for row in rows],
        "all moved": [replace(row, path=row.path + "l") for row in rows],
    }
    if detect_changes(rows, [home], now_ns=NEVER).unchanged != len(rows):
        sys.exit(f"{path} changes while it is measured. Name a home that does not.")
    contenders: dict[str, Callable[[], object]] = {
        f"bare walk of {len(rows):,} transcripts": lambda: bare_walk(path),
        "listing": lambda: sum(1 for _ in stat_transcripts(home)),
        "look(side_files=False), for comparison": lambda: look(home, side_files=False),
    }
    for name, memory in memories.items():
        contenders[f"changes, {name}"] = partial(detect_changes, memory, [home], now_ns=NEVER)
    return time_all(contenders) | {f"first fingerprints of {size:,.0f} MB, once": milliseconds}


def _before_last_line(row: TranscriptFingerprint) -> TranscriptFingerprint:
    """The fingerprint from before the last line was written."""
    data = Path(row.path).read_bytes()[: row.read_to]
    read_to = data.rfind(b"\n", 0, -1) + 1
    head, tail = hash_ends(row.path, read_to)
    return replace(row, size=read_to, read_to=read_to, head_hash=head, tail_hash=tail)


def main() -> None:
    """Measure both homes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", nargs="?", type=Path, help="a home that does not change meanwhile")
    parser.add_argument("--tiny", type=int, default=100_000, help="how many tiny transcripts the other home has")
    options = parser.parse_args()
    home = options.home
    if home is None:
        from tools.demo import write

        home = OUT / "changes-3000"
        if not home.exists():
            write(home, megabytes=300, transcripts=3000)
    for path in (home, tiny_home(OUT / f"tiny-{options.tiny}", options.tiny)):
        print(path)
        times = figures(path.absolute())
        walk = next(iter(times.values()))
        for name, milliseconds in times.items():
            print(f"  {name:48} {milliseconds:9.1f} ms  {milliseconds / walk:6.2f} of the walk")


if __name__ == "__main__":
    main()
