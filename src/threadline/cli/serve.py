"""`threadline serve`: browse sessions in a web page, on this machine only."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING

import click

from threadline import lake as lakes
from threadline.archive import Archive
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, jobs_option
from threadline.cli.resolve import open_archive, uses_index
from threadline.errors import BadQuery, IndexBusy, Missing, Unreadable
from threadline.model.text import count
from threadline.storage import Bucket

if TYPE_CHECKING:
    from threadline.web import ArchivePool, RunningServer

_EPILOG = """
\b
Examples:
  threadline serve                                open the page in a browser
  threadline serve --no-open                      only print its address
  threadline serve --home demo-home --port 8900   another home, at this port
  threadline serve --lake /srv/lake               the sessions of a team
  threadline serve --no-open --json --api-token   for a program
"""
_REQUIRED_PACKAGES = ("starlette", "uvicorn", "markupsafe", "markdown_it", "pygments", "anyio")
_BACKGROUND_SECONDS = 1.0
"""How often a server in the background checks whether it has its terminal again."""
_TIME = re.compile(r"([1-9][0-9]{0,5})\s*([mhd])")
_UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400}
MAX_EXPIRY = 7 * 86400
"""The longest `--expire`: `threadline.web.MAX_SECONDS`, which would load the server."""


def _parse_expiry(_context: click.Context, _option: click.Parameter, text: str) -> float:
    match = _TIME.fullmatch(text.strip().lower())
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]] if match is not None else 0
    if not 0 < seconds <= MAX_EXPIRY:
        raise click.BadParameter(f"{text!r} is not a time from 1m to 7d. Write 30m, 12h or 2d.")
    return seconds


@click.command(epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port. Default: any free port.")
@click.option(
    "--host",
    type=click.Choice(("127.0.0.1", "::1")),
    default="127.0.0.1",
    help="Loopback address to bind to, IPv4 or IPv6. The same port of the other address is reserved, too."
    " Default: 127.0.0.1.",
)
@click.option(
    "--host-name",
    metavar="NAME",
    help="Host name in the URL: NAME.localhost, an address like 127.34.5.6, or `address` for a random one. Default: a "
    "random name under .localhost.",
)
@click.option(
    "--expire",
    "idle_seconds",
    metavar="TIME",
    default="12h",
    callback=_parse_expiry,
    help="Log out a browser after this time without a request: 30m, 12h, 7d. Default: 12h.",
)
@click.option("--api-token", "with_api_token", is_flag=True, help="Also print a token for scripts.")
@click.option(
    "--open/--no-open", "is_opened", default=True, help="Open a browser if there is a display. Default: open."
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
@click.option("--lake", metavar="URI", help="Show a team lake instead of this machine's homes.")
@home_option
@jobs_option
def serve(
    *,
    port: int,
    host: str,
    host_name: str | None,
    idle_seconds: float,
    with_api_token: bool,
    is_opened: bool,
    as_json: bool,
    lake: str | None,
    homes: tuple[str, ...],
    jobs: int | None,
) -> int:
    """Browse all sessions in a local web page.

    Binds to localhost and is read-only. The URL it prints works once and lets one browser in, which can then read what
    you can read. Press Enter for another URL. The index is refreshed first. Stop with Ctrl-C.
    """
    require_web("threadline serve")
    from threadline.web import ArchivePool, choose_host_name  # noqa: PLC0415 - needs the packages just checked for
    from threadline.web import serve as run  # noqa: PLC0415 - likewise

    host_name = choose_host_name(host_name)
    if lake is not None and homes:
        raise BadQuery("Use either --lake or --home.")
    pool = ArchivePool.of_lake(lakes.LakeReader(Bucket(lake))) if lake is not None else _home_pool(homes, jobs)

    def ready(server: RunningServer) -> None:
        _print_address(server, sessions, as_json=as_json)
        if not as_json:
            if is_opened and _has_display():
                _open_browser(server)
            if _has_terminal():
                _print_urls_on_enter(server)

    try:
        sessions = _prepare_index(pool, jobs)
        run(
            pool,
            host,
            port,
            ready,
            host_name=host_name,
            idle_seconds=idle_seconds,
            with_api_token=with_api_token,
        )
    finally:
        pool.close()
    return EXIT_OK


def _home_pool(homes: tuple[str, ...], jobs: int | None) -> ArchivePool:
    from threadline.web import ArchivePool  # noqa: PLC0415 - needs packages that may be missing

    archive = open_archive(homes, jobs, require_home=True)
    index = archive.index if uses_index() else False
    return ArchivePool(
        archive.homes, index=index, reload_homes=archive.reload_kept_homes, without_keep=archive.without_keep
    )


def require_web(command: str) -> None:
    """Raise if a package is missing that the server needs."""
    missing = [name for name in _REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise Missing(f"`{command}` needs {', '.join(missing)}. Run: pip install 'threadline[web]'")


def _prepare_index(pool: ArchivePool, jobs: int | None) -> int:
    """Refresh the index, however long that takes; return the number of sessions."""
    if pool.lake is not None:
        return pool.lake.state.sessions(lakes.LakeSessionFilter(), limit=0)[1]
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


def _print_address(server: RunningServer, sessions: int, *, as_json: bool) -> None:
    if as_json:
        address = {
            "address": server.url,
            "host": server.host,
            "port": server.port,
            "token": server.token,
            "api_token": server.api_token,
            "sessions": sessions,
        }
        click.echo(out.json_text(address))
        sys.stdout.flush()
        return
    click.echo(server.url)
    if server.api_token is not None:
        click.echo(f"API token: {server.api_token}")
    sys.stdout.flush()
    advice = "Press Enter for another URL, Ctrl-C to stop." if _has_terminal() else "Press Ctrl-C to stop."
    out.print_message(f"Serving {count(sessions, 'session')}. The URL works once. {advice}")


def _open_browser(server: RunningServer) -> None:
    """Open a browser on a private file that redirects: other users can read its command line, and so the URL."""
    import webbrowser  # noqa: PLC0415 - only if there is a display

    try:
        page = server.access.write_file()
    except OSError as error:
        out.print_message(f"Could not open a browser ({error.strerror or error}). Open the address above.")
        return
    # Some browsers block until they are closed; the server must answer meanwhile.
    Thread(target=webbrowser.open, args=(page.as_uri(),), name="threadline-browser", daemon=True).start()


def _has_terminal() -> bool:
    """Whether somebody can press Enter, and sees what is printed."""
    return out.can_ask() and sys.stdout.isatty()


def _print_urls_on_enter(server: RunningServer) -> None:
    """Print another URL whenever Enter is pressed in the terminal."""
    terminal = sys.stdin.fileno()

    def follow() -> None:
        if sys.platform != "win32":  # in the background, reading fails instead of stopping the server
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})
        while True:
            try:
                # Not sys.stdin: its lock would be held when Python ends.
                if not os.read(terminal, 4096):
                    return  # Ctrl-D
            except OSError:
                time.sleep(_BACKGROUND_SECONDS)
                continue
            click.echo(server.access.new_url())
            sys.stdout.flush()

    Thread(target=follow, name="threadline-terminal", daemon=True).start()


def _has_display() -> bool:
    """Whether the user would see a browser: not over SSH, and not without a display."""
    if "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in {"darwin", "win32"} or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
