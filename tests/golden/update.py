"""Write the golden files anew: `python -m tests.golden.update [SUITE ...]`. Then read the diff."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.golden.suites import SUITES, answers
from tests.golden.text import write


def main(suites: list[str]) -> None:
    """Ask everything, or some suites, and write what was answered."""
    for suite in suites or SUITES:
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            found = answers(suite, Path(folder).resolve())
        write(suite, found)
        sys.stdout.write(f"{suite}: {len(found)} files, {time.process_time() - began:.1f} CPU seconds\n")


if __name__ == "__main__":
    main(sys.argv[1:])
