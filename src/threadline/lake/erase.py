"""Forget sessions: remove their rows, their bytes, old snapshots and orphaned files, and prove that nothing is left.

A fork copies the history of its session, so its transcript has entries of both. Such sessions are forgotten together
or not at all; otherwise the bytes would remain in the copy.

Sessions are marked as forgotten first, so that running pushes and builds withdraw them. The lists of batches, from
which sessions are selected, are rewritten last: if `forget` is interrupted, run it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery, IndexBusy, NotFound, Unreadable
from threadline.lake.bronze import (
    BATCHES,
    DATA,
    FORGOTTEN,
    Source,
    decompress,
    encode_batch,
    entry_ids,
    group_sources,
    keep_files,
    list_batches,
    make_id,
    read_batch_at,
    read_batches,
    read_lake,
    resolve_session,
)
from threadline.lake.iceberg import (
    Catalogue,
    Commit,
    commit_path,
    read_commit,
    referenced_files,
    reports_storage_errors,
)
from threadline.lake.tables import SILVER
from threadline.lake.updates import replace_sources
from threadline.model.tables import import_library
from threadline.model.text import count, join_some
from threadline.model.times import moment_from_mtime
from threadline.storage import Bucket, StoredObject

_MAX_ATTEMPTS = 5


class ForgetResult(Struct, frozen=True):
    """What was forgotten, and how much was searched for the proof."""

    sessions: tuple[str, ...]
    sources: int
    objects: int
    files: int
    checked_objects: int
    checked_bytes: int


@reports_storage_errors
def select_sources(
    bucket: Bucket, *, sessions: Sequence[str] = (), person: str | None = None, before: datetime | None = None
) -> list[Source]:
    """The sources to forget: of sessions by the start of their id, of a person, and ended before a time.

    A session ended with its last entry. Without times, or before it is built, its files' mtime counts.

    Raises:
        NotFound: nothing matches.
        Ambiguous: several sessions start with a text.
        BadQuery: nothing is given.
    """
    if not sessions and person is None and before is None:
        raise BadQuery("Say what to forget: --session ID, --person NAME or --before WHEN.")
    everything = all_sources(bucket)
    ids = {resolve_session(start, (source.session for source in everything)) for start in sessions}
    ends = _last_entries(bucket) if before is not None else {}
    selected = [
        source
        for source in everything
        if (not sessions or source.session in ids)
        and (person is None or source.person == person)
        and (before is None or (ends.get(source.id) or _modified(source)) < before)
    ]
    if not selected:
        raise NotFound(f"Nothing in {bucket.name!r} matches. `threadline lake status {bucket.name}` lists people.")
    return selected


def _last_entries(bucket: Bucket) -> dict[str, datetime]:
    """The time of each source's last entry."""
    commit = read_commit(bucket)
    if commit is None:
        return {}
    entries = Catalogue(bucket, commit).scan("entries", ("source", "timestamp"))
    ends = entries.group_by("source").aggregate([("timestamp", "max")]).to_pylist()
    return {row["source"]: row["timestamp_max"] for row in ends if row["timestamp_max"] is not None}


def _modified(source: Source) -> datetime:
    """When its files were last written; the end of all times if that is impossible, so that nothing is lost by it."""
    return moment_from_mtime(max(file.mtime_ns for file in source.files)) or datetime.max.replace(tzinfo=UTC)


def all_sources(bucket: Bucket) -> list[Source]:
    """Everything that was pushed and is not forgotten."""
    return [
        source
        for machine, numbers in list_batches(bucket).items()
        for source in group_sources(read_batches(bucket, machine, numbers)).values()
    ]


@reports_storage_errors
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
    if commit is not None:
        Catalogue(bucket, commit).check_version()
    objects = [entry.path for source in sources for entry in bucket.list(f"{DATA}/{source.machine}/{source.id}/")]
    uuids = _entry_ids(bucket, commit, ids, objects) if commit is not None else set()
    for session in {source.session for source in sources}:
        bucket.put(f"{FORGOTTEN}/{make_id(session)}", b"")
    files = _rewrite_tables(bucket, ids) if commit is not None else 0
    # Again, since a push may have added some before it read the marks.
    objects = [entry.path for source in sources for entry in bucket.list(f"{DATA}/{source.machine}/{source.id}/")]
    bucket.delete(objects)
    _rewrite_batches(bucket, ids)
    checked, size = prove_forgotten(bucket, ids, uuids)
    names = tuple(sorted({source.session for source in sources}))
    return ForgetResult(names, len(ids), len(objects), files, checked, size)


def _require_built(bucket: Bucket) -> Commit | None:
    commit = read_commit(bucket)
    pushed = {machine: numbers[-1] for machine, numbers in list_batches(bucket).items()}
    if pushed and (commit is None or commit.batches != pushed):
        raise BadQuery(f"Something was pushed since the last build. First run: threadline lake build {bucket.name}")
    return commit


