"""Attributions, waste and outcomes as JSON values: the same for commands, pages and exports."""

from __future__ import annotations

from typing import Any

from threadline.insight.causes import CauseGroup, CauseList, group_rows
from threadline.model.insight.attribution import Attribution, CostCause
from threadline.model.insight.blame import Blame, BlamedLine
from threadline.model.insight.outcomes import OutcomeGroup, SessionOutcome
from threadline.model.insight.waste import Waste


def attribution_record(attribution: Attribution, by: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """An attribution with at most `limit` rows; with `by`, they are added up by a key of `GROUP_KEYS`."""
    rows = (
        [cause_record(cause) for cause in attribution.rows[:limit]]
        if by is None
        else [group_record(group, by) for group in group_rows(attribution.rows, by)[:limit]]
    )
    return {
        "session": attribution.session,
        "amount": attribution.amount,
        "sessions": 1 if attribution.rows else 0,
        "error": round(attribution.error, 3) if attribution.error is not None else None,
        "unpriced": attribution.unpriced,
        "rows": rows,
    }


def causes_record(causes: CauseList, by: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """The causes of many sessions, at most `limit` rows; with `by`, added up by a key of `GROUP_KEYS`."""
    rows = (
        [cause_record(cause) for cause in (causes if limit is None else causes.largest(limit))]
        if by is None
        else [group_record(group, by) for group in causes.by(by)[:limit]]
    )
    return {
        "session": None,
        "amount": causes.amount,
        "sessions": causes.sessions,
        "error": round(causes.error, 3) if causes.error is not None else None,
        "unpriced": causes.unpriced,
        "rows": rows,
    }


def cause_record(cause: CostCause) -> dict[str, Any]:
    """A cause of a cost."""
    return {
        "session": cause.session,
        "project": cause.project,
        "kind": str(cause.kind),
        "label": cause.label,
        "place": str(cause.place) if cause.place is not None else None,
        "turn": cause.turn,
        "agent": cause.agent,
        "name": cause.name,
        "file": cause.file,
        "server": cause.server,
        "tokens": cause.tokens,
        "requests": cause.requests,
        "write": cause.write,
        "read": cause.read,
        "output": cause.output,
        "amount": cause.amount,
        "estimated": cause.estimated,
    }


def group_record(group: CauseGroup, by: str) -> dict[str, Any]:
    """Causes that were added up by a key."""
    return {
        **({"session": group.session} if group.session is not None else {}),
        by: group.key,
        "causes": group.causes,
        "tokens": group.tokens,
        "requests": group.requests,
        "write": group.write,
        "read": group.read,
        "output": group.output,
        "amount": group.amount,
        "estimated": group.estimated,
    }


def waste_record(waste: Waste) -> dict[str, Any]:
    """An avoidable cost."""
    return {
        "session": waste.session,
        "project": waste.project,
        "detector": waste.detector,
        "label": waste.label,
        "evidence": waste.evidence,
        "places": [str(place) for place in waste.places],
        "turn": waste.turn,
        "agent": waste.agent,
        "tokens": waste.tokens,
        "amount": waste.amount,
        "estimated": waste.estimated,
        "advice": waste.advice,
    }


def outcome_record(outcome: SessionOutcome) -> dict[str, Any]:
    """An outcome."""
    return {
        "kind": str(outcome.kind),
        "action": outcome.action,
        "label": outcome.label,
        "ref": outcome.ref,
        "branch": outcome.branch,
        "timestamp": outcome.timestamp,
        "session": outcome.session,
        "project": outcome.project,
        "agent": outcome.agent,
        "model": outcome.model,
        "files": outcome.files,
        "added": outcome.added,
        "removed": outcome.removed,
        "surviving": outcome.surviving,
        "passed": outcome.passed,
        "failed": outcome.failed,
        "skipped": outcome.skipped,
        "exit_code": outcome.exit_code,
        "ok": outcome.is_ok,
        "replaced": outcome.is_replaced,
        "state": str(outcome.state) if outcome.state is not None else None,
        "evidence": outcome.evidence,
        "call": outcome.call,
        "place": str(outcome.place),
    }


def outcome_group_record(group: OutcomeGroup, by: str) -> dict[str, Any]:
    """Outcomes added up by a key."""
    return {
        by: group.key,
        "sessions": group.sessions,
        "commits": group.commits,
        "pull_requests": group.pull_requests,
        "pushes": group.pushes,
        "files": group.files,
        "added": group.added,
        "removed": group.removed,
        "surviving": group.surviving,
        "test_runs": group.test_runs,
        "failed_runs": group.failed_runs,
        "passed": group.passed,
        "failed": group.failed,
        "skipped": group.skipped,
        "amount": group.amount,
        "per_commit": group.per_commit,
        "per_pull_request": group.per_pull_request,
        "per_100_lines": group.per_100_lines,
    }


def blame_record(blame: Blame) -> dict[str, Any]:
    """A file and who wrote its lines."""
    return {
        "file": blame.file,
        "source": str(blame.source),
        "repository": blame.repository,
        "revision": blame.revision,
        "lines": [blamed_line_record(line) for line in blame.lines],
    }


def blamed_line_record(line: BlamedLine) -> dict[str, Any]:
    """A line and who wrote it."""
    return {
        "line": line.line,
        "text": line.text,
        "session": line.session,
        "turn": line.turn,
        "place": str(line.place) if line.place is not None else None,
        "commit": line.commit,
        "known": line.known,
        "prompt": line.prompt,
        "model": line.model,
        "agent": line.agent,
        "time": line.time,
        "tool": line.tool,
        "call": line.call,
        "path": line.path,
        "author": line.author,
        "reason": line.reason or None,
    }
