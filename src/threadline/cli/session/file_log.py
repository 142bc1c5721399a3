"""`threadline files PATH --log`: every edit of a file, as diffs, in one session or in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter, explain_project
from threadline.cli.resolve import open_archive, transcript_path
from threadline.errors import NotFound
from threadline.model.state import edit_row
from threadline.model.text import count, format_time, short_id
from threadline.model.times import zone_name
from threadline.render import one_line

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.state import FileEdit


def print_file_log(
    path: str, session: str | None, criteria: CrossSessionFilter, homes: Sequence[str], output: str, *, reverse: bool
) -> int:
    """Print the edits of the files whose path is `path` or ends with it, newest first; return the exit code."""
    transcript = transcript_path(session) if session is not None else None
    with open_archive(homes, require_home=transcript is None) as archive:
        if session is not None:
            limit = criteria.for_single_session().limit
            edits = _session_edits(archive, transcript or archive.path(session), path, criteria)
        else:
            criteria = criteria.with_default_limit(output)
            limit = criteria.limit
            edits = archive.file_log(path, **criteria.archive_arguments())
        if not edits:
            reason = _explain_nothing(archive, path, session, criteria)
            if output != "table":
                out.print_rows((), output)
            return out.report_nothing(reason)
    if reverse:
        edits.reverse()
    if output != "table":
        out.print_rows(map(edit_row, edits), output)
        return EXIT_OK
    for edit in edits:
        _print_edit(edit, criteria.zone)
    if len(edits) == limit:
        out.print_message(f"Showing the newest {count(len(edits), 'edit')}. Use --limit N for more.")
    return EXIT_OK


def _session_edits(archive: Archive, transcript: Path, path: str, criteria: CrossSessionFilter) -> list[FileEdit]:
    """The edits of one session, newest first."""
    from threadline.load import read  # noqa: PLC0415 - loads the reader, which the list of all sessions does without

    session = read(transcript, continued=False, homes=archive.homes)
    project = archive.directory_of(transcript, session.cwds)
    edits = [edit for edit in session.file_log(path) if edit.timestamp in criteria.time]
    return [replace(edit, project=project) for edit in edits[::-1][: criteria.limit]]


def _print_edit(edit: FileEdit, zone: tzinfo) -> None:
    """Print an edit as comments and a diff. Programs that apply a patch skip the comments."""
    width = out.page_width()
    who = f"agent {short_id(edit.agent)}" if edit.agent is not None else None
    facts = [
        f"{format_time(edit.timestamp, zone)} {zone_name(zone)}" if edit.timestamp is not None else "time unknown",
        str(edit.how),
        f"session {short_id(edit.session)}",
        f"turn {edit.turn}" if edit.turn is not None else None,
        who,
        edit.model,
        f"line {edit.place.line}",
    ]
    lines = [", ".join(fact for fact in facts if fact)]
    lines += [f"Prompt: {edit.prompt}"] if edit.prompt else []
    lines += [] if edit.proven and edit.diff else [edit.statement if edit.proven else f"Not proven: {edit.statement}"]
    for line in lines:
        click.echo(f"# {one_line(line, width - 2)}")
    if edit.diff:
        out.print_text(edit.diff)
    else:
        click.echo(f"# {out.escape_line(edit.path)}")


def _explain_nothing(archive: Archive, path: str, session: str | None, criteria: CrossSessionFilter) -> str:
    """Why there are no edits, and which command may have been meant.

    Raises:
        NotFound: no session has a file with that path.
    """
    if session is not None:
        when = " in that time" if criteria.time else ""
        return f"This session did not edit a file {path!r}{when}. `threadline files {session}` lists its files."
    unknown_project = explain_project(archive, criteria.project)
    if unknown_project is not None:
        return unknown_project
    touching = archive.files(path, limit=1)
    if touching and (criteria.time or criteria.project):
        return f"No matching edit of {touching[0].path!r}. Omit --since, --until or --project."
    if touching:
        return (
            f"No session edited {touching[0].path!r}. `threadline files --path {path}` lists the sessions that read it."
        )
    hint = " For the files of a session, use --session." if path == "last" else ""
    what = "PATH is a file's path or its last parts, such as src/app.py."
    raise NotFound(f"No session edited a file {path!r}. {what}{hint}")
