"""Rewrites the golden files: `python -m tests.golden.update [SUITE ...]`. Then read the diff."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.golden.suites import SUITES, run_suite
from tests.golden.text import write


def main(suites: list[str]) -> None:
    """Run all suites, or some, and write the results."""
    for suite in suites or SUITES:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            values = run_suite(suite, Path(folder).resolve())
        write(suite, values)
        sys.stdout.write(f"{suite}: {len(values)} files, {time.process_time() - start:.1f} CPU seconds\n")


if __name__ == "__main__":
    main(sys.argv[1:])
