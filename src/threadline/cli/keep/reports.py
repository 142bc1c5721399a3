"""`threadline keep status`, `list`, `diff` and `path`: what a keep holds and what is at risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.keep.options import KeepNotFound, keep_options, kept_homes_option, machine_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep import AtRisk, Catalogue, Difference, KeptSession, RetentionPeriod, RunSummary, Status

_MAX_RISKS = 10
_STATUS_EPILOG = """
\b
Examples:
  threadline keep status            what is kept, and what will be lost first
  threadline keep status --all      every session at risk
  threadline keep status --jsonl    a row for each session or file at risk
  threadline keep                   keep them

\b
Exit codes: 0 there is a keep; 1 there is none yet; 2 an error.
"""


@click.command(epilog=_STATUS_EPILOG)
@click.option("--all", "everything", is_flag=True, help=f"All that is at risk, not only the first {_MAX_RISKS}.")
@keep_options
@kept_homes_option
@output_options
def status(*, everything: bool, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Show what is kept, and what is at risk: not kept, or not since it grew, and when it will be deleted.

    Claude Code deletes, when it starts, what it has not written to for `cleanupPeriodDays` (30, unless the home's
    settings.json says otherwise). What was kept stays. `--json` has everything; `--jsonl` and `--csv` have a row for
    each session at risk, or file that belongs to none.
    """
    from threadline.cli import output as out
    from threadline.cli.keep.options import open_catalogue, print_problems, print_record

    try:
        catalogue, machine = open_catalogue(folder, key_file)
    except KeepNotFound as error:
        return _print_unkept(str(error), homes, output, everything=everything)
    from threadline.find import homes as find_homes
    from threadline.keep import list_forgotten_in_homes, open_damaged_packs, read_last_run
    from threadline.keep import read_status as status_of

    doubts = open_damaged_packs(machine.memory, catalogue.store.about.id)
    run = read_last_run(machine.memory, catalogue.store.folder)
    told = status_of(
        catalogue,
        find_homes(*homes),
        machine.id,
        doubted=doubts.packs if doubts is not None else frozenset(),
        ended=run.ended if run is not None else None,
    )
    print_problems([problem for problem in told.problems if problem not in catalogue.problems])
    where = str(catalogue.store.folder)
    if output == "json":
        print_record({"path": where, "encrypted": catalogue.store.is_encrypted, **_status_row(told)}, output)
    elif output != "table":
        out.print_rows(map(out.to_json_value, told.at_risk), output)
    else:
        for line in _status_lines(where, told, everything=everything, sealed=catalogue.store.is_encrypted):
            click.echo(line)
        there = list_forgotten_in_homes(catalogue, find_homes(*homes))
        if there:
            few = ", ".join(sorted(one[:8] for one in there)[:8])
            what = f"{out.counted(len(there), 'session')} that {'was' if len(there) == 1 else 'were'} forgotten"
            click.echo(f"Not kept, and still there: {what} ({few}).")
    return EXIT_OK


def _print_unkept(said: str, homes: tuple[str, ...], output: str, *, everything: bool) -> int:
    """Before the first run: that there is no keep, and when what it would have will be deleted."""
    from threadline.cli import output as out
    from threadline.cli.screen import report_nothing
    from threadline.find import homes as find_homes
    from threadline.keep import status_without_keep

    told = status_without_keep(find_homes(*homes))
    if output == "table":
        for line in _risk_lines(told, everything=everything):
            click.echo(line)
    elif output != "json":
        out.print_rows(map(out.to_json_value, told.at_risk), output)
    report_nothing(said)
    return EXIT_NOTHING


def _status_row(told: Status) -> dict[str, Any]:
    from threadline.cli import output as out

    row: dict[str, Any] = out.to_json_value(told)
    row["kept"] = row.pop("only")
    return row


