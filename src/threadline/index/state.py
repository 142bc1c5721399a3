"""State: what the lines of a transcript come to, entry by entry, so that more of them can be added later."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from threadline.index.session_rows import SessionRows, session_rows
from threadline.index.texts import as_text
from threadline.index.work import Work, WorkState, no_work, write_work
from threadline.model.entries import ChainEntry, Entry
from threadline.model.found import Transcript, TranscriptKind
from threadline.parse.head_reader import head_of
from threadline.survey.glance import Glancing
from threadline.survey.light import Lighting, passed
from threadline.survey.light_state import LightState


class State(Struct, array_like=True):
    """What is known of a transcript's lines so far, as the index keeps it, packed. `light` is of main ones only."""

    glance: Glancing
    light: LightState | None = None
    work: WorkState | None = None


_decode = msgspec.msgpack.Decoder(State).decode


def unpacked_state(packed: bytes) -> State:
    """A state as the index keeps it; that of no lines where there is none."""
    return _decode(packed) if packed else State(Glancing())


def tells_cwd(packed: bytes) -> bool:
    """Whether a line so far has said in which directory it was written."""
    work = unpacked_state(packed).work
    return work is not None and work.cwd is not None


class Folded(Struct, gc=False):
    """What came of some entries: the state after them, packed, and their rows."""

    state: bytes = b""
    session: SessionRows | None = None
    work: bytes = b""

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write it down for the transcript of that number; its new entries begin at `first`."""
        connection.execute("UPDATE transcripts SET state = ? WHERE transcript_id = ?", (self.state, number))
        if self.session is not None:
            self.session.write(connection, number)
        if self.work:
            write_work(connection, self.work, number, first)


class Folding:
    """The state, while entries are added to it: from nothing, or from a state that was packed."""

    def __init__(self, packed: bytes, transcript: Transcript) -> None:
        self._is_main = transcript.kind is TranscriptKind.MAIN
        self._is_new = not packed
        self._transcript = transcript
        self._state = unpacked_state(packed)
        self._lighting = Lighting(self._state.light) if self._is_main else None
        self._work = Work(self._state.work or no_work(), transcript, is_whole=self._is_new)

    def add(self, at: int, entry: Entry) -> None:
        """One more entry, the one of that number among those that are read now."""
        self._work.add(at, entry)
        told = entry if isinstance(entry, ChainEntry) and not entry.line.problems else head_of(entry)
        self._state.glance.add(told, entry.line.number)
        if self._lighting is not None:
            self._lighting.add(entry)

    def folded(self, read: Callable[[], Iterable[Entry]]) -> Folded:
        """What came of it. `read` gives all entries, for what only the whole transcript tells."""
        lighting = self._lighting
        made = None
        if lighting is not None:
            is_whole = self._is_new
            if not lighting.is_sure:
                lighting, is_whole = passed(read()), True
            seen = lighting.light()
            self._state.light = lighting.state
            made = session_rows(seen, lighting, self._transcript, is_whole=is_whole)
        work = self._work.done()
        self._state.work = self._work.state
        return Folded(packed(self._state), made, work)


def packed(state: State) -> bytes:
    """A state as the index keeps it. Half of a character, which JSON may hold, is kept as one that is none."""
    try:
        return msgspec.msgpack.encode(state)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_whole(msgspec.to_builtins(state, builtin_types=(bytes,))))


def _whole(value: object) -> object:
    """The same value, with text in it that can be written."""
    if isinstance(value, list | tuple):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    return as_text(value) if isinstance(value, str) else value
