"""`threadline files`: files of a session at any point, as far as the transcript proves them.

Without a session, the files that any session touched, from the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK, screen
from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter
from threadline.cli.options import cross_session_options, home_option, output_options
from threadline.cli.output import shorten_path
from threadline.cli.resolve import open_archive
from threadline.cli.screen import report_no_home
from threadline.model.calls import ListedFile

if TYPE_CHECKING:
    from threadline.load import Session
    from threadline.model.state import Evidence, FileDifference, FileState, FileVersion, State

_EPILOG = """
\b
Examples:
  threadline files last                     all files it read and wrote
  threadline files last --at 120            as they stood after line 120
  threadline files last --path app.py --content
  threadline files last --diff 40 120       what changed between two places
  threadline files 55604662 --diff 40 120 > my.patch
  threadline files --path app.py            the sessions that touched it
  threadline files --since 7d --project app
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@click.option("--at", "at", metavar="PLACE", help="As they stood after this place: FILE:LINE, or a line's number.")
@click.option("--diff", "diff", nargs=2, metavar="A B", help="What changed between two places.")
@click.option("--path", "path", metavar="P", help="Only files whose path is this or ends with it.")
@click.option("--content", is_flag=True, help="Print the text of the one file that --path names.")
@cross_session_options
@home_option
@output_options
def files(
    session: str | None,
    *,
    at: str | None,
    diff: tuple[str, str] | None,
    path: str | None,
    content: bool,
    project: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show the files of a session at a place: how much of each is proven, by what, and what could have changed it.

    SESSION is the start of its id, a transcript, or `last`. A file is proven whole by what was written, edited or read
    of it; commands prove nothing, and are counted. Line ends are shown as newlines, whatever the file has on disk.
    Without SESSION, the files that any session touched, those touched last first, from the index.
    """
    from threadline.cli import screen
    from threadline.cli.filters import CrossSessionFilter
    from threadline.cli.resolve import read_session

    asked = CrossSessionFilter.of(project, since, until, limit)
    if session is None:
        if at or diff or content:
            raise click.UsageError("--at, --diff and --content go with a SESSION.")
        return print_all_files(asked.with_default_limit(output), path, homes, output)
    asked = asked.for_single_session()
    if diff and (at or content or since or until or limit):
        more = "--at, --content, --since, --until and --limit"
        raise click.UsageError(f"--diff names both places itself; leave out {more}.")
    found = read_session(session, homes)
    if diff:
        return _print_difference(found, diff, path, output)
    state = _state_at(found, at)
    chosen = _filter_touched(found, [file for file in state.files.values() if _matches_path(file.path, path)], asked)
    if content:
        return _print_content(found, chosen, path, output)
    if output != "table":
        _print_rows((_file_row(file) for file in chosen), output)
    elif chosen:
        click.echo(_file_table(found, chosen))
    return EXIT_OK if chosen else screen.report_nothing(_explain_nothing(found, at, path, state, asked))


def _filter_touched(session: Session, files: list[FileState], asked: CrossSessionFilter) -> list[FileState]:
    """Those that were touched in a time, or the last of them, in the session's order."""
    if not (asked.since or asked.until or asked.limit):
        return files
    from datetime import UTC, datetime

    moments = {(entry.line.transcript, entry.line.number): getattr(entry, "timestamp", None) for entry in session}
    long_ago = datetime.min.replace(tzinfo=UTC)
    last: dict[str, datetime] = {}
    for file in files:
        times = [moments.get((one.place.transcript, one.place.line)) for one in file.evidence]
        fitting = [when or long_ago for when in times if asked.holds(when)]
        if fitting:
            last[file.path] = max(fitting)
    kept = set(sorted(last, key=lambda path: last[path])[-(asked.limit or 0) :])
    return [file for file in files if file.path in kept]


def _explain_nothing(
    session: Session, at: str | None, path: str | None, state: State, asked: CrossSessionFilter
) -> str:
    """Why no file is listed, and what there would be."""
    from threadline.model.text import join_some

    if (asked.since or asked.until) and state.files:
        return f"No such file was touched in that time; the session met {len(state.files):,} in all."
    if path is not None and state.files:
        names = (file.path.replace("\\", "/").rsplit("/", 1)[-1] for file in state.files.values())
        return f"No file {path!r}; the session met {join_some(dict.fromkeys(names))}."
    if at is not None and (later := len(_state_at(session, None).files)):
        return f"No files up to {at}; at the end of the session it has met {later:,}."
    return "No files: the session read and wrote none."


def _state_at(session: Session, at: str | None) -> State:
    from threadline.cli.output import parse_place

    return session.at(parse_place(session, at))


def _matches_path(path: str, wanted: str | None) -> bool:
    if wanted is None or path == wanted:
        return True
    return path.replace("\\", "/").endswith("/" + wanted.replace("\\", "/").lstrip("/"))


def _print_rows(rows: Iterable[dict[str, Any]], output: str) -> int:
    from threadline.cli import output as out

    return out.print_rows(rows, output)


def _print_content(session: Session, chosen: list[FileState], path: str | None, output: str) -> int:
    from threadline.cli.output import print_text
    from threadline.errors import Ambiguous, BadQuery, NotFound

    if path is None:
        raise BadQuery("--content needs to know which file: name it with --path.")
    if not chosen:
        raise NotFound(f"The session met no file {path!r} up to there; threadline files SESSION lists them.")
    if len(chosen) > 1:
        raise Ambiguous("\n".join([f"{path!r} fits several files; name one:", *(file.path for file in chosen)]))
    file = chosen[0]
    if output != "table":
        _print_rows([{**_file_row(file), "content": file.content, "lines": file.lines}], output)
    elif file.content is not None:
        print_text(file.content)
    else:
        print_text(_numbered_lines(file.lines))
        _print_statement(_shorten_places(session, file.statement))
    return EXIT_OK if file.content is not None or file.lines else EXIT_NOTHING


def _numbered_lines(lines: dict[int, str]) -> str:
    """The lines that are known, with their numbers; `...` stands for those that are not."""
    made = []
    last = 0
    for number in sorted(lines):
        made += ["...\n"] if number != last + 1 else []
        made.append(f"{number:>6}\t{lines[number]}\n")
        last = number
    return "".join(made)


def _print_difference(session: Session, places: tuple[str, str], path: str | None, output: str) -> int:
    from threadline.cli import screen
    from threadline.cli.output import escape_line, print_text
    from threadline.thread import difference

    before, after = (_state_at(session, place) for place in places)
    chosen = [one for one in difference(before, after) if _matches_path(one.path, path)]
    if output != "table":
        _print_rows(map(_difference_row, chosen), output)
    for one in chosen if output == "table" else ():
        # Programs that apply diffs pass over what stands before the names.
        click.echo(f"# {escape_line(one.path)}: {escape_line(_shorten_places(session, one.statement))}")
        print_text(one.text)
    if chosen:
        return EXIT_OK
    return screen.report_nothing(f"No file is known to have changed between {places[0]} and {places[1]}.")


def _shorten_places(session: Session, statement: str) -> str:
    """A statement for a person who knows which session it is of: places are lines, and one is no plural."""
    for agent in (session.main, *session.agents):
        path = session.path if agent.id is None else agent.transcript
        if path is not None and path != session.path:
            statement = statement.replace(f"{path}:", f"line {str(agent.id)[:8]}:")
        elif path is not None:
            statement = statement.replace(f"{path}:", "line ")
    return re.sub(r"\b1 later acts\b", "1 later act", statement)


def _print_statement(statement: str) -> None:
    from threadline.cli import output as out

    click.echo(f"threadline: {out.plain(statement)}", err=True)


def _file_table(session: Session, chosen: list[FileState]) -> str:
    from threadline.cli import output as out
    from threadline.cli.output import format_place

    rows = [
        (
            str(file.proven),
            str(file.total_lines) if file.content is not None else f"{len(file.lines)}/{file.total_lines or '?'}",
            out.format_size(file.size) if file.size is not None else "",
            f"{file.proof.how} {format_place(session, file.proof.place)}" if file.proof is not None else "",
            format_place(session, file.changed),
            str(file.ran_since or ""),
            str(len(file.doubts) or ""),
            file.path,
        )
        for file in chosen
    ]
    headings = ("proven", "lines", "size", "by, at line", "changed", "ran since", "doubts", "path")
    return out.format_table(headings, rows, right=(1, 2, 4, 5, 6))


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
        "evidence": [_evidence_row(one) for one in file.evidence],
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


_MAX_PATH = 4096


def print_all_files(asked: CrossSessionFilter, path: str | None, homes: Sequence[str], output: str) -> int:
    """Print them; give the exit code."""
    with open_archive(homes) as archive:
        if not archive.homes:
            report_no_home()
            return EXIT_NOTHING
        found = archive.files(path, **asked.wanted())
    if output != "table":
        out.print_rows(map(_listed_file_row, found), output)
    elif found:
        click.echo(_listed_file_table(found))
        if len(found) == asked.limit:
            click.echo(f"\nThe {asked.limit:,} touched last: see --limit N.")
    if found:
        return EXIT_OK
    named = f" {path!r}" if path is not None else ""
    return screen.report_nothing(
        f"No session touched such a file{named}; --path takes the end of a path, with whole names."
    )


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


def _listed_file_table(found: Sequence[ListedFile]) -> str:
    rows = [
        (
            file.last.strftime("%Y-%m-%d %H:%M") if file.last else "",
            str(file.session or "")[:8],
            f"{file.reads:,}",
            f"{file.writes:,}",
            shorten_path(file.path, _MAX_PATH),
        )
        for file in found
    ]
    return out.format_table(("last (UTC)", "session", "reads", "writes", "file"), rows, right=(2, 3), ends=True)
