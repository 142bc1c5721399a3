"""Find summaries, and the entries they name, in transcripts of many sessions, without decoding other lines.

This is for homes without an index. Each pass reads every byte once and decodes only lines with an id that matters.
The first one, for summaries, takes about a second of CPU time per gigabyte. The second one, for the entries they name,
takes two, and is made only if there are summaries at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial

from msgspec import Struct

from threadline.errors import Error
from threadline.model.entries import ChainEntry, Entry, SummaryEntry
from threadline.model.homes import Transcript
from threadline.model.places import SessionId
from threadline.model.titles import SummaryRef
from threadline.parallel import map_transcripts
from threadline.parse.lines import Chunk, find_lines
from threadline.parse.reader import TranscriptReader

_LEAF_KEY, _SUMMARY_KIND, _UUID_KEY = b'"leafUuid"', b'"summary"', b'"uuid"'
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')


class NamedEntry(Struct, frozen=True):
    """An entry that a summary names. `is_agent`: an agent inside a main transcript wrote it."""

    id: str
    offset: int
    session: SessionId | None
    is_agent: bool


def find_summaries(transcript: Transcript) -> tuple[SummaryRef, ...]:
    """Find the summaries in a transcript. If it cannot be read, there are none."""
    path, session = str(transcript.path), transcript.session
    return tuple(
        SummaryRef(entry.leaf_uuid, entry.summary, path, entry.line.offset, session)
        for offset, line in _lines_with(path, _LEAF_KEY)
        if _SUMMARY_KIND in line
        for entry in _decode_line(path, offset, line)
        if isinstance(entry, SummaryEntry) and entry.leaf_uuid and entry.summary and entry.summary.strip()
    )


def find_named_entries(transcript: Transcript, ids: Collection[str]) -> tuple[NamedEntry, ...]:
    """Find the entries with these ids in a transcript. If it cannot be read, there are none."""
    encoded = {id_.encode(errors="surrogatepass") for id_ in ids}
    path, session = str(transcript.path), transcript.session
    return tuple(
        NamedEntry(entry.uuid, entry.line.offset, session or entry.session_id, bool(entry.is_agent))
        for offset, line in _lines_with(path, _UUID_KEY)
        if not encoded.isdisjoint(_UUID.findall(line))
        for entry in _decode_line(path, offset, line)
        if isinstance(entry, ChainEntry) and entry.uuid is not None and entry.uuid in ids
    )


def can_have_summaries(transcript: Transcript) -> bool:
    """Whether summaries in a transcript count: only those of sessions do."""
    return transcript.is_main


def _lines_with(path: str, needle: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that contain a needle, with their offsets."""
    with suppress(Error):
        for match in find_lines(path, needle):
            yield from zip(match.offsets, match.lines, strict=True)


def _decode_line(path: str, offset: int, line: bytes) -> Iterator[Entry]:
    """Yield the entry of a line; several if it is damaged."""
    return TranscriptReader(path).decode_line_by_line(Chunk([line], offset), 0)


class TranscriptLinks:
    """The summaries of some transcripts, and the sessions that contain the entries they name, read when needed."""

    def __init__(self, transcripts: Iterable[Transcript], *, jobs: int | None = None) -> None:
        self._transcripts = tuple(transcripts)
        self._jobs = jobs

    @cached_property
    def summaries(self) -> tuple[SummaryRef, ...]:
        """Every summary that names an entry."""
        transcripts = filter(can_have_summaries, self._transcripts)
        refs = map_transcripts(find_summaries, transcripts, jobs=self._jobs)
        return tuple(ref for _, own in sorted(refs, key=lambda pair: str(pair[0].path)) for ref in own)

    @cached_property
    def owners(self) -> dict[str, tuple[SessionId, ...]]:
        """The sessions that contain each named entry, in their main transcript or in an agent's."""
        ids = frozenset(ref.leaf for ref in self.summaries)
        owners: dict[str, set[SessionId]] = {}
        if ids:
            for _, named in map_transcripts(partial(find_named_entries, ids=ids), self._transcripts, jobs=self._jobs):
                for entry in named:
                    if entry.session is not None:
                        owners.setdefault(entry.id, set()).add(entry.session)
        return {id_: tuple(sorted(sessions)) for id_, sessions in owners.items()}
