"""Turns: an act and all that follows until the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from threadline.model.act import Act, ActKind, Turn
from threadline.model.entries import Entry

# An interrupt ends what it interrupts, steering and feedback join what is going on: none of them begins a turn. A plan
# is put to the model by the program, which begins a turn all the same.
_BEGIN = frozenset({ActKind.PROMPT, ActKind.COMMAND, ActKind.SHELL, ActKind.MEMORY, ActKind.PROGRAMMATIC, ActKind.PLAN})


def turns(entries: Sequence[Entry], acts: Iterable[Act]) -> list[Turn]:
    """The turns of one agent: every entry in exactly one of them, in file order.

    What stands before the first act is turn 0, which has none.
    """
    begins = {id(act.entry): act for act in acts if act.kind in _BEGIN}
    found: list[Turn] = []
    act: Act | None = None
    held: list[Entry] = []
    for entry in entries:
        begun = begins.get(id(entry))
        if begun is not None:
            if held or act is not None:
                found.append(_turn(found, act, held))
            act, held = begun, []
        held.append(entry)
    if held:
        found.append(_turn(found, act, held))
    return found


def _turn(before: list[Turn], act: Act | None, held: list[Entry]) -> Turn:
    number = before[-1].number + 1 if before else int(act is not None)
    return Turn(number, act, tuple(held))
