"""How fast texts are searched for secrets, compared with a plain search in the same bytes.

All contenders run in this process, in turn, in several rounds; the best round counts. Times are CPU times, since the
machine may be busy. The text is that of a generated home, or of a given file.
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
from bench.homes import generated_home

_ROUNDS = 5
_MB = 1_000_000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=20, help="size of the generated home")
    parser.add_argument("--file", type=Path, help="search this file instead")
    options = parser.parse_args()
    raw = options.file.read_bytes() if options.file else _generated_text(options.megabytes)
    _speed(raw)
    _memory()


def _generated_text(megabytes: int) -> bytes:
    home = generated_home(megabytes)
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*.jsonl")))[: megabytes * _MB]


def _speed(raw: bytes) -> None:
    from threadline.redact import Redactor, find_spans_in_bytes

    text = raw.decode(errors="replace")
    plain = re.sub(r"[^\sa-zA-Z.,;]", " ", text)
    pattern = re.compile(rb"gh[a-z]_[A-Za-z0-9]{36}")
    contenders: dict[str, Callable[[], object]] = {
        "bytes.find": lambda: raw.find(b"\0no such bytes"),
        "one pattern of re": lambda: pattern.search(raw),
        "scan, secrets": lambda: find_spans_in_bytes(raw),
        "scan, all": lambda: find_spans_in_bytes(raw, personal=True),
        "redact, raw lines": lambda: Redactor().redact(text),
        "redact, plain words": lambda: Redactor().redact(plain),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(_ROUNDS):
        for name, contender in contenders.items():
            start = time.process_time()
            contender()
            best[name] = min(best[name], time.process_time() - start)
    for name, seconds in best.items():
        ratio = seconds / best["one pattern of re"]
        print(f"{name:22} {len(raw) / seconds / _MB:8,.0f} MB/s   {ratio:6.1f} times one pattern")


def _memory() -> None:
    """The memory that scanning a text of 100 MB takes, in addition to the text."""
    from threadline.redact import find_spans_in_bytes

    raw = b"a line of words, as many as there are; nothing else\n" * (100 * _MB // 52)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    find_spans_in_bytes(raw)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"scanning 100 MB took {(after - before) / 1024:,.0f} MB in addition to the text")


if __name__ == "__main__":
    main()
