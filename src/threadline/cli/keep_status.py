"""`threadline keep status`: what is kept, and what is at risk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.keep_options import NoKeep, keep_options, living_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.living import Period
    from threadline.keep.status import AtRisk, Status

_SHOWN = 10
_EPILOG = """
\b
Examples:
  threadline keep status            what is kept, and what will be lost first
  threadline keep status --all      every session at risk
  threadline keep status --jsonl    a row for each session or file at risk
  threadline keep                   keep them

\b
Exit codes: 0 there is a keep; 1 there is none yet; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.option("--all", "everything", is_flag=True, help=f"All that is at risk, not only the first {_SHOWN}.")
@keep_options
@living_option
@output_options
def status(*, everything: bool, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Show what is kept, and what is at risk: not kept, or not since it grew, and when it will be deleted.

    Claude Code deletes, when it starts, what it has not written to for `cleanupPeriodDays` (30, unless the home's
    settings.json says otherwise). What was kept stays. `--json` has everything; `--jsonl` and `--csv` have a row for
    each session at risk, or file that belongs to none.
    """
    from threadline.cli import output as out
    from threadline.cli.keep_options import catalogue_of, print_one, say_problems

    try:
        catalogue, machine = catalogue_of(folder, key_file)
    except NoKeep as error:
        return _unkept(str(error), homes, output, everything=everything)
    from threadline.keep.doubting import doubts_in
    from threadline.keep.lately import lately
    from threadline.keep.living import living
    from threadline.keep.status import forgotten_there
    from threadline.keep.status import status as status_of

    doubts = doubts_in(machine.memory, catalogue.store.about.id)
    run = lately(machine.memory, catalogue.store.folder)
    told = status_of(
        catalogue,
        living(homes),
        machine.id,
        doubted=doubts.packs if doubts is not None else frozenset(),
        ended=run.ended if run is not None else None,
    )
    say_problems([one for one in told.problems if one not in catalogue.problems])
    where = str(catalogue.store.folder)
    if output == "json":
        print_one({"path": where, "encrypted": catalogue.store.is_sealed, **_row(told)}, output)
    elif output != "table":
        out.print_rows(map(out.to_plain, told.at_risk), output)
    else:
        for line in _page(where, told, everything=everything, sealed=catalogue.store.is_sealed):
            click.echo(line)
        there = forgotten_there(catalogue, living(homes))
        if there:
            few = ", ".join(sorted(one[:8] for one in there)[:8])
            what = f"{out.counted(len(there), 'session')} that {'was' if len(there) == 1 else 'were'} forgotten"
            click.echo(f"Not kept, and still there: {what} ({few}).")
    return FOUND


def _unkept(said: str, homes: tuple[str, ...], output: str, *, everything: bool) -> int:
    """Before the first run: that there is no keep, and when what it would have will be deleted."""
    from threadline.cli import output as out
    from threadline.cli.screen import nothing
    from threadline.keep.living import living
    from threadline.keep.status import unkept

    told = unkept(living(homes))
    if output == "table":
        for line in _risks(told, everything=everything):
            click.echo(line)
    elif output != "json":
        out.print_rows(map(out.to_plain, told.at_risk), output)
    nothing(said)
    return NOTHING


def _row(told: Status) -> dict[str, Any]:
    from threadline.cli import output as out

    row: dict[str, Any] = out.to_plain(told)
    row["kept"] = row.pop("only")
    row["problems"] += row.pop("misnamed")
    return row


def _page(where: str, told: Status, *, everything: bool, sealed: bool) -> Iterator[str]:
    from threadline.cli import output as out

    counted, size = out.counted, out.size
    share = f", {told.stored / told.bytes:.1%}" if told.bytes else ""
    rows = [
        ("keep", where + (" (encrypted)" if sealed else "")),
        ("sessions", f"{told.sessions:,}; {told.only:,} of them Claude Code has deleted"),
        ("files", f"{told.files:,}, in {counted(told.versions, 'version')}"),
        ("size", f"{size(told.bytes)} in {size(told.stored)}{share}"),
    ]
    if told.forgotten:
        rows.append(("forgotten", counted(told.forgotten, "session")))
    labels = [one.label for one in told.machines]
    for one in told.machines:
        name = one.label if labels.count(one.label) == 1 else f"{one.label} [{one.id}]"
        here = " (this one)" if one.here else ""
        what = f"{counted(one.sessions, 'session')}, {size(one.bytes)}, {counted(one.runs, 'run')}"
        ran = f", last run on {_when(one.ended)}" if one.ended else ""
        rows.append(("machine", f"{name}{here}: {what}; last new on {_when(one.last)}{ran}"))
    for home in told.homes:
        what = f"{counted(home.sessions, 'session')}, {size(home.bytes)}; {_period(home.period)}"
        rows.append(("home", f"{home.path}: {what}"))
    yield from (f"  {name:<9}  {out.plain(line)}" for name, line in rows)
    yield from (f"\n{out.plain(problem)}" for problem in told.misnamed)
    yield ""
    yield from _risks(told, everything=everything)


def _when(told: str | None) -> str:
    return told.replace("T", " ").removesuffix("Z")[:16] if told else "never"


def _period(period: Period) -> str:
    if period.strange is not None:
        return f"its cleanupPeriodDays is no number of days ({period.strange}), so 30 are assumed"
    if period.forever:
        return f"nothing is deleted for {period.days:,} days (cleanupPeriodDays)"
    if period.days == 0:
        return "cleanupPeriodDays is 0: all is deleted at the next start, or not written at all"
    days = f"{period.days:,} day{'s' if period.days != 1 else ''}"
    return f"deleted after {days}{' (cleanupPeriodDays)' if period.said else ''}"


def _risks(told: Status, *, everything: bool) -> Iterator[str]:
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
    yield out.heading(f"At risk: {' and '.join(what)}; `threadline keep` keeps {them}.")
    shown = told.at_risk if everything else told.at_risk[:_SHOWN]
    rows = [_cells(one) for one in shown]
    yield out.table(
        ("SESSION", "STATE", "NOT KEPT", "LAST WRITTEN", "DELETED", "PATH"), rows, right=(2,), shrink=(4,), ends=True
    )
    if len(shown) < len(told.at_risk):
        yield f"  … and {len(told.at_risk) - len(shown):,} more: --all."


def _cells(one: AtRisk) -> tuple[str, ...]:
    from threadline.cli import output as out
    from threadline.render.figures import moment

    states = {"new": "not kept", "grown": "grew since", "changed": "changed since"}
    session = one.session[:8] if one.session is not None else ""
    return session, states[one.state], out.size(one.bytes), moment(one.modified), _deleted(one.deleted), one.path


def _deleted(when: datetime | None) -> str:
    if when is None:
        return "never"
    left = when - datetime.now(UTC)
    if left.total_seconds() <= 0:
        return "at its next start"
    days = left.days
    return f"{when:%Y-%m-%d} (in {days} day{'s' if days != 1 else ''})" if days else f"{when:%Y-%m-%d} (today)"
