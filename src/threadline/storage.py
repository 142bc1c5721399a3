"""Objects in a folder or in S3-compatible storage: those of a lake, or of a home in a bucket.

Objects are created once or replaced whole. `create` is a conditional put: of several writers, exactly one succeeds.
S3 is configured by the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
`AWS_ENDPOINT_URL`, …), or else by the profile in `~/.aws`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser, Error
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.files import escape_path
from threadline.model.tables import import_library
from threadline.model.text import is_utf8

_ENDPOINT, _ACCESS_KEY = "s3.endpoint", "s3.access-key-id"
# What a setting is called: by pyiceberg; in the environment; in the files of the AWS command line.
_S3_PROPERTIES = {
    _ENDPOINT: (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), "endpoint_url"),
    _ACCESS_KEY: (("AWS_ACCESS_KEY_ID",), "aws_access_key_id"),
    "s3.secret-access-key": (("AWS_SECRET_ACCESS_KEY",), "aws_secret_access_key"),
    "s3.session-token": (("AWS_SESSION_TOKEN",), "aws_session_token"),
    "s3.region": (("AWS_REGION", "AWS_DEFAULT_REGION"), "region"),
}
_PROFILE_FILES = (("AWS_SHARED_CREDENTIALS_FILE", "credentials", ""), ("AWS_CONFIG_FILE", "config", "profile "))
# A request may take long, if data arrives. A service that does not answer is given up after a while, by pyiceberg too,
# where it would be after 1 and 3 seconds.
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
_CLIENT_OPTIONS = {"connect_timeout": f"{_CONNECT_SECONDS}s", "read_timeout": f"{_READ_SECONDS}s", "timeout": "1h"}
_IO_TIMEOUTS = {"s3.connect-timeout": str(_CONNECT_SECONDS), "s3.request-timeout": str(_READ_SECONDS)}
_RETRY_OPTIONS = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_CHUNK_BYTES = 1 << 20
_MAX_REQUESTS = 8
_MAX_ERROR = 300
# What a service answers, and what to do about it.
_HINTS = (
    (
        ("169.254.169.254", "169.254.170"),  # where virtual machines ask for their credentials
        "No credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws configure`.",
    ),
    (("RequestTimeTooSkewed",), "The clock of this machine differs from the service's. Set it, then try again."),
    (("NoSuchBucket",), "There is no such bucket. Check the URI and AWS_ENDPOINT_URL."),
    (
        (
            "AccessDenied",
            "ACCESS_DENIED",
            "Forbidden",
            "Unauthorized",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "ExpiredToken",
        ),
        "Access was refused. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions of the bucket.",
    ),
    (("InvalidPath",), "Rename the object, or use a longer prefix."),
    (("status code: 5",), "The service fails. Try again later."),
    (("ETag Header missing",), "This is not an S3 service. Check AWS_ENDPOINT_URL."),
    (
        ("error sending request", "NETWORK_CONNECTION"),
        "The service cannot be reached. Check AWS_ENDPOINT_URL and the network.",
    ),
)


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class StoredObject(Struct, frozen=True):
    """An object: its path in the bucket, its size, when it was written (seconds since 1970), and its version."""

    path: str
    size: int
    modified: float
    etag: str = ""


class Bucket:
    """The objects below a prefix. `uri` is `file:///folder`, `s3://bucket/prefix` or the path of a folder."""

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
    def name(self) -> str:
        """What people call it: the path of a folder, or the URI of a bucket."""
        return self.uri.removeprefix("file://")

    @property
    def is_local(self) -> bool:
        """Whether it is a folder."""
        return self.uri.startswith("file://")

    @property
    def folder(self) -> Path:
        """The path of the folder, if it is one."""
        return Path(self.name)

    @property
    def endpoint(self) -> str:
        """The URL of the service, if it is not the usual one."""
        return self._properties().get(_ENDPOINT, "")

    def location(self, path: str) -> str:
        """The URI of an object."""
        return f"{self.uri}/{path}"

    def path_of(self, location: str) -> str | None:
        """The path of an object in this bucket, by its URI; None if it is elsewhere."""
        start = f"{self.uri}/"
        return location.removeprefix(start) if location.startswith(start) else None

    def io_properties(self) -> dict[str, str]:
        """How pyiceberg reaches the same storage."""
        return {} if self.is_local else {**self._properties(), **_IO_TIMEOUTS}

    def _properties(self) -> dict[str, str]:
        """The settings of the service, named as pyiceberg names them."""
        if self.is_local:
            return {}
        values = {
            name: next(filter(None, map(os.environ.get, names)), "") for name, (names, _key) in _S3_PROPERTIES.items()
        }
        if not values[_ACCESS_KEY]:
            profile = _read_profile()
            values = {name: value or profile.get(_S3_PROPERTIES[name][1], "") for name, value in values.items()}
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

    def head(self, path: str) -> StoredObject:
        """Describe an object.

        Raises:
            NotFound: it does not exist.
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            return _stored_object(self._obstore.head(self._open(), path))

    def fetch(self, path: str) -> tuple[StoredObject, Iterator[bytes]]:
        """Describe an object as it is now, and read it in chunks.

        Raises:
            NotFound: it does not exist.
            Unreadable: the storage refuses, also while the chunks are read.
        """
        with self._reporting(path):
            result = self._obstore.get(self._open(), path)
            return _stored_object(result.meta), self._chunks(path, result)

    def _chunks(self, path: str, result: Any) -> Iterator[bytes]:
        with self._reporting(path):
            for chunk in result.stream(min_chunk_size=_CHUNK_BYTES):
                yield bytes(chunk)

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing it if it exists.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            self._obstore.put(self._open(is_writer=True), path, data)

    def create(self, path: str, data: bytes) -> bool:
        """Write an object that does not exist yet; return False if it does.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(path):
            try:
                self._obstore.put(self._open(is_writer=True), path, data, mode="create")
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError, FileExistsError):
                return False
            return True

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """List the objects below a path.

        Raises:
            Unreadable: the storage refuses.
        """
        with self._reporting(prefix):
            if self.is_local and not self.folder.exists():
                return
            for batch in self._obstore.list(self._open(), prefix=prefix):
                yield from map(_stored_object, batch)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects. Objects that do not exist are ignored.

        Raises:
            Unreadable: the storage refuses.
        """
        for _ in self.map(self._delete, paths):
            pass

    def _delete(self, path: str) -> None:
        with self._reporting(path), suppress(FileNotFoundError):
            self._obstore.delete(self._open(), path)

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """The results of a function that uses the storage, in order. Several calls run at a time: a service is slow."""
        with ThreadPoolExecutor(_MAX_REQUESTS) as pool:
            yield from pool.map(function, items)

    def _open(self, *, is_writer: bool = False) -> Any:
        """The client of the storage. Only a writer creates the folder."""
        if self._store is None:
            stores = import_library("obstore.store", "lake")
            if self.is_local:
                if self.folder.is_file():
                    raise Unreadable(f"{self.name!r} is a file. Use a folder.")
                if not is_writer and not self.folder.exists():
                    raise FileNotFoundError
                self._store = stores.LocalStore(self.folder, mkdir=is_writer)
            else:
                properties = self._properties()
                allow_http = self.endpoint.startswith("http://")
                config = {name.removeprefix("s3.").replace("-", "_"): value for name, value in properties.items()}
                options = {**_CLIENT_OPTIONS, "allow_http": allow_http}
                try:
                    self._store = stores.S3Store.from_url(
                        self.uri, config=config, client_options=options, retry_config=_RETRY_OPTIONS
                    )
                except ValueError:
                    raise BadQuery(f"{self.uri!r} is not a valid URI. Use s3://bucket/prefix.") from None
        return self._store

    @contextmanager
    def _reporting(self, path: str) -> Iterator[None]:
        """Turn errors of the storage into sentences."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self.refusal(error) from None
            raise NotFound(f"{self.location(path)!r} does not exist.") from None
        except (self._errors.BaseError, OSError) as error:
            raise self.refusal(error) from None

    def refusal(self, error: Exception) -> Unreadable:
        """The error that says why the storage cannot be used."""
        text = str(error)
        reason = " ".join(text.partition("\n\nDebug source")[0].split())[:_MAX_ERROR].rstrip(".")
        hint = next((hint for signs, hint in _HINTS if any(sign in text for sign in signs)), "")
        if hint:
            return Unreadable(f"{self.name!r} cannot be used. {hint} ({reason})")
        return Unreadable(f"{self.name!r} cannot be used: {reason}.")


def _stored_object(entry: Any) -> StoredObject:
    return StoredObject(entry["path"], entry["size"], entry["last_modified"].timestamp(), entry["e_tag"] or "")


def _read_profile() -> dict[str, str]:
    """The settings that `aws configure` wrote for the profile in `AWS_PROFILE`, or else for the default one."""
    profile = os.environ.get("AWS_PROFILE") or "default"
    settings: dict[str, str] = {}
    for variable, name, prefix in _PROFILE_FILES:
        path = os.environ.get(variable) or os.path.expanduser(f"~/.aws/{name}")  # noqa: PTH111 - `Path` may raise
        parser = ConfigParser(interpolation=None)
        with suppress(Error, OSError, UnicodeDecodeError):
            parser.read(path, encoding="utf-8")
            section = profile if profile == "default" else f"{prefix}{profile}"
            settings = {**parser[section], **settings} if parser.has_section(section) else settings
    return settings


def normalize_uri(uri: str) -> str:
    """The URI of a bucket without a trailing slash; a path becomes a `file://` URI.

    >>> normalize_uri("s3://team/lake/"), normalize_uri("file:///srv/lake")
    ('s3://team/lake', 'file:///srv/lake')

    Raises:
        BadQuery: there is no such kind of storage, or the name is not UTF-8 or cannot be part of a URI.
    """
    if not is_utf8(uri):
        raise BadQuery(f"'{escape_path(uri)}' is not valid UTF-8. Use a folder or bucket whose name is.")
    scheme, separator, name = uri.partition("://")
    scheme = scheme.lower()
    if not separator and uri:
        scheme, name = "file", os.path.abspath(os.path.expanduser(uri))  # noqa: PTH100, PTH111 - `Path` resolves links
    is_absolute = not separator or name.startswith("/") == (scheme == "file")
    name = name.rstrip("/")
    if scheme not in {"file", "s3"} or not name or not is_absolute:
        raise BadQuery(f"{uri!r} names no folder or bucket. Use file:///folder or s3://bucket/prefix.")
    if "#" in name or "?" in name:  # pyiceberg and obstore would ignore what follows
        raise BadQuery(f"The name {uri!r} contains # or ?, which have a meaning in URIs. Use one without them.")
    return f"{scheme}://{name}"
