"""`threadline keep list`: the sessions that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND
from threadline.cli.keep_options import keep_options, machine_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue
    from threadline.keep.sessions import KeptSession

_SHOWN = 30
_EPILOG = """
\b
Examples:
  threadline keep list                  the newest sessions that are kept
  threadline keep list --only           those that Claude Code has deleted
  threadline keep list --project app    of one project
  threadline keep list --json           all of them, for a program

\b
Exit codes: 0 found; 1 none; 2 an error.
"""


@click.command("list", epilog=_EPILOG)
@click.option("--only", is_flag=True, help="Only sessions that Claude Code has deleted.")
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@machine_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"No more than this many; by default {_SHOWN}, and all with --json, --jsonl and --csv.",
)
@keep_options
@output_options
def list(  # noqa: A001 - an action has the name that people type
    *,
    only: bool,
    project: str | None,
    machine: str | None,
    limit: int | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """List the sessions that are kept, newest first: title, project, size, versions, whether only the keep has them.

    `kept` marks those that Claude Code has deleted. A session counts once for each machine and home it was kept from.
    """
    from threadline.cli import output as out
    from threadline.cli.keep_options import catalogue_of, machine_named
    from threadline.cli.screen import nothing
    from threadline.keep.sessions import is_kept_only, sessions

    catalogue, here = catalogue_of(folder, key_file)
    wanted = machine_named(catalogue, machine, here) if machine is not None else None
    found = [one for one in sessions(catalogue, machine=wanted) if not only or is_kept_only(one, here.id)]
    rows = _rows(catalogue, found, here.id, project, limit or (_SHOWN if output == "table" else None))
    if output != "table":
        out.print_rows(rows[0], output)
    elif rows[0]:
        click.echo(_page(rows[0]))
        if rows[1]:
            click.echo(f"\nThe newest {len(rows[0])}; {rows[1]:,} more: see --limit N.")
    if rows[0]:
        return FOUND
    if project is not None:
        return nothing(f"No kept session is of a project with {project!r} in its path.")
    return nothing(
        "Claude Code still has every session that is kept." if only and not found else "Nothing is kept yet."
    )


def _rows(
    catalogue: Catalogue, found: Sequence[KeptSession], here: str, project: str | None, limit: int | None
) -> tuple[Sequence[dict[str, Any]], int]:
    """The rows that are shown, and how many there are more. Titles are read of those that are shown alone."""
    from threadline.keep.cuts import mended
    from threadline.keep.sessions import is_kept_only
    from threadline.keep.titling import told

    shown = [mended(catalogue, one) for one in (found[:limit] if project is None else found)]
    words = told(catalogue, shown)
    rows = []
    for one in shown:
        said = words.get((one.machine, one.home, one.id))
        main = one.main or one.transcripts[0]
        rows.append(
            {
                "session": one.id,
                "title": said.title if said is not None else "",
                "project": (said.project if said is not None else "") or one.folder,
                "modified": one.modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "size": one.size,
                "files": len(one.files),
                "versions": one.versions,
                "kept": is_kept_only(one, here),
                "machine": one.label,
                "home": one.home,
                "path": main.path,
            }
        )
    fit = [row for row in rows if project is None or project.lower() in str(row["project"]).lower()]
    cut = fit[:limit]
    return cut, (len(found) if project is None else len(fit)) - len(cut)


def _page(rows: Sequence[dict[str, Any]]) -> str:
    from threadline.cli import output as out
    from threadline.cli.places import short_path

    several = len({row["machine"] for row in rows}) > 1
    headings = ["SESSION", "", "LAST WRITTEN", "SIZE", "FILES", "VERSIONS", *(["MACHINE"] if several else [])]
    cells = [
        (
            row["session"][:8],
            "kept" if row["kept"] else "",
            row["modified"][:16].replace("T", " "),
            out.size(row["size"]),
            f"{row['files']:,}",
            f"{row['versions']:,}",
            *([row["machine"]] if several else []),
            short_path(row["project"], 30),
            out.one_line(row["title"] or "(no title)", 200),
        )
        for row in rows
    ]
    return out.table([*headings, "PROJECT", "TITLE"], cells, right=(3, 4, 5), shrink=(len(headings),))
