"""The state at a place."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.model.entries import AssistantEntry, ChainEntry, PermissionModeEntry, RelocatedEntry, UserEntry
from threadline.model.place import Place
from threadline.model.session import Session
from threadline.model.state import Evidence, FileState, How, State
from threadline.thread.state.check import agents_of
from threadline.thread.state.files import Backup, Files
from threadline.thread.state.lists import Lists
from threadline.thread.state.moments import Moment, moments


def state_at(session: Session, place: Place | None = None, backup: Backup | None = None) -> State:
    """How things stood just after the entry at a place, or at the end of the session.

    `backup` gives the bytes of a file under the session's `file-history/` folder, by name.

    Raises:
        NotFound: no entry of the session stands at the place.
    """
    everything = moments(session)
    at = _moment(everything, place) if place is not None else None
    agent = at.agent if at is not None else None
    files, lists = Files(backup, agents=agents_of(session)), Lists()
    state = State(place=at.entry.place if at is not None else None, agent=agent)
    last = None
    for moment in everything:
        if at is not None and moment.key > at.key:
            break
        last = moment
        files.see(moment)
        lists.see(moment)
        if moment.agent == agent:
            state = _settings(state, moment)
    return replace(
        state,
        time=datetime.fromtimestamp(last.key[0], UTC) if last is not None and last.key[0] else None,
        files=_with_rewinds(files.states(), session, last),
        todos=lists.todos(),
        tasks=lists.tasks(),
    )


def _moment(everything: list[Moment], place: Place) -> Moment:
    """The moment at a place; its transcript may be named by the end of its path."""
    near = [one for one in everything if one.backup is None and one.entry.line.number == place.line]
    named = [one for one in near if one.entry.line.transcript.endswith(place.transcript)]
    exact = [one for one in named if one.entry.line.transcript == place.transcript]
    if named:
        return (exact or named)[-1]
    raise NotFound(f"No entry of the session stands at {place}; threadline entries SESSION lists the places.")


def _settings(state: State, moment: Moment) -> State:
    """The settings after an entry of the same agent."""
    entry = moment.entry
    match entry:
        case PermissionModeEntry(permission_mode=str(mode)):
            return replace(state, permission_mode=mode)
        case RelocatedEntry(relocated_cwd=str(cwd)):
            return replace(state, cwd=cwd)
        case ChainEntry():
            told = {"cwd": entry.cwd, "git_branch": entry.git_branch, **_spoken(entry)}
            changed = {name: value for name, value in told.items() if value and value != getattr(state, name)}
            return replace(state, **changed) if changed else state
    return state


def _spoken(entry: ChainEntry) -> dict[str, str | int | None]:
    if isinstance(entry, UserEntry):
        return {"permission_mode": entry.permission_mode}
    if not isinstance(entry, AssistantEntry) or entry.is_made_up or entry.message is None:
        return {}
    usage = entry.message.usage
    return {
        "model": entry.message.model,
        "effort": entry.effort,
        "context_tokens": usage.prompt_tokens if usage is not None else None,
    }


def _with_rewinds(files: dict[str, FileState], session: Session, last: Moment | None) -> dict[str, FileState]:
    """A file whose last change is on a path that was left may have been put back, which no row tells."""
    if not session.branches or last is None:
        return files
    left = {
        entry.place: Evidence(branch.first.place, How.REWIND)
        for branch in session.branches
        if _is_over(branch.entries[-1].place, last)
        for entry in branch.entries
    }
    return {
        path: replace(file, doubts=(*file.doubts, left[file.changed])) if file.changed in left else file
        for path, file in files.items()
    }


def _is_over(end: Place, last: Moment) -> bool:
    """Whether a path that was left had ended when the last moment came."""
    return last.entry.line.transcript == end.transcript and last.entry.line.number > end.line
