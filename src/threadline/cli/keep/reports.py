"""`threadline keep status`, `list`, `diff` and `path`: what a keep contains and what is at risk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import click

from threadline import keep
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.keep.group import (
    KeepNotFound,
    find_machine,
    keep_options,
    keep_path,
    machine_option,
    open_catalogue,
    pending_message,
    print_problems,
)
from threadline.cli.options import limit_option, live_home_option, output_options, project_option, timezone_option
from threadline.cli.output import report_nothing
from threadline.errors import BadQuery
from threadline.find import homes as find_homes
from threadline.json_values import to_json_value
from threadline.keep import (
    LINKED_SETTINGS,
    AtRisk,
    Catalogue,
    Difference,
    KeptSession,
    RetentionPeriod,
    RunSummary,
    Status,
)
from threadline.model.text import count, format_percent, format_size, format_time, short_id
from threadline.model.times import parse_timestamp, zone_name
from threadline.render import one_line, plain

_MAX_RISKS = 10
_STATUS_EPILOG = """
\b
Examples:
  threadline keep status            contents, and what is deleted first
  threadline keep status --all      every session at risk
  threadline keep status --jsonl    a row for each session or file at risk
  threadline keep                   store them

\b
Exit codes: 0 there is a keep; 1 there is none yet; 2 an error.
"""


@click.command(epilog=_STATUS_EPILOG)
@click.option("--all", "everything", is_flag=True, help=f"Show everything at risk, not only the first {_MAX_RISKS}.")
@keep_options
@live_home_option
@timezone_option
@output_options
def status(
    *,
    everything: bool,
    folder: Path | None,
    key_file: Path | None,
    homes: tuple[str, ...],
    zone: tzinfo,
    output: str,
) -> int:
    """Show what the keep contains, what is not stored yet, and when Claude Code will delete that.

    When Claude Code starts, it deletes files that it has not written to for `cleanupPeriodDays` (30, unless the home's
    settings.json says otherwise). `--json` contains everything; `--jsonl` and `--csv` have a row for each session at
    risk, and for each file at risk that belongs to no session.
    """
    try:
        catalogue, machine = open_catalogue(folder, key_file)
    except KeepNotFound as error:
        return _print_unkept(str(error), homes, output, zone, everything=everything)
    live = find_homes(*homes)
    store = catalogue.store
    damaged = keep.open_damaged_packs(machine.folder, store.info.id)
    run = machine.last_run(store.folder)
    current = keep.read_status(
        catalogue,
        live,
        machine.id,
        damaged_packs=damaged.packs if damaged is not None else frozenset(),
        ended=run.ended if run is not None else None,
    )
    print_problems([problem for problem in current.problems if problem not in catalogue.problems])
    where = str(store.folder)
    if output == "json":
        out.print_record({"path": where, "encrypted": store.is_encrypted, **_status_row(current)}, output)
    elif output != "table":
        out.print_rows(map(to_json_value, current.at_risk), output)
    else:
        for line in _status_lines(where, current, zone, everything=everything, is_encrypted=store.is_encrypted):
            click.echo(line)
        forgotten = keep.list_forgotten_in_homes(catalogue, live)
        if forgotten:
            ids = ", ".join(sorted(map(short_id, forgotten))[:8])
            click.echo(f"Forgotten, so not stored, but still in a home: {count(len(forgotten), 'session')} ({ids}).")
    return EXIT_OK


def _print_unkept(message: str, homes: tuple[str, ...], output: str, zone: tzinfo, *, everything: bool) -> int:
    """Before the first run: say that there is no keep, and when files will be deleted."""
    current = keep.status_without_keep(find_homes(*homes))
    if output == "table":
        for line in _risk_lines(current, zone, everything=everything):
            click.echo(line)
    elif output == "json":
        out.print_record({"path": None, "encrypted": False, **_status_row(current)}, output)
    else:
        out.print_rows(map(to_json_value, current.at_risk), output)
    return report_nothing(message)


def _status_row(current: Status) -> dict[str, Any]:
    row: dict[str, Any] = to_json_value(current)
    row["kept"] = row.pop("only")
    return row


def _status_lines(where: str, current: Status, zone: tzinfo, *, everything: bool, is_encrypted: bool) -> Iterator[str]:
    size = format_size
    share = f", {format_percent(current.stored / current.bytes)}" if current.bytes else ""
    rows = [
        ("keep", where + (" (encrypted)" if is_encrypted else "")),
        (
            "sessions",
            f"{current.sessions:,}{_agents_only(current.agents_only)} ({current.only:,} deleted by Claude Code)",
        ),
        ("files", f"{current.files:,} in {count(current.versions, 'version')}"),
        ("size", f"{size(current.bytes)} in {size(current.stored)}{share}"),
    ]
    if current.forgotten:
        rows.append(("forgotten", count(current.forgotten, "session")))
    labels = [machine.label for machine in current.machines]
    for machine in current.machines:
        name = machine.label if labels.count(machine.label) == 1 else f"{machine.label} [{machine.id}]"
        here = " (this machine)" if machine.here else ""
        what = f"{count(machine.sessions, 'session')}, {size(machine.bytes)}, {count(machine.runs, 'run')}"
        ran = f", last run {_format_timestamp(machine.ended, zone)}" if machine.ended else ""
        times = f"last change {_format_timestamp(machine.last, zone)}{ran} ({zone_name(zone)})"
        rows.append(("machine", f"{name}{here}: {what}; {times}"))
    for home in current.homes:
        sessions = f"{count(home.sessions, 'session')}{_agents_only(home.agents_only)}"
        what = f"{sessions}, {size(home.bytes)}; {_describe_period(home.period)}"
        rows.append(("home", f"{home.path}: {what}"))
    yield from (out.wrap_text(line, f"  {name:<9}  ") for name, line in rows)
    yield ""
    yield from _risk_lines(current, zone, everything=everything)


def _agents_only(number: int) -> str:
    """How many of the sessions `threadline list` does not show, because they have no transcript of their own."""
    return f", {number:,} of them with only transcripts of agents" if number else ""


def _format_timestamp(timestamp: str | None, zone: tzinfo) -> str:
    return format_time(parse_timestamp(timestamp), zone) or "never"


def _describe_period(period: RetentionPeriod) -> str:
    if period.invalid_setting == LINKED_SETTINGS:
        return f"{LINKED_SETTINGS}, so 30 days are assumed (set THREADLINE_LINKS to allow it)"
    if period.invalid_setting is not None:
        return f"cleanupPeriodDays is not a number of days ({period.invalid_setting}), so 30 is assumed"
    if period.is_forever:
        return f"Claude Code deletes after {count(period.days, 'day')} (cleanupPeriodDays)"
    if period.days == 0:
        return "cleanupPeriodDays is 0: everything is deleted at the next start, or not written at all"
    return f"Claude Code deletes after {count(period.days, 'day')}{' (cleanupPeriodDays)' if period.is_set else ''}"


def _risk_lines(current: Status, zone: tzinfo, *, everything: bool) -> Iterator[str]:
    if not current.homes:
        yield "No Claude home was found here, so nothing is at risk."
        return
    yield from _left_out_lines(current, everything=everything)
    if not current.at_risk:
        yield "Everything else is stored." if current.left_out else "Nothing is at risk: everything is stored."
        return
    numbers = Counter((risk.session is not None, risk.has_transcript) for risk in current.at_risk)
    sessions, side_files, files = numbers[True, True], numbers[True, False], numbers[False, False]
    what = [count(sessions, "session")] if sessions else []
    what += [f"side files of {count(side_files, 'session')} without a transcript"] if side_files else []
    what += [count(files, "other file")] if files else []
    label = "At risk" if any(risk.deleted is not None for risk in current.at_risk) else "Not stored yet"
    yield from map(out.format_heading, out.wrap_text(f"{label}: {', '.join(what)}. Run `threadline keep`.").split("\n"))
    shown = current.at_risk if everything else current.at_risk[:_MAX_RISKS]
    rows = [_risk_cells(risk, zone) for risk in shown]
    yield out.format_table(
        ("session", "state", "size", f"last written ({zone_name(zone)})", "deleted", "on", "path"),
        rows,
        right=(2,),
        drop=("on", "size", "state"),
        ends=True,
    )
    if len(shown) < len(current.at_risk):
        yield f"\n{len(current.at_risk) - len(shown):,} more: use --all."


def _left_out_lines(current: Status, *, everything: bool) -> Iterator[str]:
    """What a run does not store, and what a merged keep has forgotten."""
    if current.pending:
        yield out.wrap_text(pending_message([row.session for row in current.pending]), "")
    if not current.left_out:
        return
    yield out.format_heading(f"Not stored: {count(len(current.left_out), 'file')} that `threadline keep` leaves out.")
    shown = current.left_out if everything else current.left_out[:_MAX_RISKS]
    yield out.format_table(
        ("reason", "details", "path"),
        [(file.reason, one_line(file.message, 200), file.path) for file in shown],
        shrink=(1,),
        ends=True,
    )
    if len(shown) < len(current.left_out):
        yield f"\n{len(current.left_out) - len(shown):,} more: use --all.\n"


def _shown_path(row: AtRisk | Difference) -> str:
    """The path in a table. The name of a session's transcript is its id, so only its folder is shown."""
    return row.path.rpartition("/")[0] if row.session is not None else row.path


