"""A session as PDF: its HTML printed by the Chromium that is installed, which is let nowhere near the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from datetime import datetime
from pathlib import Path

from threadline.errors import Error, Missing

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--no-pdf-header-footer",
    # Nothing is asked for, and what is asked for all the same ends at a port where nobody is.
    "--proxy-server=127.0.0.1:9",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
_DATE = re.compile(rb"/(CreationDate|ModDate) \(D:[0-9]{14}[^)]*\)")
_SECONDS = 300


def browser() -> str | None:
    """The browser that prints: what THREADLINE_CHROMIUM says, or the first that is installed."""
    said = os.environ.get("THREADLINE_CHROMIUM")
    return next((found for name in ((said,) if said else _PROGRAMS) if (found := shutil.which(name))), None)


def printed(html: Path, to: Path, moment: datetime | None) -> None:
    """Print a page. The dates inside are the session's own, so that the same session gives the same file.

    Raises:
        Missing: there is no Chromium.
        Error: it did not print.
    """
    program = browser()
    if program is None:
        raise Missing(
            "PDF needs Chromium, which is not installed; install the package `chromium` (Debian, Ubuntu, Fedora, Arch),"
            " or export to html and print that."
        )
    root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="threadline-pdf-") as profile:
        command = [program, *_OPTIONS, *root, f"--user-data-dir={profile}", f"--print-to-pdf={to}", html.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)  # noqa: S603 - no shell
        except (subprocess.TimeoutExpired, OSError) as error:
            raise Error(f"{program} did not print the page: {type(error).__name__}; export to html instead.") from None
    if done.returncode != 0 or not to.exists():
        raise Error(f"{program} did not print the page (exit code {done.returncode}); export to html instead.")
    stamp = (moment.strftime("D:%Y%m%d%H%M%S+00'00'") if moment is not None else "D:20000101000000+00'00'").encode()
    # Of the same length, as the file holds the offsets of what follows.
    to.write_bytes(_DATE.sub(lambda found: _same_length(found, stamp), to.read_bytes()))


def _same_length(found: re.Match[bytes], stamp: bytes) -> bytes:
    made = b"/" + found[1] + b" (" + stamp + b")"
    return made if len(made) == len(found[0]) else found[0]
