"""Find transcripts by path, or by session or agent id."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from threadline.errors import Ambiguous, BadQuery, Error, NotFound, Unreadable
from threadline.files import escape_path, find_escaped
from threadline.find.home_dirs import homes as find_homes
from threadline.find.layout import (
    HOME_MARKERS,
    NEVER_OPENED,
    TRANSCRIPT_SUFFIX,
    is_transcript_name,
    is_transcript_path,
    make_transcript,
    parts_below_project,
    side_file_kind,
)
from threadline.find.listing import DirectoryWalk, look
from threadline.home_files import is_secret_name, open_transcript
from threadline.model.homes import Found, Home, SideFileKind, Transcript
from threadline.model.places import is_uuid, match_ids, starts_id

_ID_PREFIX = re.compile(r"(agent-)?[0-9a-f][0-9a-f-]{0,35}")
_SLUG = re.compile(r"[a-z0-9]{1,60}(?:-[a-z0-9]{1,60}){1,20}")
_BLOCK_SIZE = 1024 * 1024
_MIN_ID_LENGTH = 4
_MAX_SHOWN = 8
_MAX_NAME_LENGTH = 200


def look_at_path(path: str | Path) -> Found:
    """Return all transcripts at a path: those of a home, which may be in an archive, below a folder, or a single file.

    Raises:
        NotFound: there is nothing at that path.
        Unreadable: it cannot be looked at.
        BadQuery: it is a file of a home, but not a transcript.
    """
    place = find_escaped(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises if there is no such user
    if os.path.isdir(place):  # noqa: PTH112 - Path.is_dir raises if a parent may not be entered
        try:
            return look(find_homes(place)[0])
        except NotFound:
            return _look_below(place)
    name = _shorten(str(path))
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is nothing at {name!r}. Name a transcript, a folder or a home.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(f"{name!r} cannot be accessed: {reason}.") from None
    _refuse_side_file(place)
    if not is_transcript_name(place.name):
        from threadline.find.packed_homes import is_packed  # noqa: PLC0415 - only archives need it

        if is_packed(place):
            return look(place)
    home = Home(place.parent, "path")
    return Found(home, (), (_transcript_outside_home(place, home, status),), (), ())


def find_by_id(prefix: str, found: Iterable[Found]) -> Transcript:
    """Return the main transcript, or else the agent's transcript, whose id starts with `prefix`.

    `agent-<id>` and `<id>.jsonl` are accepted, too. So is `<folder>/<id>`, for sessions of the same name in several
    projects: the end of the folder's name suffices.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several; the message lists them.
        BadQuery: the prefix is too short to distinguish sessions.
    """
    name = _shorten(prefix)
    stem = prefix[: -len(TRANSCRIPT_SUFFIX)] if prefix.lower().endswith(TRANSCRIPT_SUFFIX) else prefix
    folder, _, start = stem.rpartition("/")
    transcripts = [t for home in found for t in home.transcripts if t.folder.lower().endswith(folder.lower())]
    transcripts = [t for t in transcripts if escape_path(t.folder) == folder] or transcripts
    of_session = [t for t in transcripts if starts_id(start, t.session)]
    ids = match_ids(start, (t.session for t in of_session if t.is_main))
    matches = [t for t in of_session if t.is_main and t.session in ids]
    agent = start.lower().removeprefix("agent-")
    if start.lower() not in map(str.lower, ids) and len(agent) < _MIN_ID_LENGTH:
        raise BadQuery(f"{name!r} is too short for the start of an id. Use at least {_MIN_ID_LENGTH} characters.")
    # Copies that people made have the id of the original with something added.
    matches = [t for t in matches if is_uuid(str(t.session))] or matches
    matches = matches or [t for t in transcripts if starts_id(agent, t.agent)]
    if not matches:
        raise NotFound(_no_match_message(name, of_session))
    # An empty transcript says nothing; the keep may have what was in it.
    matches = [match for match in matches if match.size] or matches
    _check_single_match(matches, "an id that starts with", name)
    return matches[0]


def find_by_slug(slug: str, found: Iterable[Found], paths: Collection[str] | None = None) -> Transcript | None:
    """Return the main transcript of the session with this slug, such as `curious-hatching-cherny`; None without one.

    `paths` are the transcripts of sessions with this slug, if they are known. Otherwise, transcripts are searched.

    Raises:
        Ambiguous: there are several; the message lists them.
    """
    if not _SLUG.fullmatch(slug):
        return None
    transcripts = (t for home in found for t in home.transcripts if t.is_main)
    matches = [
        transcript
        for transcript in transcripts
        if (str(transcript.path) in paths if paths is not None else _has_slug(transcript, slug))
    ]
    _check_single_match(matches, "slug", slug)
    return matches[0] if matches else None


def _has_slug(transcript: Transcript, slug: str) -> bool:
    """Whether a row of a transcript has this slug, which Claude Code writes without spaces or escapes."""
    needle = f'"slug":"{slug}"'.encode()
    end = b""
    try:
        with os.fdopen(open_transcript(transcript.path), "rb") as file:
            while block := file.read(_BLOCK_SIZE):
                if needle in end + block:
                    return True
                end = block[-len(needle) :]
    except (OSError, Error):
        return False
    return False


def _check_single_match(matches: list[Transcript], part: str, name: str) -> None:
    if len(matches) > 1:
        import shlex  # noqa: PLC0415 - only a message needs it

        shown = "\n".join(f"  {shlex.quote(escape_path(match.path))}" for match in matches[:_MAX_SHOWN])
        more = f"\n  and {len(matches) - _MAX_SHOWN} more" if len(matches) > _MAX_SHOWN else ""
        raise Ambiguous(f"{len(matches)} transcripts have {part} {name!r}:\n{shown}{more}")


def _no_match_message(name: str, remaining: list[Transcript]) -> str:
    """Say that no session or agent has this id, or that only other files of the session remain."""
    if not remaining and not _ID_PREFIX.fullmatch(name.lower().removesuffix(TRANSCRIPT_SUFFIX)):
        return f"There is nothing at {name!r}, and no session has that id. `threadline list` shows all sessions."
    if not remaining:
        return f"No session or agent has an id that starts with {name!r}. `threadline list` shows all sessions."
    agents = [str(transcript.agent) for transcript in remaining if transcript.agent is not None]
    others = f" and {len(agents) - _MAX_SHOWN:,} more" if len(agents) > _MAX_SHOWN else ""
    files = f"{', '.join(agents[:_MAX_SHOWN])}{others}; name one of them" if agents else "other files of the session"
    return f"The transcript of session {name!r} no longer exists. What is left: {files}."


def _shorten(name: str) -> str:
    """Shorten a name for a message."""
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…"


def _refuse_side_file(place: Path) -> None:
    """Raise if this is a secret, which is never opened, or a side file, which is not read as a transcript."""
    name = str(place)
    if is_secret_name(place.name):
        raise BadQuery(f"{name!r} is a secret. threadline never opens secrets.")
    kind = _side_file_kind(place)
    if kind in NEVER_OPENED:
        raise BadQuery(f"{name!r} is a side file ({kind}), which threadline never opens.")
    if kind is not SideFileKind.OTHER:
        raise BadQuery(
            f"{name!r} is a side file ({kind}), not a transcript."
            " Read it with threadline.read_side_file (docs/library.md)."
        )


def _side_file_kind(place: Path) -> SideFileKind:
    """Return the kind of a file in the home it is in; `OTHER` for a transcript, and outside of any home."""
    path = place.absolute()
    for home in path.parents:
        try:
            is_home = any((home / marker).exists() for marker in HOME_MARKERS)
        except OSError:  # may not be entered
            return SideFileKind.OTHER
        parts = path.relative_to(home).parts
        is_transcript = is_transcript_path(parts)
        if is_home and (is_transcript or side_file_kind(parts) is not SideFileKind.OTHER):
            return SideFileKind.OTHER if is_transcript else side_file_kind(parts)
    return SideFileKind.OTHER


def _look_below(folder: Path) -> Found:
    home = Home(folder, "path")
    walk = DirectoryWalk()
    transcripts = [
        _transcript_outside_home(Path(entry.path), home, status)
        for directory in walk.walk(str(folder))
        for entry in directory.files
        if is_transcript_name(entry.name) and (status := walk.stat(entry)) is not None
    ]
    transcripts.sort(key=lambda transcript: transcript.path)
    return Found(home, (), tuple(transcripts), (), tuple(walk.problems))


def _transcript_outside_home(path: Path, home: Home, status: os.stat_result) -> Transcript:
    return make_transcript(path, home, path.parent.name, status, parts_below_project(path))
