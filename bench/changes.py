"""What it costs to learn that nothing changed, beside a bare walk that lists directories and asks for each status.

Two homes: a generated one with the sizes of real transcripts (or the one that is named), and one of very many tiny
transcripts. All contenders take turns in one process, several rounds; the best round counts, as noise only adds.
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
NEVER = 1 << 62  # a moment at which every file was written to long ago


def bare(home: Path) -> int:
    """The least that must be done: list every directory below `projects`, ask every transcript for its status."""
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


def known(home: Home) -> list[TranscriptFingerprint]:
    """Everything known of a home, as after a first reading."""
    return [
        make_fingerprint(change.stat, whole(change.stat.path))
        for change in detect_changes([], [home], now_ns=NEVER).changed
        if change.stat
    ]


def whole(path: str) -> int:
    """The offset after the last line that ends."""
    data = Path(path).read_bytes()
    return data.rfind(b"\n") + 1


def measured(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best round of each, in milliseconds."""
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            times[name] = min(times[name], (time.perf_counter() - start) * 1000)
    return times


def many_tiny(home: Path, count: int) -> Path:
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
    """Each contender and what it took; the bare walk comes first."""
    home = Home(path, "option")
    started = time.perf_counter()
    rows = known(home)
    taken = (time.perf_counter() - started) * 1000
    size = sum(row.read_to for row in rows) / 1e6
    some = max(1, len(rows) // 100)
    known_as = {
        "nothing changed": rows,
        f"{some:,} grown": [_grown(row) for row in rows[:some]] + rows[some:],
        f"all touched, {size:,.0f} MB compared": [replace(row, mtime_ns=row.mtime_ns + 1) for row in rows],
        "all moved": [replace(row, path=row.path + "l") for row in rows],
    }
    if detect_changes(rows, [home], now_ns=NEVER).unchanged != len(rows):
        sys.exit(f"{path} changes while it is measured; name a home that does not.")
    contenders: dict[str, Callable[[], object]] = {
        f"bare walk of {len(rows):,} transcripts": lambda: bare(path),
        "listing": lambda: sum(1 for _ in stat_transcripts(home)),
        "look(side_files=False), for comparison": lambda: look(home, side_files=False),
    }
    for name, each in known_as.items():
        contenders[f"changes, {name}"] = partial(detect_changes, each, [home], now_ns=NEVER)
    return measured(contenders) | {f"first fingerprints of {size:,.0f} MB, once": taken}


def _grown(row: TranscriptFingerprint) -> TranscriptFingerprint:
    """What would be known had the last line not been there yet."""
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
    for path in (home, many_tiny(OUT / f"tiny-{options.tiny}", options.tiny)):
        print(path)
        found = figures(path.absolute())
        walk = next(iter(found.values()))
        for name, taken in found.items():
            print(f"  {name:48} {taken:9.1f} ms  {taken / walk:6.2f} of the walk")


if __name__ == "__main__":
    main()