def _status_lines(where: str, told: Status, *, everything: bool, sealed: bool) -> Iterator[str]:
    from threadline.cli import output as out

    counted, size = out.counted, out.format_size
    share = f", {told.stored / told.bytes:.1%}" if told.bytes else ""
    rows = [
        ("keep", where + (" (encrypted)" if sealed else "")),
        ("sessions", f"{told.sessions:,}; {told.only:,} of them Claude Code has deleted"),
        ("files", f"{told.files:,}, in {counted(told.versions, 'version')}"),
        ("size", f"{size(told.bytes)} in {size(told.stored)}{share}"),
    ]
    if told.forgotten:
        rows.append(("forgotten", counted(told.forgotten, "session")))
    labels = [machine.label for machine in told.machines]
    for machine in told.machines:
        name = machine.label if labels.count(machine.label) == 1 else f"{machine.label} [{machine.id}]"
        here = " (this one)" if machine.here else ""
        what = f"{counted(machine.sessions, 'session')}, {size(machine.bytes)}, {counted(machine.runs, 'run')}"
        ran = f", last run on {_format_time(machine.ended)}" if machine.ended else ""
        rows.append(("machine", f"{name}{here}: {what}; last new on {_format_time(machine.last)}{ran}"))
    for home in told.homes:
        what = f"{counted(home.sessions, 'session')}, {size(home.bytes)}; {_describe_period(home.period)}"
        rows.append(("home", f"{home.path}: {what}"))
    yield from (f"  {name:<9}  {out.plain(line)}" for name, line in rows)
    yield ""
    yield from _risk_lines(told, everything=everything)


def _format_time(told: str | None) -> str:
    return told.replace("T", " ").removesuffix("Z")[:16] if told else "never"


def _describe_period(period: RetentionPeriod) -> str:
    if period.strange is not None:
        return f"its cleanupPeriodDays is no number of days ({period.strange}), so 30 are assumed"
    if period.forever:
        return f"nothing is deleted for {period.days:,} days (cleanupPeriodDays)"
    if period.days == 0:
        return "cleanupPeriodDays is 0: all is deleted at the next start, or not written at all"
    days = f"{period.days:,} day{'s' if period.days != 1 else ''}"
    return f"deleted after {days}{' (cleanupPeriodDays)' if period.said else ''}"


def _risk_lines(told: Status, *, everything: bool) -> Iterator[str]:
    from threadline.cli import output as out

    if not told.homes:
        yield "No Claude home was found here: nothing can be at risk."
        return
    if not told.at_risk:
        yield "Nothing is at risk: all that is there is kept as it stands."
        return
    risks = [one for one in told.at_risk if one.session is not None]
    files = [one for one in told.at_risk if one.session is None]
    what = [out.counted(len(risks), "session")] if risks else []
    what += [f"{out.counted(len(files), 'file')} of no session"] if files else []
    them = "it" if len(told.at_risk) == 1 else "them"
    yield out.format_heading(f"At risk: {' and '.join(what)}; `threadline keep` keeps {them}.")
    shown = told.at_risk if everything else told.at_risk[:_MAX_RISKS]
    rows = [_risk_cells(one) for one in shown]
    yield out.format_table(
        ("SESSION", "STATE", "NOT KEPT", "LAST WRITTEN", "DELETED", "PATH"), rows, right=(2,), shrink=(4,), ends=True
    )
    if len(shown) < len(told.at_risk):
        yield f"  … and {len(told.at_risk) - len(shown):,} more: --all."


def _risk_cells(at_risk: AtRisk) -> tuple[str, ...]:
    from threadline.cli import output as out
    from threadline.model.text import format_time

    states = {"new": "not kept", "grown": "grew since", "changed": "changed since"}
    session = at_risk.session[:8] if at_risk.session is not None else ""
    return (
        session,
        states[at_risk.state],
        out.format_size(at_risk.bytes),
        format_time(at_risk.modified),
        _deletion_date(at_risk.deleted),
        at_risk.path,
    )


def _deletion_date(when: datetime | None) -> str:
    if when is None:
        return "never"
    left = when - datetime.now(UTC)
    if left.total_seconds() <= 0:
        return "at its next start"
    days = left.days
    return f"{when:%Y-%m-%d} (in {days} day{'s' if days != 1 else ''})" if days else f"{when:%Y-%m-%d} (today)"


