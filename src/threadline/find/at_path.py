"""What lies at a path that somebody named: a home, a folder with transcripts, or one transcript."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from threadline.errors import Ambiguous, BadQuery, NotFound, Unreadable
from threadline.find.home_places import homes
from threadline.find.looking import look
from threadline.find.side_files import BY_NAME_ONLY, MARKS, PROJECTS, is_put_aside, kind_of
from threadline.find.transcripts import SUFFIX, is_transcript, transcript
from threadline.find.walk import Walk
from threadline.model.found import Found, Home, SideFileKind, Transcript, TranscriptKind
from threadline.model.secret import is_secret_name

_ID = re.compile(r"[0-9a-f][0-9a-f-]{0,35}", re.IGNORECASE)
_LEAST = 4
_SHOWN = 8
_LONG = 200


def at(path: str | Path) -> Found:
    """All transcripts at a path: of a home, below a folder, or the one file.

    Raises:
        NotFound: there is nothing at that path.
        Unreadable: it cannot be looked at.
        BadQuery: it is a file of a home, and no transcript.
    """
    place = Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if os.path.isdir(place):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        try:
            return look(homes(place)[0])
        except NotFound:
            return _below(place)
    named = _shortened(str(path))
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is nothing at {named!r}; name a transcript, a folder or a home.") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(f"{named!r} cannot be looked at: {why}.") from None
    _refuse_side_files(place)
    home = Home(place.parent, "path")
    return Found(home, (), (_transcript(place, home, status),), (), ())


def by_id(prefix: str, found: Iterable[Found]) -> Transcript:
    """The one main transcript, or the one agent's, whose id starts so; `agent-<id>` and `<id>.jsonl` will do, too.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several; the text lists them.
        BadQuery: too few characters to tell sessions apart.
    """
    named = _shortened(prefix)
    start = prefix.lower().removesuffix(SUFFIX)
    is_agent = start.startswith("agent-")
    start = start.removeprefix("agent-")
    if not is_agent and not _ID.fullmatch(start):
        raise NotFound(f"There is nothing at {named!r}, and it is no session id; name a path or the start of an id.")
    if len(start) < _LEAST:
        raise BadQuery(f"{named!r} is too short for the start of an id; give at least {_LEAST} characters.")
    everything = [transcript for one in found for transcript in one.transcripts]
    mains = [
        one
        for one in everything
        if one.kind is TranscriptKind.MAIN and (one.session or "").startswith(start) and not is_agent
    ]
    matches = mains or [one for one in everything if (one.agent or "").lower().startswith(start)]
    if not matches:
        raise NotFound(_why_none(named, [one for one in everything if (one.session or "").startswith(start)]))
    # An empty one tells nothing: what was in it may be in the keep.
    matches = [one for one in matches if one.size] or matches
    if len(matches) > 1:
        shown = "\n".join(f"  {one.path}" for one in matches[:_SHOWN])
        more = f"\n  and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
        raise Ambiguous(f"{len(matches)} transcripts have an id that starts with {named!r}:\n{shown}{more}")
    return matches[0]


def _why_none(named: str, left: list[Transcript]) -> str:
    """That no session or agent is called so; but of a session whose own transcript is gone, agents may be left."""
    if not left:
        return f"No session or agent has an id that starts with {named!r}; `threadline` shows what there is."
    agents = [str(one.agent) for one in left if one.agent is not None]
    others = f" and {len(agents) - _SHOWN:,} more" if len(agents) > _SHOWN else ""
    told = f"{', '.join(agents[:_SHOWN])}{others}; name one of them" if agents else "other files of it"
    return f"The transcript of session {named!r} itself is gone. What is left: {told}."


def _shortened(name: str) -> str:
    """A name for a sentence: as much of it as a person reads."""
    return name if len(name) <= _LONG else f"{name[:_LONG]}…"


def _refuse_side_files(place: Path) -> None:
    """A file of a home that is no transcript is not read as one, and a secret is not opened at all."""
    name = str(place)
    if is_secret_name(place.name):
        raise BadQuery(f"{name!r} is a secret; threadline never opens one.")
    kind = _side_file_kind(place)
    if kind in BY_NAME_ONLY:
        raise BadQuery(f"{name!r} is a side file ({kind}), which threadline never opens.")
    if kind is not SideFileKind.OTHER:
        raise BadQuery(
            f"{name!r} is a side file ({kind}), not a transcript;"
            " read it with threadline.read_side_file (docs/library.md)."
        )


def _side_file_kind(place: Path) -> SideFileKind:
    """What a file is in the home it lies in; `OTHER` for a transcript, and where no home is above it."""
    path = place.absolute()
    for home in path.parents:
        try:
            is_home = any((home / mark).exists() for mark in MARKS)
        except OSError:  # may not be entered
            return SideFileKind.OTHER
        parts = path.relative_to(home).parts
        is_read = parts[0] == PROJECTS and is_transcript(path.name) and not is_put_aside(parts[2:])
        if is_home and (is_read or kind_of(parts) is not SideFileKind.OTHER):
            return SideFileKind.OTHER if is_read else kind_of(parts)
    return SideFileKind.OTHER


def _below(folder: Path) -> Found:
    home = Home(folder, "path")
    walk = Walk()
    found = []
    for seen in walk.below(str(folder), (), lambda _path, _parts: True):
        if is_transcript(seen.parts[-1]) and not seen.is_link:
            with suppress(FileNotFoundError):  # gone since it was listed
                found.append(_transcript(Path(seen.entry.path), home, seen.entry.stat(follow_symlinks=False)))
    return Found(home, (), tuple(sorted(found, key=lambda one: one.path)), (), tuple(walk.problems))


def _transcript(path: Path, home: Home, status: os.stat_result) -> Transcript:
    parts = path.absolute().parts
    # An agent's transcript lies below its session's directory, two levels down or more.
    below = parts[parts.index("subagents") - 1 :] if "subagents" in parts[1:] else parts[-1:]
    return transcript(path, home, path.parent.name, status, below)
