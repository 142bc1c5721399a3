"""Bronze: the bytes of sessions as machines pushed them, and the batches that list them.

`lake.json` describes the lake. Each push of a machine adds batches, `bronze/batches/MACHINE/000001.json.zst`, numbered
without gaps; a batch is in the lake once its list is. A list has the new versions of files. A version names the
segments of objects that contain its bytes, those of earlier batches included, so the latest version of a file is
complete. Every object has bytes of one source only: the files of one session on one machine. So a session can be
erased by deleting objects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Ambiguous, BadQuery, NotFound, Unreadable
from threadline.model.places import match_ids
from threadline.model.text import join_some
from threadline.storage import Bucket

LAKE_VERSION = 1
LAKE_FILE = "lake.json"
BATCHES, DATA, FORGOTTEN = "bronze/batches", "bronze/data", "bronze/forgotten"
_LEVEL = 9
_ID_LENGTH = 16
_ENTRY_ID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')
_FILE_NAME = re.compile(r"[^\\\x00:]+" if os.name == "nt" else r"[^\x00]+")


class Policy(StrEnum):
    """What machines may push to a lake."""

    FULL = "full"
    REDACTED = "redacted"
    METRICS = "metrics"


POLICIES = {
    Policy.FULL: "complete transcripts, with everything that was typed, read and printed",
    Policy.REDACTED: "transcripts without secrets, names, addresses and home directories, as `threadline export` writes"
    " them",
    Policy.METRICS: "no text: only times, kinds, models, tool names, counts and sizes. Projects have pseudonyms",
}
"""What each policy means, in words."""


class LakeInfo(Struct, frozen=True):
    """What a lake is: its format, its id, its policy, and when it was created."""

    version: int
    id: str
    policy: Policy
    created: str


class Segment(Struct, frozen=True, array_like=True):
    """A part of an object: the object's path, and where the part is in its uncompressed bytes."""

    object: str
    offset: int
    length: int


class FileVersion(Struct, frozen=True, omit_defaults=True):
    """A file as it was pushed.

    `id` identifies the file, `source` the session on this machine that it belongs to, `session` that session. `home`
    is the home's name, `path` the path below the home, `project` the project's name. `digest` is the SHA-256 of the
    bytes in the lake. `stamp` is the size and mtime of the original, by which a push knows that nothing changed.
    """

    id: str
    source: str
    session: str
    home: str
    path: str
    project: str
    size: int
    digest: str
    mtime_ns: int
    stamp: tuple[int, int]
    segments: tuple[Segment, ...]

    def path_below(self, home: Path) -> Path:
        """Where the file is in a home on this machine.

        Raises:
            Unreadable: its path leads out of the home.
        """
        parts = self.path.split("/")
        if any(part in {"", ".", ".."} or not _FILE_NAME.fullmatch(part) for part in parts):
            raise Unreadable(
                f"The lake has a file with the path {self.path!r}, which leads out of its home. Find out who pushed it,"
                " then forget that session: threadline lake forget --session"
                f" {self.session}"
            )
        return home.joinpath(*parts)


class Batch(Struct, frozen=True):
    """What one push added: who pushed it from where, by which policy, and the new versions of files."""

    version: int
    lake: str
    machine: str
    label: str
    person: str
    number: int
    policy: Policy
    threadline: str
    pushed: str
    files: tuple[FileVersion, ...]

    @property
    def path(self) -> str:
        """Its path in the lake."""
        return batch_path(self.machine, self.number)


class Source(Struct, frozen=True):
    """The files of one session on one machine, in their latest versions."""

    id: str
    machine: str
    label: str
    person: str
    batch: int
    files: tuple[FileVersion, ...]

    @property
    def session(self) -> str:
        """The session's id."""
        return self.files[0].session

    @property
    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """Identifies its content."""
        parts = [f"{file.id} {file.digest} {file.mtime_ns} {file.project}" for file in self.files]
        return make_id(self.id, self.person, self.label, *parts)


_decode_info = msgspec.json.Decoder(LakeInfo).decode
_decode_batch = msgspec.json.Decoder(Batch).decode


def make_id(*parts: str) -> str:
    """A short hash of these texts."""
    return sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:_ID_LENGTH]


def batch_path(machine: str, number: int) -> str:
    """Where the list of a batch is."""
    return f"{BATCHES}/{machine}/{number:06d}.json.zst"


