"""Compare what sessions produced with a git repository: which commits exist, what was reverted, which lines survive."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from threadline.files import read_file
from threadline.insight.blame.git_versions import worktrees
from threadline.insight.git import Repository
from threadline.insight.outcomes.changed_lines import LineOwners
from threadline.insight.outcomes.session_outcomes import OutcomeFacts
from threadline.model.insight.outcomes import CommitState, OutcomeKind, SessionOutcome

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
_MAX_FILE_BYTES = 16 * 1024 * 1024
_MIN_PARTS = 2


class RepositoryCheck:
    """A repository that outcomes are compared with."""

    def __init__(self, path: str | Path) -> None:
        self._repository = Repository.open(path)
        self._roots = [str(root) for root in worktrees(self._repository)]

    @property
    def root(self) -> Path:
        """The root of the working tree."""
        return self._repository.root

    def select(self, facts: OutcomeFacts) -> OutcomeFacts:
        """What was done in the repository or one of its worktrees."""
        outcomes = [outcome for outcome in facts.outcomes if self.contains(outcome.project)]
        changes = [change for change in facts.changes if self.contains(change.project) or self.contains(change.path)]
        return OutcomeFacts(outcomes, changes)

    def contains(self, path: str | None) -> bool:
        """Whether a path is in the repository or one of its worktrees."""
        return path is not None and any(path == root or path.startswith(f"{root}{os.sep}") for root in self._roots)

    def check_commits(self, outcomes: Iterable[SessionOutcome]) -> list[SessionOutcome]:
        """Outcomes, with the state of each commit whose id is known.

        Raises:
            Unreadable: git failed or took too long, so that nothing is known.
        """
        outcomes = list(outcomes)
        commits = [outcome for outcome in outcomes if outcome.kind is OutcomeKind.COMMIT and outcome.ref]
        full = self._repository.full_ids(outcome.ref for outcome in commits if outcome.ref)
        contained = self._repository.contained([id_ for id_ in full.values() if id_ is not None])
        reverted = self._reverted() if contained else frozenset()

        def state_of(outcome: SessionOutcome) -> CommitState:
            id_ = full.get(outcome.ref or "")
            if id_ is None:
                return CommitState.MISSING
            if id_ not in contained:
                return CommitState.UNREACHABLE
            return CommitState.REVERTED if any(id_.startswith(prefix) for prefix in reverted) else CommitState.EXISTS

        return [
            replace(outcome, state=state_of(outcome)) if outcome.kind is OutcomeKind.COMMIT and outcome.ref else outcome
            for outcome in outcomes
        ]

    def _reverted(self) -> frozenset[str]:
        """The ids of commits that a reachable commit says it reverts, and that is not reverted itself."""
        text = self._repository.run(
            "log", "--all", "--no-mailmap", "--format=%H%n%B%x00", "--grep=This reverts commit", "-F"
        )
        reverts = {
            entry.split("\n", 1)[0]: set(_REVERTS.findall(entry))
            for entry in text.decode(errors="replace").replace("\0\n", "\0").split("\0")
            if entry.strip()
        }
        undone = {id_ for ids in reverts.values() for id_ in ids}
        return frozenset(
            id_
            for commit, ids in reverts.items()
            if not any(commit.startswith(prefix) for prefix in undone)
            for id_ in ids
        )

    def count_lines(self, path: str, owners: LineOwners) -> Counter[int]:
        """How many lines of each edit of a file the working tree contains; none if the file is gone."""
        name = self._locate(path)
        text = self._read(name) if name is not None else None
        return owners.count_in(text) if text is not None else Counter()

    def _locate(self, path: str) -> str | None:
        """The name of a file in the repository, by its path in a session, which may be another checkout's."""
        for root in self._roots:
            if path.startswith(f"{root}{os.sep}"):
                return path[len(root) + 1 :]
        parts = PurePosixPath(path.replace("\\", "/")).parts
        # Of a checkout elsewhere, the longest end of the path that is a tracked file.
        for start in range(1, len(parts) - _MIN_PARTS + 1):
            name = "/".join(parts[start:])
            if name in self._repository.files:
                return name
        return None

    def _read(self, name: str) -> str | None:
        try:
            content = read_file(self.root / name, follow_symlinks=False, limit=_MAX_FILE_BYTES + 1)
        except OSError:
            return None
        return content.decode(errors="replace") if len(content) <= _MAX_FILE_BYTES else None
