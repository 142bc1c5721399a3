"""What sessions produced: commits, pull requests, pushes, test runs and changed files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.tables import Listing


class OutcomeKind(StrEnum):
    """The kinds of outcomes."""

    COMMIT = "commit"
    PULL_REQUEST = "pull-request"
    PUSH = "push"
    TEST = "test"
    FILE = "file"


class CommitState(StrEnum):
    """What a repository says about a commit of a session."""

    EXISTS = "exists"
    UNREACHABLE = "unreachable"
    REVERTED = "reverted"
    MISSING = "missing"


class SessionOutcome(Struct, frozen=True):
    """Something that a session produced.

    - `action` says what was done: `committed`, `amended`, `merged` …; `created`, `merged`, `linked` … for a pull
      request; `pushed`, `forced` or `new branch` for a push; the test runner; `edited` for a file.
    - `label` is the subject, the command, the remote or the path, and `ref` the id of a commit or the address of a pull
      request.
    - `passed`, `failed` and `skipped` count tests; `is_ok` says whether a run succeeded (None if that is not known).
    - `surviving` are the added lines that no later edit of the session removed; with a repository, those that its
      working tree contains.
    - `is_replaced` says that a later commit of the session replaced it, by amending or rebasing.
    - `state` is what the repository says about a commit, if one was asked for.
    - `evidence` says how the outcome is known.
    """

    kind: OutcomeKind
    action: str
    label: str
    ref: str | None
    branch: str | None
    timestamp: datetime | None
    session: SessionId | None
    project: str | None
    agent: AgentId | None
    model: str | None
    place: Place
    call: CallId | None = None
    files: int | None = None
    added: int | None = None
    removed: int | None = None
    surviving: int | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    exit_code: int | None = None
    is_ok: bool | None = None
    is_replaced: bool = False
    state: CommitState | None = None
    evidence: str = ""

    def __repr__(self) -> str:
        return f"SessionOutcome({str(self.kind)!r}, {self.action!r}, {self.label[:60]!r}, {str(self.place)!r})"


class OutcomeList(Listing[SessionOutcome]):
    """What sessions produced, oldest first."""

    row_type = SessionOutcome
    noun = "outcome"
    html_columns = ("timestamp", "session", "kind", "action", "label", "ref", "added", "removed", "passed", "failed")


class OutcomeGroup(Struct, frozen=True):
    """What was produced by a session, in a project, on a day or with a model, and what it cost.

    `commits` are those that no later commit of the session replaced; `pull_requests` those that were created, merged or
    linked, each once. `amount` is everything that was spent, whatever it was spent on; it is None if no price is known.
    `per_commit`, `per_pull_request` and `per_100_lines` (surviving) divide it; None if there is nothing to divide by.
    """

    key: str
    sessions: int
    commits: int
    pull_requests: int
    pushes: int
    files: int
    added: int
    removed: int
    surviving: int
    test_runs: int
    failed_runs: int
    passed: int
    failed: int
    skipped: int
    amount: Decimal | None
    per_commit: Decimal | None = None
    per_pull_request: Decimal | None = None
    per_100_lines: Decimal | None = None

    def __repr__(self) -> str:
        return f"OutcomeGroup({self.key!r}, {self.commits} commits, {self.pull_requests} pull requests)"


class OutcomeGroups(Listing[OutcomeGroup]):
    """Outcomes added up, with what they cost. `total` is all of them: what several groups share counts once."""

    row_type = OutcomeGroup
    noun = "group"

    def __init__(
        self, rows: Iterable[OutcomeGroup] = (), total: OutcomeGroup | None = None, more: int | None = 0
    ) -> None:
        super().__init__(rows, more)
        self.total = total


class OutcomeRow(Struct, array_like=True, gc=False):
    """A commit, push, pull request or test run, without what its call says. See `SessionOutcome` for the fields."""

    kind: str
    action: str
    label: str
    ref: str | None = None
    branch: str | None = None
    files: int | None = None
    added: int | None = None
    removed: int | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    is_ok: bool | None = None
    evidence: str = ""

    def outcome(
        self,
        *,
        timestamp: datetime | None,
        session: SessionId | None,
        project: str | None,
        agent: AgentId | None,
        model: str | None,
        place: Place,
        call: CallId | None,
        exit_code: int | None,
    ) -> SessionOutcome:
        """The outcome, with what its call says."""
        return SessionOutcome(
            kind=OutcomeKind(self.kind),
            action=self.action,
            label=self.label,
            ref=self.ref,
            branch=self.branch,
            timestamp=timestamp,
            session=session,
            project=project,
            agent=agent,
            model=model,
            place=place,
            call=call,
            files=self.files,
            added=self.added,
            removed=self.removed,
            passed=self.passed,
            failed=self.failed,
            skipped=self.skipped,
            exit_code=exit_code,
            is_ok=self.is_ok,
            evidence=self.evidence,
        )
