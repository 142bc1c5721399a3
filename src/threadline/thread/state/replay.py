"""Replay a session to a place: its files, lists and settings as they were, and what changed between two places."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.model.entries import AssistantEntry, ChainEntry, PermissionModeEntry, RelocatedEntry, UserEntry
from threadline.model.places import AgentId, Place
from threadline.model.session import Session, items_at
from threadline.model.state import Evidence, EvidenceKind, FileDifference, FileState, FileVersion, ProofLevel, State
from threadline.model.times import moment_from_seconds
from threadline.thread.state.events import OrderedLine, ReplayEvent, order_lines, replay_events
from threadline.thread.state.files import BackupReader, TrackedFiles
from threadline.thread.state.lists import TrackedLists


def state_at(session: Session, place: Place | None = None, backup: BackupReader | None = None) -> State:
    """Return the state just after the entry at a place, or at the end of the session.

    `threadline.thread.state.events.order_lines` defines which entries come before a place.

    `backup` returns the bytes of a file under the session's `file-history/` folder, by name.

    Raises:
        NotFound: the session has no entry at the place.
    """
    lines = order_lines(session)
    at = _line_at(lines, place) if place is not None else None
    agent = at.agent.id if at is not None else None
    files, lists = TrackedFiles(backup, agents=agent_ids(session)), TrackedLists()
    state = State(place=at.entry.place if at is not None else None, agent=agent)
    last = None
    for event in replay_events(session, lines):
        if at is not None and event.key > at.reached:
            break
        last = event
        files.apply_event(event)
        lists.apply_event(event)
        if event.agent == agent:
            state = _apply_settings(state, event)
    return replace(
        state,
        time=moment_from_seconds(last.key[0]) if last is not None and last.key[0] else None,
        files=_with_rewinds(files.states(), session, last),
        todos=lists.todos(),
        tasks=lists.tasks(),
    )


def _line_at(lines: list[OrderedLine], place: Place) -> OrderedLine:
    matches = items_at(place, lines, lambda line: line.entry.line)
    if matches:
        return matches[-1]
    raise NotFound(f"The session has no entry at {place}. `threadline entries SESSION` lists the places.")


def _apply_settings(state: State, event: ReplayEvent) -> State:
    """Return the settings after an entry of the same agent."""
    entry = event.entry
    match entry:
        case PermissionModeEntry(permission_mode=str(mode)):
            return replace(state, permission_mode=mode)
        case RelocatedEntry(relocated_cwd=str(cwd)):
            return replace(state, cwd=cwd)
        case ChainEntry():
            changes = {"cwd": entry.cwd, "git_branch": entry.git_branch, **_message_settings(entry)}
            changed = {name: value for name, value in changes.items() if value and value != getattr(state, name)}
            return replace(state, **changed) if changed else state
    return state


def _message_settings(entry: ChainEntry) -> dict[str, str | int | None]:
    if isinstance(entry, UserEntry):
        return {"permission_mode": entry.permission_mode}
    if not isinstance(entry, AssistantEntry) or entry.is_synthetic or entry.message is None:
        return {}
    usage = entry.message.usage
    return {
        "model": entry.message.model,
        "effort": entry.effort,
        "context_tokens": usage.prompt_tokens if usage is not None else None,
    }


def _with_rewinds(files: dict[str, FileState], session: Session, last: ReplayEvent | None) -> dict[str, FileState]:
    """Note that a file may have been restored if its last change is on an abandoned path: no row records that."""
    if not session.branches or last is None:
        return files
    left = {
        entry.place: Evidence(branch.first.place, EvidenceKind.REWIND)
        for branch in session.branches
        if _has_ended(branch.entries[-1].place, last)
        for entry in branch.entries
    }
    return {
        path: replace(file, doubts=(*file.doubts, left[file.changed])) if file.changed in left else file
        for path, file in files.items()
    }


def _has_ended(end: Place, last: ReplayEvent) -> bool:
    """Whether an abandoned path had ended by the last event."""
    return last.entry.line.transcript == end.transcript and last.entry.line.number > end.line


_NO_NEWLINE = "\n\\ No newline at end of file\n"
_NO_FILE = "/dev/null"


def difference(before: State, after: State) -> tuple[FileDifference, ...]:
    """Return how each file differs, in the order of first mention. Files that are proven equal are left out."""
    paths = dict.fromkeys((*before.files, *after.files))
    compared = (_file_difference(path, before.files.get(path), after.files.get(path)) for path in paths)
    return tuple(changed for changed in compared if changed is not None)


def _file_difference(path: str, old: FileState | None, new: FileState | None) -> FileDifference | None:
    if new is None or (old is not None and old.evidence == new.evidence):
        return None  # nothing was recorded about it in between
    start, end = _proven_version(old), _proven_version(new)
    # The text before the session's first change is the text at any earlier place.
    first = new.first if start is None and (old is None or old.changed is None) else None
    start = start or first
    if start is None or end is None:
        return FileDifference(path, start, end, "", proven=False, statement=_missing_statement(old, start, new, end))
    if start.content == end.content:
        return None
    text = unified_text(path, start.content, end.content)
    if first is not None:
        origin = f"First seen at {first.evidence.place}; its content before that is not proven"
        return FileDifference(path, start, end, text, proven=False, statement=f"{origin}. After: {new.statement}")
    doubtful = _is_doubtful(old) or _is_doubtful(new)
    statement = f"Before: {old.statement if old is not None else ''} After: {new.statement}"
    return FileDifference(path, start, end, text, proven=not doubtful, statement=statement)


def _proven_version(state: FileState | None) -> FileVersion | None:
    if state is None or state.proof is None or state.proven not in (ProofLevel.WHOLE, ProofLevel.ABSENT):
        return None
    return FileVersion(state.content, state.proof)


def _is_doubtful(state: FileState | None) -> bool:
    return state is not None and bool(state.doubts)


def _missing_statement(
    old: FileState | None, start: FileVersion | None, new: FileState, end: FileVersion | None
) -> str:
    before = "" if start is not None else f" Before: {old.statement if old is not None else 'Nothing is known.'}"
    after = "" if end is not None else f" After: {new.statement}"
    return f"No diff: one side is not completely proven.{before}{after}"


def unified_text(path: str, old: str | None, new: str | None) -> str:
    r"""Return a unified diff; None is no file.

    >>> print(unified_text("a", "1\n2\n", "1\n3"), end="")
    --- a
    +++ a
    @@ -1,2 +1,2 @@
     1
    -2
    +3
    \ No newline at end of file
    """
    names = (_NO_FILE if old is None else path, _NO_FILE if new is None else path)
    diff = unified_diff(list(_split_lines(old or "")), list(_split_lines(new or "")), *names)
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in diff)


def _split_lines(text: str) -> Iterator[str]:
    r"""Split into lines with their newlines, at `\n` only: other line ends are part of the text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def agent_ids(session: Session) -> frozenset[AgentId]:
    """Return the agents whose entries the session contains."""
    return frozenset(agent.id for agent in session.agents if agent.id is not None)