def _risk_cells(risk: AtRisk, zone: tzinfo) -> tuple[str, ...]:
    states = {"new": "not stored", "grown": "has grown", "changed": "has changed"}
    return (
        short_id(risk.session),
        states[risk.state],
        format_size(risk.bytes),
        format_time(risk.modified, zone),
        _time_until_deletion(risk.deleted),
        format_time(risk.deleted, zone, "%Y-%m-%d") if risk.deleted is not None else "",
        _shown_path(risk),
    )


def _time_until_deletion(when: datetime | None) -> str:
    if when is None:
        return "never"
    left = when - datetime.now(UTC)
    if left.total_seconds() <= 0:
        return "at the next start"
    return f"in {count(left.days, 'day')}" if left.days else "today"


_DEFAULT_LIMIT = 30
_DROPPED_FIRST = ("versions", "files", "size", "machine", "project")
_LIST_EPILOG = """
\b
Examples:
  threadline keep list                  the newest sessions in the keep
  threadline keep list --only           those that Claude Code has deleted
  threadline keep list --project app    those of one project
  threadline keep list --json           all of them, for a program

\b
Exit codes: 0 found; 1 none; 2 an error.
"""


@click.command("list", epilog=_LIST_EPILOG)
@click.option("--only", is_flag=True, help="Only sessions that Claude Code has deleted.")
@project_option()
@machine_option
@limit_option(f"Show at most N sessions. Default: {_DEFAULT_LIMIT}, or all with --json, --jsonl and --csv.")
@keep_options
@timezone_option
@output_options
def list_sessions(
    *,
    only: bool,
    project: str | None,
    machine: str | None,
    limit: int | None,
    folder: Path | None,
    key_file: Path | None,
    zone: tzinfo,
    output: str,
) -> int:
    """List the sessions in the keep, newest first: title, project, size, versions, and whether only the keep has them.

    `kept` marks those that Claude Code has deleted. A session is listed once per machine and home it was stored from.
    """
    catalogue, here = open_catalogue(folder, key_file)
    machine_id = find_machine(catalogue, machine, here) if machine is not None else None
    sessions = keep.sort_by_last_entry(
        catalogue,
        (
            session
            for session in keep.list_sessions(catalogue, machine=machine_id)
            if not only or keep.is_kept_only(session, here.id)
        ),
    )
    limit = limit or (_DEFAULT_LIMIT if output == "table" else None)
    rows, hidden = _session_rows(catalogue, sessions, here.id, project, limit)
    if output != "table":
        out.print_rows(rows, output)
    elif rows:
        click.echo(_session_table(rows, zone))
        if hidden:
            click.echo(f"\nShowing the newest {len(rows)}. {hidden:,} more: use --limit N.")
        from threadline.reports import agents_only_note

        if note := agents_only_note([session.id for session in sessions if session.main is None]):
            click.echo(f"\n{out.wrap_text(note)}")
    if rows:
        return EXIT_OK
    if project is not None:
        return report_nothing(f"No session in the keep has {project!r} in its project's path.")
    return report_nothing(
        "Claude Code still has every session in the keep." if only and not sessions else "The keep is empty."
    )


