"""What sessions are called, without reading them whole: a report names many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice

from threadline.errors import Error
from threadline.model.entries import AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.found import Found, Transcript, TranscriptKind
from threadline.model.place import Place
from threadline.parse import entries
from threadline.parse.decode import decode_object
from threadline.parse.lines_with import lines_of, lines_with
from threadline.thread.acts import acts
from threadline.thread.titles import title

# What a person said first stands among the first entries.
_FIRST_FEW = 200
# Titles, last prompts and summaries may stand anywhere, and are found by their bytes.
_TITLE, _OTHERS = b'-title"', (b'"last-prompt"', b'"summary"')


def session_titles(found: Iterable[Found], wanted: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, as far as they are cheaply known: of most lines nothing is decoded."""
    titles: dict[str, str] = {}
    for transcript in (one for home in found for one in home.transcripts):
        session = transcript.session
        if transcript.kind is TranscriptKind.MAIN and session in wanted and session is not None:
            named = _title(transcript)
            if named:
                titles.setdefault(session, named)
    return titles


def _title(transcript: Transcript) -> str:
    said: list[Entry] = []
    given: list[Entry] = []
    with suppress(Error):
        said += filter(_may_name, islice(entries(transcript.path), _FIRST_FEW))
        given += _given(transcript)
    return title([*said, *given], acts(said)).text


def _given(transcript: Transcript) -> Iterator[Entry]:
    """The titles, last prompts and summaries of a transcript."""
    place = Place(str(transcript.path))
    for found in lines_with(transcript.path, _TITLE):
        others = (line for needle in _OTHERS for line in lines_of(found.block, needle))
        for line in (*found.lines, *others):
            with suppress(ValueError, RecursionError):  # a line that the block cuts comes again with the next
                entry, _ = decode_object(line, place)
                if not isinstance(entry, ChainEntry):
                    yield entry


def _may_name(entry: Entry) -> bool:
    """Whether a title can come from it: all that is no part of the conversation, and what a person said in it."""
    if not isinstance(entry, ChainEntry):
        return True
    said = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (said or isinstance(entry, AttachmentEntry))
