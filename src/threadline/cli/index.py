"""`threadline index`: show, refresh or rebuild the index."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.archive import Archive
    from threadline.index import IndexStatus

_EPILOG = """
\b
Examples:
  threadline index                   how it stands
  threadline index refresh           read what changed
  threadline index rebuild           make it anew, whatever state it is in
  threadline index path              where it lies
  threadline index status --json     for a program
  rm "$(threadline index path)"*     it can always be made again

\b
Exit codes: 0 done; 1 there is no home, or no index yet; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("action", type=click.Choice(["status", "refresh", "rebuild", "path"]), default="status")
@home_option
@jobs_option
@output_options
def index(action: str, *, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Show how the index stands, bring it up to date, or make it anew.

    The index is one file for the homes that are read, made from transcripts alone: it can be thrown away. It lies in
    the platform's folder for caches, or in the one that THREADLINE_CACHE names. Commands that need it refresh it
    themselves; `refresh` does that now, and reads only what changed. `rebuild` makes another from nothing, and only
    then puts it in the old one's place.
    """
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    archive = open_archive(homes, jobs, quiet=0)
    if not archive.homes:
        report_no_home()
        return EXIT_NOTHING
    if action == "path":
        return _print_path(archive.index, output)
    if action == "status":
        return _print_status(archive, output)
    return _update_index(archive, output, anew=action == "rebuild")


def _print_path(path: Path, output: str) -> int:
    from threadline.cli import output as out

    if output == "table":
        click.echo(out.plain(str(path)))
    else:
        _print_row({"path": str(path)}, output)
    return EXIT_OK


def _print_row(row: dict[str, Any], output: str) -> None:
    from threadline.cli import output as out

    if output == "json":
        out.print_json(row)
    else:
        out.print_rows([row], output)


def _update_index(archive: Archive, output: str, *, anew: bool) -> int:
    from msgspec.structs import asdict

    from threadline.cli import output as out

    began = monotonic()
    done = archive.rebuild() if anew else archive.refresh()
    seconds = monotonic() - began
    if output != "table":
        _print_row({"path": str(archive.index), **asdict(done), "seconds": round(seconds, 3)}, output)
        return EXIT_OK
    read = f"{out.counted(done.transcripts, 'transcript')} read ({out.format_size(done.bytes)})"
    parts = [read, out.counted(done.entries, "entry", "entries"), out.counted(done.charges, "charge")]
    parts += [f"{out.counted(done.gone, 'transcript')} gone"] if done.gone else []
    if not (done.transcripts or done.gone or done.charges):
        parts = ["Nothing changed"]
    rate = f", {out.format_size(int(done.bytes / seconds))}/s" if done.bytes and seconds else ""
    click.echo(f"{'; '.join(parts)}. Took {seconds:.2f} s{rate}.")
    return EXIT_OK


def _print_status(archive: Archive, output: str) -> int:
    from msgspec.structs import asdict

    from threadline.cli import output as out
    from threadline.cli.screen import report_nothing

    told = archive.status()
    if output != "table":
        _print_row(asdict(told), output)
    elif told.exists:
        click.echo(_status_page(told))
    if not told.exists:
        waiting = f"{out.counted(told.changed, 'transcript')} ({out.format_size(told.transcripts_bytes)})"
        return report_nothing(
            f"There is no index at {told.path!r} yet; `threadline index refresh` makes it of {waiting}."
        )
    return EXIT_OK


def _status_page(told: IndexStatus) -> str:
    from threadline.cli import output as out

    size = out.format_size(told.bytes)
    if told.share is not None:
        size += f", {told.share:.1%} of the transcripts' {out.format_size(told.transcripts_bytes)}"
    how = ", ".join(f"{number:,} {kind}" for kind, number in told.changes.items())
    lines = {
        "index": told.path,
        "size": size,
        "schema": f"version {told.schema}",
        "transcripts": f"{told.transcripts:,}",
        "entries": f"{told.entries:,}",
        "charges": f"{told.charges:,}",
        "problems": f"{told.problems:,}",
        "changed since": f"{out.counted(told.changed, 'transcript')} ({how}); `threadline index refresh` reads them"
        if told.changed
        else "nothing",
        "orphans": f"{told.orphans:,} entries are gone but for their words; `threadline index rebuild` frees those"
        if told.orphans
        else "none",
    }
    return "\n".join(f"  {name:<13}  {out.plain(line)}" for name, line in lines.items())
