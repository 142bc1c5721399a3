"""The files that make up a session: its main transcript, its agents' and what is told of those beside them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from msgspec import Struct

from threadline.errors import Error
from threadline.find import session_transcripts
from threadline.model.found import Transcript
from threadline.model.ids import SessionId
from threadline.parse import heads

_FIRST = 40


class Part(Struct, frozen=True):
    """One file of a session, and where it lies below the folder of its main transcript."""

    path: Path
    below: tuple[str, ...]
    is_lines: bool = True


def parts(main: Path) -> list[Part]:
    """The files of a session, its main transcript first."""
    inside, beside = session_transcripts(main)
    id_ = _session(main)
    own = [one for one in beside if one.path != main and id_ is not None and _session(one.path) == id_]
    found = [Part(main, (main.name,))]
    for transcript in (*inside, *own):
        found += _with_meta(transcript, main)
    return found


def size(found: list[Part]) -> int:
    """How many bytes its transcripts have."""
    return sum(part.path.stat().st_size for part in found if part.is_lines)


def _with_meta(transcript: Transcript, main: Path) -> list[Part]:
    below = _below(transcript.path, main)
    meta = transcript.meta
    return [Part(transcript.path, below), *([Part(meta, _below(meta, main), is_lines=False)] if meta else [])]


def _below(path: Path, main: Path) -> tuple[str, ...]:
    """Where a file lies; one of another project's folder, that the session went on to, as if it were here."""
    parts_ = path.parts
    start = max((at for at, name in enumerate(parts_) if name == main.stem), default=len(parts_) - 1)
    return parts_[start:]


def _session(path: Path) -> SessionId | None:
    try:
        named = (head.session_id for head in islice(heads(path), _FIRST))
        return next((one for one in named if one is not None), None)
    except Error:
        return None