_DEFAULT_LIMIT = 30
_LIST_EPILOG = """
\b
Examples:
  threadline keep list                  the newest sessions that are kept
  threadline keep list --only           those that Claude Code has deleted
  threadline keep list --project app    of one project
  threadline keep list --json           all of them, for a program

\b
Exit codes: 0 found; 1 none; 2 an error.
"""


@click.command("list", epilog=_LIST_EPILOG)
@click.option("--only", is_flag=True, help="Only sessions that Claude Code has deleted.")
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@machine_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"No more than this many; by default {_DEFAULT_LIMIT}, and all with --json, --jsonl and --csv.",
)
@keep_options
@output_options
def list_sessions(
    *,
    only: bool,
    project: str | None,
    machine: str | None,
    limit: int | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """List the sessions that are kept, newest first: title, project, size, versions, whether only the keep has them.

    `kept` marks those that Claude Code has deleted. A session counts once for each machine and home it was kept from.
    """
    from threadline.cli import output as out
    from threadline.cli.keep.options import find_machine, open_catalogue
    from threadline.cli.screen import report_nothing
    from threadline.keep import is_kept_only, list_sessions

    catalogue, here = open_catalogue(folder, key_file)
    wanted = find_machine(catalogue, machine, here) if machine is not None else None
    found = [
        session for session in list_sessions(catalogue, machine=wanted) if not only or is_kept_only(session, here.id)
    ]
    rows = _session_rows(catalogue, found, here.id, project, limit or (_DEFAULT_LIMIT if output == "table" else None))
    if output != "table":
        out.print_rows(rows[0], output)
    elif rows[0]:
        click.echo(_session_table(rows[0]))
        if rows[1]:
            click.echo(f"\nThe newest {len(rows[0])}; {rows[1]:,} more: see --limit N.")
    if rows[0]:
        return EXIT_OK
    if project is not None:
        return report_nothing(f"No kept session is of a project with {project!r} in its path.")
    return report_nothing(
        "Claude Code still has every session that is kept." if only and not found else "Nothing is kept yet."
    )


def _session_rows(
    catalogue: Catalogue, found: Sequence[KeptSession], here: str, project: str | None, limit: int | None
) -> tuple[Sequence[dict[str, Any]], int]:
    """The rows that are shown, and how many there are more. Titles are read of those that are shown alone."""
    from threadline.keep import complete_session, is_kept_only, read_titles

    shown = [complete_session(catalogue, one) for one in (found[:limit] if project is None else found)]
    words = read_titles(catalogue, shown)
    rows = []
    for one in shown:
        said = words.get((one.machine, one.home, one.id))
        main = one.main or one.transcripts[0]
        rows.append(
            {
                "session": one.id,
                "title": said.title if said is not None else "",
                "project": (said.project if said is not None else "") or one.folder,
                "modified": one.modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "size": one.size,
                "files": len(one.files),
                "versions": one.versions,
                "kept": is_kept_only(one, here),
                "machine": one.label,
                "home": one.home,
                "path": main.path,
            }
        )
    fit = [row for row in rows if project is None or project.lower() in str(row["project"]).lower()]
    cut = fit[:limit]
    return cut, (len(found) if project is None else len(fit)) - len(cut)


def _session_table(rows: Sequence[dict[str, Any]]) -> str:
    from threadline.cli import output as out
    from threadline.cli.output import shorten_path

    several = len({row["machine"] for row in rows}) > 1
    headings = ["SESSION", "", "LAST WRITTEN", "SIZE", "FILES", "VERSIONS", *(["MACHINE"] if several else [])]
    cells = [
        (
            row["session"][:8],
            "kept" if row["kept"] else "",
            row["modified"][:16].replace("T", " "),
            out.format_size(row["size"]),
            f"{row['files']:,}",
            f"{row['versions']:,}",
            *([row["machine"]] if several else []),
            shorten_path(row["project"], 30),
            out.one_line(row["title"] or "(no title)", 200),
        )
        for row in rows
    ]
    return out.format_table([*headings, "PROJECT", "TITLE"], cells, right=(3, 4, 5), shrink=(len(headings),))


_DIFF_EPILOG = """
\b
Examples:
  threadline keep diff            what the last run found
  threadline keep diff 3          what changed since run 3
  threadline keep diff 3 7        from run 3 to run 7
  threadline keep diff 0          all, since before the first run
  threadline keep diff --runs     which runs there were

\b
Exit codes: 0 found; 1 there is no difference; 2 an error.
"""


@click.command(epilog=_DIFF_EPILOG)
@click.argument("runs", nargs=-1, type=click.IntRange(min=0), metavar="[RUN [RUN]]")
@click.option("--runs", "listed", is_flag=True, help="List the runs instead.")
@machine_option
@keep_options
@output_options
def diff(
    runs: tuple[int, ...],
    *,
    listed: bool,
    machine: str | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Show what became of sessions between runs: new, grown, changed, gone at the source.

    RUN is a number; 0 is before the first. Only runs that found something have one. Files that belong to no session
    stand for themselves.
    """
    from threadline.cli import output as out
    from threadline.cli.keep.options import find_machine, open_catalogue
    from threadline.errors import BadQuery
    from threadline.keep import list_differences, select_runs
    from threadline.keep import list_runs as runs_of

    if len(runs) > 2:  # noqa: PLR2004 - from one to the other
        raise BadQuery("Name two runs at most: from which, and to which.")
    catalogue, here = open_catalogue(folder, key_file)
    whose = find_machine(catalogue, machine, here)
    if listed:
        every = runs_of(catalogue, whose)
        if output != "table":
            out.print_rows(map(out.to_json_value, every), output)
        elif every:
            click.echo(_run_table(every))
        return EXIT_OK if every else EXIT_NOTHING
    after, until = select_runs(catalogue, whose, runs)
    found = list_differences(catalogue, whose, after, until)
    if output != "table":
        out.print_rows(map(out.to_json_value, found), output)
    else:
        for line in _difference_lines(found, after, until):
            click.echo(line)
    return EXIT_OK if found else EXIT_NOTHING


def _run_table(every: Sequence[RunSummary]) -> str:
    from threadline.cli import output as out

    rows = [
        (
            f"{run_summary.number:,}",
            run_summary.began.replace("T", " ").removesuffix("Z"),
            f"{run_summary.files:,}",
            out.format_size(run_summary.bytes),
            run_summary.label,
        )
        for run_summary in every
    ]
    return out.format_table(("RUN", "BEGAN", "FILES SEEN", "SIZE", "MACHINE"), rows, right=(0, 2, 3))


def _difference_lines(found: Sequence[Difference], after: int, until: int) -> Iterator[str]:
    from collections import Counter

    from threadline.cli import output as out

    counts = Counter(difference.change for difference in found if difference.session is not None)
    told = ", ".join(f"{number:,} {change}" for change, number in counts.items()) or "none"
    since = f"since run {after}" if after else "since before the first run"
    yield out.format_heading(f"Run {until}, {since}. Sessions: {told}.")
    if found:
        rows = [
            (
                difference.change,
                difference.session[:8] if difference.session else "",
                f"{difference.files:,}",
                _added_bytes(difference),
                difference.path,
            )
            for difference in found
        ]
        yield out.format_table(("CHANGE", "SESSION", "FILES", "ADDED", "PATH"), rows, right=(2, 3), ends=True)


def _added_bytes(difference: Difference) -> str:
    from threadline.cli import output as out

    return out.format_size(difference.bytes) if difference.change != "gone" else ""


_PATH_EPILOG = """
\b
Examples:
  threadline keep path                        where it is
  rsync -a "$(threadline keep path)" backup/  copy it: no file in it ever changes
  zstd -dc "$(threadline keep path)"/packs/*.zst | grep -c user
"""


@click.command(epilog=_PATH_EPILOG)
@keep_options
@output_options
def path(*, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Print where the keep is, or would be."""
    from threadline.cli import output as out
    from threadline.cli.keep.options import keep_path, print_record

    del key_file
    where = str(keep_path(folder))
    if output == "table":
        click.echo(out.plain(where))
    else:
        print_record({"path": where}, output)
    return EXIT_OK
