"""`threadline show`: print a session as a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, output_options
from threadline.cli.screen import pager_option

if TYPE_CHECKING:
    from threadline.model.calls import Call
    from threadline.model.session import Session
    from threadline.render import TextOptions

_EPILOG = """
\b
Examples:
  threadline show last                     the session of last use
  threadline show 55604662 --agents full   with all that its agents did
  threadline show last --turn 3            one turn
  threadline show last --branch 1          what an edit or a rewind left
  threadline show last --all | less -R     nothing folded, nothing hidden
  threadline show last --thread --json     what Claude Code would resume
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@click.option(
    "--agents",
    type=click.Choice(["full", "fold", "none"]),
    default="fold",
    show_default=True,
    help="All that agents did, a line for each, or nothing.",
)
@click.option("--branch", type=click.IntRange(min=1), metavar="N", help="The way to branch N and the branch itself.")
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Turn N alone; 0 is what came before the first.")
@click.option("--thread", is_flag=True, help="Only the thread that Claude Code would resume.")
@click.option(
    "--all", "everything", is_flag=True, help="Everything: nothing folded, side agents, the program's entries."
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
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
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show a session as the conversation it was.

    SESSION is the start of its id, a transcript, or `last`. Times are in UTC. On a terminal a pager shows it: what
    PAGER says, or less (with -FRX unless LESS says otherwise), or more; none where TERM is dumb.
    """
    from threadline.cli import screen
    from threadline.cli.resolve import read_session
    from threadline.render import AgentDetail, TextOptions

    found = read_session(session, homes)
    coloured = screen.use_colour(wanted=not no_color)
    options = TextOptions(
        width=screen.page_width(),
        colour=coloured,
        agents=AgentDetail(agents),
        everything=everything,
        branch=branch,
        turn=turn,
        thread=thread,
    )
    _check_numbers(found, options)
    if output != "table":
        _print_session(found, options, output)
    else:
        from threadline.render import session_to_text
        from threadline.thread import find_notifications

        screen.print_lines(session_to_text(found, options, find_notifications(found)), coloured=coloured, pager=pager)
    return EXIT_OK if len(found) else EXIT_NOTHING


def _check_numbers(found: Session, options: TextOptions) -> None:
    """Refuse numbers that the session does not have."""
    from threadline.errors import NotFound
    from threadline.model.text import count

    have = len(found.branches)
    if options.branch is not None and options.branch > have:
        raise NotFound(f"The session has {count(have, 'branch', 'branches')}; there is no branch {options.branch}.")
    numbers = [turn.number for turn in found.turns]
    if options.turn is not None and options.turn not in numbers:
        have = sum(turn.act is not None for turn in found.turns)
        raise NotFound(f"The session has {count(have, 'turn')}; there is no turn {options.turn}.")


def _print_session(found: Session, options: TextOptions, output: str) -> None:
    from threadline.cli import output as out
    from threadline.cli.rows import thread_row, turn_row

    if output != "json":
        out.print_rows(_entry_rows(found, options), output)
    elif options.thread:
        out.print_json({"session": found.id, "entries": [thread_row(entry) for entry in found.thread.visible]})
    else:
        calls: dict[int | None, list[Call]] = {}
        for call in found.main.calls:
            calls.setdefault(call.turn, []).append(call)
        turns = [turn for turn in found.turns if options.turn in (None, turn.number)]
        out.print_json(
            {
                "session": found.id,
                "title": found.title.text,
                "path": found.path,
                "kept": found.kept,
                "started": found.started,
                "ended": found.ended,
                "models": found.models,
                "turns": [turn_row(turn, calls.get(turn.number, ())) for turn in turns],
            }
        )


def _entry_rows(found: Session, options: TextOptions) -> Iterator[dict[str, Any]]:
    """The entries that are shown, a row each; with `--agents full`, those of agents after them."""
    from threadline.cli.rows import conversation_row, thread_row
    from threadline.render import leading_entries

    if options.thread:
        yield from map(thread_row, found.thread.visible)
        return
    turns = {id(entry): turn.number for turn in found.turns for entry in turn.entries}
    for entry in leading_entries(found.main, branch=options.branch):
        if options.turn in (None, turns.get(id(entry))):
            yield conversation_row(entry, turns.get(id(entry)))
    for agent in found.agents if options.agents == "full" else ():
        if agent.side is None or options.everything:
            yield from (conversation_row(entry, None, agent.id) for entry in agent.conversation)
