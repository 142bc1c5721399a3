"""`threadline export`: write sessions to files, redacted by default."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import click

from threadline.archive import Archive
from threadline.cli import EXIT_OK, NoHome
from threadline.cli import output as out
from threadline.cli.export.redaction import parse_redaction, redaction_options
from threadline.cli.export.traces import OTLP, export_traces, otlp_options, reject_otlp_options, report_full_disk
from threadline.cli.options import complete_with, home_option, project_option, since_option, until_option
from threadline.cli.output import no_home_message, report_nothing
from threadline.cli.resolve import open_archive, transcript_path
from threadline.errors import BadQuery
from threadline.export import (
    ExportFormat,
    ExportOptions,
    ExportResult,
    FileLayout,
    check_destinations,
    count_passes,
    export_sessions,
    list_session_files,
    make_staging_folder,
    parse_splits,
    protected_folders,
    put_in_place,
    safe_name,
    total_transcript_size,
    write_report,
)
from threadline.model.homes import Homes
from threadline.model.insight.outcomes import OutcomeKind
from threadline.model.text import count, format_size
from threadline.model.times import TimeRange, parse_zone
from threadline.redact import Level
from threadline.render import Detail, View, plain
from threadline.summary import SessionFilter

_FORMATS = tuple(map(str, ExportFormat))
_SUFFIX_ALIASES = {"markdown": "md", "htm": "html", "text": "txt", "eval": "inspect"}
_SUFFIXES = ("html", "md", "json", "jsonl", "txt", "pdf", "eval")
_DEFAULT_FOLDER = "threadline-export"
_MAX_KINDS = 6
_EPILOG = """
\b
Examples:
  threadline export last                                an HTML file, redacted
  threadline export last --format md --out session.md
  threadline export 55604662 --from 3 --to 7            turns 3 to 7
  threadline export last --tools none --thinking none --format txt --out -
  threadline export --project app --site app-site       a static site
  threadline export last --hide Acme --report hidden.json
  threadline export last --level metrics --out a.jsonl  no text
  threadline export last --format jsonl --no-redact     the unchanged lines
  threadline export --format otlp --endpoint http://localhost:4318
  threadline export last --format atif                  a Harbor trajectory
  threadline export --since 30d --format inspect --out month.eval
  threadline export --project app --format messages --out app.jsonl
  threadline export all --format scout --out transcripts/
  threadline export --outcome commit --format hf --split test=10 --out data

