"""What was left by a rewind or an edit: which branch holds an entry, which turns lie there, a sentence of it."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.model.act import Turn
from threadline.model.agent import Agent
from threadline.model.entries import Entry
from threadline.render.figures import count


def branches_of(agent: Agent) -> dict[tuple[str, int], int]:
    """The numbers of branches by the places of what they hold; of several with the same entry, the first."""
    found: dict[tuple[str, int], int] = {}
    for number, branch in enumerate(agent.branches, 1):
        for entry in branch.entries:
            found.setdefault(_place(entry), number)
    return found


def branch_of(known: Mapping[tuple[str, int], int], entry: Entry) -> int | None:
    """The branch that holds an entry; None where none does."""
    return known.get(_place(entry))


def left_turns(agent: Agent) -> dict[int, list[Turn]]:
    """The turns that were left, by the number of their branch."""
    known = branches_of(agent)
    found: dict[int, list[Turn]] = {}
    for turn in agent.turns:
        number = branch_of(known, turn.act.entry) if turn.act is not None else None
        if number is not None:
            found.setdefault(number, []).append(turn)
    return dict(sorted(found.items()))


def left_told(agent: Agent, branch: int | None) -> str:
    """What a file that shows the conversation, or one branch, does not show, and the option that has it."""
    many = len(agent.branches)
    if not many:
        return ""
    if branch is not None:
        return f"This is branch {branch} of {many:,}, which was left; an export without --branch has the conversation."
    turns = sum(map(len, left_turns(agent).values()))
    with_turns = f" with {count(turns, 'turn')}" if turns else ""
    if many == 1:
        return f"1 branch{with_turns} that was left is not shown; an export with --branch 1 has it."
    return f"{many:,} branches{with_turns} that were left are not shown; exports with --branch 1 to {many} have them."


def _place(entry: Entry) -> tuple[str, int]:
    return entry.line.transcript, entry.line.number
