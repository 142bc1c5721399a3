"""The index that a command asks: brought up to date, or as it is where that is wanted or another is at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadline.archive import Archive


def is_there(archive: Archive, *, fresh: bool) -> bool:
    """Whether there is an index to ask; it is refreshed if that is wanted and nobody else is at it."""
    import click

    from threadline.cli import output as out
    from threadline.cli.screen import nothing
    from threadline.errors import IndexBusy

    path = archive.index
    if not fresh:
        if not path.exists():
            made_by = "`threadline index refresh` makes it, or leave out --no-refresh"
            nothing(f"There is no index at {str(path)!r} yet; {made_by}.")
            return False
        archive.take_as_it_is()
        return True
    try:
        _ = archive.connection
    except IndexBusy as error:
        if not path.exists():
            raise
        click.echo(f"threadline: {out.plain(str(error))} This answer is of the index as it is.", err=True)
        archive.take_as_it_is()
    return True
