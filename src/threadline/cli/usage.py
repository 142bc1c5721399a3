"""`threadline usage`: what was spent, by day or by whatever else charges have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from threadline.cli.options import home_option, jobs_option, output_options
from threadline.cli.screen import pager_option
from threadline.cli.zone import zone_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

_TIMES = frozenset({"day", "week", "month", "hour"})
_SHOWN = 40
_SHAPED: dict[str, Literal["daily", "weekly", "monthly", "session"]] = {
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "session": "session",
}
_EPILOG = """
\b
Examples:
  threadline usage                                by day
  threadline usage --since 'this month' --by model
  threadline usage --by project,model             with a subtotal a project
  threadline usage --by session --project app     what each session cost
  threadline usage --by tool --since 30d          shared out by tool calls
  threadline usage --by month --breakdown         each month by model
  threadline usage --by day --tz America/New_York
  threadline usage --mode both                    against what was reported
  threadline usage --json                         exact, for a program
  threadline usage --by month --shape ccusage     as `ccusage monthly --json`

\b
Keys for --by: day, week, month, hour, session, project, model, agent,
agent-type, tool, skill, branch, version, home, machine, part, thread.
Several nest.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--by", "by", multiple=True, metavar="KEY[,KEY…]", help="What to sum by; several nest. By default the day."
)
@click.option("--since", metavar="WHEN", help="Only from then on: 2026-11-03, 7d, yesterday, 'this week'.")
@click.option("--until", metavar="WHEN", help="Only up to then; a day is meant whole.")
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@click.option("--model", metavar="TEXT", help="Only of models whose id holds this.")
@click.option("--session", metavar="ID", help="Only of the session whose id starts so, its agents included; or `last`.")
@zone_option
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@click.option("--breakdown", is_flag=True, help="Below each row, the same by model.")
@click.option("--apart", is_flag=True, help="Below each row, main thread, left branches, agents and side agents apart.")
@click.option(
    "--order", type=click.Choice(("time", "amount")), help="By default, times by time and all else by amount."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"No more values of the first key: the newest, or the greatest. By default {_SHOWN} in a table not by time.",
)
@click.option(
    "--mode",
    type=click.Choice(("computed", "reported", "both")),
    default="computed",
    help="Amounts from tokens and prices; what Claude Code itself reports; or both, and by what they differ.",
)
@click.option(
    "--shape",
    type=click.Choice(("ccusage",)),
    help="JSON in the shape of another program's, by day, week, month or session.",
)
@click.option("--exact", is_flag=True, help="Every digit in the table: no 12.3 M, no cents.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@jobs_option
@output_options
def usage(
    *,
    by: tuple[str, ...],
    since: str | None,
    until: str | None,
    project: str | None,
    model: str | None,
    session: str | None,
    tz: str | None,
    files: tuple[str, ...],
    breakdown: bool,
    apart: bool,
    order: str | None,
    limit: int | None,
    mode: str,
    shape: str | None,
    exact: bool,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Sum what was spent: tokens and USD, every message counted once over all transcripts of all homes.

    Agents belong to their session. A model without a known price has tokens and no amount, and a line says so.
    """
    from threadline.cli.usage_answer import Asked, answer
    from threadline.cli.usage_wanted import Wanted
    from threadline.model.zone import zone

    # Another program's rows have the models in them in any case.
    nested = breakdown and shape is None
    names = keys(by or ("session" if mode == "reported" else "day",), apart=apart, breakdown=nested)
    _refuse_what_does_not_go_together(names, shape, mode, output, limit)
    here = zone(tz)
    wanted = Wanted(
        project,
        model,
        session,
        _moment(since, here) if since is not None else None,
        _moment(until, here, end=True) if until is not None else None,
    )
    asked = Asked(
        names=tuple(names),
        wanted=wanted,
        zone=here,
        prices=files,
        homes=homes,
        jobs=jobs,
        mode=mode,
        shape=_SHAPED[names[0]] if shape is not None else None,
        order=order,
        limit=limit or (_SHOWN if output == "table" and names[0] not in _TIMES else None),
        output=output,
        exact=exact,
        colour=not no_color,
        pager=pager,
    )
    return answer(asked)


def _moment(text: str, here: tzinfo, *, end: bool = False) -> datetime:
    from threadline.cli.when import moment

    return moment(text, end=end, zone=here)


def _refuse_what_does_not_go_together(
    names: Sequence[str], shape: str | None, mode: str, output: str, limit: int | None
) -> None:
    if shape is not None:
        if names[1:] or names[0] not in _SHAPED:
            raise click.UsageError(f"--shape {shape} goes --by one of {', '.join(_SHAPED)}, and by that alone.")
        if output not in {"table", "json"} or mode != "computed" or limit is not None:
            raise click.UsageError(f"--shape {shape} is one JSON document of computed figures, with all of its rows.")
    if mode == "reported" and (shape is not None or names != ["session"]):
        raise click.UsageError("Claude Code reports an amount for a session: --mode reported goes --by session alone.")


def keys(by: Sequence[str], *, apart: bool = False, breakdown: bool = False) -> list[str]:
    """The keys that were asked for, each once.

    Raises:
        BadQuery: there is no such key; the sentence says which was near.
    """
    from threadline.account.keys import WHAT_KEYS_MEAN, WHAT_READ_KEYS_MEAN
    from threadline.errors import BadQuery

    known = (*WHAT_KEYS_MEAN, *WHAT_READ_KEYS_MEAN)
    given = [word.strip().lower() for some in by for word in some.split(",") if word.strip()]
    for name in given:
        if name not in known:
            raise BadQuery(f"There is no key {name!r}; {_meant(name, known)}")
    given = given or ["day"]
    given += ["thread"] if apart else []
    given += ["model"] if breakdown else []
    return list(dict.fromkeys(given))


def _meant(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    spellings = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour", "type": "agent-type"}
    near = get_close_matches(name.replace("_", "-").rstrip("s"), known, n=1)
    meant = spellings.get(name) or (near[0] if near else None)
    return f"did you mean --by {meant}?" if meant else f"sum by {', '.join(known)}."
