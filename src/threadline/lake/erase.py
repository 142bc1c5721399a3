"""Forget sessions: remove their rows, their bytes, old snapshots and orphaned files, and prove that nothing is left.

A fork copies the history of its session, so its transcript has entries of both. Such sessions are forgotten together
or not at all; otherwise the bytes would remain in the copy.

Every step can be repeated: if `forget` is interrupted, run it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import BytesIO

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Ambiguous, BadQuery, IndexBusy, NotFound, Unreadable
from threadline.lake.accounting import KEY_COLUMNS
from threadline.lake.bronze import (
    BATCHES,
    DATA,
    FORGOTTEN,
    Source,
    decompress,
    encode_batch,
    group_sources,
    list_batches,
    make_id,
    read_batch,
    read_lake,
)
from threadline.lake.build import update_charges
from threadline.lake.catalogue import SILVER, Catalogue, Commit, commit_path, read_commit, referenced_files
from threadline.lake.storage import Bucket
from threadline.lake.tables import CHARGES, SIGHTINGS, TABLES
from threadline.model.tables import import_library
from threadline.model.text import count, join_some

_MAX_ATTEMPTS = 5
_ENTRY_ID = re.compile(rb'"uuid":\s*"([^"\\]{1,64})"')


class ForgetResult(Struct, frozen=True):
    """What was forgotten, and how much was searched for the proof."""

    sessions: tuple[str, ...]
    sources: int
    objects: int
    files: int
    checked_objects: int
    checked_bytes: int


def select_sources(
    bucket: Bucket, *, sessions: Sequence[str] = (), person: str | None = None, before: datetime | None = None
) -> list[Source]:
    """The sources to forget: of sessions by the start of their id, of a person, and last changed before a time.

    Raises:
        NotFound: nothing matches.
        Ambiguous: several sessions start with a text.
        BadQuery: nothing is given.
    """
    if not sessions and person is None and before is None:
        raise BadQuery("Say what to forget: --session ID, --person NAME or --before WHEN.")
    everything = all_sources(bucket)
    ids = {_full_id(start, {source.session for source in everything}) for start in sessions}
    selected = [
        source
        for source in everything
        if (not sessions or source.session in ids)
        and (person is None or source.person == person)
        and (before is None or max(file.mtime_ns for file in source.files) < before.timestamp() * 10**9)
    ]
    if not selected:
        raise NotFound(f"Nothing in {bucket.uri!r} matches. `threadline lake status {bucket.uri}` lists people.")
    return selected


def all_sources(bucket: Bucket) -> list[Source]:
    """Everything that was pushed and is not forgotten."""
    return [
        source
        for machine, numbers in list_batches(bucket).items()
        for source in group_sources(read_batch(bucket, machine, number) for number in numbers).values()
    ]


def _full_id(start: str, ids: Iterable[str]) -> str:
    matches = sorted(id_ for id_ in ids if id_.startswith(start))
    if start in matches or len(matches) == 1:
        return start if start in matches else matches[0]
    if matches:
        raise Ambiguous(f"{len(matches)} session ids start with {start!r}. Use more characters: {join_some(matches)}.")
    raise NotFound(f"The lake has no session {start!r}.")


def forget_sources(bucket: Bucket, sources: Sequence[Source]) -> ForgetResult:
    """Forget sources: from bronze, from all tables and from earlier states of them. Then search every object.

    Raises:
        BadQuery: a session that stays has copies of their entries, or something is not built yet.
        IndexBusy: other builds kept publishing first.
        Unreadable: the storage refuses, or the proof failed.
    """
    read_lake(bucket)
    ids = {source.id for source in sources}
    commit = _require_built(bucket)
    uuids = _entry_ids(bucket, commit, ids) if commit is not None else set()
    objects = [entry.path for source in sources for entry in bucket.list(f"{DATA}/{source.machine}/{source.id}")]
    for session in {source.session for source in sources}:
        bucket.put(f"{FORGOTTEN}/{make_id(session)}", b"")
    _rewrite_batches(bucket, ids)
    files = _rewrite_tables(bucket, ids) if commit is not None else 0
    bucket.delete(objects)
    checked, size = prove_forgotten(bucket, ids, uuids)
    names = tuple(sorted({source.session for source in sources}))
    return ForgetResult(names, len(ids), len(objects), files, checked, size)


def _require_built(bucket: Bucket) -> Commit | None:
    commit = read_commit(bucket)
    pushed = {machine: numbers[-1] for machine, numbers in list_batches(bucket).items()}
    if pushed and (commit is None or commit.batches != pushed):
        raise BadQuery(f"Something was pushed since the last build. First run: threadline lake build {bucket.uri}")
    return commit


def _entry_ids(bucket: Bucket, commit: Commit, ids: set[str]) -> set[str]:
    """The ids of the entries to forget.

    Raises:
        BadQuery: sessions that stay have some of them.
    """
    entries = Catalogue(bucket, commit).scan("entries", ("source", "uuid")).to_pylist()
    uuids = {row["uuid"] for row in entries if row["source"] in ids and row["uuid"]}
    others = {row["source"] for row in entries if row["source"] not in ids and row["uuid"] in uuids}
    if others:
        names = sorted({source.session for source in all_sources(bucket) if source.id in others})
        raise BadQuery(
            f"{count(len(names), 'other session')} contain{'s' if len(names) == 1 else ''} copies of these entries, as"
            f" forks do. Forget them as well: {' '.join(f'--session {name}' for name in names)}"
        )
    return uuids


def _rewrite_batches(bucket: Bucket, ids: set[str]) -> None:
    for machine, numbers in list_batches(bucket).items():
        for number in numbers:
            batch = read_batch(bucket, machine, number)
            files = tuple(file for file in batch.files if file.source not in ids)
            if len(files) < len(batch.files):
                bucket.put(batch.path, encode_batch(replace(batch, files=files)))


def _rewrite_tables(bucket: Bucket, ids: set[str]) -> int:
    """Remove rows from all tables, and everything but the new state; return how many files were deleted."""
    for _attempt in range(_MAX_ATTEMPTS):
        commit = read_commit(bucket)
        if commit is None:
            return 0
        # Listed before publishing: a build that starts later writes files under other names.
        stored = [entry.path for entry in bucket.list(SILVER)]
        catalogue = Catalogue(bucket, commit)
        before = catalogue.scan(SIGHTINGS, KEY_COLUMNS).to_pylist()
        for table in TABLES:
            if table != CHARGES:
                catalogue.replace_rows(table, "source", sorted(ids), [], {})
        update_charges(bucket, catalogue, before, ids, {"threadline.forgotten": str(commit.number)})
        catalogue.expire_snapshots()
        published = catalogue.publish(commit.batches)
        if published is not None:
            needed = {*referenced_files(catalogue), commit_path(published.number)}
            stale = [entry.path for entry in bucket.list(SILVER) if "/metadata/" in entry.path]
            unneeded = sorted({*stored, *stale} - needed)
            bucket.delete(unneeded)
            return len(unneeded)
    raise IndexBusy(f"Builds of {bucket.uri!r} were faster {_MAX_ATTEMPTS} times. Wait for them, then try again.")


def prove_forgotten(bucket: Bucket, ids: set[str], uuids: set[str]) -> tuple[int, int]:
    """Search every object of a lake for these sources and entries; return how many objects and bytes were searched.

    Raises:
        Unreadable: something was found.
    """
    parquet = import_library("pyarrow.parquet", "lake")
    checked = size = 0
    for entry in [*bucket.list(BATCHES), *bucket.list(DATA), *bucket.list(SILVER)]:
        checked, size = checked + 1, size + entry.size
        if any(f"/{id_}/" in entry.path for id_ in ids):
            raise _not_forgotten(bucket, entry.path)
        data = bucket.get(entry.path)
        if entry.path.endswith(".zst"):
            found = {match.decode(errors="replace") for match in _ENTRY_ID.findall(decompress(data, entry.path))}
        elif entry.path.endswith(".parquet"):
            file = parquet.ParquetFile(BytesIO(data))
            columns = [name for name in ("source", "uuid") if name in file.schema_arrow.names]
            values = file.read(columns=columns)
            found = {value for column in columns for value in values.column(column).to_pylist()}
        else:
            found = set()
        if found & (uuids | ids):
            raise _not_forgotten(bucket, entry.path)
    return checked, size


def _not_forgotten(bucket: Bucket, path: str) -> Unreadable:
    return Unreadable(
        f"{bucket.location(path)!r} still contains something of the forgotten sessions. Wait for running pushes and"
        " builds, then run the command again."
    )
