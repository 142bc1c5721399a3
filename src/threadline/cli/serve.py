"""`threadline serve`: show sessions in a browser, on this machine only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, jobs_option

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from threadline.archive import Archive
    from threadline.web.archive_pool import ArchivePool
    from threadline.web.server import Served

_EPILOG = """
\b
Examples:
  threadline serve                    open the page in a browser
  threadline serve --no-open          only print its address
  threadline serve --home demo-home --port 8900
  threadline serve --no-open --json   for a program: address, port, token
"""
_QUIET_BYTES = 8 * 1024 * 1024
"""How many bytes take long enough to index that a bar is worth showing."""
_REQUIRED_PACKAGES = ("starlette", "uvicorn", "markupsafe", "markdown_it", "pygments", "anyio")


@click.command(epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; by default, a free one.")
@click.option(
    "--host",
    type=click.Choice(("127.0.0.1", "::1")),
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at: this machine alone, by the old protocol or the new.",
)
@click.option("--open/--no-open", "is_opened", default=True, help="Open a browser, where there is a screen.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
@home_option
@jobs_option
def serve(*, port: int, host: str, is_opened: bool, as_json: bool, homes: tuple[str, ...], jobs: int | None) -> int:
    """Show all sessions as pages, on this machine only, until Ctrl-C.

    The address that is printed carries a token: whoever has it may read what you may. Nothing is written to a Claude
    home, and no other machine or site can ask. The index is brought up to date first.
    """
    from threadline.cli.resolve import open_archive, uses_index

    _require_web()
    from threadline.web.archive_pool import ArchivePool
    from threadline.web.server import serve as run

    archive = open_archive(homes, jobs)
    if not archive.homes:
        from threadline.cli.screen import report_no_home

        report_no_home()
        return EXIT_NOTHING
    index = archive.index if uses_index() else False
    holding = ArchivePool(
        archive.homes, index=index, homes_now=archive.reload_kept_homes, without_keep=archive.without_keep
    )

    def ready(served: Served) -> None:
        _print_address(served, many, as_json=as_json)
        if is_opened and not as_json and _has_display():
            _open_browser(served)

    try:
        many = _prepare_index(holding, jobs)
        run(holding, host, port, ready)
    finally:
        holding.close()
    return EXIT_OK


def _require_web() -> None:
    from importlib.util import find_spec

    from threadline.errors import Missing

    lacking = [name for name in _REQUIRED_PACKAGES if find_spec(name) is None]
    if lacking:
        raise Missing(f"The page needs {', '.join(lacking)}, not installed here; run: pip install 'threadline[web]'")


def _prepare_index(holding: ArchivePool, jobs: int | None) -> int:
    """How many sessions there are; by then the index is up to date, whatever that took."""
    from threadline.cli.resolve import uses_index
    from threadline.errors import IndexBusy, Unreadable

    if uses_index():
        try:
            holding.prepare(jobs, _index_progress)
        except (IndexBusy, Unreadable) as error:
            click.echo(f"threadline: {error} Sessions are shown all the same.", err=True)
    return holding.ask(_count_sessions)


def _index_progress(label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    from contextlib import nullcontext

    from threadline.cli.screen import progress_bar

    return progress_bar(label, total, rate=True) if total > _QUIET_BYTES else nullcontext(lambda _done: None)


def _count_sessions(archive: Archive) -> int:
    from threadline.model.homes import TranscriptKind

    mains = {
        transcript.session or transcript.path
        for home in archive.found
        for transcript in home.transcripts
        if transcript.kind is TranscriptKind.MAIN
    }
    return len(mains)


def _print_address(served: Served, many: int, *, as_json: bool) -> None:
    from threadline.cli import output as out

    if as_json:
        click.echo(
            out.json_text(
                {
                    "address": served.address,
                    "host": served.host,
                    "port": served.port,
                    "token": served.token,
                    "sessions": many,
                }
            )
        )
        sys.stdout.flush()
        return
    click.echo(served.address)
    sys.stdout.flush()
    click.echo(f"threadline: {out.counted(many, 'session')} to look at; Ctrl-C ends it.", err=True)


def _open_browser(served: Served) -> None:
    """Show it in a browser, whose command line names a private file and no token: every user could read that."""
    import webbrowser
    from threading import Thread

    try:
        page = served.ticket.page()
    except OSError as error:
        click.echo(f"threadline: No browser was opened ({error.strerror or error}); open the address above.", err=True)
        return
    # Some browsers are waited for until they are closed, and until then nothing would be answered.
    Thread(target=webbrowser.open, args=(page.as_uri(),), name="threadline-browser", daemon=True).start()


def _has_display() -> bool:
    """Whether a browser is likely to be seen: not over SSH, and not without a display."""
    if sys.platform in {"darwin", "win32"}:
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and "SSH_CONNECTION" not in os.environ
