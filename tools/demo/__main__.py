"""Generate a Claude home of any size, or write the small one that `threadline demo` ships.

python -m tools.demo big-home --megabytes 1239
python -m tools.demo --ship
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from pathlib import Path

from threadline.errors import Error
from tools.demo import write

SHIPPED = Path(__file__).parents[2] / "src" / "threadline" / "cli" / "data" / "demo-home.zip"
_ZIP_EPOCH = (2026, 11, 14, 12, 0, 0)


def ship(target: Path = SHIPPED) -> None:
    """Write the home that `threadline demo` unpacks. The same generator always writes the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        write(home, story=True)
        target.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for path in sorted(path for path in home.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(home).as_posix(), _ZIP_EPOCH)
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description="Generate a Claude home.")
    parser.add_argument("directory", type=Path, nargs="?", help="where to write it; must be new or empty")
    parser.add_argument("--seed", type=int, default=0, help="the same seed and size give the same bytes")
    parser.add_argument("--megabytes", type=float, default=2.0, help="size of all transcripts together")
    parser.add_argument("--transcripts", type=int, help="number of transcripts; default: as many as real homes have")
    parser.add_argument("--ship", action="store_true", help="write the home that `threadline demo` unpacks")
    options = parser.parse_args()
    if options.ship:
        ship()
        print(f"{SHIPPED}: {SHIPPED.stat().st_size:,} bytes")
        return 0
    if options.directory is None:
        parser.error("name a directory, or use --ship")
    try:
        written = write(
            options.directory, seed=options.seed, megabytes=options.megabytes, transcripts=options.transcripts
        )
    except Error as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{options.directory}: {written.transcripts:,} transcripts, {written.bytes:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
