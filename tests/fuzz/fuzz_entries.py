"""Fuzz the reader: any bytes are read without an exception, join back, and heads agree with entries.

Run it as `python tests/fuzz/fuzz_entries.py --seconds 20`. With atheris (which has wheels for Python 3.12 to 3.14) the
search is guided by coverage. Without it, inputs of the corpus are mutated at random, from a seed.
A file that violates a property is written to `--keep`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for place in (ROOT, ROOT / "src"):
    sys.path.insert(0, str(place))

try:
    import atheris
except ImportError:
    atheris = None

if atheris is not None:
    with atheris.instrument_imports(include=["threadline"]):
        from tests.corpus_cases import CASES, inputs
        from tests.reader_properties import check_reader
else:
    from tests.corpus_cases import CASES, inputs
    from tests.reader_properties import check_reader

_MAX_SIZE = 64 * 1024
_TOKENS = (
    b'{" } { "} }} [[ ]] "type":"user" "type":"assistant" "uuid":"u" "message":{ "content":[ "usage":{ '
    b"NaN 1e999 -1 null true \\ud83d \\u0000 \xef\xbb\xbf \xff \xed\xa0\x80 \r \n \r\n \0 \0\0\0\0 ,"
).split(b" ")


def main() -> None:
    """Fuzz for a number of seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="how long to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()), help="folder for a failing file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        seeds = [data for case in CASES for file in inputs(case) if len(data := file.read_bytes()) <= _MAX_SIZE]
        if atheris is None:
            _print("atheris is not installed (its wheels are for Python 3.12 to 3.14): mutating the corpus instead")
            _at_random(seeds, _make_check(path, options.keep), options.seconds, random.Random(options.seed))  # noqa: S311 - a seeded search, not a secret
        else:
            _guided(seeds, _make_check(path, options.keep), options.seconds, Path(folder) / "seeds")


def _make_check(path: Path, keep: Path) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            check_reader(path)
        except BaseException:
            failing = keep / "fuzz-failure.jsonl"
            failing.write_bytes(data)
            _print(f"a property is violated by {failing}")
            raise

    return check


def _guided(seeds: list[bytes], check: Callable[[bytes], None], seconds: int, folder: Path) -> None:
    folder.mkdir()
    for number, seed in enumerate(seeds):
        (folder / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", f"-max_len={_MAX_SIZE}", str(folder)], check)
    atheris.Fuzz()


def _at_random(seeds: list[bytes], check: Callable[[bytes], None], seconds: int, random_: random.Random) -> None:
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        data = bytearray(random_.choice(seeds))
        for _ in range(random_.randint(1, 6)):
            _mutate(data, seeds, random_)
        check(bytes(data[:_MAX_SIZE]))
        count += 1
    _print(f"{count} files in {seconds} s, and every property held")


def _mutate(data: bytearray, seeds: list[bytes], random_: random.Random) -> None:
    """Change a file in one of the ways that disks, editors and other processes do."""
    start = random_.randint(0, len(data))
    end = min(len(data), start + random_.randint(1, 200))
    match random_.randint(0, 6):
        case 0:
            del data[start:end]
        case 1:
            data[start:start] = data[start:end]
        case 2:
            data[start:start] = random_.choice(_TOKENS)
        case 3:
            data[start:end] = bytes(byte ^ (1 << random_.randint(0, 7)) for byte in data[start:end])
        case 4:
            other = random_.choice(seeds)
            data[start:start] = other[: random_.randint(0, len(other))]
        case 5:
            del data[start:]
        case _:
            data[start:end] = b"\0" * (end - start)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
