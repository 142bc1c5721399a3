"""The files that any session touched, from the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from threadline.cli import FOUND, NOTHING, screen
from threadline.cli import output as out
from threadline.cli.everywhere import Everywhere
from threadline.cli.opening import archive_of
from threadline.cli.places import short_path
from threadline.cli.reading import say_no_home
from threadline.model.listed import ListedFile

_WHOLE = 4096


def show(asked: Everywhere, path: str | None, homes: Sequence[str], output: str) -> int:
    """Print them; give the exit code."""
    with archive_of(homes) as archive:
        if not archive.homes:
            say_no_home()
            return NOTHING
        found = archive.files(path, **asked.wanted())
    if output != "table":
        out.print_rows(map(_row, found), output)
    elif found:
        click.echo(_table(found))
        if len(found) == asked.limit:
            click.echo(f"\nThe {asked.limit:,} touched last: see --limit N.")
    if found:
        return FOUND
    named = f" {path!r}" if path is not None else ""
    return screen.nothing(f"No session touched such a file{named}; --path takes the end of a path, with whole names.")


def _row(file: ListedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "session": file.session,
        "project": file.project,
        "reads": file.reads,
        "writes": file.writes,
        "first": file.first,
        "last": file.last,
    }


def _table(found: Sequence[ListedFile]) -> str:
    rows = [
        (
            file.last.strftime("%Y-%m-%d %H:%M") if file.last else "",
            str(file.session or "")[:8],
            f"{file.reads:,}",
            f"{file.writes:,}",
            short_path(file.path, _WHOLE),
        )
        for file in found
    ]
    return out.table(("last (UTC)", "session", "reads", "writes", "file"), rows, right=(2, 3), ends=True)
