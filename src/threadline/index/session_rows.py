"""Rows of a session: what it is called and how long it is, and what was typed in it."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from threadline.index.texts import as_text
from threadline.model.found import Transcript
from threadline.survey.light import Lighting
from threadline.survey.light_state import Light

LONGEST_PROMPT = 2000
"""How many characters of a prompt the index keeps; the transcript has them all."""

_SESSION = "INSERT INTO session_rows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PROMPT = "INSERT INTO prompt_rows VALUES(?, ?, ?, ?, ?)"


class SessionRows(Struct, gc=False):
    """The row of a main transcript, and its new prompts, or all of them. Nobody spoke in it: no row."""

    row: tuple[object, ...] | None
    prompts: list[tuple[int, int, str, str]]
    is_whole: bool

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write them down for the transcript of that number."""
        if self.is_whole:
            connection.execute("DELETE FROM prompt_rows WHERE transcript_id = ?", (number,))
        if self.row is not None:
            # Not as one statement: one that may have to be taken back in part makes full text write out all it holds.
            connection.execute("DELETE FROM session_rows WHERE transcript_id = ?", (number,))
            connection.execute(_SESSION, (number, *self.row))
        if self.prompts:
            connection.executemany(_PROMPT, [(number, *row) for row in self.prompts])


def session_rows(seen: Light, lighting: Lighting, transcript: Transcript, *, is_whole: bool) -> SessionRows:
    """The rows of what a pass over a main transcript tells."""
    state = lighting.state
    row = (
        as_text(transcript.session),
        as_text(seen.title),
        seen.title_source,
        as_text(seen.cwd),
        state.first,
        state.last,
        seen.turns,
        as_text(seen.model),
        seen.entries,
    )
    prompts = [(one.line, one.turn, one.kind, as_text(one.text[:LONGEST_PROMPT]) or "") for one in lighting.prompts]
    return SessionRows(row if seen.spoken else None, prompts, is_whole)
