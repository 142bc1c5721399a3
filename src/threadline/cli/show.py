"""`threadline show`: print a session as a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

import click
from msgspec.structs import replace

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    WholeNumber,
    colour_option,
    complete_with,
    home_option,
    output_options,
    pager_option,
    timezone_option,
)
from threadline.cli.resolve import read_session
from threadline.cli.rows import conversation_row, thread_row, turn_row
from threadline.errors import NotFound
from threadline.load import Session
from threadline.model.calls import Call
from threadline.model.ledger import sum_fields
from threadline.model.session import Turn
from threadline.model.text import no_such_number, short_id
from threadline.render import (
    Detail,
    TextOptions,
    branch_of_turn,
    continuation_record,
    describe_cost,
    describe_tokens,
    leading_entries,
    plain,
    session_to_text,
)
from threadline.thread import find_notifications

_EPILOG = """
\b
Examples:
  threadline show                          the newest session
  threadline show 55604662 --agents full   with everything its agents did
  threadline show last --turn 3            one turn
  threadline show last --branch 1          a branch abandoned by an edit
  threadline show last --all | less -R     nothing folded or hidden
  threadline show last --thread --json     what Claude Code would resume
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option(
    "--agents",
    type=click.Choice(["full", "fold", "none"]),
    default="fold",
    help="Show agents in full, as one line each, or not at all. Default: fold.",
)
@click.option("--branch", type=WholeNumber(1), metavar="N", help="Show branch N, and the path to it.")
@click.option("--turn", type=WholeNumber(), metavar="N", help="Show only turn N. 0 is before the first prompt.")
@click.option("--thread", is_flag=True, help="Show only the thread that Claude Code would resume.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing; include side agents and internal entries.")
@timezone_option
@colour_option
@pager_option
@home_option
@output_options
def show(
    session: str,
    *,
    agents: str,
    branch: int | None,
    turn: int | None,
    thread: bool,
    everything: bool,
    zone: tzinfo,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Print a session as a conversation.

    SESSION is the start of a session id, its slug, a transcript, or `last`, the default. On a terminal, output goes
    through a pager: $PAGER, less (with -FRX unless LESS is set) or more; none if TERM is dumb.
    """
    loaded = read_session(session, homes)
    colour = out.use_colour(enabled=colour)
    options = TextOptions(
        width=out.page_width(),
        colour=colour,
        agents=Detail(agents),
        everything=everything,
        branch=branch,
        turn=turn,
        thread=thread,
        zone=zone,
    )
    _check_numbers(loaded, options)
    abandoned = branch_of_turn(loaded.main, turn) if turn is not None and branch is None and not thread else None
    options = replace(options, branch=branch or abandoned)
    if output == "table":
        costs = loaded.costs
        facts = [f"{describe_tokens(costs.total)} · {describe_cost(costs.total)}"]
        facts += [
            f"{describe_tokens(shared)} · {describe_cost(shared)} more in copies, counted in session"
            f" {plain(short_id(name))}"
            for name, shared in costs.shared.items()
        ]
        facts += [f"turn {turn} is on the abandoned branch {abandoned}"] if abandoned is not None else []
        lines = session_to_text(loaded, options, find_notifications(loaded), facts, costs)
        out.print_lines(lines, colour=colour, pager=pager)
    elif output == "json":
        out.print_json(_session_document(loaded, options))
    else:
        out.print_rows(_entry_rows(loaded, options), output)
    return EXIT_OK if len(loaded) else EXIT_NOTHING


def _check_numbers(session: Session, options: TextOptions) -> None:
    """Reject branch and turn numbers that the session does not have."""
    branches = len(session.branches)
    if options.branch is not None and options.branch > branches:
        raise NotFound(no_such_number("branch", options.branch, branches, plural="branches"))
    if options.turn is not None and options.turn not in [turn.number for turn in session.turns]:
        turns = sum(turn.act is not None for turn in session.turns)
        raise NotFound(no_such_number("turn", options.turn, turns))


def _session_document(session: Session, options: TextOptions) -> dict[str, Any]:
    if options.thread:
        return {"session": session.id, "entries": [thread_row(entry) for entry in session.thread.visible]}
    calls: dict[int | None, list[Call]] = {}
    for call in session.main.calls:
        calls.setdefault(call.turn, []).append(call)
    turns = [turn for turn in _turns_of_branch(session, options.branch) if options.turn in (None, turn.number)]
    costs = session.costs
    project = next(iter(session.cwds), None)
    environment = session.environment
    return {
        "session": session.id,
        "title": session.title.text,
        "path": session.path,
        "kept": session.kept,
        "started": session.started,
        "ended": session.ended,
        "models": session.models,
        "continuations": [continuation_record(link) for link in session.continuations],
        "slug": session.slug,
        "platform": environment.platform if environment is not None else None,
        "os_version": environment.os_version if environment is not None else None,
        "spent": {"tokens": costs.total.tokens, **sum_fields(costs.total)},
        "shared": [
            {"session": name, "tokens": shared.tokens, "amount": shared.amount} for name, shared in costs.shared.items()
        ],
        "turns": [
            turn_row(turn, calls.get(turn.number, ()), session.id, project, costs.turn(turn.number)) for turn in turns
        ],
    }


def _turns_of_branch(session: Session, branch: int | None) -> Sequence[Turn]:
    """The turns on a branch and the path to it; without a branch, all turns."""
    if branch is None:
        return session.turns
    entries = set(map(id, leading_entries(session.main, branch=branch)))
    return [turn for turn in session.turns if any(id(entry) in entries for entry in turn.entries)]


def _entry_rows(session: Session, options: TextOptions) -> Iterator[dict[str, Any]]:
    """One row per entry shown; with `--agents full`, the agents' entries follow."""
    if options.thread:
        yield from map(thread_row, session.thread.visible)
        return
    turns = {id(entry): turn.number for turn in session.turns for entry in turn.entries}
    for entry in leading_entries(session.main, branch=options.branch):
        if options.turn in (None, turns.get(id(entry))):
            yield conversation_row(entry, turns.get(id(entry)))
    for agent in session.agents if options.agents == "full" else ():
        if agent.side is None or options.everything:
            yield from (conversation_row(entry, None, agent.id) for entry in agent.conversation)