def compress(data: bytes) -> bytes:
    """Compress the bytes of an object."""
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data)


def decompress(data: bytes, path: str) -> bytes:
    """Decompress the bytes of an object.

    Raises:
        Unreadable: they are damaged.
    """
    try:
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise Unreadable(
            f"The object {path!r} is damaged ({error}). Run `threadline lake push --repair` on the machine that pushed"
            " it."
        ) from None


def create_lake(bucket: Bucket, policy: Policy) -> LakeInfo:
    """Create a lake. If there is one already, it has to have the same policy.

    Raises:
        BadQuery: there is a lake with another policy.
        Unreadable: the storage refuses.
    """
    info = LakeInfo(LAKE_VERSION, str(uuid4()), policy, _now())
    if bucket.create(LAKE_FILE, msgspec.json.format(msgspec.json.encode(info))):
        return info
    existing = read_lake(bucket)
    if existing.policy is not policy:
        raise BadQuery(
            f"The lake {bucket.name!r} exists and has the policy {existing.policy}. Use --change-policy to change it"
            " for future pushes."
        )
    return existing


def change_policy(bucket: Bucket, policy: Policy) -> LakeInfo:
    """Change the policy for future pushes. What was pushed stays as it is.

    Raises:
        NotFound: there is no lake.
    """
    info = replace(read_lake(bucket), policy=policy)
    bucket.put(LAKE_FILE, msgspec.json.format(msgspec.json.encode(info)))
    return info


