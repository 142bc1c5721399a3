"""Sessions of a keep: which kept files belong to which, by their paths, or by what is in them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from threadline.errors import Ambiguous, NotFound
from threadline.find.side_files import PROJECTS, session_of
from threadline.find.transcripts import is_transcript, naming
from threadline.keep.apart import lost_id
from threadline.keep.belonging import Belonging
from threadline.keep.catalogue import Catalogue, Version
from threadline.model.found import TranscriptKind

_BELOW = 3
"""How many parts a path below `projects/` has at least, where it names a session."""
_STILL = "9999"


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
        found = [one for one in self.files if main_of(one.path) is not None]
        return tuple(sorted(found, key=lambda one: (one.gone or _STILL, one.mtime_ns, one.size), reverse=True))

    @property
    def main(self) -> Version | None:
        """Its own transcript; None where only its agents' are left."""
        return next(iter(self.mains), None)

    @property
    def transcripts(self) -> tuple[Version, ...]:
        """Its transcripts, those of its agents included."""
        return tuple(one for one in self.files if is_session_transcript(one.path))

    @property
    def folder(self) -> str:
        """The name of its project's folder; empty where no transcript says it."""
        first = self.main or next(iter(self.transcripts), None)
        parts = first.path.split("/") if first is not None else []
        return parts[1] if len(parts) >= _BELOW else ""

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(one.size for one in self.files)

    @property
    def modified(self) -> datetime:
        """When it was last written to."""
        main = self.main
        return moment_of(main.mtime_ns if main is not None else max(one.mtime_ns for one in self.files))

    def to_restore(self) -> tuple[Version, ...]:
        """The files that put it back as it was when it was there last: of a transcript that moved, where it went."""
        mains = self.mains
        last = mains[0].gone or _STILL if mains else _STILL
        moved = {one.path for one in mains if (one.gone or _STILL) < last}
        return tuple(one for one in self.files if one.path not in moved)


def sessions(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[KeptSession]:
    """The sessions that are kept, newest first; as they stood after a run of their machine, if one is named.

    Files that belong to no session (histories, memories, statistics) are in none; see `others`.
    """
    belonging = Belonging(catalogue)
    gathered: dict[tuple[str, str, str], list[Version]] = defaultdict(list)
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for versions in _chosen(catalogue, machine, at):
        newest = versions[-1]
        session = belonging.session(newest)
        if session is None:
            continue
        key = (newest.machine, newest.home, session)
        gathered[key].append(newest)
        if main_of(newest.path) is not None:
            counts[key] += len(versions)
    made = [
        KeptSession(key[2], key[0], files[0].label, key[1], tuple(files), max(1, counts[key]))
        for key, files in gathered.items()
        if any(is_session_transcript(one.path) for one in files)
    ]
    return sorted(made, key=lambda one: (one.modified, one.id), reverse=True)


def others(catalogue: Catalogue, *, machine: str | None = None, at: int | None = None) -> list[Version]:
    """The newest versions of files that belong to a home, and to no session of it that has a transcript."""
    listed = {(one.machine, one.home, one.id) for one in sessions(catalogue, machine=machine, at=at)}
    belonging = Belonging(catalogue)
    newest = (versions[-1] for versions in _chosen(catalogue, machine, at))
    return [one for one in newest if (one.machine, one.home, belonging.session(one)) not in listed]


def named(found: Iterable[KeptSession], start: str) -> list[KeptSession]:
    """The session whose id starts so; the same one of several machines and homes, newest first. `last` is the newest.

    Raises:
        NotFound: there is none.
        Ambiguous: several ids start so.
    """
    listed = list(found)
    if start == "last" and listed:
        start = listed[0].id
    wanted = start.strip().lower().removesuffix(".jsonl")
    fit = [one for one in listed if wanted and one.id.lower().startswith(wanted)]
    # What a cut took is listed under an id of its own while the session itself goes on.
    fit = fit or [one for one in listed if wanted and (lost_id(one.id) or "").startswith(wanted)]
    wanted = fit[0].id if len({one.id for one in fit}) == 1 else wanted
    ids = sorted({one.id for one in fit})
    if not ids:
        raise NotFound(f"No session {start!r} is kept; `threadline keep list` shows which are.")
    if len(ids) > 1 and wanted not in ids:
        few = ", ".join(one[:13] for one in ids[:4])
        raise Ambiguous(f"{len(ids)} kept sessions start with {start!r}: {few}{' …' if len(ids) > 4 else ''}.")  # noqa: PLR2004 - as above
    return [one for one in fit if one.id == (wanted if wanted in ids else ids[0])]


def is_at_source(version: Version, machine: str) -> bool:
    """Whether Claude Code still has it: by a look where it is this machine's, else by what the last run saw."""
    if version.machine == machine:
        return os.path.lexists(os.path.join(version.home, version.path))  # noqa: PTH118 - there may be 100,000
    return version.gone is None


def is_kept_only(session: KeptSession, machine: str) -> bool:
    """Whether Claude Code has deleted its transcript, so that only the keep has it."""
    return not any(is_at_source(one, machine) for one in session.mains or session.transcripts)


def main_of(path: str) -> str | None:
    """The session whose own transcript lies at this path below its home, if one does."""
    parts = path.split("/")
    if len(parts) != _BELOW or parts[0] != PROJECTS or not is_transcript(parts[-1]):
        return None
    named_so = naming(parts[2:])
    return named_so.session if named_so.kind is TranscriptKind.MAIN else None


def path_session(path: str) -> str | None:
    """The session that a path below its home names."""
    return session_of(path.split("/"))


def moment_of(mtime_ns: int) -> datetime:
    """A file's time as a moment; one that cannot be is the earliest there is."""
    try:
        return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.min.replace(tzinfo=UTC)


def _chosen(catalogue: Catalogue, machine: str | None, at: int | None) -> Iterator[list[Version]]:
    """The versions of every file that are wanted, oldest first."""
    for versions in catalogue.versions.values():
        if machine is not None and machine not in (versions[0].machine, versions[0].label):
            continue
        known = versions if at is None else [one for one in versions if one.run <= at]
        if known:
            yield known


def is_session_transcript(path: str) -> bool:
    """Whether a path below a home is a transcript's: a session's own, or one of its agents'."""
    return path.startswith(f"{PROJECTS}/") and is_transcript(Path(path).name) and "/tool-results/" not in path