def _session_rows(
    catalogue: Catalogue, sessions: Sequence[KeptSession], here: str, project: str | None, limit: int | None
) -> tuple[Sequence[dict[str, Any]], int]:
    """The rows to show, and how many more there are. Titles are read only for sessions that may be shown."""
    selected = [
        keep.complete_session(catalogue, session) for session in (sessions[:limit] if project is None else sessions)
    ]
    titles = keep.read_titles(catalogue, selected)
    rows = []
    for session in selected:
        title = titles.get((session.machine, session.home, session.id))
        main = session.main or session.transcripts[0]
        rows.append(
            {
                "session": session.id,
                "title": title.title if title is not None else "",
                "project": (title.project if title is not None else "") or session.folder,
                "modified": session.modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "size": session.size,
                "files": len(session.files),
                "versions": session.versions,
                "kept": keep.is_kept_only(session, here),
                "machine": session.label,
                "home": session.home,
                "path": main.path,
            }
        )
    matches = [row for row in rows if project is None or project.lower() in str(row["project"]).lower()]
    shown = matches[:limit]
    return shown, (len(sessions) if project is None else len(matches)) - len(shown)


def _session_table(rows: Sequence[dict[str, Any]], zone: tzinfo) -> str:
    several = len({row["machine"] for row in rows}) > 1
    has_kept = any(row["kept"] for row in rows)
    time_heading = f"last written ({zone_name(zone)})"
    headings = [
        "session",
        *([""] if has_kept else []),
        time_heading,
        *("size", "files", "versions"),
        *(["machine"] if several else []),
    ]
    cells = [
        (
            short_id(row["session"]),
            *(["kept" if row["kept"] else ""] if has_kept else []),
            _format_timestamp(row["modified"], zone),
            format_size(row["size"]),
            f"{row['files']:,}",
            f"{row['versions']:,}",
            *([row["machine"]] if several else []),
            out.shorten_path(row["project"], 30),
            one_line(row["title"] or "(no title)", 200),
        )
        for row in rows
    ]
    return out.format_table(
        [*headings, "project", "title"],
        cells,
        right=[headings.index(name) for name in ("size", "files", "versions")],
        shrink=(len(headings),),
        drop=_DROPPED_FIRST,
    )


