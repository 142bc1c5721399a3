"""Fuzz the reader: any bytes are read without an exception, join back, and heads agree with entries.

Run it as `python tests/fuzz/fuzz_entries.py --seconds 20`. With atheris (which has wheels for Python 3.12 to 3.14) the
search is guided by coverage; without it, inputs of the corpus are changed at random, from a seed, and it says so.
A file that breaks a law is left in `--keep` and named.
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

_MOST = 64 * 1024
_TOKENS = (
    b'{" } { "} }} [[ ]] "type":"user" "type":"assistant" "uuid":"u" "message":{ "content":[ "usage":{ '
    b"NaN 1e999 -1 null true \\ud83d \\u0000 \xef\xbb\xbf \xff \xed\xa0\x80 \r \n \r\n \0 \0\0\0\0 ,"
).split(b" ")


def main() -> None:
    """Fuzz for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="where chance starts")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()), help="where a culprit is left")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        seeds = [data for case in CASES for file in inputs(case) if len(data := file.read_bytes()) <= _MOST]
        if atheris is None:
            _say("atheris is not here (its wheels are for Python 3.12 to 3.14): random changes to the corpus instead")
            _at_random(seeds, _judge(path, options.keep), options.seconds, random.Random(options.seed))  # noqa: S311 - a seeded search, not a secret
        else:
            _guided(seeds, _judge(path, options.keep), options.seconds, Path(folder) / "seeds")


def _judge(path: Path, keep: Path) -> Callable[[bytes], None]:
    def judge(data: bytes) -> None:
        path.write_bytes(data)
        try:
            check_reader(path)
        except BaseException:
            culprit = keep / "fuzz-culprit.jsonl"
            culprit.write_bytes(data)
            _say(f"a law is broken by {culprit}")
            raise

    return judge


def _guided(seeds: list[bytes], judge: Callable[[bytes], None], seconds: int, folder: Path) -> None:
    folder.mkdir()
    for number, seed in enumerate(seeds):
        (folder / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", f"-max_len={_MOST}", str(folder)], judge)
    atheris.Fuzz()


def _at_random(seeds: list[bytes], judge: Callable[[bytes], None], seconds: int, chance: random.Random) -> None:
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            _change(data, seeds, chance)
        judge(bytes(data[:_MOST]))
        count += 1
    _say(f"{count} files in {seconds} s, and every law held")


def _change(data: bytearray, seeds: list[bytes], chance: random.Random) -> None:
    """Change a file in one of the ways that disks, editors and other processes do."""
    at = chance.randint(0, len(data))
    to = min(len(data), at + chance.randint(1, 200))
    match chance.randint(0, 6):
        case 0:
            del data[at:to]
        case 1:
            data[at:at] = data[at:to]
        case 2:
            data[at:at] = chance.choice(_TOKENS)
        case 3:
            data[at:to] = bytes(byte ^ (1 << chance.randint(0, 7)) for byte in data[at:to])
        case 4:
            other = chance.choice(seeds)
            data[at:at] = other[: chance.randint(0, len(other))]
        case 5:
            del data[at:]
        case _:
            data[at:to] = b"\0" * (to - at)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
