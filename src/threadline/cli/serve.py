"""`threadline serve`: browse sessions in a web page, on this machine only."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from threadline.archive import Archive
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, jobs_option
from threadline.cli.resolve import open_archive, uses_index
from threadline.errors import IndexBusy, Missing, Unreadable
from threadline.model.text import count

if TYPE_CHECKING:
    from threadline.web import ArchivePool, Served

_EPILOG = """
\b
Examples:
  threadline serve                    open the page in a browser
  threadline serve --no-open          only print its address
  threadline serve --home demo-home --port 8900
  threadline serve --no-open --json   for a program: address, port, token
"""
_REQUIRED_PACKAGES = ("starlette", "uvicorn", "markupsafe", "markdown_it", "pygments", "anyio")


@click.command(epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port. Default: any free port.")
@click.option(
    "--host",
    type=click.Choice(("127.0.0.1", "::1")),
    default="127.0.0.1",
    show_default=True,
    help="Loopback address to bind to, IPv4 or IPv6.",
)
@click.option(
    "--open/--no-open", "is_opened", default=True, help="Open a browser if there is a display. Default: open."
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
@home_option
@jobs_option
def serve(*, port: int, host: str, is_opened: bool, as_json: bool, homes: tuple[str, ...], jobs: int | None) -> int:
    """Browse all sessions in a local web page.

    Binds to localhost, is read-only, and requires the token in the URL it prints. Anyone with that URL can read what
    you can read. The index is refreshed first. Stop with Ctrl-C.
    """
    _require_web()
    from threadline.web import ArchivePool  # noqa: PLC0415 - needs the packages just checked for
    from threadline.web import serve as run  # noqa: PLC0415 - likewise

    archive = open_archive(homes, jobs, require_home=True)
    index = archive.index if uses_index() else False
    pool = ArchivePool(
        archive.homes, index=index, reload_homes=archive.reload_kept_homes, without_keep=archive.without_keep
    )

    def ready(served: Served) -> None:
        _print_address(served, sessions, as_json=as_json)
        if is_opened and not as_json and _has_display():
            _open_browser(served)

    try:
        sessions = _prepare_index(pool, jobs)
        run(pool, host, port, ready)
    finally:
        pool.close()
    return EXIT_OK


def _require_web() -> None:
    missing = [name for name in _REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise Missing(f"`threadline serve` needs {', '.join(missing)}. Run: pip install 'threadline[web]'")


def _prepare_index(pool: ArchivePool, jobs: int | None) -> int:
    """Refresh the index, however long that takes; return the number of sessions."""
    if uses_index():
        try:
            pool.prepare(jobs, out.archive_progress)
        except (IndexBusy, Unreadable) as error:
            out.print_message(f"{error} Continuing without refreshing the index.")
    return pool.run(_count_sessions)


def _count_sessions(archive: Archive) -> int:
    if archive.is_indexed:
        return archive.open_index().activity().sessions
    mains = {transcript.session_key for home in archive.found for transcript in home.transcripts if transcript.is_main}
    return len(mains)


def _print_address(served: Served, sessions: int, *, as_json: bool) -> None:
    if as_json:
        address = {
            "address": served.url,
            "host": served.host,
            "port": served.port,
            "token": served.token,
            "sessions": sessions,
        }
        click.echo(out.json_text(address))
        sys.stdout.flush()
        return
    click.echo(served.url)
    sys.stdout.flush()
    out.print_message(f"Serving {count(sessions, 'session')}. Press Ctrl-C to stop.")


def _open_browser(served: Served) -> None:
    """Open a browser on a private file that redirects: other users can read its command line, and so the token."""
    import webbrowser  # noqa: PLC0415 - only if there is a display
    from threading import Thread  # noqa: PLC0415 - likewise

    try:
        page = served.ticket.write_page()
    except OSError as error:
        out.print_message(f"Could not open a browser ({error.strerror or error}). Open the address above.")
        return
    # Some browsers block until they are closed; the server must answer meanwhile.
    Thread(target=webbrowser.open, args=(page.as_uri(),), name="threadline-browser", daemon=True).start()


def _has_display() -> bool:
    """Whether the user would see a browser: not over SSH, and not without a display."""
    if sys.platform in {"darwin", "win32"}:
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and "SSH_CONNECTION" not in os.environ
