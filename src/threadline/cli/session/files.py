"""`threadline files`: files of a session at any point in time, as far as the transcript proves them.

Without a session, the files that any session touched, from the index. `cli/session/file_log.py` has `--log`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter, explain_project
from threadline.cli.options import complete_with, cross_session_options, home_option, output_options
from threadline.cli.resolve import open_archive, parse_place, read_session
from threadline.errors import Ambiguous, BadQuery, NotFound
from threadline.model.calls import ListedFile
from threadline.model.text import format_size, format_time, is_path_or_end, join_some, short_id
from threadline.model.times import FIRST_MOMENT, zone_name

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.load import Session
    from threadline.model.state import Evidence, FileDifference, FileState, FileVersion, State

_MAX_PATH = 4096
_LEGEND = (
    "proven: how much of the content is certain, in lines: known, or known/all. proof: the event that proves it, and"
    " its line in the transcript. changed: the line of the session's last change. ran since: the commands that ran"
    " after the proof. doubts: those of them that mention the file and may have changed it."
)
_EPILOG = """
\b
Examples:
  threadline files last                     all files it read or wrote
  threadline files last --at 120            as of line 120
  threadline files last --path app.py --content
  threadline files last --diff 40 120       changes between two lines
  threadline files 55604662 --diff 40 120 > my.patch
  threadline files --path app.py            sessions that touched app.py
  threadline files --since 7d --project app
  threadline files src/app.py --log         every edit of app.py, newest first
  threadline files app.py --log --session last --reverse
"""


@click.command(epilog=_EPILOG)
@click.argument("session", metavar="[SESSION|PATH]", required=False, shell_complete=complete_with("sessions"))
@click.option("--log", is_flag=True, help="List every edit of the file PATH as diffs, newest first.")
@click.option(
    "--session", "log_session", metavar="ID", help="With --log: only this session. ID may be a prefix, or `last`."
)
@click.option("--reverse", is_flag=True, help="With --log: oldest first.")
@click.option("--at", metavar="PLACE", help="Show the state after this place: FILE:LINE, or a line number.")
@click.option("--diff", nargs=2, metavar="A B", help="Show what changed between two places.")
@click.option("--path", metavar="PATH", help="Only files whose path is PATH or ends with it.")
@click.option("--content", is_flag=True, help="Print the content of the file that --path selects.")
@cross_session_options
@home_option
@output_options
def files(
    session: str | None,
    *,
    log: bool,
    log_session: str | None,
    reverse: bool,
    at: str | None,
    diff: tuple[str, str] | None,
    path: str | None,
    content: bool,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show the files a session touched, at any point in time.

    SESSION is the start of a session id, a transcript, or `last`. For each file, shows how much of its content the
    transcript proves, by which call, and what may have changed it since. Writes, edits and full reads prove content;
    shell commands prove nothing and are counted. Line endings are shown as newlines.

    Without SESSION, lists the files that any session touched, most recent first, from the index.

    With --log, lists every edit of the file PATH by any session, with its turn, prompt, model and time. PATH is a
    file's path or the end of it. Each diff says whether it is proven.
    """
    criteria = CrossSessionFilter.parse(project, since, until, limit, zone)
    if log:
        if session is None or path or at or diff or content:
            raise click.UsageError(
                "--log requires PATH, and cannot be combined with --path, --at, --diff or --content."
            )
        from threadline.cli.session.file_log import print_file_log  # noqa: PLC0415 - only --log needs it

        return print_file_log(session, log_session, criteria, homes, output, reverse=reverse)
    if log_session is not None or reverse:
        raise click.UsageError("--session and --reverse require --log.")
    if session is None:
        if at or diff or content:
            raise click.UsageError("--at, --diff and --content require a SESSION.")
        return _list_all_files(criteria.with_default_limit(output), path, homes, output)
    criteria = criteria.for_single_session()
    if diff and (at or content or since or until or limit):
        raise click.UsageError("--diff cannot be combined with --at, --content, --since, --until or --limit.")
    loaded = read_session(session, homes)
    if diff:
        return _print_difference(loaded, diff, path, output)
    state = _state_at(loaded, at)
    matches = [file for file in state.files.values() if _matches_path(file.path, path)]
    matches = _filter_touched(loaded, matches, criteria)
    if content:
        return _print_content(loaded, matches, path, at, output)
    return out.print_listing(
        matches,
        output,
        row=_file_row,
        table=lambda files: _file_table(loaded, files),
        nothing=lambda: _explain_nothing(loaded, at, path, state, criteria),
    )


