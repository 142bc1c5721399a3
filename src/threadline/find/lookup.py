"""Find transcripts by path, by session or agent id, and all transcripts of one session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from threadline.errors import Ambiguous, BadQuery, NotFound, Unreadable
from threadline.find.home_dirs import homes
from threadline.find.layout import (
    HOME_MARKERS,
    NEVER_OPENED,
    PROJECTS,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_transcript_name,
    make_transcript,
    parse_agent_id,
    parse_session_id,
    parse_transcript_name,
    side_file_kind,
)
from threadline.find.listing import look
from threadline.find.walk import Walk
from threadline.model.homes import (
    Found,
    Home,
    SideFileKind,
    Transcript,
    TranscriptKind,
    counterpart_paths,
    is_secret_name,
)

_ID_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]{0,35}", re.IGNORECASE)
_MIN_ID_LENGTH = 4
_MAX_SHOWN = 8
_MAX_NAME_LENGTH = 200


def look_at_path(path: str | Path) -> Found:
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
            return _look_below(place)
    named = _shorten(str(path))
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is nothing at {named!r}; name a transcript, a folder or a home.") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(f"{named!r} cannot be looked at: {why}.") from None
    _refuse_side_file(place)
    home = Home(place.parent, "path")
    return Found(home, (), (_transcript_outside_home(place, home, status),), (), ())


def find_by_id(prefix: str, found: Iterable[Found]) -> Transcript:
    """The one main transcript, or the one agent's, whose id starts so; `agent-<id>` and `<id>.jsonl` will do, too.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several; the text lists them.
        BadQuery: too few characters to tell sessions apart.
    """
    named = _shorten(prefix)
    start = prefix.lower().removesuffix(TRANSCRIPT_SUFFIX)
    is_agent = start.startswith("agent-")
    start = start.removeprefix("agent-")
    if not is_agent and not _ID_PREFIX.fullmatch(start):
        raise NotFound(f"There is nothing at {named!r}, and it is no session id; name a path or the start of an id.")
    if len(start) < _MIN_ID_LENGTH:
        raise BadQuery(f"{named!r} is too short for the start of an id; give at least {_MIN_ID_LENGTH} characters.")
    everything = [transcript for one in found for transcript in one.transcripts]
    mains = [
        one
        for one in everything
        if one.kind is TranscriptKind.MAIN and (one.session or "").startswith(start) and not is_agent
    ]
    matches = mains or [one for one in everything if (one.agent or "").lower().startswith(start)]
    if not matches:
        raise NotFound(_no_match_message(named, [one for one in everything if (one.session or "").startswith(start)]))
    # An empty one tells nothing: what was in it may be in the keep.
    matches = [match for match in matches if match.size] or matches
    if len(matches) > 1:
        shown = "\n".join(f"  {match.path}" for match in matches[:_MAX_SHOWN])
        more = f"\n  and {len(matches) - _MAX_SHOWN} more" if len(matches) > _MAX_SHOWN else ""
        raise Ambiguous(f"{len(matches)} transcripts have an id that starts with {named!r}:\n{shown}{more}")
    return matches[0]


def _no_match_message(named: str, left: list[Transcript]) -> str:
    """That no session or agent is called so; but of a session whose own transcript is gone, agents may be left."""
    if not left:
        return f"No session or agent has an id that starts with {named!r}; `threadline` shows what there is."
    agents = [str(transcript.agent) for transcript in left if transcript.agent is not None]
    others = f" and {len(agents) - _MAX_SHOWN:,} more" if len(agents) > _MAX_SHOWN else ""
    told = f"{', '.join(agents[:_MAX_SHOWN])}{others}; name one of them" if agents else "other files of it"
    return f"The transcript of session {named!r} itself is gone. What is left: {told}."


def _shorten(name: str) -> str:
    """A name for a sentence: as much of it as a person reads."""
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…"


def _refuse_side_file(place: Path) -> None:
    """A file of a home that is no transcript is not read as one, and a secret is not opened at all."""
    name = str(place)
    if is_secret_name(place.name):
        raise BadQuery(f"{name!r} is a secret; threadline never opens one.")
    kind = _side_file_kind(place)
    if kind in NEVER_OPENED:
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
            is_home = any((home / mark).exists() for mark in HOME_MARKERS)
        except OSError:  # may not be entered
            return SideFileKind.OTHER
        parts = path.relative_to(home).parts
        is_read = parts[0] == PROJECTS and is_transcript_name(path.name) and not is_non_transcript_path(parts[2:])
        if is_home and (is_read or side_file_kind(parts) is not SideFileKind.OTHER):
            return SideFileKind.OTHER if is_read else side_file_kind(parts)
    return SideFileKind.OTHER


def _look_below(folder: Path) -> Found:
    home = Home(folder, "path")
    walk = Walk()
    found = []
    for seen in walk.below(str(folder), (), lambda _path, _parts: True):
        if is_transcript_name(seen.parts[-1]) and not seen.is_link:
            with suppress(FileNotFoundError):  # gone since it was listed
                found.append(
                    _transcript_outside_home(Path(seen.entry.path), home, seen.entry.stat(follow_symlinks=False))
                )
    return Found(home, (), tuple(sorted(found, key=lambda one: one.path)), (), tuple(walk.problems))


def _transcript_outside_home(path: Path, home: Home, status: os.stat_result) -> Transcript:
    parts = path.absolute().parts
    # An agent's transcript lies below its session's directory, two levels down or more.
    below = parts[parts.index("subagents") - 1 :] if "subagents" in parts[1:] else parts[-1:]
    return make_transcript(path, home, path.parent.name, status, below)


def session_transcripts(main: Path) -> tuple[list[Transcript], list[Transcript]]:
    """Transcripts of agents and journals below the session's own directory, and agents' beside it.

    Those beside name their session inside. An agent's own transcript has no others: they are its session's. Some of
    them may be only in the keep, or all but them.
    """
    home = Home(main.parent, "path")
    below = [
        _transcript_with_meta(Path(seen.entry.path), seen.parts, home)
        for directory in _session_directories(main)
        for seen in Walk().below(str(directory), (directory.name,), lambda _path, _parts: True)
        if is_transcript_name(seen.parts[-1]) and not seen.is_link
    ]
    folders = (main.parent, *map(Path, counterpart_paths(main.parent)))
    others = [path for folder in folders for path in sorted(folder.glob("agent-*.jsonl"))]
    others = others if parse_agent_id(main.name) is None else []
    beside = [
        _transcript_with_meta(path, (path.name,), home)
        for path in others
        if _is_regular_file(path) and parse_agent_id(path.name) is not None
    ]
    own = [one for one in below if one.kind is not TranscriptKind.OTHER]
    return sorted(own, key=lambda one: one.path), beside


def _session_directories(main: Path) -> Iterator[Path]:
    """The session's own directories: beside its transcript, and in other projects that it went on to.

    In a folder that holds a transcript of the same session, the directory is that one's.
    """
    for beside in (main.with_suffix(""), *map(Path, counterpart_paths(main.with_suffix("")))):
        if os.path.isdir(beside):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
            yield beside
    own = main.absolute().parent
    if own.parent.name != PROJECTS or parse_session_id(main.stem) is None:
        return
    try:
        folders = sorted(os.listdir(own.parent))  # noqa: PTH208 - names are enough
    except OSError:
        return
    for name in folders:
        elsewhere = own.parent / name / main.stem
        if name != own.name and os.path.isdir(elsewhere) and not os.path.exists(f"{elsewhere}.jsonl"):  # noqa: PTH110, PTH112 - the same
            yield elsewhere


def add_session_transcripts(found: Found) -> Found:
    """One transcript that was found alone, together with those of its session: it may lie in no home."""
    below, beside = session_transcripts(found.transcripts[0].path)
    return replace(found, transcripts=(*found.transcripts, *below, *beside))


def transcript_at(path: Path) -> Transcript:
    """The transcript at a path, with what the path alone says."""
    return _transcript_with_meta(path, (path.name,), Home(path.parent, "path"))


def other_main_transcripts(main: Path) -> list[Path]:
    """The other sessions' main transcripts in the same folder."""
    found = (
        path
        for folder in (main.parent, *map(Path, counterpart_paths(main.parent)))
        for path in sorted(folder.glob("*.jsonl"))
        if path != main and path.is_file() and not path.is_symlink()
    )
    return [path for path in found if parse_transcript_name((path.name,)).kind is TranscriptKind.MAIN]


def _transcript_with_meta(path: Path, parts: tuple[str, ...], home: Home) -> Transcript:
    meta = path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")
    if not _is_regular_file(meta):
        meta = next((twin for twin in map(Path, counterpart_paths(meta)) if _is_regular_file(twin)), meta)
    return make_transcript(
        path,
        home,
        path.parent.name,
        path.stat(),
        parts,
        meta=meta if _is_regular_file(meta) else None,
    )


def _is_regular_file(path: Path) -> bool:
    """Whether it is a regular file here, and no link: one may lead to a secret."""
    # Not `path.is_file`: it raises where the name is longer than names may be.
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114
