"""Apart: the name under which what a transcript lost is read beside it, as long as the transcript itself is there."""

from __future__ import annotations

from uuid import UUID, uuid5

from threadline.find.transcripts import agent_id, naming
from threadline.model.found import TranscriptKind

_LOST = "what was cut off"
_BELOW = 2
"""Names of transcripts begin below projects/<folder>."""


def apart(path: str) -> str | None:
    """The path of what was cut off a transcript; None where it is no session's or agent's.

    A session's has an id that is made from the session's own: two transcripts of one name would be one too many for
    whoever asks for it by its id.
    """
    above, _slash, name = path.rpartition("/")
    parts = path.split("/")[_BELOW:]
    kind = naming(parts).kind if parts else TranscriptKind.OTHER
    if kind is TranscriptKind.MAIN:
        return f"{above}/{lost_id(name.lower().removesuffix('.jsonl'))}.jsonl"
    if kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT):
        return f"{above}/agent-{agent_id(name)}-before.jsonl"
    return None


def lost_id(session: str) -> str | None:
    """The id under which what a session lost is listed while its transcript is there, where its own is an id."""
    try:
        return str(uuid5(UUID(session), _LOST))
    except ValueError:
        return None
