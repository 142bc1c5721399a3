"""What is proven about one file at each moment of a replay."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Commands that mention a base name. All files of that name share this, as they may be many."""

    def __init__(self) -> None:
        self.said: list[Evidence] = []
        self._told: tuple[tuple[int, int], tuple[Evidence, ...]] = ((0, 0), ())

    def since(self, start: int) -> tuple[Evidence, ...]:
        """Return the mentions from a position on."""
        key = (start, len(self.said))
        if self._told[0] != key:
            self._told = (key, tuple(self.said[start:]))
        return self._told[1]


class TrackedFile:
    """What is known about one file. `ran` is always the number of commands that may have changed any file."""

    def __init__(self, path: str, named: NameMentions) -> None:
        self.path = path
        self._named = named
        self._sure_since = len(named.said)
        self._own_doubts: list[tuple[int, Evidence]] = []
        self.proven = ProofLevel.UNKNOWN
        self.content: str | None = None
        self.lines: dict[int, str] = {}
        self.total: int | None = None
        self.evidence: list[Evidence] = []
        self.proof: Evidence | None = None
        self.ran = 0
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
            doubts += self._named.said[before:at]
            doubts.append(evidence)
            before = at
        return (*doubts, *self._named.said[before:])

    def add_doubt(self, evidence: Evidence) -> None:
        """Note that something may have changed it."""
        self._own_doubts.append((len(self._named.said), evidence))

    def _prove(self, proof: Evidence | None) -> None:
        """Note what proves the current knowledge, without doubts."""
        self.proof, self._own_doubts, self._sure_since = proof, [], len(self._named.said)

    def written(self, content: str, evidence: Evidence, ran: int) -> None:
        """The session wrote this text."""
        self._whole(content, evidence, ran)

    def was(self, content: str | None, evidence: Evidence, ran: int) -> None:
        """Evidence proves the text just before a change; None: there was no file. A difference came from outside."""
        if self.first is None and self.changed is None:
            self.first = FileVersion(content, evidence)
        if self.contradicts(content):
            self.evidence.append(Evidence(evidence.place, EvidenceKind.OUTSIDE, evidence.agent))
        self.content, self.lines, self.ran = content, {}, ran
        self.proven = ProofLevel.ABSENT if content is None else ProofLevel.WHOLE
        self._prove(evidence)

    def found(self, content: str, evidence: Evidence, ran: int) -> None:
        """The whole text was seen: read, attached or backed up."""
        self.was(content, evidence, ran)
        self.evidence.append(evidence)
        self.total = content.count("\n") + 1

    def missing(self, evidence: Evidence, ran: int) -> None:
        """Evidence shows that the file does not exist."""
        self.was(None, evidence, ran)
        self.evidence.append(evidence)
        self.total = None

    def record_backup(self, content: str | None, evidence: Evidence, ran: int) -> None:
        """A new backup was made; None if the backup is gone.

        Backups are made if the text differs from the last one: if the session did not change it, something else did.
        """
        if content is not None:
            self.found(content, evidence, ran)
        elif self.backup_is_current:
            self.add_doubt(evidence)
        self.backup_is_current = True

    def edited(
        self, old: str, new: str, hunks: Sequence[Hunk] | None, evidence: Evidence, ran: int, *, all_: bool
    ) -> None:
        """A part was replaced. What is known about the rest stays known."""
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
            self._whole(after, evidence, ran)
        else:
            self._patch(hunks, evidence, ran)

    def record_lines(self, lines: dict[int, str], total: int | None, evidence: Evidence, ran: int) -> None:
        """Some of its lines were seen."""
        self.evidence.append(evidence)
        if self.proven is ProofLevel.WHOLE and self.agrees(lines, total):
            return  # the rest is unchanged
        if self.proven is ProofLevel.PARTIAL and self.agrees(lines, total):
            # Lines seen at different times are one text only if nothing ran in between.
            same_moment = ran == self.ran
            self._partial({**self.lines, **lines}, total or self.total, evidence, self.ran)
            if same_moment and self.total and all(n in self.lines for n in range(1, self.total + 1)):
                self._whole("\n".join(self.lines[n] for n in range(1, self.total + 1)), None, ran)
            return
        if self.proven is not ProofLevel.UNKNOWN:
            self.evidence.append(Evidence(evidence.place, EvidenceKind.OUTSIDE, evidence.agent))
        self._partial(lines, total, evidence, ran)

    def unchanged(self, evidence: Evidence, ran: int) -> None:
        """It was seen to be the same as when it was last read."""
        self.evidence.append(evidence)
        if self.proven is not ProofLevel.UNKNOWN:
            self.ran = ran
            self._prove(evidence)

    def record_outside_change(self, lines: dict[int, str], evidence: Evidence, ran: int) -> None:
        """Something else changed it; these are the new lines.

        Changes of other agents are reported this way, too, and then nothing new happened.
        """
        last = self.changed
        if last is not None and last.agent != evidence.agent and lines and self.agrees(lines, None):
            self.evidence.append(evidence)
            return
        self.evidence.append(evidence)
        self._partial(lines, None, evidence, ran)

    def lost(self, evidence: Evidence, ran: int) -> None:
        """It was changed in a way that is not recorded."""
        self.evidence.append(evidence)
        self._note_change(evidence)
        self.proven, self.content, self.lines, self.total = ProofLevel.UNKNOWN, None, {}, None
        self.ran = ran
        self._prove(None)

    def agrees(self, lines: dict[int, str], total: int | None) -> bool:
        """Whether lines that were seen equal the known ones."""
        if self.proven is ProofLevel.WHOLE and self.content is not None:
            mine = self.content.split("\n")
            is_possible = total is None or total == len(mine)
            return is_possible and _are_lines_equal(mine, lines)
        if self.proven is ProofLevel.ABSENT:
            return False
        is_possible = total is None or self.total is None or total == self.total
        return is_possible and all(self.lines.get(number, text) == text for number, text in lines.items())

    def contradicts(self, content: str | None) -> bool:
        """Whether a whole text differs from the known one."""
        if self.proven is ProofLevel.UNKNOWN:
            return False
        if content is None or self.proven is ProofLevel.ABSENT:
            return (content is None) != (self.proven is ProofLevel.ABSENT)
        if self.proven is ProofLevel.WHOLE:
            return content != self.content
        return not _contains_lines(content, self.lines)

    def state(self, ran: int) -> FileState:
        """Return its state, after `ran` commands."""
        return FileState(
            path=self.path,
            proven=self.proven,
            content=self.content if self.proven is ProofLevel.WHOLE else None,
            lines=dict(self.lines),
            total_lines=self.total,
            evidence=tuple(self.evidence),
            proof=self.proof,
            doubts=self.doubts,
            ran_since=ran - self.ran if self.proof is not None else 0,
            first=self.first,
            changed=self.changed.place if self.changed is not None else None,
        )

    def _whole(self, content: str, evidence: Evidence | None, ran: int) -> None:
        self.proven, self.content, self.lines = ProofLevel.WHOLE, content, {}
        self.total = content.count("\n") + 1
        self.ran = ran
        if evidence is not None:
            self.evidence.append(evidence)
            self._prove(evidence)
            self._note_change(evidence)

    def _partial(self, lines: dict[int, str], total: int | None, evidence: Evidence, ran: int) -> None:
        self.proven = ProofLevel.PARTIAL if lines else ProofLevel.UNKNOWN
        self.content, self.lines, self.total = None, lines, total
        self.ran = ran
        self._prove(evidence if lines else None)

    def _patch(self, hunks: Sequence[Hunk] | None, evidence: Evidence, ran: int) -> None:
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
            more = line_growth(hunks)
            total = total + more if total is not None and more is not None else None
            total = total if total is not None and total >= 1 else None
        patch_evidence = Evidence(evidence.place, EvidenceKind.PATCH, evidence.agent)
        self.evidence.append(evidence)
        self._partial({**proven_lines(hunks), **(moved or {})}, total, patch_evidence, ran)
        self._note_change(evidence)

    def _note_change(self, evidence: Evidence) -> None:
        if evidence.how in _CHANGE_KINDS:
            self.changed = evidence
            self.backup_is_current = False


def _contains_lines(content: str, lines: dict[int, str]) -> bool:
    return _are_lines_equal(content.split("\n"), lines)


def _are_lines_equal(mine: list[str], lines: dict[int, str]) -> bool:
    return all(1 <= number <= len(mine) and mine[number - 1] == text for number, text in lines.items())
