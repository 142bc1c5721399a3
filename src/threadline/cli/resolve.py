"""Open what a command line names: the archive, its index, a session or a transcript."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.cli.options import NO_KEEP

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.load import Session
    from threadline.model.homes import Found, Home

_QUIET_BYTES = 8 * 1024 * 1024
_MAX_MESSAGES = 3
_DESKTOP_APP_FOLDER = "local-agent-mode-sessions"
_OFF_WORDS = frozenset({"0", "off", "no", "false"})


def open_archive(
    homes: Sequence[str],
    jobs: int | None = None,
    *,
    found: Iterable[Home] | None = None,
    most: int | None = None,
    index: bool = True,
    quiet: int = _QUIET_BYTES,
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
    keep = uses_keep()
    most = archive.AUTO_REFRESH_BYTES if most is None else most
    showing = partial(_progress_for, quiet)
    if found is not None:
        without_keep = archive.is_keep_ignored(keep)
        return archive.Archive(
            tuple(found),
            index=is_used,
            jobs=jobs,
            progress=showing,
            max_refresh_bytes=most,
            without_keep=without_keep,
        )
    made = archive.open(homes, index=is_used, jobs=jobs, progress=showing, max_refresh_bytes=most, keep=keep)
    if made.keep_problems:
        _print_keep_problems(made.keep_problems)
    if made.missing_homes:
        _print_missing_homes(made.missing_homes)
    return made


def uses_keep() -> bool:
    """Whether sessions are read that only the keep has: not with `--no-keep`."""
    import click

    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(NO_KEEP)


def uses_index() -> bool:
    """Whether the index may be used."""
    return os.environ.get("THREADLINE_INDEX", "").strip().lower() not in _OFF_WORDS


def find_at_path(path: str) -> Found:
    """All that lies at a path. An empty one is a shell's variable that is not set, never the current folder.

    Raises:
        NotFound: there is nothing at that path.
        BadQuery: it is empty, or a file of a home that is no transcript.
    """
    from threadline.errors import BadQuery

    if not path:
        raise BadQuery("The path is empty; name a transcript, a folder or a home.")
    return open_archive((), found=()).at(path)  # what is named by its path needs no home


def find_by_name(name: str, homes: Sequence[str]) -> tuple[Found, bool]:
    """All that lies at a path, or else the transcript whose session's or agent's id starts so; and whether it is so.

    `last` is the newest session's.
    """
    from threadline.errors import NotFound
    from threadline.model.homes import Found

    try:
        return find_at_path(name), False
    except NotFound:
        if name == "last":
            return find_at_path(str(open_archive(homes).path(name))), True
        transcript = open_archive(homes, index=False).transcript(name)
        return Found(transcript.home, (), (transcript,), (), ()), True


def _print_keep_problems(problems: Sequence[str]) -> None:
    """What of the keep could not be read."""
    import click

    from threadline.render import plain

    for told in problems[:_MAX_MESSAGES]:
        click.echo(plain(told), err=True)
    if len(problems) > _MAX_MESSAGES:
        click.echo(f"And {len(problems) - _MAX_MESSAGES:,} more: `threadline keep verify` says them.", err=True)


def _print_missing_homes(homes: Sequence[str]) -> None:
    """Which homes are gone, so that nobody wonders where Claude Code has what is shown."""
    import click

    from threadline.render import plain

    # Homes of the desktop app go with the session they were made for.
    told = [home for home in homes if _DESKTOP_APP_FOLDER not in home]
    if not told:
        return
    more = f" and {len(told) - _MAX_MESSAGES:,} more" if len(told) > _MAX_MESSAGES else ""
    named = ", ".join(repr(home) for home in told[:_MAX_MESSAGES]) + more
    said = f"The home {named} is gone" if len(told) == 1 else f"The homes {named} are gone"
    what = "of it" if len(told) == 1 else "of them"
    click.echo(plain(f"{said}; what was kept {what} is read from the keep."), err=True)


def _progress_for(quiet: int, label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    from contextlib import nullcontext

    from threadline.cli.screen import progress_bar

    if label == "Scanning":
        return progress_bar(label, total, rate=True)
    if label not in {"Indexing", "Unpacking"}:
        return progress_bar(label, total)
    return progress_bar(label, total, rate=True) if total > quiet else nullcontext(lambda _done: None)


def read_session(session: str, homes: Sequence[str] = ()) -> Session:
    """Read the session that was named.

    Raises:
        NotFound: there is none of that name.
        Ambiguous: there are several; the text lists them.
    """
    from threadline.load import read

    return read(session_path(session, homes))


def session_path(session: str, homes: Sequence[str] = ()) -> Path:
    """The main transcript of the session that was named; `last` is the one that `threadline list` shows first."""
    place = Path(os.path.expanduser(session))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if place.suffix == ".jsonl" or place.is_file():
        return place
    with open_archive(homes) as archive:
        return archive.path(session)


def ensure_index(archive: Archive, *, fresh: bool) -> bool:
    """Whether there is an index to ask; it is refreshed if that is wanted and nobody else is at it."""
    import click

    from threadline.cli import output as out
    from threadline.cli.screen import report_nothing
    from threadline.errors import IndexBusy

    path = archive.index
    if not fresh:
        if not path.exists():
            made_by = "`threadline index refresh` makes it, or leave out --no-refresh"
            report_nothing(f"There is no index at {str(path)!r} yet; {made_by}.")
            return False
        archive.use_stale_index()
        return True
    try:
        archive.open_index()
    except IndexBusy as error:
        if not path.exists():
            raise
        click.echo(f"threadline: {out.plain(str(error))} This answer is of the index as it is.", err=True)
        archive.use_stale_index()
    return True
