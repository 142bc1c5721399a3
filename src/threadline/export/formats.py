"""Render a session in each export format: HTML, Markdown, JSON, raw JSONL, text, and PDF printed by Chromium.

Chromium is denied the network. The dates inside a PDF are the session's, so the same session gives the same file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from threadline import render
from threadline.errors import Error, Missing, NotFound
from threadline.export.redacted_copies import SessionCopy
from threadline.json_values import encode_json
from threadline.load import Session
from threadline.model.ledger import Sum
from threadline.render import TextOptions, View
from threadline.thread import find_notifications

if TYPE_CHECKING:
    from threadline.export.html_files import PageStream

_TEXT_WIDTH = 100
_CHUNK_SIZE = 1 << 20


class FileLayout(StrEnum):
    """How an export is stored: a file for each session, one file, or a folder."""

    FILE_PER_SESSION = "file per session"
    ONE_FILE = "one file"
    FOLDER = "folder"


class ExportFormat(StrEnum):
    """The format of an export: of a session for readers, or of several for other programs (`is_data`)."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    JSONL = "jsonl"
    TXT = "txt"
    PDF = "pdf"
    ATIF = "atif"
    INSPECT = "inspect"
    SCOUT = "scout"
    MESSAGES = "messages"
    HF = "hf"

    @property
    def is_data(self) -> bool:
        """Whether it is for other programs: a trajectory, an evaluation log or a data set."""
        return self in _DATA_FILES

    @property
    def suffix(self) -> str:
        """The suffix of its files, without a dot."""
        return _DATA_FILES[self][0] if self.is_data else str(self)

    @property
    def layout(self) -> FileLayout:
        """How an export is stored."""
        return _DATA_FILES[self][1] if self.is_data else FileLayout.FILE_PER_SESSION


_DATA_FILES = {
    ExportFormat.ATIF: ("atif.json", FileLayout.FILE_PER_SESSION),
    ExportFormat.INSPECT: ("eval", FileLayout.ONE_FILE),
    ExportFormat.SCOUT: ("parquet", FileLayout.FOLDER),
    ExportFormat.MESSAGES: ("jsonl", FileLayout.ONE_FILE),
    ExportFormat.HF: ("parquet", FileLayout.FOLDER),
}


def render_text(form: ExportFormat, session: Session, view: View, total: Sum) -> str:
    """Render a session as md, json or txt. For html and pdf see `render_html`, for jsonl `read_raw_lines`."""
    return _RENDERERS[form](session, view, total)


def render_entry(session: Session, anchor: str, view: View) -> str:
    """Render one entry as Markdown.

    Raises:
        NotFound: the session has no such entry.
    """
    slug, line = render.parse_anchor(anchor) or (None, 0)
    for agent in (session.main, *session.agents):
        name = render.agent_slug(str(agent.id)) if agent.id is not None else None
        if name != slug:
            continue
        for entry in agent.entries:
            if entry.line.number == line and entry.line.transcript == agent.entries[0].line.transcript:
                return "\n".join(render.entry_to_markdown(session, agent, entry, view)) + "\n"
    raise NotFound(f"The session has no entry {anchor!r}.")


def read_raw_lines(copy: SessionCopy) -> Iterator[bytes]:
    """The lines of a session's transcripts as they are; its agents' transcripts come after its own."""
    last = b"\n"
    for path, _name in copy.files:
        if last != b"\n":
            yield b"\n"
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_SIZE):
                last = chunk[-1:]
                yield chunk


def render_html(session: Session, view: View, total: Sum, pages: dict[str, str] | None = None) -> PageStream:
    """Render a session as one HTML file, from which a PDF can be printed.

    Raises:
        Missing: markupsafe is not installed.
    """
    try:
        from threadline.export.html_files import FileLinks, render_session_page  # noqa: PLC0415 - needs markupsafe
    except ModuleNotFoundError as error:
        raise Missing(f"HTML needs {error.name}, which is not installed. Run: pip install 'threadline[web]'") from None
    links = FileLinks(pages) if pages else None
    return render_session_page(session, view, find_notifications(session), links, total)


