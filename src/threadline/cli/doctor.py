"""`threadline doctor`: read everything; say what is wrong, what is new, and how much was understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from threadline.cli import FAILED, FOUND, NOTHING
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from threadline.model.found import Found

_EPILOG = """
\b
Examples:
  threadline doctor                       all homes
  threadline doctor --check               and prove that every byte comes back
  threadline doctor session.jsonl other/  transcripts, or all below a folder
  threadline doctor 55604662              the session whose id starts so
  threadline doctor --json | jq .drift    what this version does not know
  threadline doctor --csv                 problems and drift as rows

\b
Exit codes: 0 read; 1 nothing to read; 2 an error, or a failed round trip.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Read each transcript twice and prove that its entries give it back.")
@home_option
@jobs_option
@output_options
def doctor(paths: tuple[str, ...], *, check: bool, homes: tuple[str, ...], jobs: int | None, output: str) -> int:
    """Read everything; say what is wrong, what is new, and how much was understood.

    PATH is a transcript, a folder, a home, the start of a session's or agent's id, or `last`; all homes without one.
    Problems are damage and oddities with their places. Drift is every kind, subtype, block, tool result and field that
    the model does not know.
    """
    from threadline.cli import output as out
    from threadline.cli.doctor_page import as_json, page, rows
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home

    named = _named(paths, homes) if paths else None
    archive = archive_of(homes, jobs, found=() if paths else None, index=False)
    found = archive.look() if named is None else named
    if not found:
        say_no_home()
        if output == "table":
            return NOTHING
    seen = archive.examine(found, check=check)
    nothing = not (seen.transcripts or seen.side_files or seen.problems)
    if nothing and found:
        where = ", ".join(repr(path) for path in paths or map(str, (one.home.path for one in found)))
        click.echo(f"threadline: Nothing to read in {out.plain(where)}: no transcripts, no side files.", err=True)
    if output == "json":
        out.print_json(as_json(seen))
    elif output == "table":
        if not nothing:
            click.echo(page(seen))
    else:
        out.print_rows(rows(seen), output)
    if seen.round_trip is False:
        return FAILED
    return FOUND if seen.transcripts else NOTHING


def _named(paths: tuple[str, ...], homes: tuple[str, ...]) -> list[Found]:
    """What lies at the paths; `--home` says where to look for ids."""
    from threadline.cli.opening import by_name

    named = [by_name(path, homes) for path in paths]
    if homes and not all(is_id for _found, is_id in named):
        raise click.UsageError("Give either PATH or --home: a home is a path, too.")
    return [found for found, _is_id in named]
