"""Opening the archive that a command asks: its homes, its index, and a bar for what takes long."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from threadline.cli.options import NO_KEEP

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.found import Found, Home

_LONG = 8 * 1024 * 1024
_MOST_TOLD = 3
_OF_THE_APP = "local-agent-mode-sessions"
_OFF = frozenset({"0", "off", "no", "false"})


def archive_of(
    homes: Sequence[str],
    jobs: int | None = None,
    *,
    found: Iterable[Home] | None = None,
    most: int | None = None,
    index: bool = True,
    quiet: int = _LONG,
) -> Archive:
    """The archive of the homes that were named, or else of those that are found; or of those that were `found`.

    `most` is how many bytes may be read to bring the index up to date. Without `index`, or with `THREADLINE_INDEX=off`,
    it is left alone: everything is then read from the transcripts. Up to `quiet` bytes, indexing shows no bar: what is
    done in a moment, and on the way to something else, is not worth a word.

    Raises:
        NotFound: a home that was named is not there, and not in the keep either.
    """
    from functools import partial

    from threadline import archive

    is_used = index and uses_index()
    keep = reads_keep()
    most = archive.LITTLE if most is None else most
    showing = partial(_shown, quiet)
    if found is not None:
        is_apart = archive.leaves_keep(keep)
        return archive.Archive(tuple(found), index=is_used, jobs=jobs, showing=showing, most=most, apart=is_apart)
    made = archive.open(homes, index=is_used, jobs=jobs, showing=showing, most=most, keep=keep)
    if made.keep_problems:
        _tell(made.keep_problems)
    if made.gone:
        _tell_gone(made.gone)
    return made


def reads_keep() -> bool:
    """Whether sessions are read that only the keep has: not with `--no-keep`."""
    import click

    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(NO_KEEP)


def uses_index() -> bool:
    """Whether the index may be used."""
    return os.environ.get("THREADLINE_INDEX", "").strip().lower() not in _OFF


def at_path(path: str) -> Found:
    """All that lies at a path. An empty one is a shell's variable that is not set, never the current folder.

    Raises:
        NotFound: there is nothing at that path.
        BadQuery: it is empty, or a file of a home that is no transcript.
    """
    from threadline.errors import BadQuery

    if not path:
        raise BadQuery("The path is empty; name a transcript, a folder or a home.")
    return archive_of((), found=()).at(path)  # what is named by its path needs no home


def by_name(name: str, homes: Sequence[str]) -> tuple[Found, bool]:
    """All that lies at a path, or else the transcript whose session's or agent's id starts so; and whether it is so.

    `last` is the newest session's.
    """
    from threadline.errors import NotFound
    from threadline.model.found import Found

    try:
        return at_path(name), False
    except NotFound:
        if name == "last":
            return at_path(str(archive_of(homes).path(name))), True
        transcript = archive_of(homes, index=False).transcript(name)
        return Found(transcript.home, (), (transcript,), (), ()), True


def _tell(problems: Sequence[str]) -> None:
    """What of the keep could not be read."""
    import click

    from threadline.cli.output import plain

    for told in problems[:_MOST_TOLD]:
        click.echo(plain(told), err=True)
    if len(problems) > _MOST_TOLD:
        click.echo(f"And {len(problems) - _MOST_TOLD:,} more: `threadline keep verify` says them.", err=True)


def _tell_gone(homes: Sequence[str]) -> None:
    """Which homes are gone, so that nobody wonders where Claude Code has what is shown."""
    import click

    from threadline.cli.output import plain

    # Homes of the desktop app go with the session they were made for.
    told = [home for home in homes if _OF_THE_APP not in home]
    if not told:
        return
    more = f" and {len(told) - _MOST_TOLD:,} more" if len(told) > _MOST_TOLD else ""
    named = ", ".join(repr(home) for home in told[:_MOST_TOLD]) + more
    said = f"The home {named} is gone" if len(told) == 1 else f"The homes {named} are gone"
    what = "of it" if len(told) == 1 else "of them"
    click.echo(plain(f"{said}; what was kept {what} is read from the keep."), err=True)


def _shown(quiet: int, label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    from contextlib import nullcontext

    from threadline.cli.reading import progress

    if label == "Scanning":
        return progress(label, total, rate=True)
    if label not in {"Indexing", "Unpacking"}:
        return progress(label, total)
    return progress(label, total, rate=True) if total > quiet else nullcontext(lambda _done: None)
