"""Measure how long extracting the text of entries by field takes, compared with reading them and with normalizing text.

Each contender runs in its own process, for several rounds; the best round counts. The cost of fields is the difference
to reading alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import generated_home, transcripts


def read_entries(paths: list[Path]) -> Counter[str]:
    """Every entry, typed."""
    from threadline import entries

    return Counter(entries=sum(1 for path in paths for _entry in entries(path)))


def take_fields(paths: list[Path]) -> Counter[str]:
    """Every entry, and its text by field."""
    from threadline import entries
    from threadline.index import extract_fields

    count = 0
    for path in paths:
        for entry in entries(path):
            count += 1
            extract_fields(entry)
    return Counter(entries=count)


def make_searchable(paths: list[Path]) -> Counter[str]:
    """The same, normalized as for SQLite's full text."""
    from threadline import entries
    from threadline.index import extract_fields, normalize_text

    count = 0
    for path in paths:
        for entry in entries(path):
            count += 1
            for text in extract_fields(entry).values():
                normalize_text(text)
    return Counter(entries=count)


def count_text(paths: list[Path]) -> Counter[str]:
    """The size of the text in each field, in bytes. Not timed."""
    from threadline import entries
    from threadline.index import extract_fields

    sizes: Counter[str] = Counter()
    for path in paths:
        for entry in entries(path):
            for name, text in extract_fields(entry).items():
                sizes[name] += len(text.encode(errors="replace"))
    return sizes


CONTENDERS: dict[str, Callable[[list[Path]], Counter[str]]] = {
    "entries": read_entries,
    "entries, fields": take_fields,
    "entries, fields, searchable": make_searchable,
    "text": count_text,
}


def run_contender(name: str, home: Path) -> None:
    """Run one contender in this process; print its seconds and counts as JSON."""
    paths = transcripts(home)
    start = time.process_time()
    counts = CONTENDERS[name](paths)
    print(json.dumps({"seconds": time.process_time() - start, "counts": counts}))


def measure(home: Path, name: str, rounds: int) -> tuple[float, Counter[str]]:
    """The best round of a contender, each in its own process."""
    command = [sys.executable, __file__, "--contender", name, "--home", str(home)]
    answers = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - this file
        for _round in range(rounds)
    ]
    best = min(answers, key=lambda answer: float(answer["seconds"]))
    return float(best["seconds"]), Counter(best["counts"])


def report(home: Path, rounds: int) -> None:
    """Print the figures."""
    size = sum(path.stat().st_size for path in transcripts(home)) / 1e6
    print(f"{size:,.0f} MB of transcripts\n")
    print(f"{'':<30}{'seconds':>9}{'MB/s':>8}{'x entries':>11}{'own MB/s':>10}")
    alone = 0.0
    for name in list(CONTENDERS)[:-1]:
        seconds, _counts = measure(home, name, rounds)
        alone = alone or seconds
        own = f"{size / (seconds - alone):>10,.0f}" if seconds > alone else ""
        print(f"{name:<30}{seconds:>9.2f}{size / seconds:>8,.0f}{seconds / alone:>11.2f}{own}")
    _seconds, text = measure(home, "text", 1)
    print(f"\n{text.total() / 1e6 / size:.1%} of the bytes are text: ", end="")
    print(", ".join(f"{name} {count / 1e6 / size:.1%}" for name, count in text.most_common()))


def main() -> None:
    """Measure on a home; by default on a generated one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a home to read; by default one is generated")
    parser.add_argument("--megabytes", type=float, default=200, help="the size of the generated home")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", help="run only this one, in this process, and print its figures as JSON")
    options = parser.parse_args()
    if options.contender:
        run_contender(options.contender, options.home)
        return
    home = options.home or generated_home(options.megabytes)
    report(home, options.rounds)


if __name__ == "__main__":
    main()
