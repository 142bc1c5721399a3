"""`threadline index`: show, refresh or rebuild the index."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from threadline.archive import Archive
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, jobs_option, output_options
from threadline.cli.resolve import open_archive
from threadline.model.text import count, format_duration, format_percent, format_size
from threadline.render import plain

if TYPE_CHECKING:
    from threadline.index import IndexStatus

_EPILOG = """
\b
Examples:
  threadline index                     show its state
  threadline index refresh             read what changed
  threadline index refresh --insight   also prepare why, waste and outcomes
  threadline index rebuild             build it from scratch
  threadline index path                print where it is stored
  threadline index status --json       for a program
  rm "$(threadline index path)"*       delete it; it can be rebuilt

\b
Exit codes: 0 success; 1 no home, or no index yet; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("action", type=click.Choice(["status", "refresh", "rebuild", "path"]), default="status")
@click.option(
    "--insight",
    is_flag=True,
    help="Also prepare the answers of `why`, `waste` and `outcomes` about all sessions that changed.",
)
@home_option
@jobs_option
@output_options
def index(action: str, *, insight: bool, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Show, refresh or rebuild the index.

    The index is one file per set of homes, derived from transcripts alone: it can be deleted at any time. It is stored
    in the platform's cache folder, or in THREADLINE_CACHE. Commands that need it refresh it themselves. `refresh` reads
    only what changed. `rebuild` builds a new index and replaces the old one when it is complete. With --insight, both
    also prepare the answers of `why`, `waste` and `outcomes`, which otherwise happens when they are first used.
    """
    archive = open_archive(homes, jobs, quiet_bytes=0, require_home=True)
    if action == "path":
        if output == "table":
            click.echo(plain(str(archive.index)))
        else:
            out.print_record({"path": str(archive.index)}, output)
        return EXIT_OK
    if action == "status":
        return _print_status(archive, output)
    return _update_index(archive, output, rebuild=action == "rebuild", insight=insight)


def _update_index(archive: Archive, output: str, *, rebuild: bool, insight: bool) -> int:
    start = monotonic()
    changes = archive.rebuild() if rebuild else archive.refresh()
    if insight:
        archive.store_insights()
    seconds = monotonic() - start
    if output != "table":
        out.print_record({"path": str(archive.index), **asdict(changes), "seconds": round(seconds, 3)}, output)
        return EXIT_OK
    parts = [
        f"{count(changes.transcripts, 'transcript')} read ({format_size(changes.bytes)})",
        count(changes.entries, "entry", "entries"),
        count(changes.charges, "charge"),
    ]
    parts += [f"{count(changes.gone, 'transcript')} gone"] if changes.gone else []
    if not (changes.transcripts or changes.gone or changes.charges):
        parts = ["Nothing changed"]
    rate = f", {format_size(int(changes.bytes / seconds))}/s" if changes.bytes and seconds else ""
    click.echo(f"{'; '.join(parts)}. Took {format_duration(seconds)}{rate}.")
    return EXIT_OK


def _print_status(archive: Archive, output: str) -> int:
    status = archive.status()
    if output != "table":
        out.print_record(asdict(status), output)
    elif status.exists:
        click.echo(_status_page(status))
    if status.exists:
        return EXIT_OK
    transcripts = f"{count(status.changed, 'transcript')} ({format_size(status.transcripts_bytes)})"
    return out.report_nothing(
        f"There is no index at {status.path!r} yet. `threadline index refresh` builds it from {transcripts}."
    )


def _status_page(status: IndexStatus) -> str:
    size = format_size(status.bytes)
    if status.share is not None:
        size += f", {format_percent(status.share)} of the transcripts' {format_size(status.transcripts_bytes)}"
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in status.changes.items())
    changed = f"{count(status.changed, 'transcript')} ({kinds}); `threadline index refresh` reads them"
    deleted = f"the words of {count(status.orphans, 'entry', 'entries')}; `threadline index refresh` removes them"
    facts = {
        "index": status.path,
        "size": size,
        "schema": f"version {status.schema}",
        "transcripts": f"{status.transcripts:,}",
        "entries": f"{status.entries:,}",
        "charges": f"{status.charges:,}",
        "problems": f"{status.problems:,}",
        "changed since": changed if status.changed else "nothing",
        "deleted text": deleted if status.orphans else "none",
    }
    return "\n".join(out.wrap_text(fact, f"  {name:<13}  ") for name, fact in facts.items())
