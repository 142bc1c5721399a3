"""Check a replay by what its session read.

Every text that the session read is compared with what was known of the file just before. If they differ, something
changed the file in between that no row records. Whatever could have is named.
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from threadline.model.places import Place
from threadline.model.results import ReadFile
from threadline.model.session import Session
from threadline.model.state import Evidence, EvidenceKind, ProofLevel
from threadline.thread import ReplayEvent
from threadline.thread.state import events, files, replay, tracked_file

# Commands that rewrite files without naming them: formatters, code generators, and git commands that change the tree.
_REWRITING_COMMANDS = re.compile(
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
    """A text that was read after the session had changed the file: whether it equals the replay, or why not.

    `compared` counts the lines that were known.
    """

    place: Place
    proven: ProofLevel
    compared: int
    explanation: Explanation


class _CheckedFiles(files.TrackedFiles):
    """Files that check each text before it becomes known."""

    def __init__(self, session: Session) -> None:
        super().__init__(agents=replay.agent_ids(session))
        self.checks: list[ReadCheck] = []
        self._commands: dict[int, str] = {}

    def _record_command(self, command: str, event: ReplayEvent) -> None:
        self._commands[self.command_count] = command
        super()._record_command(command, event)

    def _read_text(self, tracked: tracked_file.TrackedFile, file: ReadFile, evidence: Evidence) -> None:
        lines = files.lines_by_number(file)
        compared = (
            sum(number in tracked.lines for number in lines) if tracked.proven is ProofLevel.PARTIAL else len(lines)
        )
        if tracked.changed is not None and tracked.proven is not ProofLevel.UNKNOWN and compared:
            agrees = tracked.matches_lines(lines, file.total_lines)
            explanation = Explanation.AGREES if agrees else self._explain(tracked)
            self.checks.append(ReadCheck(evidence.place, tracked.proven, compared, explanation))
        super()._read_text(tracked, file, evidence)

    def _explain(self, tracked: tracked_file.TrackedFile) -> Explanation:
        kinds = {
            EvidenceKind.HOOK: Explanation.HOOK,
            EvidenceKind.OUTSIDE: Explanation.OUTSIDE,
            EvidenceKind.BACKUP: Explanation.BACKUP,
        }
        doubts = {doubt.how for doubt in tracked.doubts}
        for how, explanation in kinds.items():
            if how in doubts:
                return explanation
        since = (command for at, command in self._commands.items() if at >= tracked.command_count)
        if any(map(_REWRITING_COMMANDS.search, since)):
            return Explanation.REWRITING_COMMAND
        return Explanation.NAMING_COMMAND if doubts else Explanation.NONE


def check_reads(session: Session) -> list[ReadCheck]:
    """Compare every text that was read with what was known, for files that the session had changed before."""
    checked = _CheckedFiles(session)
    for event in events.replay_events(session):
        checked.apply_event(event)
    return checked.checks
