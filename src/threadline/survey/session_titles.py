"""What sessions are called, from the beginning and the end of their transcripts alone: a report names many."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import islice

from threadline.errors import Error
from threadline.model.entries import AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.found import Found, Transcript, TranscriptKind
from threadline.parse import entries
from threadline.thread.acts import acts
from threadline.thread.titles import title

# Titles that were given stand at the end, where the program writes them again; the first prompt at the beginning.
_FIRST_FEW = 60
_TAIL = 64 * 1024


def session_titles(found: Iterable[Found], wanted: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, as far as they are cheaply known: a bounded part of each transcript is read."""
    titles: dict[str, str] = {}
    for transcript in (one for home in found for one in home.transcripts):
        session = transcript.session
        if transcript.kind is TranscriptKind.MAIN and session in wanted and session is not None:
            named = _title(transcript)
            if named:
                titles.setdefault(session, named)
    return titles


def _title(transcript: Transcript) -> str:
    some: list[Entry] = []
    with suppress(Error, OSError):
        some += (entry for entry in islice(entries(transcript.path), _FIRST_FEW) if _may_name(entry))
        if transcript.size > _TAIL:
            tail = entries(transcript.path, offset=_line_start(transcript))
            some += (entry for entry in tail if not isinstance(entry, ChainEntry))
        else:
            rest = islice(entries(transcript.path), _FIRST_FEW, None)
            some += (entry for entry in rest if not isinstance(entry, ChainEntry))
    return title(some, acts(some)).text


def _may_name(entry: Entry) -> bool:
    """Whether a title can come from it: all that is no part of the conversation, and what a person said in it."""
    if not isinstance(entry, ChainEntry):
        return True
    said = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (said or isinstance(entry, AttachmentEntry))


def _line_start(transcript: Transcript) -> int:
    """Where the first whole line within the last bytes begins; the end where there is none."""
    start = transcript.size - _TAIL
    with transcript.path.open("rb", buffering=0) as file:
        file.seek(start)
        end = file.read(_TAIL).find(b"\n")
    return start + end + 1 if end >= 0 else transcript.size