def _filter_touched(session: Session, files: list[FileState], criteria: CrossSessionFilter) -> list[FileState]:
    """The files touched in a time range, or the last N touched, in the session's order."""
    if not (criteria.time or criteria.limit):
        return files
    times = {(entry.line.transcript, entry.line.number): getattr(entry, "timestamp", None) for entry in session}
    last_touched: dict[str, datetime] = {}
    for file in files:
        moments = [times.get((evidence.place.transcript, evidence.place.line)) for evidence in file.evidence]
        matches = [when or FIRST_MOMENT for when in moments if when in criteria.time]
        if matches:
            last_touched[file.path] = max(matches)
    newest = set(sorted(last_touched, key=lambda path: last_touched[path])[-(criteria.limit or 0) :])
    return [file for file in files if file.path in newest]


def _explain_nothing(
    session: Session, at: str | None, path: str | None, state: State, criteria: CrossSessionFilter
) -> str:
    """Why no file is listed, and which filters would match."""
    if criteria.time and state.files:
        return f"No matching file was touched in that time. The session touched {len(state.files):,} in total."
    if path is not None and state.files:
        names = (file.path.replace("\\", "/").rsplit("/", 1)[-1] for file in state.files.values())
        return f"No file {path!r}. The session touched {join_some(dict.fromkeys(names))}."
    if at is not None and (later := len(_state_at(session, None).files)):
        return f"No files up to {at}. By its end, the session has touched {later:,}."
    return "No files: the session did not read or write any."


def _state_at(session: Session, at: str | None) -> State:
    return session.at(parse_place(session, at))


def _matches_path(path: str, suffix: str | None) -> bool:
    return suffix is None or is_path_or_end(path, suffix)


def _print_content(session: Session, files: list[FileState], path: str | None, at: str | None, output: str) -> int:
    if path is None:
        raise BadQuery("--content requires --path, to select one file.")
    if not files:
        until = f" up to {at}" if at is not None else ""
        raise NotFound(f"The session did not touch a file {path!r}{until}. `threadline files SESSION` lists its files.")
    if len(files) > 1:
        raise Ambiguous("\n".join([f"{path!r} matches several files. Choose one:", *(file.path for file in files)]))
    file = files[0]
    if output != "table":
        out.print_rows([{**_file_row(file), "content": file.content, "lines": file.lines}], output)
    elif file.content is not None:
        out.print_text(file.content)
    else:
        out.print_text(_numbered_lines(file.lines))
        out.print_message(_shorten_places(session, file.statement))
    return EXIT_OK if file.content is not None or file.lines else EXIT_NOTHING


def _numbered_lines(lines: dict[int, str]) -> str:
    """The proven lines with their numbers, and `...` for gaps."""
    parts = []
    last = 0
    for number in sorted(lines):
        parts += ["...\n"] if number != last + 1 else []
        parts.append(f"{number:>6}\t{lines[number]}\n")
        last = number
    return "".join(parts)


def _print_difference(session: Session, places: tuple[str, str], path: str | None, output: str) -> int:
    from threadline.thread import difference  # noqa: PLC0415 - loads the threading code, which the index does without

    before, after = (_state_at(session, place) for place in places)
    changes = [change for change in difference(before, after) if _matches_path(change.path, path)]
    if output != "table":
        out.print_rows(map(_difference_row, changes), output)
    for change in changes if output == "table" else ():
        # Programs that apply a patch skip text before the file names.
        statement = _shorten_places(session, change.statement)
        click.echo(f"# {out.escape_line(change.path)}: {out.escape_line(statement)}")
        out.print_text(change.text)
    if changes:
        return EXIT_OK
    return out.report_nothing(f"No known file changes between {places[0]} and {places[1]}.")


