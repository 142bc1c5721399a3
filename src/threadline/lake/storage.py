"""A bucket: the objects of a lake in a folder or in S3-compatible storage.

Objects are created once or replaced whole. `create` is a conditional put: of several writers, exactly one succeeds.
S3 is configured by the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
`AWS_ENDPOINT_URL`, …).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.model.tables import import_library

_S3_PROPERTIES = {
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "s3.access-key-id": ("AWS_ACCESS_KEY_ID",),
    "s3.secret-access-key": ("AWS_SECRET_ACCESS_KEY",),
    "s3.session-token": ("AWS_SESSION_TOKEN",),
    "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_MAX_ERROR = 300
# What a service answers, and what to do about it.
_HINTS = (
    (("RequestTimeTooSkewed",), "The clock of this machine differs from the service's. Set it, then try again."),
    (("NoSuchBucket",), "There is no such bucket. Check the URI and AWS_ENDPOINT_URL."),
    (
        ("AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403", "401"),
        "Access was refused. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions of the bucket.",
    ),
)


class StoredObject(Struct, frozen=True):
    """An object: its path in the lake, its size, and when it was written, in seconds since 1970."""

    path: str
    size: int
    modified: float


class Bucket:
    """The objects of a lake. `uri` is `file:///folder`, `s3://bucket/prefix` or the path of a folder."""

    def __init__(self, uri: str) -> None:
        self.uri = normalize_uri(uri)
        self._obstore = import_library("obstore", "lake")
        self._errors = import_library("obstore.exceptions", "lake")
        self._store: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled for a worker."""
        return {"uri": self.uri}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled bucket."""
        self.__init__(state["uri"])  # type: ignore[misc] # the constructor only names things

    @property
    def is_local(self) -> bool:
        """Whether it is a folder."""
        return self.uri.startswith("file://")

    @property
    def folder(self) -> Path:
        """The path of the folder, if it is one."""
        return Path(self.uri.removeprefix("file://"))

    def location(self, path: str) -> str:
        """The URI of an object."""
        return f"{self.uri}/{path}"

    def path_of(self, location: str) -> str | None:
        """The path of an object in this lake, by its URI; None if it is elsewhere."""
        start = f"{self.uri}/"
        return location.removeprefix(start) if location.startswith(start) else None

    def io_properties(self) -> dict[str, str]:
        """How pyiceberg reaches the same storage."""
        if self.is_local:
            return {}
        values = {name: next(filter(None, map(os.environ.get, names)), "") for name, names in _S3_PROPERTIES.items()}
        return {name: value for name, value in values.items() if value}

    def get(self, path: str) -> bytes:
        """Read an object.

        Raises:
            NotFound: it does not exist.
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            data: bytes = self._obstore.get(self._open(), path).bytes().to_bytes()
            return data

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing it if it exists.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            self._obstore.put(self._open(), path, data)

    def create(self, path: str, data: bytes) -> bool:
        """Write an object that does not exist yet; return False if it does.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            try:
                self._obstore.put(self._open(), path, data, mode="create")
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError, FileExistsError):
                return False
            return True

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """List the objects below a path.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(prefix):
            for batch in self._obstore.list(self._open(), prefix=prefix):
                for entry in batch:
                    yield StoredObject(entry["path"], entry["size"], entry["last_modified"].timestamp())

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects. Objects that do not exist are ignored.

        Raises:
            Unreadable: the storage refuses.
        """
        for path in paths:
            with self._reporting(path):
                try:
                    self._obstore.delete(self._open(), path)
                except FileNotFoundError:
                    continue

    def _open(self) -> Any:
        if self._store is None:
            stores = import_library("obstore.store", "lake")
            if self.is_local:
                self._store = stores.LocalStore(self.folder, mkdir=True)
            else:
                endpoint = self.io_properties().get("s3.endpoint", "")
                options = {"allow_http": True} if endpoint.startswith("http://") else {}
                config = {"endpoint": endpoint} if endpoint else {}
                self._store = stores.S3Store.from_url(self.uri, config=config, client_options=options)
        return self._store

    @contextmanager
    def _reporting(self, path: str) -> Iterator[None]:
        """Turn errors of the storage into sentences."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._refusal(error) from None
            raise NotFound(f"{self.location(path)!r} does not exist.") from None
        except (self._errors.BaseError, OSError) as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> Unreadable:
        text = str(error)
        reason = " ".join(text.partition("\n\nDebug source")[0].split())[:_MAX_ERROR].rstrip(".")
        hint = next((hint for signs, hint in _HINTS if any(sign in text for sign in signs)), "")
        return Unreadable(" ".join(filter(None, (f"The lake {self.uri!r} cannot be used: {reason}.", hint))))


def normalize_uri(uri: str) -> str:
    """The URI of a lake without a trailing slash; a path becomes a `file://` URI.

    >>> normalize_uri("s3://team/lake/"), normalize_uri("file:///srv/lake")
    ('s3://team/lake', 'file:///srv/lake')

    Raises:
        BadQuery: there is no such kind of storage.
    """
    parts = urlsplit(uri)
    if parts.scheme == "s3" and parts.netloc:
        return uri.rstrip("/")
    if parts.scheme == "file" and not parts.netloc and len(parts.path) > 1:
        return f"file://{parts.path.rstrip('/')}"
    if uri and "://" not in uri:
        return f"file://{os.path.abspath(os.path.expanduser(uri))}"  # noqa: PTH100, PTH111 - `Path` resolves links
    raise BadQuery(f"{uri!r} is not the URI of a lake. Use file:///folder or s3://bucket/prefix.")