def _render_markdown(session: Session, view: View, total: Sum) -> str:
    from threadline.render import session_to_markdown  # noqa: PLC0415 - only one format is used

    return "\n".join(session_to_markdown(session, view, find_notifications(session), total)) + "\n"


def _render_json(session: Session, view: View, total: Sum) -> str:
    from threadline.render import session_to_json  # noqa: PLC0415 - only one format is used

    value = session_to_json(session, view, find_notifications(session), total)
    return msgspec.json.format(encode_json(value), indent=1).decode() + "\n"


def _render_plain_text(session: Session, view: View, total: Sum) -> str:
    from threadline.model.text import format_duration  # noqa: PLC0415 - only one format is used
    from threadline.render import (  # noqa: PLC0415 - only one format is used
        describe_cost,
        describe_hidden_branches,
        describe_tokens,
        session_to_text,
    )

    options = TextOptions(
        width=_TEXT_WIDTH,
        agents=view.agents,
        everything=view.everything,
        branch=view.branch,
        thread=view.thread,
        thinking=view.thinking,
        calls=view.calls,
        from_turn=view.from_turn,
        to_turn=view.to_turn,
        uncut=True,
        zone=view.zone,
    )
    figures = " · ".join(
        figure
        for figure in (format_duration(session.wall_time), describe_tokens(total), describe_cost(total))
        if figure
    )
    facts = [fact for fact in (figures, describe_hidden_branches(session.main, view.branch)) if fact]
    lines = session_to_text(session, options, find_notifications(session), facts)
    return "\n".join(line.rstrip() for line in lines) + "\n"


_RENDERERS: dict[ExportFormat, Callable[[Any, View, Sum], str]] = {
    ExportFormat.MD: _render_markdown,
    ExportFormat.JSON: _render_json,
    ExportFormat.TXT: _render_plain_text,
}


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_BROWSER_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--no-pdf-header-footer",
    # The page makes no requests. If it did, they would go to a port where nothing listens.
    "--proxy-server=127.0.0.1:9",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
_PDF_DATE = re.compile(rb"/(CreationDate|ModDate) \(D:[0-9]{14}[^)]*\)")
_TIMEOUT_SECONDS = 300


def find_browser() -> str | None:
    """The browser that prints PDFs: THREADLINE_CHROMIUM, or the first that is installed."""
    configured = os.environ.get("THREADLINE_CHROMIUM")
    names = (configured,) if configured else _BROWSERS
    return next((path for name in names if (path := shutil.which(name))), None)


def require_browser() -> str:
    """The browser that prints PDFs.

    Raises:
        Missing: no browser is installed.
    """
    browser = find_browser()
    if browser is None:
        raise Missing(
            "PDF needs Chromium, which is not installed. Install the package `chromium` (Debian, Ubuntu, Fedora, Arch),"
            " or export to html and print that."
        )
    return browser


def print_pdf(html: Path, to: Path, moment: datetime | None) -> None:
    """Print an HTML file as PDF. The dates inside are the session's, so that the same session gives the same file.

    Raises:
        Missing: no browser is installed.
        Error: the browser did not print the page.
    """
    program = require_browser()
    sandbox = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="threadline-pdf-") as profile:
        command = [
            program,
            *_BROWSER_OPTIONS,
            *sandbox,
            f"--user-data-dir={profile}",
            f"--print-to-pdf={to}",
            html.as_uri(),
        ]
        try:
            process = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS)  # noqa: S603 - no shell
        except (subprocess.TimeoutExpired, OSError) as error:
            raise Error(f"{program} did not print the page: {type(error).__name__}. Export to html instead.") from None
    if process.returncode != 0 or not to.exists():
        raise Error(f"{program} did not print the page (exit code {process.returncode}). Export to html instead.")
    stamp = (moment.strftime("D:%Y%m%d%H%M%S+00'00'") if moment is not None else "D:20000101000000+00'00'").encode()
    # Only by a date of the same length, because the file contains byte offsets.
    to.write_bytes(_PDF_DATE.sub(lambda match: _replace_date(match, stamp), to.read_bytes()))


def _replace_date(match: re.Match[bytes], stamp: bytes) -> bytes:
    date = b"/" + match[1] + b" (" + stamp + b")"
    return date if len(date) == len(match[0]) else match[0]
