"""Find the outcomes of a session that was read into memory, and tell which outcomes are the same or replaced.

The index finds the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.insight.outcomes.changed_lines import ChangedLines, changed_lines
from threadline.insight.outcomes.extract import extract_outcomes, link_row, may_have_outcome
from threadline.insight.outcomes.git_output import AUTOSQUASHED, FIXUP_PREFIXES
from threadline.insight.outcomes.git_output import find_commits as find_commits_in_output
from threadline.insight.outcomes.pull_requests import request_number
from threadline.model.calls import Call, Outcome
from threadline.model.entries import PrLinkEntry, UserEntry
from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow, SessionOutcome
from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.results import EditResult, MultiEditResult, NotebookEditResult, WriteResult
from threadline.model.session import Session
from threadline.shell_syntax import SHELL_TOOLS, parse_shell_call, strip_terminal_escapes
from threadline.thread import exit_code, full_path

_MAY_COMMIT = re.compile(r"commit|rebase|cherry-pick|revert|merge|git (?:pull|am|ci)\b")
_MIN_ID = 7


class LineChange(Struct, frozen=True):
    """The lines that one edit of a file changed, and who made the edit."""

    path: str
    lines: ChangedLines
    timestamp: datetime | None
    session: SessionId | None
    project: str | None
    agent: AgentId | None
    model: str | None
    place: Place
    call: CallId | None = None


class OutcomeFacts(Struct):
    """What was found in sessions: outcomes of calls, and edits of files. `messages` has the message of each call."""

    outcomes: list[SessionOutcome] = []
    changes: list[LineChange] = []
    messages: dict[CallId, str] = {}


def session_outcomes(session: Session, project: str | None = None) -> OutcomeFacts:
    """What a session produced, including what it copied from another one."""
    project = project or (session.cwds[0] if session.cwds else None)
    facts = OutcomeFacts()
    for call in session.calls:
        if call.answer is None:
            continue
        raw = call.answer.tool_use_result if isinstance(call.answer, UserEntry) else None
        if call.entry.message is not None and call.entry.message.id:
            facts.messages[call.id] = call.entry.message.id
        path = _edited_path(call)
        if path is not None:
            lines = changed_lines(raw, call.input)
            if lines is not None:
                absolute = full_path(path, call.answer.cwd or call.entry.cwd or project)
                facts.changes.append(
                    LineChange(
                        path=absolute,
                        lines=lines,
                        timestamp=call.answer.timestamp,
                        session=session.id,
                        project=project,
                        agent=call.agent,
                        model=_model_of(call),
                        place=call.answer.place,
                        call=call.id,
                    )
                )
        elif may_have_outcome(call.tool):
            facts.outcomes += (_outcome_of(row, call, session, project) for row in _outcome_rows(call, raw))
    facts.outcomes += _links(session, project)
    return facts


def find_commits(session: Session) -> list[tuple[Call, SessionOutcome]]:
    """Each commit of a session and the call that made it, in order of time. Replaced ones are marked.

    Only calls with a word of a command that commits are parsed.
    """
    calls: dict[str, Call] = {}
    commits: list[SessionOutcome] = []
    for call in session.calls:
        if call.answer is None or call.tool not in SHELL_TOOLS or _MAY_COMMIT.search(str(call.input)) is None:
            continue
        if call.outcome not in (Outcome.OK, Outcome.ERROR):
            continue
        raw = call.answer.tool_use_result if isinstance(call.answer, UserEntry) else None
        is_ok = call.outcome is Outcome.OK and not exit_code(call)
        commands, output = parse_shell_call(call.tool, call.input), strip_terminal_escapes(call.output)
        for row in find_commits_in_output(commands, output, raw, is_ok=is_ok):
            calls[call.id] = call
            commits.append(_outcome_of(row, call, session, None))
    return [(calls[commit.call], commit) for commit in resolve_outcomes(commits) if commit.call is not None]


def _outcome_rows(call: Call, raw: Any) -> list[OutcomeRow]:
    return extract_outcomes(
        call.tool,
        call.input,
        parse_shell_call(call.tool, call.input),
        lambda: call.output,
        raw,
        call.outcome,
        exit_code(call),
    )


def _edited_path(call: Call) -> str | None:
    """The path of the file that a call changed."""
    match call.result:
        case WriteResult(file_path=str(path)) | EditResult(file_path=str(path)) | MultiEditResult(file_path=str(path)):
            return path
        case NotebookEditResult(notebook_path=path, error=error):
            named = path or (call.input.get("notebook_path") if isinstance(call.input, dict) else None)
            return named if isinstance(named, str) and not error else None
    inputs = call.input if isinstance(call.input, dict) else {}
    has_result = isinstance(call.answer, UserEntry) and call.answer.tool_use_result is not None
    if has_result or call.outcome is not Outcome.OK or call.tool not in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        return None
    path = inputs.get("notebook_path" if call.tool == "NotebookEdit" else "file_path")
    return path if isinstance(path, str) and path else None


def _model_of(call: Call) -> str | None:
    return call.entry.message.model if call.entry.message is not None else None


def _outcome_of(row: OutcomeRow, call: Call, session: Session, project: str | None) -> SessionOutcome:
    entry = call.answer or call.entry
    return row.outcome(
        timestamp=entry.timestamp,
        session=session.id,
        project=project,
        agent=call.agent,
        model=_model_of(call),
        place=entry.place,
        call=call.id,
        exit_code=exit_code(call) if row.kind == OutcomeKind.TEST else None,
    )


def _links(session: Session, project: str | None) -> Iterator[SessionOutcome]:
    for entry in session.main.entries:
        row = link_row(entry) if isinstance(entry, PrLinkEntry) else None
        if row is not None:
            yield row.outcome(
                timestamp=entry.timestamp,
                session=session.id,
                project=project,
                agent=None,
                model=None,
                place=entry.place,
                call=None,
                exit_code=None,
            )


def resolve_outcomes(outcomes: Iterable[SessionOutcome]) -> list[SessionOutcome]:
    """Outcomes in order of time, each once; commits that were replaced are marked, numbers become addresses."""
    ordered = sorted(outcomes, key=lambda outcome: outcome_sort_key(outcome.timestamp, outcome.place))
    addresses = {
        (outcome.session, request_number(outcome.ref)): outcome.ref
        for outcome in ordered
        if outcome.kind is OutcomeKind.PULL_REQUEST and outcome.ref and "://" in outcome.ref
    }
    unique: dict[tuple[object, ...], SessionOutcome] = {}
    for outcome in ordered:
        if outcome.kind is OutcomeKind.PULL_REQUEST and outcome.ref and outcome.ref.startswith("#"):
            ref = addresses.get((outcome.session, request_number(outcome.ref)), outcome.ref)
            outcome = replace(outcome, ref=ref)  # noqa: PLW2901 - the same outcome
        unique.setdefault(_identity(outcome), outcome)
    # Claude Code also links what a command created or changed.
    known = {(outcome.session, outcome.ref) for outcome in unique.values() if outcome.call is not None}
    kept = (
        outcome
        for outcome in unique.values()
        if outcome.action != "linked" or outcome.call is not None or (outcome.session, outcome.ref) not in known
    )
    return _mark_replaced(list(kept))


def _identity(outcome: SessionOutcome) -> tuple[object, ...]:
    match outcome.kind:
        case OutcomeKind.COMMIT if outcome.ref:
            return outcome.kind, outcome.project, outcome.ref[:_MIN_ID]
        case OutcomeKind.PULL_REQUEST if outcome.action == "linked":
            return outcome.kind, outcome.action, outcome.ref, outcome.session
    return outcome.kind, outcome.call or str(outcome.place), outcome.label, outcome.ref, outcome.branch, outcome.action


def _mark_replaced(outcomes: list[SessionOutcome]) -> list[SessionOutcome]:
    """Mark commits that a later commit of the session replaced, and leave out what only says so.

    An amended commit replaces the session's last one on the branch, a rebased one that with the same subject, and an
    autosquash all fixups of the branch. The branch of a quiet commit is not known; it may be any.
    """
    replaced: set[int] = set()
    current: dict[tuple[object, ...], list[tuple[int, str | None]]] = {}  # commits that are not replaced, and branches
    by_subject: dict[tuple[object, ...], int] = {}
    for at, outcome in enumerate(outcomes):
        if outcome.kind is not OutcomeKind.COMMIT:
            continue
        where, branch = (outcome.session, outcome.project), outcome.branch
        commits = current.setdefault(where, [])
        candidates = [pair for pair in commits if branch is None or pair[1] in (branch, None)]
        folded: list[tuple[int, str | None]] = []
        if outcome.action == AUTOSQUASHED:
            folded = [pair for pair in candidates if outcomes[pair[0]].label.startswith(FIXUP_PREFIXES)]
        elif outcome.action == "amended":
            folded = candidates[-1:]
            branch = branch or next((old for _, old in folded), None)
        elif outcome.action == "rebased" and (*where, outcome.label) in by_subject:
            earlier = by_subject[*where, outcome.label]
            replaced.add(earlier)
            folded = [pair for pair in commits if pair[0] == earlier]
        for pair in folded:
            replaced.add(pair[0])
            commits.remove(pair)
        if outcome.action != AUTOSQUASHED:
            commits.append((at, branch))
            by_subject[*where, outcome.label] = at
    return [
        replace(outcome, is_replaced=True) if at in replaced else outcome
        for at, outcome in enumerate(outcomes)
        if outcome.action != AUTOSQUASHED
    ]


def outcome_sort_key(timestamp: datetime | None, place: Place) -> tuple[float, str, int]:
    """Sort by time, then by place."""
    return timestamp.timestamp() if timestamp is not None else 0.0, place.transcript, place.line
