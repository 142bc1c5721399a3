"""How fast texts are looked through for secrets, beside a plain search in the same bytes.

All contenders run in this process, in turn, several rounds; the best round counts, and the time is the processor's, as
others may be at work. The text is what a generated home holds, or a file that is named.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import generate_home

_ROUNDS = 5
_MB = 1_000_000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=20, help="how much to generate")
    parser.add_argument("--file", type=Path, help="look through this instead")
    chosen = parser.parse_args()
    raw = chosen.file.read_bytes() if chosen.file else _generated(chosen.megabytes)
    _speed(raw)
    _memory()


def _generated(megabytes: int) -> bytes:
    home = generate_home(megabytes)
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*.jsonl")))[: megabytes * _MB]


def _speed(raw: bytes) -> None:
    from threadline.redact import Redactor, find_spans_in_bytes

    text = raw.decode(errors="replace")
    plain = re.sub(r"[^\sa-zA-Z.,;]", " ", text)
    one = re.compile(rb"gh[a-z]_[A-Za-z0-9]{36}")
    contenders: dict[str, Callable[[], object]] = {
        "bytes.find": lambda: raw.find(b"\0no such bytes"),
        "one pattern of re": lambda: one.search(raw),
        "scan, secrets": lambda: find_spans_in_bytes(raw),
        "scan, all": lambda: find_spans_in_bytes(raw, personal=True),
        "redact, raw lines": lambda: Redactor().redact(text),
        "redact, plain words": lambda: Redactor().redact(plain),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(_ROUNDS):
        for name, contender in contenders.items():
            started = time.process_time()
            contender()
            best[name] = min(best[name], time.process_time() - started)
    for name, seconds in best.items():
        ratio = seconds / best["one pattern of re"]
        print(f"{name:22} {len(raw) / seconds / _MB:8,.0f} MB/s   {ratio:6.1f} times one pattern")


def _memory() -> None:
    """What a text of 100 MB takes beyond itself."""
    from threadline.redact import find_spans_in_bytes

    raw = b"a line of words, as many as there are; nothing else\n" * (100 * _MB // 52)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    find_spans_in_bytes(raw)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"scanning 100 MB took {(after - before) / 1024:,.0f} MB beyond the text")


if __name__ == "__main__":
    main()