def _shorten_places(session: Session, statement: str) -> str:
    """A statement with line numbers instead of full places, for someone who knows the session."""
    for agent in (session.main, *session.agents):
        path = session.path if agent.id is None else agent.transcript
        if path is not None and path != session.path:
            statement = statement.replace(f"{path}:", f"line {short_id(agent.id)}:")
        elif path is not None:
            statement = statement.replace(f"{path}:", "line ")
    return statement


def _file_table(session: Session, files: Sequence[FileState]) -> str:
    rows = [
        (
            str(file.proven),
            str(file.total_lines) if file.content is not None else f"{len(file.lines)}/{file.total_lines or '?'}",
            format_size(file.size) if file.size is not None else "",
            f"{file.proof.how} {out.format_place(session, file.proof.place)}" if file.proof is not None else "",
            out.format_place(session, file.changed),
            str(file.ran_since or ""),
            str(len(file.doubts) or ""),
            file.path,
        )
        for file in files
    ]
    headings = ("proven", "lines", "size", "proof (line)", "changed", "ran since", "doubts", "path")
    table = out.format_table(
        headings, rows, right=(1, 2, 4, 5, 6), drop=("doubts", "ran since", "size", "changed", "lines"), ends=True
    )
    return f"{table}\n\n{out.wrap_text(_LEGEND)}"


def _file_row(file: FileState) -> dict[str, Any]:
    return {
        "path": file.path,
        "proven": str(file.proven),
        "size": file.size,
        "known_lines": file.total_lines if file.content is not None else len(file.lines),
        "total_lines": file.total_lines,
        "changed": str(file.changed) if file.changed is not None else None,
        "proof": _evidence_row(file.proof) if file.proof is not None else None,
        "ran_since": file.ran_since,
        "doubts": [_evidence_row(doubt) for doubt in file.doubts],
        "evidence": [_evidence_row(evidence) for evidence in file.evidence],
        "statement": file.statement,
    }


def _evidence_row(evidence: Evidence) -> dict[str, Any]:
    return {"how": str(evidence.how), "place": str(evidence.place), "agent": evidence.agent}


def _difference_row(difference: FileDifference) -> dict[str, Any]:
    return {
        "path": difference.path,
        "proven": difference.proven,
        "statement": difference.statement,
        "before": _version_row(difference.before),
        "after": _version_row(difference.after),
        "diff": difference.text,
    }


def _version_row(version: FileVersion | None) -> dict[str, Any] | None:
    return None if version is None else {"exists": version.content is not None, **_evidence_row(version.evidence)}


def _list_all_files(criteria: CrossSessionFilter, path: str | None, homes: Sequence[str], output: str) -> int:
    with open_archive(homes, require_home=True) as archive:
        return out.print_listing(
            archive.files(path, **criteria.archive_arguments()),
            output,
            row=_listed_file_row,
            table=lambda files: _listed_file_table(files, criteria.zone),
            nothing=lambda: _explain_no_files(archive, criteria, path),
            limit=criteria.limit,
        )


def _explain_no_files(archive: Archive, criteria: CrossSessionFilter, path: str | None) -> str:
    """Why no file is listed, and which filters would match."""
    unknown_project = explain_project(archive, criteria.project)
    if unknown_project is not None:
        return unknown_project
    if path is None:
        return f"No session touched a file{' in that time' if criteria.time else ''}."
    return f"No session touched a file that matches {path!r}. Use a file's path or its last parts, such as src/app.py."


def _listed_file_row(file: ListedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "session": file.session,
        "project": file.project,
        "reads": file.reads,
        "writes": file.writes,
        "first": file.first,
        "last": file.last,
    }


def _listed_file_table(files: Sequence[ListedFile], zone: tzinfo) -> str:
    rows = [
        (
            format_time(file.last, zone),
            short_id(file.session),
            f"{file.reads:,}",
            f"{file.writes:,}",
            out.shorten_path(file.path, _MAX_PATH),
        )
        for file in files
    ]
    headings = (f"last ({zone_name(zone)})", "session", "reads", "writes", "file")
    return out.format_table(headings, rows, right=(2, 3), drop=("reads", "writes"), ends=True)
