"""`threadline export`: write sessions to files, redacted by default."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option
from threadline.errors import BadQuery

if TYPE_CHECKING:
    from threadline.export import ExportFormat, ExportOptions, ExportResult

_EPILOG = """
\b
Examples:
  threadline export last                            one HTML file, secrets and names taken out
  threadline export last --to md --out session.md   Markdown
  threadline export 55604662 --from 3 --to 7        turns 3 to 7
  threadline export last --tools none --thinking none --to txt --out -
  threadline export --project app --site app-site   a site of many sessions, to open from disk
  threadline export last --hide Acme --report hidden.json
  threadline export last --to jsonl --no-redact     the transcript as it is

\b
Exit codes: 0 it was written; 2 an error, or something was left that must not be shared.
"""
_AMOUNT_CHOICE = click.Choice(["full", "fold", "none"])
_FILE_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog=_EPILOG)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option(
    "--to",
    "to",
    multiple=True,
    metavar="FORM|TURN",
    help="html (default), md, json, jsonl, txt or pdf; a number is the last turn.",
)
@click.option(
    "--out",
    type=click.Path(),
    metavar="PATH",
    help="The file, or a folder; - is standard output.",
)
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A site of files: a list, a page a session, a search.",
)
@click.option("--force", is_flag=True, help="Write over what is there.")
@click.option(
    "--thinking", type=_AMOUNT_CHOICE, default="fold", show_default=True, help="Thinking: open, folded or left out."
)
@click.option(
    "--tools", type=_AMOUNT_CHOICE, default="fold", show_default=True, help="Calls: open, folded or left out."
)
@click.option(
    "--agents",
    type=_AMOUNT_CHOICE,
    default="fold",
    show_default=True,
    help="What agents did: open, folded or left out.",
)
@click.option("--from", "first", type=click.IntRange(min=0), metavar="TURN", help="The first turn.")
@click.option("--branch", type=click.IntRange(min=1), metavar="N", help="The way to branch N and the branch itself.")
@click.option("--all", "everything", is_flag=True, help="Side agents and the program's own entries, too.")
@click.option("--images", is_flag=True, help="Keep pictures; they are not looked into.")
@click.option(
    "--redact/--no-redact", default=True, help="Take out secrets, names, addresses and homes (default), or nothing."
)
@click.option(
    "--hide", multiple=True, metavar="WORD", help="A word to take out wherever it stands; may be given several times."
)
@click.option("--hide-from", multiple=True, type=_FILE_PATH, metavar="FILE", help="Such words, one a line.")
@click.option(
    "--patterns",
    multiple=True,
    type=_FILE_PATH,
    metavar="FILE",
    help="Own patterns and words, in TOML; see docs/redaction.md.",
)
@click.option(
    "--report", type=_FILE_PATH, metavar="FILE", help="Write what was taken out where, as JSON; never what it was."
)
@click.option("--project", metavar="TEXT", help="Without SESSION: sessions of projects whose path holds this.")
@click.option("--since", metavar="WHEN", help="Without SESSION: those that went on after then: 2026-11-03, 7d.")
@click.option("--until", metavar="WHEN", help="Without SESSION: those that began before then.")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON document.")
@home_option
def export(
    sessions: tuple[str, ...],
    *,
    to: tuple[str, ...],
    out: str | None,
    site: Path | None,
    report: Path | None,
    force: bool,
    as_json: bool,
    homes: tuple[str, ...],
    **given: Any,
) -> int:
    """Write sessions to files that can be kept, compared and shared.

    SESSION is the start of an id, a transcript, or `last`. Secrets, names, addresses and home directories are taken out
    first, each replaced by a placeholder that is the same everywhere; what is left is looked at again, and nothing is
    written if anything remains. The same session gives the same bytes. Several sessions as HTML are a site.
    """
    from threadline.cli.resolve import open_archive
    from threadline.export import check_destinations, make_staging_folder, protected_folders
    from threadline.export import export_sessions as exported

    with open_archive(homes) as archive:
        mains = _find_sessions(archive, sessions, given)
        order = _build_order(to, out, site, given, several=len(mains) > 1)
        place = output_path(order.form, out, site, mains, is_site=order.site)
        kept = protected_folders(mains, (home.path for home in archive.homes))
        check_destinations([one for one in (place, report) if one is not None], kept, force=force)
        with _unwind_on_signals(), make_staging_folder() as folder, _export_progress(mains, order) as advance:
            with _report_full_disk(folder):
                made = exported(mains, order, Path(folder), advance)
            written = _write_files(made, order, place, report)
    _print_summary(written, made, order, place, as_json=as_json)
    return EXIT_OK


@contextmanager
def _unwind_on_signals() -> Iterator[None]:
    """Let a request to end unwind what was begun: a copy of a session must not be left in a temporary folder."""
    import signal
    from threading import current_thread, main_thread

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    named = ("SIGTERM", "SIGHUP") if current_thread() is main_thread() else ()  # no other may say what signals do
    asked = [one for name in named if (one := getattr(signal, name, None)) is not None]
    # What somebody chose to ignore, as `nohup` does, stays ignored.
    before = {one: signal.signal(one, end) for one in asked if signal.getsignal(one) is signal.SIG_DFL}
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)


@contextmanager
def _report_full_disk(folder: str) -> Iterator[None]:
    """Say which place is full, where there is no room for the work.

    Raises:
        Error: it is.
    """
    import errno

    from threadline.errors import Error

    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        where = str(Path(folder).parent)
        raise Error(
            f"The temporary folder {where!r} is full; make room there, or name another with the variable TMPDIR."
        ) from None


def _find_sessions(archive: Any, sessions: tuple[str, ...], given: dict[str, Any]) -> list[Path]:
    """The main transcripts that were named, or those that fit.

    Raises:
        BadQuery: none was named, and nothing says which.
        NotFound: none fits.
    """
    from threadline.errors import BadQuery, NotFound
    from threadline.model.times import parse_moment
    from threadline.summary import SessionFilter

    said = {name: given[name] for name in ("project", "since", "until") if given[name] is not None}
    if sessions and said:
        raise BadQuery(f"Name sessions or give --{next(iter(said))}, not both.")
    if sessions:
        return [_find_session(archive, name) for name in sessions]
    if not said:
        raise BadQuery("Name a session (`last` is the newest), or say which with --project, --since or --until.")
    since = parse_moment(said["since"]) if "since" in said else None
    until = parse_moment(said["until"], end=True) if "until" in said else None
    found = archive.sessions(SessionFilter(project=said.get("project"), since=since, until=until)).sessions
    if not found:
        raise NotFound("No session fits; `threadline list` shows what there is.")
    return [one.path for one in found]


def _find_session(archive: Any, name: str) -> Path:
    import os

    place = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    found: Path = place if place.suffix == ".jsonl" or place.is_file() else archive.path(name)
    return found


def _build_order(
    to: tuple[str, ...], out: str | None, site: Path | None, given: dict[str, Any], *, several: bool
) -> ExportOptions:
    """What was asked for.

    Raises:
        BadQuery: the options contradict each other.
    """
    from threadline.errors import BadQuery
    from threadline.export import ExportFormat, ExportOptions, load_settings
    from threadline.render import AgentDetail, Detail, View

    form, last = parse_format_and_turn(to, out, several=several)
    if site is not None and (form is not ExportFormat.HTML or out is not None):
        raise BadQuery("--site is HTML in a folder of its own; leave out --to and --out.")
    if given["first"] is not None and last is not None and last < given["first"]:
        raise BadQuery(f"--from {given['first']} is after --to {last}: no turn lies between them.")
    asked = [name for name in ("hide", "hide_from", "patterns") if given[name]]
    if asked and not given["redact"]:
        raise BadQuery(f"--{asked[0].replace('_', '-')} hides something, and --no-redact nothing; give one of them.")
    view = View(
        thinking=Detail(given["thinking"]),
        calls=Detail(given["tools"]),
        agents=AgentDetail(given["agents"]),
        images=given["images"] or (form is ExportFormat.JSONL and not given["redact"]),
        everything=given["everything"],
        branch=given["branch"],
        from_turn=given["first"],
        to_turn=last,
    )
    hidden = load_settings(given["hide"], given["hide_from"], given["patterns"]) if given["redact"] else None
    return ExportOptions(form, view, hidden, site=site is not None or (several and form is ExportFormat.HTML))


def _export_progress(mains: list[Path], order: ExportOptions) -> Any:
    from threadline.cli.screen import progress_bar
    from threadline.export import count_passes, list_session_files, total_transcript_size

    total = sum(total_transcript_size(list_session_files(main)) for main in mains if main.is_file())
    return progress_bar("Exporting", count_passes(order) * total)


def _write_files(
    made: ExportResult, order: ExportOptions, place: Path | None, report: Path | None
) -> list[dict[str, Any]]:
    """Put what was made at its place; a row for each file.

    Raises:
        BadQuery: the report would stand where one of the files does.
    """
    from threadline.errors import BadQuery
    from threadline.export import put_in_place, write_report

    rows = []
    many = len(made.files) > 1 or order.site
    if report is not None and place is not None and many:
        taken = {(place / file.name).resolve() for file in made.files}
        if report.resolve() in taken:
            raise BadQuery(f"{str(report)!r} is a file of the export itself; name another place for the report.")
    for file in made.files:
        there = place / file.name if place is not None and many else place
        if there is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(file.path.read_bytes())
        else:
            put_in_place(file.path, there)
        rows.append({"path": str(there or "-"), "size": file.path.stat().st_size, "session": file.session})
    if report is not None:
        write_report(made, report)
    return rows


def _print_summary(
    rows: list[dict[str, Any]], made: ExportResult, order: ExportOptions, place: Path | None, *, as_json: bool
) -> None:
    """What was written and what was taken out; beside the answer where that went to standard output."""
    from threadline.cli import output as out

    if as_json:
        told = {
            "form": str(order.form),
            "redacted": order.settings is not None,
            "hidden": made.hidden,
            "files": rows,
        }
        click.echo(out.json_text(told, indent=2), err=place is None)
        return
    total = out.format_size(sum(row["size"] for row in rows))
    where = "" if place is None else f"Wrote {out.plain(str(place))}"
    if where and len(rows) > 1:
        where += f" ({out.counted(len(rows), 'file')}, {total})"
    elif where:
        where += f" ({total})"
    click.echo(f"{where}{'. ' if where else ''}{_redaction_summary(made, order)}", err=place is None)


def _redaction_summary(made: ExportResult, order: ExportOptions) -> str:
    from threadline.cli import output as out

    if order.settings is None:
        return "Nothing was taken out: whoever gets it can read everything, secrets included."
    if not made.findings:
        return "Nothing had to be taken out."
    kinds = made.hidden
    few = ", ".join(f"{kind} {number:,}" for kind, number in list(kinds.items())[:6])
    more = f" and {out.counted(len(kinds) - 6, 'other kind')}" if len(kinds) > 6 else ""  # noqa: PLR2004 - as above
    whose = "the sessions" if len({file.session for file in made.files if file.session}) > 1 else "the session"
    return f"{out.counted(sum(kinds.values()), 'thing')} of {whose} taken out: {few}{more}."


_FORMATS = ("html", "md", "json", "jsonl", "txt", "pdf")
_SUFFIX_ALIASES = {"markdown": "md", "htm": "html", "text": "txt"}
_DEFAULT_FOLDER = "threadline-export"


def parse_format_and_turn(to: Sequence[str], out: str | None, *, several: bool) -> tuple[ExportFormat, int | None]:
    """The form and the last turn: `--to` says either; where it does not say the form, the file's ending does.

    Raises:
        BadQuery: there is no such form, or it was given twice.
    """
    from threadline.export import ExportFormat

    turns = [int(one) for one in to if one.isascii() and one.isdecimal()]
    forms = [one.lower() for one in to if not (one.isascii() and one.isdecimal())]
    if len(turns) > 1 or len(forms) > 1:
        raise BadQuery("--to was given twice; give one form and one turn at most.")
    form = forms[0] if forms else _format_of_suffix(out, several=several)
    if form not in _FORMATS:
        raise BadQuery(f"There is no form {form!r}; --to takes {', '.join(_FORMATS)}, or the number of the last turn.")
    return ExportFormat(form), turns[0] if turns else None


def _format_of_suffix(out: str | None, *, several: bool) -> str:
    """The form that a file's ending means; a folder has none, nor has what has no ending.

    Raises:
        BadQuery: an ending that no form has, as a file of that name would not hold what it says.
    """
    if out is None or several or is_folder(out):
        return "html"
    ending = Path(out).suffix.lower().lstrip(".")
    form = _SUFFIX_ALIASES.get(ending, ending or "html")
    if form not in _FORMATS:
        raise BadQuery(
            f"There is no form for {f'.{ending}'!r}; end the name of --out in .{', .'.join(_FORMATS)},"
            " or say the form with --to."
        )
    return form


def is_folder(out: str) -> bool:
    """Whether a folder is meant: one that is there, or a name that ends as those of folders do."""
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def output_path(
    form: ExportFormat, out: str | None, site: Path | None, mains: Sequence[Path], *, is_site: bool
) -> Path | None:
    """Where it goes: a file, or a folder where there are several; None is standard output.

    Raises:
        BadQuery: several files cannot go to standard output, nor anything to one that is closed.
    """
    from threadline.export import safe_name

    many = is_site or len(mains) > 1
    if out == "-":
        if many:
            raise BadQuery("Several files cannot go to standard output; name a folder with --out.")
        if sys.__stdout__ is None:
            raise BadQuery("Standard output is closed, so nothing can be written to it; name a file with --out.")
        return None
    if many:
        return site or Path(out or _DEFAULT_FOLDER)
    name = f"{safe_name(mains[0].stem)}.{form}"
    if out is None:
        return Path(name)
    return Path(out) / name if is_folder(out) else Path(out)
