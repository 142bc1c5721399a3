"""Homes in S3 buckets, copied into the cache folder and read like any others.

Each URI has a folder there. When a home is asked for, its bucket is listed, and only the objects that are new or have
another version (ETag) are fetched. `objects.json` in that folder says which versions the copies are. A URI may also
name an archive, which is fetched and unpacked. Nothing is written to a bucket.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from threadline.errors import NotFound, Unreadable
from threadline.files import AtomicFile, make_private_folders, read_file, write_file
from threadline.find.home_copies import FILES, cached_folder, folders_above, remove_file, remove_unused, write_about
from threadline.find.layout import PROJECTS
from threadline.find.packed_homes import choose_homes, is_macos_metadata, path_in_home, unpack_homes
from threadline.find.unpack import FORMATS, MAX_FILES, RESERVED_BYTES, safe_path
from threadline.home_files import is_secret_path
from threadline.locks import LockBusy, hold_lock
from threadline.model.text import format_size
from threadline.storage import Bucket, StoredObject

_FOLDER, _LOCK, _OBJECTS, _PACKED = "buckets", "lock", "objects.json", "packed"
_MAX_OBJECTS_BYTES = 1 << 30
_FETCHES_AT_ONCE = 8
_TEMPORARY = ".fetching"
# `Path` drops the second slash.
_URI = re.compile(r"s3:/{1,2}(?=[^/])")


class _Version(Struct, frozen=True, array_like=True):
    """The version of an object: its ETag, or the time of its upload if the service has no ETags."""

    etag: str
    size: int
    modified: float


class _Selection(NamedTuple):
    """The objects to read by path, those with credentials, the homes that they are in, and why others are skipped."""

    objects: dict[str, StoredObject]
    secrets: frozenset[str]
    homes: tuple[str, ...]
    skipped: dict[str, str]


def bucket_uri(path: str | os.PathLike[str]) -> str | None:
    """The URI of a bucket, even if it was turned into a `Path`; None for any other path."""
    text = os.fspath(path)
    return _URI.sub("s3://", text, count=1) if _URI.match(text) else None


def fetch_homes(
    uri: str, planned: Callable[[int], None] | None = None, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Return copies of the homes below a URI, or in the archive that it names. What changed since is fetched.

    `planned` is called with the number of bytes to fetch, and `progress` with those that were fetched.

    Raises:
        NotFound: there is no home.
        Unreadable: the bucket cannot be read, or the archive is damaged.
        Missing: the extra `lake` is not installed.
    """
    bucket = Bucket(uri.rstrip("/").removesuffix(f"/{PROJECTS}"))
    folder = cached_folder(_FOLDER, bucket.uri.removeprefix("s3://"), f"{bucket.endpoint} {bucket.uri}")
    try:
        make_private_folders(folder)
        with hold_lock(folder / _LOCK):
            copy = _Copy(bucket, folder, planned, progress)
            selection = _select_objects(bucket)
            if not selection.objects:
                return unpack_homes(copy.fetch_archive(), planned, progress)
            copy.update(selection)
            write_about(folder, bucket.uri, selection.homes, selection.skipped)
            remove_unused(folder.parent, keep=folder)
    except LockBusy:
        raise Unreadable(
            f"Another process is fetching {bucket.uri!r}. Wait until it has finished, then try again."
        ) from None
    except OSError as error:
        raise Unreadable(f"{bucket.uri!r} cannot be copied: {error.strerror or error}.") from error
    return [folder / FILES / home for home in selection.homes]


