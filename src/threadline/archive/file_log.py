"""Read the edits of a file, which the index lists, from the sessions that made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Error
from threadline.load import read
from threadline.model.state import DiffSource, EvidenceKind, FileEdit

if TYPE_CHECKING:
    from threadline.index import EditKey
    from threadline.model.homes import Homes
    from threadline.model.places import CallId


def read_edits(keys: Sequence[EditKey], path: str, homes: Homes) -> Iterator[FileEdit]:
    """Yield the edits of these keys with their diffs. Each session is read once, when its first edit is needed."""
    logs: dict[str, dict[tuple[str, CallId], FileEdit]] = {}
    for key in keys:
        edit = _find_edit(key, logs, path, homes)
        yield replace(edit, session=key.session, project=key.project) if edit is not None else _missing_edit(key)


def _find_edit(
    key: EditKey, logs: dict[str, dict[tuple[str, CallId], FileEdit]], path: str, homes: Homes
) -> FileEdit | None:
    """Return an edit with its diff, as the session has it, or else the transcript itself.

    The agent of an edit may be in another home than its session.
    """
    for transcript in (key.transcript, key.place.transcript):
        if transcript not in logs:
            logs[transcript] = _session_edits(transcript, path, homes)
        if (edit := logs[transcript].get((key.path, key.call))) is not None:
            return edit
    return None


def _session_edits(transcript: str, path: str, homes: Homes) -> dict[tuple[str, CallId], FileEdit]:
    try:
        session = read(transcript, continued=False, homes=homes)
    except Error:
        return {}
    return {(edit.path, edit.call): edit for edit in session.file_log(path)}


def _missing_edit(key: EditKey) -> FileEdit:
    """An edit whose transcript was changed or deleted after it was indexed."""
    return FileEdit(
        path=key.path,
        how=EvidenceKind.EDIT,
        tool=key.tool,
        timestamp=key.timestamp,
        session=key.session,
        project=key.project,
        agent=None,
        turn=None,
        prompt=None,
        model=None,
        call=key.call,
        place=key.place,
        diff="",
        source=DiffSource.NONE,
        proven=False,
        statement="The transcript can no longer be read.",
    )