_DIFF_EPILOG = """
\b
Examples:
  threadline keep diff            what changed in the last run
  threadline keep diff 3          what changed since run 3
  threadline keep diff 3 7        from run 3 to run 7
  threadline keep diff 0          everything since before the first run
  threadline keep diff --runs     list the runs

\b
Exit codes: 0 there are differences; 1 there are none; 2 an error.
"""


@click.command(epilog=_DIFF_EPILOG)
@click.argument("runs", nargs=-1, type=click.IntRange(min=0), metavar="[RUN [RUN]]")
@click.option("--runs", "listed", is_flag=True, help="List the runs instead.")
@machine_option
@keep_options
@timezone_option
@output_options
def diff(
    runs: tuple[int, ...],
    *,
    listed: bool,
    machine: str | None,
    folder: Path | None,
    key_file: Path | None,
    zone: tzinfo,
    output: str,
) -> int:
    """Show how sessions changed between runs: new, grown, changed, or gone (deleted by Claude Code).

    RUN is a number; 0 is before the first run. Only runs that found changes have one. Files that belong to no session
    are listed by themselves.
    """
    if len(runs) > 2:  # noqa: PLR2004 - a range
        raise BadQuery("Name at most two runs: the first and the last.")
    catalogue, here = open_catalogue(folder, key_file)
    machine_id = find_machine(catalogue, machine, here)
    if listed:
        summaries = keep.list_runs(catalogue, machine_id)
        if output != "table":
            out.print_rows(map(to_json_value, summaries), output)
        elif summaries:
            click.echo(_run_table(summaries, zone))
        return EXIT_OK if summaries else EXIT_NOTHING
    after, until = keep.select_runs(catalogue, machine_id, runs)
    differences = keep.list_differences(catalogue, machine_id, after, until)
    if output != "table":
        out.print_rows(map(to_json_value, differences), output)
    else:
        for line in _difference_lines(differences, after, until):
            click.echo(line)
    return EXIT_OK if differences else EXIT_NOTHING


def _run_table(runs: Sequence[RunSummary], zone: tzinfo) -> str:
    rows = [
        (
            f"{run.number:,}",
            format_time(parse_timestamp(run.began), zone, "%Y-%m-%d %H:%M:%S"),
            f"{run.files:,}",
            format_size(run.bytes),
            run.label,
        )
        for run in runs
    ]
    return out.format_table(("run", f"began ({zone_name(zone)})", "files", "size", "machine"), rows, right=(0, 2, 3))


def _difference_lines(differences: Sequence[Difference], after: int, until: int) -> Iterator[str]:
    counts = Counter(difference.change for difference in differences if difference.session is not None)
    changes = ", ".join(f"{number:,} {change}" for change, number in counts.items()) or "none"
    since = f"since run {after}" if after else "since before the first run"
    yield out.format_heading(f"Run {until}, {since}. Sessions: {changes}.")
    if differences:
        rows = [
            (
                difference.change,
                short_id(difference.session),
                f"{difference.files:,}",
                _added_bytes(difference),
                _shown_path(difference),
            )
            for difference in differences
        ]
        yield out.format_table(("change", "session", "files", "added", "path"), rows, right=(2, 3), ends=True)


def _added_bytes(difference: Difference) -> str:
    return format_size(difference.bytes) if difference.change != "gone" else ""


_PATH_EPILOG = """
\b
Examples:
  threadline keep path                        where the keep is
  rsync -a "$(threadline keep path)" backup/  copy it: files never change
  zstd -dc "$(threadline keep path)"/packs/*.zst | grep -c user
"""


@click.command(epilog=_PATH_EPILOG)
@keep_options
@output_options
def path(*, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Print the folder of the keep, whether it exists or not."""
    del key_file
    where = str(keep_path(folder))
    if output == "table":
        click.echo(plain(where))
    else:
        out.print_record({"path": where}, output)
    return EXIT_OK