def _entry_ids(bucket: Bucket, commit: Commit, ids: set[str], objects: Iterable[str]) -> set[str]:
    """The ids of the entries to forget, from the tables and, if those were rewritten already, from their objects.

    Raises:
        BadQuery: sessions that stay have some of them, or of their messages.
    """
    entries = Catalogue(bucket, commit).scan("entries", ("source", "uuid", "message")).to_pylist()
    own = [row for row in entries if row["source"] in ids]
    uuids, messages = ({row[name] for row in own} - {None} for name in ("uuid", "message"))
    uuids.update(*bucket.map(lambda path: entry_ids(decompress(bucket.get(path), path)), objects))
    copied = [
        row for row in entries if row["source"] not in ids and (row["uuid"] in uuids or row["message"] in messages)
    ]
    if copied:
        shared_uuids, shared_messages = ({row[name] for row in copied} for name in ("uuid", "message"))
        originals = [row for row in own if row["uuid"] in shared_uuids or row["message"] in shared_messages - {None}]
        sources = {row["source"] for row in (*copied, *originals)}
        others = {row["source"] for row in copied}
        selected = [source for source in all_sources(bucket) if source.id in sources]
        people = sorted({source.person for source in selected if source.id in others})
        words = " ".join(f"--session {name}" for name in sorted({source.session for source in selected}))
        raise BadQuery(
            f"{count(len(others), 'other session')} ({join_some(people)}) contain{'s' if len(others) == 1 else ''}"
            " copies of these entries, as forks do. Forget all of them together: threadline lake forget"
            f" {bucket.name} {words}"
        )
    return uuids


def _rewrite_batches(bucket: Bucket, ids: set[str]) -> None:
    for machine, numbers in list_batches(bucket).items():
        for batch in read_batches(bucket, machine, numbers):
            changed = keep_files(batch, (file for file in batch.files if file.source not in ids))
            if changed.files != batch.files:
                bucket.put(batch.path, encode_batch(changed))


def _rewrite_tables(bucket: Bucket, ids: set[str]) -> int:
    """Remove rows from all tables, and everything but the new state; return how many files were deleted."""
    for _attempt in range(_MAX_ATTEMPTS):
        commit = read_commit(bucket)
        if commit is None:
            return 0
        # Listed before publishing: a build that starts later writes files under other names.
        stored = [entry.path for entry in bucket.list(SILVER)]
        catalogue = Catalogue(bucket, commit)
        try:
            replace_sources(catalogue, ids, [], {"threadline.forgotten": str(commit.number)})
            catalogue.expire_snapshots()
        except FileNotFoundError:
            if read_commit(bucket) == commit:  # else, another `forget` deleted it
                raise
            continue
        published = catalogue.publish(commit.batches)
        if published is not None:
            needed = {*referenced_files(catalogue), commit_path(published.number)}
            stale = [entry.path for entry in bucket.list(SILVER) if "/metadata/" in entry.path]
            unneeded = sorted({*stored, *stale} - needed)
            bucket.delete(unneeded)
            return len(unneeded)
    raise IndexBusy(f"Builds of {bucket.name!r} were faster {_MAX_ATTEMPTS} times. Wait for them, then try again.")


def prove_forgotten(bucket: Bucket, ids: set[str], uuids: set[str]) -> tuple[int, int]:
    """Search every object of a lake for these sources and entries; return how many objects and bytes were searched.

    Raises:
        Unreadable: something was found.
    """
    forgotten = uuids | ids

    def check(entry: StoredObject) -> int:
        if not forgotten.isdisjoint(entry.path.split("/")) or not forgotten.isdisjoint(_ids_in(bucket, entry.path)):
            raise _not_forgotten(bucket, entry.path)
        return entry.size

    sizes = list(bucket.map(check, [*bucket.list(BATCHES), *bucket.list(DATA), *bucket.list(SILVER)]))
    commit = read_commit(bucket)
    catalogue = Catalogue(bucket, commit)
    for name in commit.tables if commit is not None else ():
        if catalogue.has_deleted_files(name):
            raise _not_forgotten(bucket, f"{SILVER}/{name}/metadata")
    return len(sizes), sum(sizes)


def _ids_in(bucket: Bucket, path: str) -> set[Any]:
    """The ids of sources and entries in an object."""
    if path.startswith(f"{BATCHES}/"):
        return {file.source for file in read_batch_at(bucket, path).files}
    data = bucket.get(path)
    if path.endswith(".zst"):
        return entry_ids(decompress(data, path))
    if not path.endswith(".parquet"):
        return set()
    file = import_library("pyarrow.parquet", "lake").ParquetFile(BytesIO(data))
    columns = [name for name in ("source", "uuid") if name in file.schema_arrow.names]
    rows = file.read(columns=columns)
    return {value for column in columns for value in rows.column(column).to_pylist()}


def _not_forgotten(bucket: Bucket, path: str) -> Unreadable:
    advice = "Wait for running pushes and builds, then run the command again."
    source = next((source for source in all_sources(bucket) if f"/{source.id}/" in path), None)
    if source is not None:
        advice = f"It was pushed meanwhile. Build, then forget it as well: --session {source.session}"
    return Unreadable(f"{bucket.location(path)!r} still contains something of the forgotten sessions. {advice}")