class _Copy:
    """The copy of a bucket's objects in a folder."""

    def __init__(
        self,
        bucket: Bucket,
        folder: Path,
        planned: Callable[[int], None] | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._bucket = bucket
        self._folder = folder
        self._planned = planned
        self._progress = progress
        self._versions = _read_versions(folder)

    def update(self, selection: _Selection) -> None:
        """Remove copies of objects that are gone, and fetch those that changed."""
        files = self._folder / FILES
        for name in self._versions.keys() - selection.objects.keys():
            remove_file(files, name)
            del self._versions[name]
        for home in selection.homes:
            make_private_folders(files / home)
        changed = {
            name: stored
            for name, stored in selection.objects.items()
            if not self._is_current(name, stored, 0 if name in selection.secrets else stored.size)
        }
        self._fetch(self._bucket, changed, files, selection.secrets)

    def fetch_archive(self) -> Path:
        """Fetch the object that the URI names, if it changed, and return the path of the copy."""
        parent, _, name = self._bucket.uri.rpartition("/")
        folder = self._folder / _PACKED
        path = folder / name
        try:
            bucket = Bucket(parent)
            stored = bucket.head(name) if parent != "s3:/" else None
        except NotFound:
            stored = None
        if stored is None or safe_path(name) is None:
            raise NotFound(
                f"There is nothing at {self._bucket.uri!r}. Name the prefix of a home, such as s3://bucket/.claude, or "
                f"an archive ({FORMATS})."
            )
        if self._versions.get(name) != _version(stored) or not path.is_file():
            make_private_folders(folder)
            self._fetch(bucket, {name: stored}, folder)
        write_about(self._folder, self._bucket.uri, (), {})
        return path

    def _is_current(self, name: str, stored: StoredObject, size: int) -> bool:
        if self._versions.get(name) != _version(stored):
            return False
        try:
            return os.stat(f"{self._folder}/{FILES}/{name}").st_size == size  # noqa: PTH116 - for each of many files
        except OSError:
            return False

    def _fetch(
        self, bucket: Bucket, objects: dict[str, StoredObject], folder: Path, secrets: Collection[str] = ()
    ) -> None:
        needed = sum(stored.size for stored in objects.values())
        free = shutil.disk_usage(self._folder).free
        if needed + RESERVED_BYTES > free:
            raise Unreadable(
                f"{format_size(needed)} of {bucket.uri!r} have to be fetched, and {format_size(free)} are free. Free "
                "some space, or set THREADLINE_CACHE to a folder on another disk."
            )
        if objects and self._planned is not None:
            self._planned(needed)
        try:
            with ThreadPoolExecutor(_FETCHES_AT_ONCE) as pool:
                versions = pool.map(
                    lambda name: _fetch_object(bucket, name, folder, is_secret=name in secrets), objects
                )
                try:
                    for name, version in zip(objects, versions, strict=True):
                        if version is not None:
                            self._versions[name] = version
                        if self._progress is not None:
                            self._progress(objects[name].size)
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        finally:  # after an error, what was fetched is not fetched again
            write_file(self._folder / _OBJECTS, msgspec.json.encode(self._versions), durable=False)


def _fetch_object(bucket: Bucket, name: str, folder: Path, *, is_secret: bool) -> _Version | None:
    """Fetch an object into a folder, and return its version; None if it was deleted meanwhile.

    Of files with credentials, only the name is stored: their content is not asked for.
    """
    target = folder / name
    chunks: Iterable[bytes] = ()
    try:
        if is_secret:
            stored = bucket.head(name)
        else:
            stored, chunks = bucket.fetch(name)
    except NotFound:
        return None
    make_private_folders(target.parent)
    with AtomicFile(target.parent, owner=_TEMPORARY, durable=False) as file:
        for chunk in chunks:
            file.write(chunk)
        file.commit(target.name, mtime_ns=int(stored.modified * 1e9))
    return _version(stored)


def _select_objects(bucket: Bucket) -> _Selection:
    """List a bucket, and choose the objects of its homes.

    Raises:
        NotFound: none of the objects belong to a home.
        Unreadable: the bucket cannot be listed, or has too many objects.
    """
    objects: dict[str, StoredObject] = {}
    skipped: dict[str, str] = {}
    for stored in bucket.list(""):
        if len(objects) >= MAX_FILES:
            raise Unreadable(
                f"{bucket.uri!r} has more than {MAX_FILES:,} objects. Name a longer prefix, such as that of one home."
            )
        name = safe_path(stored.path)
        if name is None or name != stored.path:
            skipped[stored.path] = "its name cannot be a path"
        elif not is_macos_metadata(name):
            objects[name] = stored
    # A bucket may have an object for a folder, too.
    for folder in {folder for name in objects for folder in folders_above(name)} & objects.keys():
        del objects[folder]
    homes = tuple(choose_homes(objects))
    if objects and not homes:
        raise NotFound(
            f"{bucket.uri!r} contains nothing that Claude Code writes. Name the prefix that contains {PROJECTS!r}."
        )
    paths = {name: path for name in objects if (path := path_in_home(name, homes)) is not None}
    secrets = frozenset(name for name, path in paths.items() if is_secret_path(path.split("/")))
    return _Selection({name: objects[name] for name in paths}, secrets, homes, skipped)


def _version(stored: StoredObject) -> _Version:
    return _Version(stored.etag, stored.size, stored.modified if not stored.etag else 0.0)


def _read_versions(folder: Path) -> dict[str, _Version]:
    try:
        data = read_file(folder / _OBJECTS, follow_symlinks=False, limit=_MAX_OBJECTS_BYTES)
        return msgspec.json.decode(data, type=dict[str, _Version])
    except (OSError, ValueError):
        return {}
