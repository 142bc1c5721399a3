"""State: what the lines of a transcript come to, entry by entry, so that more of them can be added later."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from threadline.model.entries import Entry
from threadline.model.found import Transcript


class State(Struct, array_like=True):
    """What is known of a transcript's lines so far, as the index keeps it, packed."""


_decode = msgspec.msgpack.Decoder(State).decode


class Fold(Struct, gc=False):
    """The state, while entries are added to it, and the rows that came of them."""

    state: State

    @staticmethod
    def of(packed: bytes, transcript: Transcript) -> Fold:
        """Go on from a state that was packed; from nothing where there is none."""
        del transcript
        return Fold(_decode(packed) if packed else State())

    def add(self, at: int, entry: Entry) -> None:
        """One more entry, the one of that number among those that were read."""

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write down the rows and the state for the transcript of that number; its new entries begin at `first`."""
        del first
        connection.execute(
            "UPDATE transcripts SET state = ? WHERE transcript_id = ?", (msgspec.msgpack.encode(self.state), number)
        )
