"""The proof of the proof: every text that a session read, against what was known of the file just before.

Where they differ, something changed the file in between that is not told as such; what could have is named.
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from threadline.model.ids import AgentId
from threadline.model.place import Place
from threadline.model.results import ReadFile
from threadline.model.session import Session
from threadline.model.state import How, Proof
from threadline.thread.state.files import Backup, Files, Ran, read_lines
from threadline.thread.state.known import Known
from threadline.thread.state.moments import Moment, moments

# Commands that rewrite files without naming them: formatters, code generators, and git where it changes the tree.
_REWRITES = re.compile(
    r"\b(fmt|format|prettier|gofmt|goimports|black|ruff|eslint|--fix|sed -i|perl -p?i|generate|codegen"
    r"|git (\S+ )*?(checkout|switch|reset|restore|merge|rebase|pull|stash|cherry-pick|apply|am|revert|commit))\b"
)


class Explanation(StrEnum):
    """Why a text that was read can differ from what was known, best first."""

    AGREES = "agrees"
    HOOK = "hook"
    OUTSIDE = "outside"
    BACKUP = "backup"
    REWRITING_COMMAND = "rewriting-command"
    NAMING_COMMAND = "naming-command"
    NONE = "unexplained"


class ReadCheck(Struct, frozen=True):
    """One text that was read after the session had changed the file: whether it is what was known, or why not.

    `compared` is how many of its lines were known, `because` the place of what explains a difference.
    """

    place: Place
    path: str
    proven: Proof
    compared: int
    explanation: Explanation
    because: Place | None = None


def check_reads(session: Session, backup: Backup | None = None) -> list[ReadCheck]:
    """Compare every text that was read, of files that the session had changed before, where anything was known."""
    found: list[ReadCheck] = []

    def watch(known: Known, file: ReadFile, moment: Moment) -> None:
        lines = read_lines(file)
        compared = sum(number in known.lines for number in lines) if known.proven is Proof.PARTIAL else len(lines)
        if known.changed is None or known.proven is Proof.UNKNOWN or not compared:
            return
        agrees = known.agrees(lines, file.total_lines)
        why, because = (Explanation.AGREES, None) if agrees else _explain(known, files.log[known.ran :])
        found.append(ReadCheck(moment.entry.place, known.path, known.proven, compared, why, because))

    files = Files(backup, agents=agents_of(session), watch=watch)
    for moment in moments(session):
        files.see(moment)
    return found


def agents_of(session: Session) -> frozenset[AgentId]:
    """The agents whose own entries are here."""
    return frozenset(agent.id for agent in session.agents if agent.id is not None)


def _explain(known: Known, ran: list[Ran]) -> tuple[Explanation, Place | None]:
    kinds = {How.HOOK: Explanation.HOOK, How.OUTSIDE: Explanation.OUTSIDE, How.BACKUP: Explanation.BACKUP}
    for how, why in kinds.items():
        for doubt in known.doubts:
            if doubt.how is how:
                return why, doubt.place
    for one in ran:
        if _REWRITES.search(one.command):
            return Explanation.REWRITING_COMMAND, one.place
    named = next((doubt.place for doubt in known.doubts), None)
    return (Explanation.NONE, None) if named is None else (Explanation.NAMING_COMMAND, named)
