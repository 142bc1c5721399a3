"""The history of a file: every edit by a session, as a diff, with the turn, prompt and model behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from threadline.model.calls import Call
from threadline.model.results import EditResult, Hunk, MultiEditResult, NotebookEditResult, WriteResult
from threadline.model.session import Session
from threadline.model.state import DiffSource, Evidence, FileEdit, FileState, ProofLevel
from threadline.model.text import count, is_path_or_end
from threadline.thread.state.events import replay_events
from threadline.thread.state.files import BackupReader, TrackedFiles
from threadline.thread.state.replay import agent_ids, unified_text
from threadline.thread.state.tracked_file import ChangeObserver

_Diff = tuple[str, DiffSource, bool, str]
"""A diff with its source, whether it is proven, and a statement."""


def file_log(session: Session, path: str, backup: BackupReader | None = None) -> tuple[FileEdit, ...]:
    """Return every edit of the files whose path is `path` or ends with it, oldest first.

    The order is that of `state_at`. `backup` returns the bytes of a file under the session's `file-history/` folder.
    """
    changes: list[tuple[FileState, FileState, Evidence, Call]] = []
    current_call: Call | None = None

    def record(before: FileState, after: FileState, evidence: Evidence) -> None:
        # A single call may be recorded as two changes, the first of them unknown.
        if changes and changes[-1][3] is current_call and changes[-1][1].path == after.path:
            changes.pop()
        if current_call is not None:
            changes.append((before, after, evidence, current_call))

    def observe(name: str) -> ChangeObserver | None:
        return record if is_path_or_end(name, path) else None

    files = TrackedFiles(backup, agents=agent_ids(session), observe=observe)
    for event in replay_events(session):
        current_call = event.call
        files.apply_event(event)
    turns = {turn.number: turn for turn in session.turns}
    project = session.cwds[0] if session.cwds else None
    edits: list[FileEdit] = []
    for before, after, evidence, call in changes:
        turn = turns.get(call.turn) if call.turn is not None else None
        diff, source, proven, statement = _make_diff(before, after, call)
        edits.append(
            FileEdit(
                path=after.path,
                how=evidence.how,
                tool=call.tool,
                timestamp=call.answer.timestamp if call.answer is not None else call.timestamp,
                session=session.id,
                project=project,
                agent=evidence.agent,
                turn=call.turn,
                prompt=turn.act.text if turn is not None and turn.act is not None else None,
                model=call.entry.message.model if call.entry.message is not None else None,
                call=call.id,
                place=evidence.place,
                diff=diff,
                source=source,
                proven=proven,
                statement=statement,
            )
        )
    return tuple(edits)


def _make_diff(before: FileState, after: FileState, call: Call) -> _Diff:
    is_known = before.proven in (ProofLevel.WHOLE, ProofLevel.ABSENT) and before.proof is not None
    if is_known and after.proven is ProofLevel.WHOLE:
        return _diff_of_texts(before, after)
    hunks = _recorded_patch(call)
    if hunks:
        return _diff_of_patch(after.path, hunks, call)
    pairs = list(_replaced_texts(call))
    if not pairs:
        return "", DiffSource.NONE, False, "What was changed is not recorded."
    text = _join_diffs([unified_text(after.path, old, new) for old, new in pairs])
    if after.proven is ProofLevel.WHOLE:
        return text, DiffSource.INPUT, False, "The text before is not known, so every line is shown as added."
    return text, DiffSource.INPUT, False, "Only the replaced text is known; line numbers count from its beginning."


def _join_diffs(diffs: Sequence[str]) -> str:
    """Return diffs of the same file as one, with a single header of two lines."""
    return diffs[0] + "".join(diff.split("\n", 2)[2] for diff in diffs[1:])


def _diff_of_texts(before: FileState, after: FileState) -> _Diff:
    text = unified_text(after.path, before.content, after.content)
    if before.doubts:
        statement = (
            f"The text before may have been changed by {count(len(before.doubts), 'command')} that name the file."
        )
        return text, DiffSource.TEXTS, False, statement
    statement = "The complete text before and after is known." if text else "The edit did not change the text."
    return text, DiffSource.TEXTS, True, statement


def _diff_of_patch(path: str, hunks: Sequence[Hunk], call: Call) -> _Diff:
    """The patch that the tool recorded. It shows leading tabs as two spaces each.

    A changed line is proven if it cannot begin with a tab, or if it is a whole line of the call's own strings.
    """
    text = "".join([f"--- {path}\n+++ {path}\n", *(line for hunk in hunks for line in _hunk_lines(hunk))])
    known_lines = {line for pair in _replaced_texts(call) for string in pair for line in string.split("\n")}
    changed = (line for hunk in hunks for line in hunk.lines or () if line[:1] in ("+", "-"))
    if any(line[1:].startswith("  ") and line[1:] not in known_lines for line in changed):
        statement = "From the patch that the tool recorded, in which two leading spaces may be a tab."
        return text, DiffSource.PATCH, False, statement
    return text, DiffSource.PATCH, True, "From the patch that the tool recorded."


def _hunk_lines(hunk: Hunk) -> Iterator[str]:
    lines = [line.replace("\n", " ") for line in hunk.lines or ()]
    old, new = (sum(line[:1] in (" ", sign) for line in lines) for sign in "-+")
    yield f"@@ -{hunk.old_start or 0},{old} +{hunk.new_start or 0},{new} @@\n"
    yield from (f"{line}\n" for line in lines)


def _recorded_patch(call: Call) -> Sequence[Hunk]:
    result = call.result
    patch = result.structured_patch if isinstance(result, WriteResult | EditResult | MultiEditResult) else None
    return [hunk for hunk in patch or () if hunk.lines]


def _replaced_texts(call: Call) -> Iterator[tuple[str, str]]:
    """Yield what a call replaced by what, as its input says."""
    arguments = call.input if isinstance(call.input, dict) else {}
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, dict):
            yield from _text_pair(edit.get("old_string"), edit.get("new_string"))
    yield from _text_pair(arguments.get("old_string"), arguments.get("new_string"))
    yield from _text_pair("", arguments.get("content"))
    result = call.result
    old_source = result.old_source if isinstance(result, NotebookEditResult) else None
    yield from _text_pair(old_source or "", arguments.get("new_source"))


def _text_pair(old: Any, new: Any) -> Iterable[tuple[str, str]]:
    is_pair = isinstance(old, str) and isinstance(new, str) and old != new
    return [(old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))] if is_pair else []
