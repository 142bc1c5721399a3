"""`threadline index`: where the index lies, how it stands; bring it up to date, or make it anew."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from threadline.model.found import Home

_BESIDE = ("", "-wal")
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
    from threadline.cli.reading import say_no_home
    from threadline.cli.refreshing import index_of
    from threadline.find import homes as found_homes

    found = found_homes(*homes)
    if not found:
        say_no_home()
        return NOTHING
    if action == "path":
        return _print_path(index_of(found), output)
    if action == "status":
        return _print_status(index_of(found), found, output)
    return _make(action, found, jobs, output)


def _print_path(path: Path, output: str) -> int:
    from threadline.cli import output as out

    if output == "table":
        click.echo(out.plain(str(path)))
    else:
        _print_row({"path": str(path)}, output)
    return FOUND


def _print_row(row: dict[str, Any], output: str) -> None:
    from threadline.cli import output as out

    if output == "json":
        out.print_json(row)
    else:
        out.print_rows([row], output)


def _make(action: str, homes: Sequence[Home], jobs: int | None, output: str) -> int:
    from msgspec.structs import asdict

    from threadline.cli import output as out
    from threadline.cli.refreshing import index_of, shown
    from threadline.index.refresh import rebuild, refresh

    began = monotonic()
    done = shown(rebuild if action == "rebuild" else refresh, homes, jobs=jobs)
    seconds = monotonic() - began
    if output != "table":
        path = str(index_of(homes))
        _print_row({"path": path, **asdict(done), "seconds": round(seconds, 3)}, output)
        return FOUND
    read = f"{out.counted(done.transcripts, 'transcript')} read ({out.size(done.bytes)})"
    parts = [read, out.counted(done.entries, "entry", "entries"), out.counted(done.charges, "charge")]
    parts += [f"{out.counted(done.gone, 'transcript')} gone"] if done.gone else []
    if not (done.transcripts or done.gone or done.charges):
        parts = ["Nothing changed"]
    rate = f", {out.size(int(done.bytes / seconds))}/s" if done.bytes and seconds else ""
    click.echo(f"{'; '.join(parts)}. Took {seconds:.2f} s{rate}.")
    return FOUND


def _print_status(path: Path, homes: Sequence[Home], output: str) -> int:
    from threadline.cli import output as out
    from threadline.cli.screen import nothing

    told = _status(path, homes)
    if output != "table":
        _print_row(told, output)
    elif told["exists"]:
        click.echo(_page(told))
    if not told["exists"]:
        waiting = f"{out.counted(told['changed'], 'transcript')} ({out.size(told['transcripts_bytes'])})"
        return nothing(f"There is no index at {str(path)!r} yet; `threadline index refresh` makes it of {waiting}.")
    return FOUND


def _status(path: Path, homes: Sequence[Home]) -> dict[str, Any]:
    """How the index stands; nothing is written."""
    from threadline.find.listing import Listing
    from threadline.index.store import open_to_read

    sizes = {one: status.st_size for home in homes for one, status in Listing(home).stats()}
    told: dict[str, Any] = {
        "path": str(path),
        "exists": path.exists(),
        "bytes": 0,
        "transcripts_bytes": sum(sizes.values()),
        "share": None,
        "schema": None,
        "transcripts": 0,
        "entries": 0,
        "charges": 0,
        "problems": 0,
        "orphans": 0,
        "changed": len(sizes),
        "changes": {},
    }
    if told["exists"]:
        told["bytes"] = sum(_size(f"{path}{beside}") for beside in _BESIDE)
        told["share"] = round(told["bytes"] / total, 4) if (total := told["transcripts_bytes"]) else None
        with closing(open_to_read(path)) as connection:
            told.update(_figures(path, connection))
            changes = _changes(connection, homes)
            told["changes"] = dict(changes)
            told["changed"] = sum(changes.values())
    return told


def _size(path: str) -> int:
    from os.path import getsize

    try:
        return getsize(path)  # noqa: PTH202 - it may go at any moment
    except OSError:
        return 0


def _figures(path: Path, connection: sqlite3.Connection) -> dict[str, int]:
    """What the index holds. Words of entries that are gone stay in the full text: those are its orphans."""
    import sqlite3

    from threadline.errors import Unreadable

    try:
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        told = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in ("transcripts", "entries", "charges", "problems")
        }
        return {"schema": int(meta["schema"]), **told, "orphans": int(meta["next_entry"]) - 1 - told["entries"]}
    except (sqlite3.Error, KeyError, ValueError) as error:
        told_of = f"The index {str(path)!r} is damaged ({error}); run `threadline index rebuild`."
        raise Unreadable(told_of) from None


def _changes(connection: sqlite3.Connection, homes: Sequence[Home]) -> Counter[str]:
    """How many transcripts changed since they were read, by how they did."""
    from os import fsdecode

    from threadline.find.changes import changes
    from threadline.model.change import Known

    names = ", ".join(Known.__struct_fields__)
    rows = connection.execute(f"SELECT {names} FROM transcripts")  # noqa: S608 - our own names
    known = [Known(fsdecode(path), *rest) for path, *rest in rows]
    return Counter(str(one.kind) for one in changes(known, homes).changed)


def _page(told: dict[str, Any]) -> str:
    from threadline.cli import output as out

    size = out.size(told["bytes"])
    if told["share"] is not None:
        size += f", {told['share']:.1%} of the transcripts' {out.size(told['transcripts_bytes'])}"
    how = ", ".join(f"{number:,} {kind}" for kind, number in told["changes"].items())
    lines = {
        "index": told["path"],
        "size": size,
        "schema": f"version {told['schema']}",
        "transcripts": f"{told['transcripts']:,}",
        "entries": f"{told['entries']:,}",
        "charges": f"{told['charges']:,}",
        "problems": f"{told['problems']:,}",
        "changed since": f"{out.counted(told['changed'], 'transcript')} ({how}); `threadline index refresh` reads them"
        if told["changed"]
        else "nothing",
        "orphans": f"{told['orphans']:,} entries are gone but for their words; `threadline index rebuild` frees those"
        if told["orphans"]
        else "none",
    }
    return "\n".join(f"  {name:<13}  {out.plain(line)}" for name, line in lines.items())
