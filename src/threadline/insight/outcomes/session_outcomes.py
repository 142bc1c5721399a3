"""Find the outcomes of a session that was read into memory. The index finds the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from threadline.insight.outcomes.changed_lines import changed_lines
from threadline.insight.outcomes.extract import extract_outcomes, link_row, may_have_outcome
from threadline.insight.outcomes.git_output import find_commits as find_commits_in_output
from threadline.insight.outcomes.report import LineChange, OutcomeFacts, resolve_outcomes
from threadline.model.calls import Call
from threadline.model.calls import Outcome as CallOutcome
from threadline.model.entries import PrLinkEntry, UserEntry
from threadline.model.insight.outcomes import Outcome, OutcomeKind, OutcomeRow
from threadline.model.results import EditResult, MultiEditResult, NotebookEditResult, WriteResult
from threadline.model.session import Session
from threadline.shell_syntax import SHELL_TOOLS, parse_shell_call, strip_terminal_escapes
from threadline.thread import exit_code, full_path

_MAY_COMMIT = re.compile(r"commit|rebase|cherry-pick|revert|merge|git (?:pull|am|ci)\b")


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


def find_commits(session: Session) -> list[tuple[Call, Outcome]]:
    """Each commit of a session and the call that made it, in order of time. Replaced ones are marked.

    Only calls with a word of a command that commits are parsed.
    """
    calls: dict[str, Call] = {}
    commits: list[Outcome] = []
    for call in session.calls:
        if call.answer is None or call.tool not in SHELL_TOOLS or _MAY_COMMIT.search(str(call.input)) is None:
            continue
        if call.outcome not in (CallOutcome.OK, CallOutcome.ERROR):
            continue
        raw = call.answer.tool_use_result if isinstance(call.answer, UserEntry) else None
        is_ok = call.outcome is CallOutcome.OK and not exit_code(call)
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
    if (
        has_result
        or call.outcome is not CallOutcome.OK
        or call.tool not in ("Write", "Edit", "MultiEdit", "NotebookEdit")
    ):
        return None
    path = inputs.get("notebook_path" if call.tool == "NotebookEdit" else "file_path")
    return path if isinstance(path, str) and path else None


def _model_of(call: Call) -> str | None:
    return call.entry.message.model if call.entry.message is not None else None


def _outcome_of(row: OutcomeRow, call: Call, session: Session, project: str | None) -> Outcome:
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


def _links(session: Session, project: str | None) -> Iterator[Outcome]:
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
