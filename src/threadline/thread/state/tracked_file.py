"""What is proven about one file at each moment of a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from threadline.model.results import Hunk
from threadline.model.state import Evidence, EvidenceKind, FileState, FileVersion, ProofLevel
from threadline.thread.state.patch import (
    apply_patch,
    line_growth,
    matches_patch,
    proven_lines,
    replace_text,
    shift_lines,
    unchanged_lines,
)

_CHANGE_KINDS = frozenset({EvidenceKind.WRITE, EvidenceKind.EDIT, EvidenceKind.PATCH, EvidenceKind.USER_MODIFIED})


class NameMentions:
    """The commands that mention a base name. All files of that name share this object, as there may be many."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self._cached: tuple[tuple[int, int], tuple[Evidence, ...]] = ((0, 0), ())

    def since(self, start: int) -> tuple[Evidence, ...]:
        """Return the mentions from a position on."""
        key = (start, len(self.evidence))
        if self._cached[0] != key:
            self._cached = (key, tuple(self.evidence[start:]))
        return self._cached[1]


ChangeObserver = Callable[[FileState, FileState, Evidence], None]
"""Called with the states of a file before and after each change by the session, and with its evidence."""


class TrackedFile:
    """What is known about one file.

    A `command_count` is always the number of commands so far that may have changed any file.
    """

    def __init__(self, path: str, named: NameMentions, observer: ChangeObserver | None = None) -> None:
        self.path = path
        self._observer = observer
        self._before: FileState | None = None
        self._named = named
        self._sure_since = len(named.evidence)
        self._own_doubts: list[tuple[int, Evidence]] = []
        self.proven = ProofLevel.UNKNOWN
        self.content: str | None = None
        self.lines: dict[int, str] = {}
        self.total: int | None = None
        self.evidence: list[Evidence] = []
        self.proof: Evidence | None = None
        self.command_count = 0
        self.first: FileVersion | None = None
        self.changed: Evidence | None = None
        self.backup_is_current = False

    @property
    def doubts(self) -> tuple[Evidence, ...]:
        """Later events that mention it or may have changed it, in order."""
        if not self._own_doubts:
            return self._named.since(self._sure_since)
        doubts: list[Evidence] = []
        before = self._sure_since
        for at, evidence in self._own_doubts:
            doubts += self._named.evidence[before:at]
            doubts.append(evidence)
            before = at
        return (*doubts, *self._named.evidence[before:])

    def add_doubt(self, evidence: Evidence) -> None:
        """Note that something may have changed it."""
        self._own_doubts.append((len(self._named.evidence), evidence))

    def _prove(self, proof: Evidence | None) -> None:
        """Note what proves the current knowledge, without doubts."""
        self.proof, self._own_doubts, self._sure_since = proof, [], len(self._named.evidence)

    def record_write(self, content: str, evidence: Evidence, command_count: int) -> None:
        """Record that the session wrote this text."""
        self._begin_change(command_count)
        self._set_content(content, evidence, command_count)

    def record_before(self, content: str | None, evidence: Evidence, command_count: int) -> None:
        """Record the text just before a change; None if there was no file. A difference came from outside."""
        if self.first is None and self.changed is None:
            self.first = FileVersion(content, evidence)
        if self.contradicts(content):
            self.evidence.append(Evidence(evidence.place, EvidenceKind.OUTSIDE, evidence.agent))
        self.content, self.lines, self.command_count = content, {}, command_count
        self.proven = ProofLevel.ABSENT if content is None else ProofLevel.WHOLE
        self._prove(evidence)

    def record_content(self, content: str, evidence: Evidence, command_count: int) -> None:
        """Record the complete text: it was read, attached or backed up."""
        self.record_before(content, evidence, command_count)
        self.evidence.append(evidence)
        self.total = content.count("\n") + 1

    def record_absence(self, evidence: Evidence, command_count: int) -> None:
        """Record that the file does not exist."""
        self.record_before(None, evidence, command_count)
        self.evidence.append(evidence)
        self.total = None

    def record_backup(self, content: str | None, evidence: Evidence, command_count: int) -> None:
        """Record a new backup; None if the backup no longer exists.

        Backups are made if the text differs from the last one: if the session did not change it, something else did.
        """
        if content is not None:
            self.record_content(content, evidence, command_count)
        elif self.backup_is_current:
            self.add_doubt(evidence)
        self.backup_is_current = True

    def record_edit(
        self, old: str, new: str, hunks: Sequence[Hunk] | None, evidence: Evidence, command_count: int, *, all_: bool
    ) -> None:
        """Record that a part was replaced. What is known about the rest stays known."""
        self._begin_change(command_count)
        before = self.content if self.proven is ProofLevel.WHOLE else None
        after = replace_text(before, old, new, all_=all_) if before is not None else None
        if before is not None and (after is None or not matches_patch(after, hunks)):
            # What a person inserted instead is only in the patch, and may have tabs.
            after = (
                apply_patch(before, hunks, "\t" if evidence.how is EvidenceKind.USER_MODIFIED else new)
                if hunks
                else None
            )
        if after is not None:
            self._set_content(after, evidence, command_count)
        else:
            self._apply_patch(hunks, evidence, command_count)

    def record_lines(self, lines: dict[int, str], total: int | None, evidence: Evidence, command_count: int) -> None:
        """Record some of its lines."""
        self.evidence.append(evidence)
        if self.proven is ProofLevel.WHOLE and self.matches_lines(lines, total):
            return  # the rest is unchanged
        if self.proven is ProofLevel.PARTIAL and self.matches_lines(lines, total):
            # Lines seen at different times are one text only if nothing ran in between.
            same_moment = command_count == self.command_count
            self.lines.update(lines)
            self._set_lines(self.lines, total or self.total, evidence, self.command_count)
            if same_moment and self.total and self._has_all_lines(self.total):
                self._set_content("\n".join(self.lines[n] for n in range(1, self.total + 1)), None, command_count)
            return
        if self.proven is not ProofLevel.UNKNOWN:
            self.evidence.append(Evidence(evidence.place, EvidenceKind.OUTSIDE, evidence.agent))
        self._set_lines(lines, total, evidence, command_count)

    def _has_all_lines(self, total: int) -> bool:
        """Whether every line is known. Asked for each part that is read, when there are usually too few."""
        return len(self.lines) >= total and all(number in self.lines for number in range(1, total + 1))

    def record_unchanged(self, evidence: Evidence, command_count: int) -> None:
        """Record that it is the same as when it was last read."""
        self.evidence.append(evidence)
        if self.proven is not ProofLevel.UNKNOWN:
            self.command_count = command_count
            self._prove(evidence)

    def record_outside_change(self, lines: dict[int, str], evidence: Evidence, command_count: int) -> None:
        """Record that something else changed it; these are the new lines.

        Changes by other agents are reported this way, too. Those are known already.
        """
        last = self.changed
        if last is not None and last.agent != evidence.agent and lines and self.matches_lines(lines, None):
            self.evidence.append(evidence)
            return
        self.evidence.append(evidence)
        self._set_lines(lines, None, evidence, command_count)

    def record_unknown_change(self, evidence: Evidence, command_count: int) -> None:
        """Record that it was changed in a way that the transcript does not contain."""
        self._begin_change(command_count)
        self.evidence.append(evidence)
        self.proven, self.content, self.lines, self.total = ProofLevel.UNKNOWN, None, {}, None
        self.command_count = command_count
        self._prove(None)
        self._note_change(evidence)

    def matches_lines(self, lines: dict[int, str], total: int | None) -> bool:
        """Whether lines that were seen equal the known ones."""
        if self.proven is ProofLevel.WHOLE and self.content is not None:
            known_lines = self.content.split("\n")
            is_possible = total is None or total == len(known_lines)
            return is_possible and _are_lines_equal(known_lines, lines)
        if self.proven is ProofLevel.ABSENT:
            return False
        is_possible = total is None or self.total is None or total == self.total
        return is_possible and all(self.lines.get(number, text) == text for number, text in lines.items())

    def contradicts(self, content: str | None) -> bool:
        """Whether a complete text differs from the known one."""
        if self.proven is ProofLevel.UNKNOWN:
            return False
        if content is None or self.proven is ProofLevel.ABSENT:
            return (content is None) != (self.proven is ProofLevel.ABSENT)
        if self.proven is ProofLevel.WHOLE:
            return content != self.content
        return not _contains_lines(content, self.lines)

    def state(self, command_count: int) -> FileState:
        """Return its state, after `command_count` commands."""
        return FileState(
            path=self.path,
            proven=self.proven,
            content=self.content if self.proven is ProofLevel.WHOLE else None,
            lines=dict(self.lines),
            total_lines=self.total,
            evidence=tuple(self.evidence),
            proof=self.proof,
            doubts=self.doubts,
            ran_since=command_count - self.command_count if self.proof is not None else 0,
            first=self.first,
            changed=self.changed.place if self.changed is not None else None,
        )

    def _set_content(self, content: str, evidence: Evidence | None, command_count: int) -> None:
        self.proven, self.content, self.lines = ProofLevel.WHOLE, content, {}
        self.total = content.count("\n") + 1
        self.command_count = command_count
        if evidence is not None:
            self.evidence.append(evidence)
            self._prove(evidence)
            self._note_change(evidence)

    def _set_lines(self, lines: dict[int, str], total: int | None, evidence: Evidence, command_count: int) -> None:
        self.proven = ProofLevel.PARTIAL if lines else ProofLevel.UNKNOWN
        self.content, self.lines, self.total = None, lines, total
        self.command_count = command_count
        self._prove(evidence if lines else None)

    def _apply_patch(self, hunks: Sequence[Hunk] | None, evidence: Evidence, command_count: int) -> None:
        """Apply a change to a file that is not completely known: lines move, and those of the patch become known."""
        before, total = self.lines, self.total
        if self.proven is ProofLevel.WHOLE and self.content is not None:
            before = dict(enumerate(self.content.split("\n"), 1))
        moved = shift_lines(before, hunks) if hunks else None
        if moved is None:
            total = None
            if before:
                self.evidence.append(Evidence(evidence.place, EvidenceKind.OUTSIDE, evidence.agent))
        else:
            moved |= unchanged_lines(before, hunks)
            growth = line_growth(hunks)
            total = total + growth if total is not None and growth is not None else None
            total = total if total is not None and total >= 1 else None
        patch_evidence = Evidence(evidence.place, EvidenceKind.PATCH, evidence.agent)
        self.evidence.append(evidence)
        self._set_lines({**proven_lines(hunks), **(moved or {})}, total, patch_evidence, command_count)
        self._note_change(evidence)

    def _begin_change(self, command_count: int) -> None:
        """Remember the state before a change, if there is an observer."""
        if self._observer is not None:
            self._before = self.state(command_count)

    def _note_change(self, evidence: Evidence) -> None:
        if evidence.how not in _CHANGE_KINDS:
            return
        self.changed = evidence
        self.backup_is_current = False
        if self._observer is not None and self._before is not None:
            self._observer(self._before, self.state(self.command_count), evidence)


def _contains_lines(content: str, lines: dict[int, str]) -> bool:
    return _are_lines_equal(content.split("\n"), lines)


def _are_lines_equal(known_lines: list[str], lines: dict[int, str]) -> bool:
    return all(1 <= number <= len(known_lines) and known_lines[number - 1] == text for number, text in lines.items())
