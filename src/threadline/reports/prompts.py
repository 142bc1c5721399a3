"""The prompts of many sessions with their full text, read from the transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from threadline.errors import Error
from threadline.model.homes import Transcript
from threadline.model.places import Place, SessionId
from threadline.model.tables import Listing
from threadline.model.times import FIRST_MOMENT
from threadline.parallel import map_transcripts
from threadline.parse import entries
from threadline.summary import fold_entries

_SHOWN = 60


class SessionPrompt(Struct, frozen=True):
    """What a person typed in a session. `turn` is the number of the turn that it begins or joins."""

    timestamp: datetime | None
    session: SessionId | None
    project: str
    kind: str
    turn: int
    text: str
    place: Place

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        return f"SessionPrompt({self.kind}, {text!r}, {str(self.place)!r})"


class PromptList(Listing[SessionPrompt]):
    """Prompts of sessions, newest first."""

    row_type = SessionPrompt
    noun = "prompt"
    html_columns = ("timestamp", "session", "project", "turn", "kind", "text")


class _Prompt(Struct, frozen=True, array_like=True):
    timestamp: datetime | None
    kind: str
    turn: int
    text: str
    place: Place


def transcript_prompts(transcript: Transcript) -> list[_Prompt]:
    """Return the prompts in a main transcript; none if it cannot be read."""
    try:
        transcript_entries = list(entries(transcript.path))
    except Error:
        return []
    fold = fold_entries(transcript_entries)
    by_offset = {entry.line.offset: entry for entry in transcript_entries}
    fold.summary()  # finds prompts that only the whole transcript shows
    return [
        _Prompt(entry.timestamp, prompt.kind, prompt.turn, prompt.text, entry.place)
        for prompt in fold.prompts
        for entry in (by_offset[prompt.offset],)
    ]


def find_prompts(
    transcripts: Iterable[tuple[Transcript, str]],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sequence[SessionPrompt]:
    """Return the prompts in main transcripts, each given with its project, newest first."""
    projects = dict(transcripts)
    prompts: list[SessionPrompt] = []
    for transcript, own in map_transcripts(transcript_prompts, projects, jobs=jobs, progress=progress):
        prompts += (
            SessionPrompt(
                prompt.timestamp,
                transcript.session,
                projects[transcript],
                prompt.kind,
                prompt.turn,
                prompt.text,
                prompt.place,
            )
            for prompt in own
        )
    return sorted(prompts, key=lambda prompt: (prompt.timestamp or FIRST_MOMENT, prompt.place), reverse=True)
