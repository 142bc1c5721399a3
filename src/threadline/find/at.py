"""What lies at a path that somebody named: a home, a folder with transcripts, or one transcript."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from threadline.errors import Ambiguous, NotFound, Unreadable
from threadline.find.homes import homes
from threadline.find.look import look
from threadline.find.transcripts import is_transcript, naming
from threadline.find.walk import Walk
from threadline.model.found import Found, Home, Transcript, TranscriptKind

_ID = re.compile(r"[0-9a-f][0-9a-f-]{3,35}", re.IGNORECASE)
_SHOWN = 8


def at(path: str | Path) -> Found:
    """All transcripts at a path: of a home, below a folder, or the one file.

    Raises:
        NotFound: there is nothing at that path.
        Unreadable: it cannot be looked at.
    """
    place = Path(path).expanduser()
    if place.is_dir():
        try:
            return look(homes(place)[0])
        except NotFound:
            return _below(place)
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is nothing at {str(path)!r}; name a transcript, a folder or a home.") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{str(path)!r} cannot be looked at: {error}.") from None
    home = Home(place.parent, "path")
    return Found(home, (), (_transcript(place, home, status),), (), ())


def by_id(prefix: str, found: Iterable[Found]) -> Transcript:
    """The one main transcript, or the one agent's, whose id starts so.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several; the text lists them.
    """
    start = prefix.lower()
    if not _ID.fullmatch(prefix):
        raise NotFound(f"There is nothing at {prefix!r}, and it is no session id; name a path or the start of an id.")
    everything = [transcript for one in found for transcript in one.transcripts]
    mains = [one for one in everything if one.kind is TranscriptKind.MAIN and (one.session or "").startswith(start)]
    matches = mains or [one for one in everything if (one.agent or "").lower().startswith(start)]
    if not matches:
        raise NotFound(f"No session or agent has an id that starts with {prefix!r}; `threadline` shows what there is.")
    if len(matches) > 1:
        shown = "\n".join(f"  {one.path}" for one in matches[:_SHOWN])
        more = f"\n  and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
        raise Ambiguous(f"{len(matches)} transcripts have an id that starts with {prefix!r}:\n{shown}{more}")
    return matches[0]


def _below(folder: Path) -> Found:
    home = Home(folder, "path")
    walk = Walk()
    found = [
        _transcript(Path(seen.entry.path), home, seen.entry.stat(follow_symlinks=False))
        for seen in walk.below(str(folder), (), lambda _path, _parts: True)
        if is_transcript(seen.parts[-1]) and not seen.is_link
    ]
    return Found(home, (), tuple(sorted(found, key=lambda one: one.path)), (), tuple(walk.problems))


def _transcript(path: Path, home: Home, status: os.stat_result) -> Transcript:
    parts = path.absolute().parts
    # An agent's transcript lies below its session's directory, two levels down or more.
    below = parts[parts.index("subagents") - 1 :] if "subagents" in parts[1:] else parts[-1:]
    named = naming(below)
    return Transcript(
        path=path,
        home=home,
        folder=path.parent.name,
        kind=named.kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        session=named.session,
        agent=named.agent,
        run=named.run,
    )
