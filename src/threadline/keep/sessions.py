"""Which kept files belong to which session, by their paths or their contents."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Ambiguous, NotFound, Unreadable
from threadline.find import (
    PROJECTS,
    is_transcript_name,
    parse_agent_id,
    parse_session_id,
    parse_transcript_name,
    session_in_path,
)
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.paths import lost_part_id
from threadline.model.homes import TranscriptKind

_MIN_PATH_PARTS = 3
"""How many parts a path below `projects/` has at least, where it names a session."""
_NOT_GONE = "9999"


class KeptSession(Struct, frozen=True):
    """A session as a keep has it: of which machine and home, and the newest version of each of its files.

    `versions` is how many there are of its own transcript.
    """

    id: str
    machine: str
    label: str
    home: str
    files: tuple[Version, ...]
    versions: int = 1

    @property
    def mains(self) -> tuple[Version, ...]:
        """Its own transcripts, that which was there last first: one that moved to another project has several."""
        found = [file for file in self.files if session_of_main_transcript(file.path) is not None]
        return tuple(sorted(found, key=lambda one: (one.gone or _NOT_GONE, one.mtime_ns, one.size), reverse=True))

    @property
    def main(self) -> Version | None:
        """Its own transcript; None where only its agents' are left."""
        return next(iter(self.mains), None)

    @property
    def transcripts(self) -> tuple[Version, ...]:
        """Its transcripts, those of its agents included."""
        return tuple(file for file in self.files if is_session_transcript(file.path))

    @property
    def folder(self) -> str:
        """The name of its project's folder; empty where no transcript says it."""
        first = self.main or next(iter(self.transcripts), None)
        parts = first.path.split("/") if first is not None else []
        return parts[1] if len(parts) >= _MIN_PATH_PARTS else ""

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(file.size for file in self.files)

    @property
    def modified(self) -> datetime:
        """When it was last written to."""
        main = self.main
        return mtime_to_datetime(main.mtime_ns if main is not None else max(file.mtime_ns for file in self.files))

    def files_to_restore(self) -> tuple[Version, ...]:
        """The files that put it back as it was when it was there last: of a transcript that moved, where it went."""
        mains = self.mains
        last = mains[0].gone or _NOT_GONE if mains else _NOT_GONE
        moved = {main.path for main in mains if (main.gone or _NOT_GONE) < last}
        return tuple(file for file in self.files if file.path not in moved)