\b
Exit codes: 0 success; 1 no session matches; 2 an error, or a secret was left
(nothing is written).
"""
_DETAIL_CHOICE = click.Choice(["full", "fold", "none"])
_ALL = "all"
"""The name that means every session."""
_FILE_PATH = click.Path(dir_okay=False, path_type=Path)


def _parse_last_turn(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """Parse `--to`; explain that `--to md` is `--format md`."""
    if text is None:
        return None
    if text.lower() in {*_FORMATS, *_SUFFIX_ALIASES}:
        raise click.UsageError(f"--to selects the last turn. To select the format, use --format {text.lower()}.")
    if not (text.isascii() and text.isdecimal()):
        raise click.UsageError(f"--to must be the number of a turn, not {text!r}.")
    return int(text)


@click.command(epilog=_EPILOG)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=complete_with("sessions"))
@click.option(
    "--format",
    "format_name",
    metavar="FORMAT",
    help=f"{', '.join(_FORMATS)} or {OTLP}. Default: the suffix of --out, or html.",
)
@click.option("--out", type=click.Path(), metavar="PATH", help="Output file or folder; - is standard output.")
@click.option(
    "--shape",
    type=click.Choice(["openai", "anthropic"]),
    help="The API whose messages --format messages writes. Default: openai.",
)
@click.option(
    "--split",
    "splits",
    multiple=True,
    metavar="NAME=PERCENT",
    help="Put PERCENT of the sessions of --format hf into split NAME, the rest into train. Repeatable.",
)
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a static site: a list, a page per session, and a search.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--thinking", type=_DETAIL_CHOICE, default="fold", help="Show thinking in full, folded, or not. Default: fold."
)
@click.option(
    "--tools", type=_DETAIL_CHOICE, default="fold", help="Show tool calls in full, folded, or not. Default: fold."
)
@click.option(
    "--agents", type=_DETAIL_CHOICE, default="fold", help="Show agents in full, folded, or not. Default: fold."
)
@click.option("--from", "first", type=click.IntRange(min=0), metavar="TURN", help="The first turn to export.")
@click.option("--to", "last", callback=_parse_last_turn, metavar="TURN", help="The last turn to export.")
@click.option("--branch", type=click.IntRange(min=1), metavar="N", help="Export branch N, and the path to it.")
@click.option("--all", "everything", is_flag=True, help="Include side agents and internal entries.")
@click.option("--images", is_flag=True, help="Include images. They are not checked for secrets.")
@redaction_options
@click.option(
    "--report",
    type=_FILE_PATH,
    metavar="FILE",
    help="Write a JSON report of what was redacted where, without the values.",
)
@project_option("Without SESSION: export projects whose path contains TEXT.")
@since_option("Without SESSION: export sessions active at or after WHEN: 2026-11-03, 7d.")
@until_option("Without SESSION: export sessions started up to WHEN.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice([str(kind) for kind in OutcomeKind]),
    metavar="KIND",
    help="Without SESSION: export sessions with a commit, pull-request, push, passed test or changed file. Repeatable.",
)
@click.option("--min-turns", type=click.IntRange(min=0), metavar="N", help="Without SESSION: at least N turns.")
@click.option("--max-turns", type=click.IntRange(min=0), metavar="N", help="Without SESSION: at most N turns.")
@click.option(
    "--tz",
    metavar="ZONE",
    help="Time zone of --since and --until, and of times in the files. Default: local for --since and --until;"
    " UTC in files, so that they are the same on every machine.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON document.")
@otlp_options
@home_option
def export(
    sessions: tuple[str, ...],
    *,
    format_name: str | None,
    out: str | None,
    site: Path | None,
    report: Path | None,
    force: bool,
    as_json: bool,
    homes: tuple[str, ...],
    **details: Any,
) -> int:
    """Write sessions to files, with secrets redacted.

    SESSION is the start of a session id, a transcript, `last`, or `all`. Secrets, names, addresses and home directories
    are replaced by placeholders, the same one everywhere for the same value. The result is checked again, and nothing
    is written if a secret remains. The same session always gives the same bytes. Several sessions as HTML become a
    site.
    """
    is_otlp = format_name is not None and format_name.lower() == OTLP
    if not is_otlp:
        reject_otlp_options()
    with open_archive(homes) as archive:
        if is_otlp and sessions == (_ALL,) and not _filters(details):
            sessions = ()
        is_whole = is_otlp and not sessions and not _filters(details)
        mains = None if is_whole or details["follow"] else _find_sessions(archive, sessions, details)
        if is_otlp and mains != []:
            with _unwind_on_signals():
                return export_traces(
                    archive, mains, names=sessions, target=out, force=force, as_json=as_json, details=details
                )
        if not mains:
            if not archive.homes:
                raise NoHome(no_home_message())
            return report_nothing("No session matches. `threadline list` shows all sessions.")
        options = _build_options(format_name, out, site, details, has_several=len(mains) > 1)
        target = output_path(options.form, out, site, mains, is_site=options.site)
        protected = protected_folders(mains, (home.path for home in archive.homes))
        check_destinations([path for path in (target, report) if path is not None], protected, force=force)
        with _unwind_on_signals(), make_staging_folder() as folder:
            with _export_progress(mains, options, archive.homes) as advance, report_full_disk(folder):
                result = export_sessions(
                    mains,
                    options,
                    Path(folder),
                    advance,
                    homes=archive.homes,
                    links=archive.links(),
                    sharing=archive.transcripts_sharing,
                )
            rows = _write_files(result, options, target, report)
    _print_summary(rows, result, options, target, as_json=as_json)
    _print_unseen_words(result, details["hide"])
    return EXIT_OK


@contextmanager
def _unwind_on_signals() -> Iterator[None]:
    """Unwind on SIGTERM and SIGHUP, so that no copy of a session is left in a temporary folder."""

    def exit_process(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    names = ("SIGTERM", "SIGHUP") if current_thread() is main_thread() else ()  # other threads cannot set handlers
    signals = [number for name in names if (number := getattr(signal, name, None)) is not None]
    # Signals that are ignored, as with `nohup`, stay ignored.
    previous = {
        number: signal.signal(number, exit_process) for number in signals if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


_FILTERS = {
    "--project": "project",
    "--since": "since",
    "--until": "until",
    "--outcome": "outcomes",
    "--min-turns": "min_turns",
    "--max-turns": "max_turns",
}


def _find_sessions(archive: Archive, names: tuple[str, ...], details: dict[str, Any]) -> list[Path]:
    """The main transcripts that were named, or those that match the filters.

    Raises:
        BadQuery: there are neither names nor filters, or both.
    """
    filters = _filters(details)
    if names and filters:
        raise BadQuery(f"Name sessions or use {filters[0]}, not both.")
    if names == (_ALL,):
        return [session.path for session in archive.sessions()]
    if names:
        return [transcript_path(name) or archive.path(name) for name in names]
    if not filters:
        raise BadQuery(
            "Name a session (`last` is the newest, `all` means all), or select some with --project, --since or --until."
        )
    time = TimeRange.parse(details["since"], details["until"], tz=details["tz"])
    selection = SessionFilter(project=details["project"], since=time.since, until=time.until)
    least, most = details["min_turns"] or 0, details["max_turns"]
    matches = [
        session
        for session in archive.sessions(selection)
        if least <= session.turns and (most is None or session.turns <= most)
    ]
    if details["outcomes"]:
        outcomes = archive.outcomes(kinds=details["outcomes"], project=details["project"])
        successful = {outcome.session for outcome in outcomes if outcome.is_ok is not False and not outcome.is_replaced}
        matches = [session for session in matches if session.id in successful]
    return [session.path for session in matches]


def _filters(details: dict[str, Any]) -> list[str]:
    """The options that select sessions and are set."""
    return [option for option, name in _FILTERS.items() if details[name] not in {None, ()}]


def _build_options(
    format_name: str | None, out: str | None, site: Path | None, details: dict[str, Any], *, has_several: bool
) -> ExportOptions:
    """Build the export's options from the command line's.

    Raises:
        BadQuery: the options contradict each other.
    """
    form = parse_format(format_name, out, has_several=has_several)
    if site is not None and (form is not ExportFormat.HTML or out is not None):
        raise BadQuery("--site writes HTML to its own folder; it cannot be combined with --format or --out.")
    if details["first"] is not None and details["last"] is not None and details["last"] < details["first"]:
        raise BadQuery(f"--from {details['first']} is after --to {details['last']}.")
    settings = parse_redaction(details)
    view = View(
        thinking=Detail(details["thinking"]),
        calls=Detail(details["tools"]),
        agents=Detail(details["agents"]),
        images=details["images"] or (form in {ExportFormat.JSONL, ExportFormat.HF} and not details["redact"]),
        everything=details["everything"],
        branch=details["branch"],
        from_turn=details["first"],
        to_turn=details["last"],
        zone=parse_zone(details["tz"] or "UTC"),
    )
    if details["shape"] and form is not ExportFormat.MESSAGES:
        raise BadQuery("--shape is an option of --format messages.")
    if details["splits"] and form is not ExportFormat.HF:
        raise BadQuery("--split is an option of --format hf.")
    return ExportOptions(
        form,
        view,
        settings,
        site=site is not None or (has_several and form is ExportFormat.HTML),
        shape=details["shape"] or "openai",
        splits=parse_splits(details["splits"]),
    )


def parse_format(name: str | None, out: str | None, *, has_several: bool) -> ExportFormat:
    """The format that `--format` names, or else the suffix of `--out`.

    Raises:
        BadQuery: there is no such format.
    """
    form = name.lower() if name is not None else _format_of_suffix(out, has_several=has_several)
    form = _SUFFIX_ALIASES.get(form, form)
    if form not in _FORMATS:
        raise BadQuery(f"Unknown format {name!r}. Formats: {', '.join(_FORMATS)}, {OTLP}.")
    return ExportFormat(form)


def _format_of_suffix(out: str | None, *, has_several: bool) -> str:
    """The format that a file's suffix means; html for folders and files without a suffix.

    Raises:
        BadQuery: no format has this suffix, so the file would not contain what its name says.
    """
    if out is None or has_several or _names_folder(out):
        return "html"
    suffix = Path(out).suffix.lower().lstrip(".")
    form = _SUFFIX_ALIASES.get(suffix, suffix or "html")
    if suffix not in {"", *_SUFFIX_ALIASES, *_SUFFIXES}:
        suffixes = ", ".join(f".{name}" for name in _SUFFIXES)
        raise BadQuery(f"Unknown suffix {f'.{suffix}'!r} in --out. Use one of {suffixes}, or --format.")
    return form


def _names_folder(out: str) -> bool:
    """Whether a path means a folder: it is one, or ends with a slash."""
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def output_path(
    form: ExportFormat, out: str | None, site: Path | None, mains: Sequence[Path], *, is_site: bool
) -> Path | None:
    """Where to write: a file, or a folder for several; None is standard output.

    Raises:
        BadQuery: several files cannot go to standard output, or it is closed.
    """
    is_many = is_site or form.layout is FileLayout.FOLDER
    is_many = is_many or (len(mains) > 1 and form.layout is FileLayout.FILE_PER_SESSION)
    if out == "-":
        if is_many:
            raise BadQuery("Several files cannot be written to standard output. Name a folder with --out.")
        if sys.__stdout__ is None:
            raise BadQuery("Standard output is closed. Name a file with --out.")
        return None
    if is_many:
        return site or Path(out or _DEFAULT_FOLDER)
    name = f"{safe_name(mains[0].stem) if len(mains) == 1 else _DEFAULT_FOLDER}.{form.suffix}"
    if out is None:
        return Path(name)
    return Path(out) / name if _names_folder(out) else Path(out)


def _export_progress(
    mains: list[Path], options: ExportOptions, homes: Homes
) -> AbstractContextManager[Callable[[int], None]]:
    total = sum(total_transcript_size(list_session_files(main, homes)) for main in mains if main.is_file())
    return out.progress_bar("Exporting", count_passes(options) * total)


def _write_files(
    result: ExportResult, options: ExportOptions, target: Path | None, report: Path | None
) -> list[dict[str, Any]]:
    """Move the files to their target; return a row for each.

    Raises:
        BadQuery: the report has the path of one of the files.
    """
    rows = []
    is_many = len(result.files) > 1 or options.site or options.form.layout is FileLayout.FOLDER
    if report is not None and target is not None and is_many:
        paths = {(target / file.name).resolve() for file in result.files}
        if report.resolve() in paths:
            raise BadQuery(f"{str(report)!r} is a file of the export itself. Choose another path for the report.")
    if target is not None:
        out.report_new_folder(target)
    for file in result.files:
        path = target / file.name if target is not None and is_many else target
        if path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(file.path.read_bytes())
        else:
            put_in_place(file.path, path)
        rows.append({"path": str(path or "-"), "size": file.path.stat().st_size, "session": file.session})
    if report is not None:
        write_report(result, report)
    return rows


def _print_summary(
    rows: list[dict[str, Any]], result: ExportResult, options: ExportOptions, target: Path | None, *, as_json: bool
) -> None:
    """Print what was written and redacted; on standard error if the export went to standard output."""
    if as_json:
        summary = {
            "form": str(options.form),
            "redacted": options.settings is not None,
            "level": options.settings.level if options.settings is not None else None,
            "hidden": result.hidden,
            "files": rows,
        }
        click.echo(out.json_text(summary, indent=2), err=target is None)
        return
    size = format_size(sum(row["size"] for row in rows))
    files = f"{count(len(rows), 'file')}, {size}" if len(rows) > 1 else size
    where = "" if target is None else f"Wrote {plain(str(target))} ({files}). "
    click.echo(f"{where}{_redaction_summary(result, options)}", err=target is None)


def _print_unseen_words(result: ExportResult, words: Iterable[str]) -> None:
    """Name the words of `--hide` that the sessions do not contain: a misspelt word hides nothing."""
    for word in words if result.level is not Level.METRICS else ():
        if word in result.unseen_words:
            out.print_message(f"The sessions do not contain {word!r}. Check the spelling of --hide.")


def _redaction_summary(result: ExportResult, options: ExportOptions) -> str:
    if options.settings is None:
        return "Nothing was redacted: the export contains everything, including secrets."
    if result.level is Level.METRICS:
        return "All text was removed."
    if not result.findings:
        return "Nothing needed redaction."
    kinds = result.hidden
    named = ", ".join(f"{kind} {number:,}" for kind, number in list(kinds.items())[:_MAX_KINDS])
    more = f" and {count(len(kinds) - _MAX_KINDS, 'other kind')}" if len(kinds) > _MAX_KINDS else ""
    return f"Redacted {count(sum(kinds.values()), 'value')}: {named}{more}."
