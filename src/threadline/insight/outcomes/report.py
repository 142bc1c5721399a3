"""Put the outcomes of sessions together: count each once, follow lines to the end, and add up by a key with costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import cached_property

from threadline.insight.outcomes.changed_lines import LineOwners
from threadline.insight.outcomes.pull_requests import COUNTED_ACTIONS
from threadline.insight.outcomes.session_outcomes import LineChange, OutcomeFacts, outcome_sort_key, resolve_outcomes
from threadline.model.insight.outcomes import OutcomeGroup, OutcomeKind, SessionOutcome
from threadline.model.ledger import NO_TIME, NONE, sum_amounts
from threadline.model.places import SessionId
from threadline.model.times import in_zone, is_within

OUTCOME_KEYS = ("session", "project", "day", "model")
"""What outcomes can be added up by."""


class OutcomeReport:
    """Outcomes and edits of some sessions in a period, each counted once.

    `count_lines` returns how many of the lines that a session added to a file a repository still contains, by the edit
    that added them; without it, lines survive if no later edit of the session removed them. The edits of `facts` may be
    from outside the period, because they decide what survives. `is_charged` says whether what a session spent in a
    project belongs to the report; without it, everything does.
    """

    def __init__(
        self,
        facts: OutcomeFacts,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        count_lines: Callable[[str, LineOwners], Counter[int]] | None = None,
        is_charged: Callable[[str | None, str | None], bool] | None = None,
        check_commits: Callable[[list[SessionOutcome]], list[SessionOutcome]] = list,
    ) -> None:
        def is_in_period(timestamp: datetime | None) -> bool:
            return (since is None and until is None) or is_within(timestamp, since, until)

        self._facts = facts
        self._is_in_period = is_in_period
        self._count_lines = count_lines
        self.is_charged = is_charged
        outcomes = [outcome for outcome in resolve_outcomes(facts.outcomes) if is_in_period(outcome.timestamp)]
        self.outcomes = check_commits(outcomes)

    @cached_property
    def changes(self) -> list[tuple[LineChange, int]]:
        """The edits of the period, oldest first, and how many lines of each survive."""
        changes = _drop_copies(self._facts.changes)
        changes.sort(key=lambda change: outcome_sort_key(change.timestamp, change.place))
        surviving = _count_surviving(changes, self._count_lines)
        return [(change, surviving[at]) for at, change in enumerate(changes) if self._is_in_period(change.timestamp)]

    def rows(self, kinds: Collection[str] = tuple(OutcomeKind)) -> list[SessionOutcome]:
        """The outcomes of these kinds, oldest first. One of kind `file` is a file that a session changed."""
        files = self._files() if OutcomeKind.FILE in kinds else ()
        rows = [*(outcome for outcome in self.outcomes if outcome.kind in kinds), *files]
        return sorted(rows, key=lambda outcome: outcome_sort_key(outcome.timestamp, outcome.place))

    def _files(self) -> Iterable[SessionOutcome]:
        groups: dict[tuple[SessionId | None, str], list[tuple[LineChange, int]]] = {}
        for change, surviving in self.changes:
            groups.setdefault((change.session, change.path), []).append((change, surviving))
        for (session, path), group in groups.items():
            last = group[-1][0]
            yield SessionOutcome(
                kind=OutcomeKind.FILE,
                action="created" if group[0][0].lines.is_whole else "edited",
                label=path,
                ref=None,
                branch=None,
                timestamp=last.timestamp,
                session=session,
                project=last.project,
                agent=last.agent,
                model=last.model,
                place=last.place,
                call=last.call,
                added=sum(change.lines.added for change, _ in group),
                removed=sum(change.lines.removed for change, _ in group),
                surviving=sum(surviving for _, surviving in group),
                evidence=f"{len(group)} edits" if len(group) > 1 else "1 edit",
            )

    def groups(self, by: str, amounts: Mapping[str, Decimal | None], zone: tzinfo) -> list[OutcomeGroup]:
        """Add up by a key of `OUTCOME_KEYS`. `amounts` is what was spent, by the same key."""
        key = _key_function(by, zone)
        sums: dict[str, _GroupSum] = {}
        for outcome in self.outcomes:
            sums.setdefault(key(outcome), _GroupSum()).add(outcome)
        for change, surviving in self.changes:
            sums.setdefault(key(change), _GroupSum()).add_change(change, surviving)
        return [sums.get(name, _EMPTY).group(name, amounts.get(name)) for name in dict.fromkeys((*amounts, *sums))]

    def total(self, amounts: Iterable[Decimal | None]) -> OutcomeGroup:
        """Everything as one group: what several groups share, such as a pull request, counts once."""
        total = _GroupSum()
        for outcome in self.outcomes:
            total.add(outcome)
        for change, surviving in self.changes:
            total.add_change(change, surviving)
        known = [amount for amount in amounts if amount is not None]
        return total.group("total", sum_amounts(known) if known else None)


class _GroupSum:
    """The outcomes of one group, added up."""

    def __init__(self) -> None:
        self._sessions: set[str | None] = set()
        self._requests: set[str] = set()
        self._files: set[str] = set()
        self._counts: Counter[str] = Counter()

    def add(self, outcome: SessionOutcome) -> None:
        self._sessions.add(outcome.session)
        counts = self._counts
        match outcome.kind:
            case OutcomeKind.COMMIT:
                counts["commits"] += not outcome.is_replaced
            case OutcomeKind.PULL_REQUEST if outcome.action in COUNTED_ACTIONS and outcome.ref:
                self._requests.add(outcome.ref)
            case OutcomeKind.PUSH:
                counts["pushes"] += 1
            case OutcomeKind.TEST:
                counts["test_runs"] += 1
                counts["failed_runs"] += outcome.is_ok is False
                counts["passed"] += outcome.passed or 0
                counts["failed"] += outcome.failed or 0
                counts["skipped"] += outcome.skipped or 0

    def add_change(self, change: LineChange, surviving: int) -> None:
        self._sessions.add(change.session)
        self._files.add(change.path)
        self._counts["added"] += change.lines.added
        self._counts["removed"] += change.lines.removed
        self._counts["surviving"] += surviving

    def group(self, key: str, amount: Decimal | None) -> OutcomeGroup:
        counts = self._counts
        return OutcomeGroup(
            key=key,
            sessions=len(self._sessions),
            commits=counts["commits"],
            pull_requests=len(self._requests),
            pushes=counts["pushes"],
            files=len(self._files),
            added=counts["added"],
            removed=counts["removed"],
            surviving=counts["surviving"],
            test_runs=counts["test_runs"],
            failed_runs=counts["failed_runs"],
            passed=counts["passed"],
            failed=counts["failed"],
            skipped=counts["skipped"],
            amount=amount,
            per_commit=_divide(amount, counts["commits"]),
            per_pull_request=_divide(amount, len(self._requests)),
            per_100_lines=_divide(amount, counts["surviving"], 100),
        )


_EMPTY = _GroupSum()


def _divide(amount: Decimal | None, count: int, unit: int = 1) -> Decimal | None:
    return (amount * unit / count).quantize(Decimal("0.000001")) if amount is not None and count else None


def _key_function(by: str, zone: tzinfo) -> Callable[[SessionOutcome | LineChange], str]:
    if by == "day":
        return lambda row: in_zone(row.timestamp, zone).date().isoformat() if row.timestamp is not None else NO_TIME
    return lambda row: str(getattr(row, by) or NONE)


def _drop_copies(changes: Iterable[LineChange]) -> list[LineChange]:
    """Edits, each once: a copy of a session repeats its calls."""
    return list({(change.call or str(change.place), change.path): change for change in changes}.values())


def _count_surviving(
    changes: Sequence[LineChange], count_lines: Callable[[str, LineOwners], Counter[int]] | None
) -> Counter[int]:
    """How many lines of each edit survive, by its position."""
    files: dict[tuple[SessionId | None, str], LineOwners] = {}
    for at, change in enumerate(changes):
        files.setdefault((change.session, change.path), LineOwners()).apply(change.lines, at)
    surviving: Counter[int] = Counter()
    for (_, path), owners in files.items():
        # An edit changes one file, so that no other file has lines of it.
        dict.update(surviving, owners.count() if count_lines is None else count_lines(path, owners))
    return surviving