def list_sessions(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[KeptSession]:
    """The sessions that are kept, newest first; as they stood after a run of their machine, if one is named.

    Files that belong to no session (histories, memories, statistics) are in none; see `others`.
    """
    belonging = FileOwners(catalogue)
    gathered: dict[tuple[str, str, str], list[Version]] = defaultdict(list)
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for versions in _select_versions(catalogue, machine, at):
        newest = versions[-1]
        session = belonging.session(newest)
        if session is None:
            continue
        key = (newest.machine, newest.home, session)
        gathered[key].append(newest)
        if session_of_main_transcript(newest.path) is not None:
            counts[key] += len(versions)
    made = [
        KeptSession(key[2], key[0], files[0].label, key[1], tuple(files), max(1, counts[key]))
        for key, files in gathered.items()
        if any(is_session_transcript(file.path) for file in files)
    ]
    return sorted(made, key=lambda one: (one.modified, one.id), reverse=True)


def list_other_files(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[Version]:
    """The newest versions of files that belong to a home, and to no session of it that has a transcript."""
    listed = {
        (kept_session.machine, kept_session.home, kept_session.id)
        for kept_session in list_sessions(catalogue, machine=machine, at=at)
    }
    belonging = FileOwners(catalogue)
    newest = (versions[-1] for versions in _select_versions(catalogue, machine, at))
    return [one for one in newest if (one.machine, one.home, belonging.session(one)) not in listed]


def find_sessions(found: Iterable[KeptSession], start: str) -> list[KeptSession]:
    """The session whose id starts so; the same one of several machines and homes, newest first. `last` is the newest.

    Raises:
        NotFound: there is none.
        Ambiguous: several ids start so.
    """
    listed = list(found)
    if start == "last" and listed:
        start = listed[0].id
    wanted = start.strip().lower().removesuffix(".jsonl")
    fit = [kept_session for kept_session in listed if wanted and kept_session.id.lower().startswith(wanted)]
    # What a cut took is listed under an id of its own while the session itself goes on.
    fit = fit or [
        kept_session for kept_session in listed if wanted and (lost_part_id(kept_session.id) or "").startswith(wanted)
    ]
    wanted = fit[0].id if len({one.id for one in fit}) == 1 else wanted
    ids = sorted({one.id for one in fit})
    if not ids:
        raise NotFound(f"No session {start!r} is kept; `threadline keep list` shows which are.")
    if len(ids) > 1 and wanted not in ids:
        few = ", ".join(id_[:13] for id_ in ids[:4])
        raise Ambiguous(f"{len(ids)} kept sessions start with {start!r}: {few}{' …' if len(ids) > 4 else ''}.")  # noqa: PLR2004 - as above
    return [one for one in fit if one.id == (wanted if wanted in ids else ids[0])]


def is_at_source(version: Version, machine: str) -> bool:
    """Whether Claude Code still has it: by a look where it is this machine's, else by what the last run saw."""
    if version.machine == machine:
        return os.path.lexists(os.path.join(version.home, version.path))  # noqa: PTH118 - there may be 100,000
    return version.gone is None


def is_kept_only(session: KeptSession, machine: str) -> bool:
    """Whether Claude Code has deleted its transcript, so that only the keep has it."""
    return not any(is_at_source(main, machine) for main in session.mains or session.transcripts)


def session_of_main_transcript(path: str) -> str | None:
    """The session whose own transcript lies at this path below its home, if one does."""
    parts = path.split("/")
    if len(parts) != _MIN_PATH_PARTS or parts[0] != PROJECTS or not is_transcript_name(parts[-1]):
        return None
    named_so = parse_transcript_name(parts[2:])
    return named_so.session if named_so.kind is TranscriptKind.MAIN else None


def session_of_path(path: str) -> str | None:
    """The session that a path below its home names."""
    return session_in_path(path.split("/"))


def mtime_to_datetime(mtime_ns: int) -> datetime:
    """A file's time as a moment; one that cannot be is the earliest there is."""
    try:
        return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.min.replace(tzinfo=UTC)


def _select_versions(catalogue: Catalogue, machine: str | None, at: int | None) -> Iterator[list[Version]]:
    """The versions of every file that are wanted, oldest first."""
    for versions in catalogue.versions.values():
        if machine is not None and machine not in (versions[0].machine, versions[0].label):
            continue
        known = versions if at is None else [version for version in versions if version.run <= at]
        if known:
            yield known


def is_session_transcript(path: str) -> bool:
    """Whether a path below a home is a transcript's: a session's own, or one of its agents'."""
    return path.startswith(f"{PROJECTS}/") and is_transcript_name(Path(path).name) and "/tool-results/" not in path


_MAX_HEAD_SIZE = 4 << 20
"""What says whose it is stands in the first bytes, or in a small file."""
_META_SUFFIX = ".meta.json"
_PLAN_NAME = re.compile(rb'"(?:slug|planFilePath)"\s*:\s*"(?:[^"]*[/\\])?([^"/\\]+?)(?:\.md)?"')
_PATH_PARTS = 3


class _SessionReference(Struct, rename="camel"):
    session_id: Any = None
    lead_session_id: Any = None


class _HistoryLine(Struct, rename="camel"):
    session_id: Any = None
    pasted_contents: Any = None


class FileOwners:
    """Whose the files of one keep are; what has to be read for it is read once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[tuple[str, str, str], str | None] = {}

    def session(self, version: Version) -> str | None:
        """The session that a file belongs to, if it belongs to one."""
        parts = version.path.split("/")
        by_path = session_in_path(parts)
        if by_path is not None:
            return by_path
        telling = _reference_path(parts)
        return self._inside(version, telling) if telling is not None else None

    def along(self, session: str, files: Iterable[Version], everything: Iterable[Version]) -> Iterator[Version]:
        """Files of the same home that a session's transcripts or prompts name: its plans, and what was pasted."""
        of_session = list(files)
        if not of_session:
            return
        machine, home = of_session[0].machine, of_session[0].home
        beside = [version for version in everything if (version.machine, version.home) == (machine, home)]
        plans = {PurePosixPath(version.path).stem: version for version in beside if version.path.startswith("plans/")}
        pastes = {
            PurePosixPath(version.path).stem: version for version in beside if version.path.startswith("paste-cache/")
        }
        if plans:
            said = {name for version in of_session if version.path.endswith(".jsonl") for name in self._plans(version)}
            yield from (one for stem, one in plans.items() if stem.split("-agent-")[0] in said or stem in said)
        history = next((version for version in beside if version.path == "history.jsonl"), None)
        if pastes and history is not None:
            hashes = set(self._pasted(history, session))
            yield from (one for stem, one in pastes.items() if stem in hashes)

    def _inside(self, version: Version, telling: str) -> str | None:
        """The session that the file which tells of it names."""
        key = (version.machine, version.home, telling)
        if key not in self._known:
            versions = self._catalogue.versions.get(key)
            self._known[key] = self._named(versions[-1]) if versions else None
        return self._known[key]

    def _named(self, version: Version) -> str | None:
        data = self._head(version)
        # A transcript says it in a line, the others as a whole.
        for text in data.splitlines() if version.path.endswith(".jsonl") else [data]:
            told = _decode_json(text, _SessionReference)
            for name in (told.session_id, told.lead_session_id) if told is not None else ():
                if isinstance(name, str) and (found := parse_session_id(name)):
                    return found
        return None

    def _head(self, version: Version) -> bytes:
        """The first bytes of a file; what is damaged says nothing, and `verify` tells it."""
        head = b""
        try:
            for data in self._catalogue.data(version):
                head += data
                if len(head) >= _MAX_HEAD_SIZE or version.path.endswith(".jsonl"):
                    break
        except Unreadable:
            return head
        return head

    def _plans(self, version: Version) -> Iterator[str]:
        try:
            for data in self._catalogue.data(version):
                yield from (name.decode(errors="replace") for name in _PLAN_NAME.findall(data))
        except Unreadable:
            return

    def _pasted(self, history: Version, session: str) -> Iterator[str]:
        try:
            data = b"".join(self._catalogue.data(history))
        except Unreadable:
            return
        for line in data.splitlines():
            if b"contentHash" not in line or session.encode() not in line:
                continue
            told = _decode_json(line, _HistoryLine)
            if told is not None and told.session_id == session and isinstance(told.pasted_contents, dict):
                for content in told.pasted_contents.values():
                    if isinstance(content, dict) and isinstance(content.get("contentHash"), str):
                        yield content["contentHash"]


def _reference_path(parts: list[str]) -> str | None:
    """The path of the file that names the session which this one belongs to."""
    if parts[0] == PROJECTS and len(parts) == _PATH_PARTS:
        name = parts[2].removesuffix(_META_SUFFIX) + ".jsonl" if parts[2].endswith(_META_SUFFIX) else parts[2]
        return "/".join([*parts[:2], name]) if parse_agent_id(name) is not None else None
    if len(parts) < _PATH_PARTS:
        return None
    if parts[0] in ("teams", "tasks"):
        return f"teams/{parts[1]}/config.json"
    return f"jobs/{parts[1]}/state.json" if parts[0] == "jobs" else None


def _decode_json(data: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