def read_lake(bucket: Bucket) -> LakeInfo:
    """Read what a lake is.

    Raises:
        NotFound: there is none.
        Unreadable: it is damaged, or of a newer version.
    """
    try:
        info = _decode_info(bucket.get(LAKE_FILE))
    except NotFound:
        raise NotFound(f"There is no lake at {bucket.name!r}. Create one: threadline lake init {bucket.name}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable(f"{bucket.location(LAKE_FILE)!r} is damaged. Restore it from a backup.") from None
    if info.version > LAKE_VERSION:
        raise Unreadable(f"The lake {bucket.name!r} has a newer format ({info.version}). Update threadline.")
    return info


def list_batches(bucket: Bucket, machine: str | None = None) -> dict[str, list[int]]:
    """The numbers of the batches of each machine, or of one."""
    numbers: dict[str, list[int]] = {}
    for entry in bucket.list(f"{BATCHES}/{machine}" if machine is not None else BATCHES):
        folder, _, name = entry.path.removeprefix(f"{BATCHES}/").partition("/")
        number = name.partition(".")[0]
        if number.isdecimal():
            numbers.setdefault(folder, []).append(int(number))
    return {name: sorted(values) for name, values in sorted(numbers.items())}


def read_batch(bucket: Bucket, machine: str, number: int) -> Batch:
    """Read the list of a batch.

    Raises:
        Unreadable: it is damaged, or of a newer version.
    """
    return read_batch_at(bucket, batch_path(machine, number))


def read_batch_at(bucket: Bucket, path: str) -> Batch:
    """Read the list of a batch by its path, as `read_batch` does."""
    try:
        batch = _decode_batch(decompress(bucket.get(path), path))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable(f"The batch {bucket.location(path)!r} is damaged. Restore it from a backup.") from None
    if batch.version > LAKE_VERSION:
        raise Unreadable(f"The batch {bucket.location(path)!r} has a newer format. Update threadline.")
    return batch


def read_batches(bucket: Bucket, machine: str, numbers: Iterable[int]) -> list[Batch]:
    """Read the lists of batches.

    Raises:
        Unreadable: one is damaged, or of a newer version.
    """
    return list(bucket.map(lambda number: read_batch(bucket, machine, number), numbers))


def encode_batch(batch: Batch) -> bytes:
    """Encode the list of a batch."""
    return compress(msgspec.json.encode(batch))


def keep_files(batch: Batch, files: Iterable[FileVersion]) -> Batch:
    """The batch with only these files. Without any, nobody needs to know who pushed it."""
    kept = tuple(files)
    return replace(batch, files=kept) if kept else replace(batch, files=(), person="", label="")


def latest_versions(batches: Iterable[Batch]) -> dict[str, tuple[Batch, FileVersion]]:
    """The latest version of each file, with its batch. The batches are those of one machine, in order."""
    return {file.id: (batch, file) for batch in batches for file in batch.files}


def group_sources(batches: Iterable[Batch]) -> dict[str, Source]:
    """The sources of one machine's batches, in order. A source has the number of the last batch that changed it."""
    latest: dict[str, list[tuple[Batch, FileVersion]]] = {}
    for batch, file in latest_versions(batches).values():
        latest.setdefault(file.source, []).append((batch, file))
    sources = {}
    for id_, versions in latest.items():
        last = max((batch for batch, _ in versions), key=lambda batch: batch.number)
        files = sorted((file for _, file in versions), key=lambda file: file.path)
        sources[id_] = Source(id_, last.machine, last.label, last.person, last.number, tuple(files))
    return sources


class MachineStatus(Struct, frozen=True):
    """What one person has pushed from one machine. `bytes` is the size of the files, uncompressed.

    `built` is how many of the batches are in the tables.
    """

    person: str
    machine: str
    label: str
    sessions: int
    files: int
    bytes: int
    batches: int
    pushed: str
    built: int


def read_machines(bucket: Bucket, built: Mapping[str, int]) -> list[MachineStatus]:
    """What each person has pushed from each machine, sorted. `built` are the last batches that the tables contain."""
    rows = []
    for machine, numbers in list_batches(bucket).items():
        of_person: dict[str, list[Batch]] = {}
        batches = read_batches(bucket, machine, numbers)
        for batch in batches:
            if batch.person:  # else, all of it was forgotten
                of_person.setdefault(batch.person, []).append(batch)
        sources = group_sources(batches).values()
        for person, pushed in of_person.items():
            own = [source for source in sources if source.person == person]
            rows.append(
                MachineStatus(
                    person,
                    machine,
                    pushed[-1].label,
                    len(own),
                    sum(len(source.files) for source in own),
                    sum(source.size for source in own),
                    len(pushed),
                    pushed[-1].pushed,
                    sum(batch.number <= built.get(machine, 0) for batch in pushed),
                )
            )
    return sorted(rows, key=lambda row: (row.person, row.machine))


class SegmentReader:
    """Reads files from their segments. Objects that follow each other are read once."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._objects: dict[str, bytes] = {}

    def read(self, source: Source) -> Iterator[tuple[FileVersion, bytes]]:
        """The files of a source with their bytes, checked.

        Raises:
            Unreadable: an object is missing or damaged.
        """
        try:
            for file in source.files:
                yield file, self._read_file(file)
        finally:
            self._objects.clear()

    def _read_file(self, file: FileVersion) -> bytes:
        parts = [self._object(part.object)[part.offset : part.offset + part.length] for part in file.segments]
        data = b"".join(parts)
        if sha256(data).hexdigest() != file.digest:
            raise Unreadable(
                f"The bytes of {file.path!r} in the lake {self._bucket.name!r} do not match their hash. Run `threadline"
                " lake push --repair` on the machine that pushed them."
            )
        return data

    def _object(self, path: str) -> bytes:
        if path not in self._objects:
            try:
                self._objects[path] = decompress(self._bucket.get(path), path)
            except NotFound:
                raise Unreadable(
                    f"The object {self._bucket.location(path)!r} is missing. If a push or `lake forget` is running, try"
                    " again later. Otherwise run `threadline lake push --repair` on the machine that pushed it."
                ) from None
        return self._objects[path]


def entry_ids(data: bytes) -> set[str]:
    r"""The ids of the entries in the bytes of transcripts.

    >>> sorted(entry_ids(b'{"uuid":"5e55"}\n{"uuid" : "5e66"}'))
    ['5e55', '5e66']
    """
    return {match.decode(errors="replace") for match in _ENTRY_ID.findall(data)}


def resolve_session(start: str, sessions: Iterable[str]) -> str:
    """The session of a lake whose id starts like this. Ignores case.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several.
    """
    matches = sorted(match_ids(start, sessions)) if start else []
    if not matches:
        raise NotFound(f"The lake has no session {start!r}.")
    if len(matches) > 1:
        raise Ambiguous(f"{len(matches)} session ids start with {start!r}. Use more characters: {join_some(matches)}.")
    return matches[0]


def forgotten_sessions(bucket: Bucket) -> frozenset[str]:
    """The ids of forgotten sessions, hashed as by `make_id`: they are not pushed again."""
    return frozenset(entry.path.rpartition("/")[2] for entry in bucket.list(FORGOTTEN))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
