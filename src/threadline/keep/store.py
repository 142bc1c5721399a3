"""The folder of a keep and the files in it, which never change once they are written.

A file's name contains the SHA-256 of its bytes. `keep.json` says that the folder is a keep, and lists the public keys
if it is encrypted. It is not needed to read the rest, and can be rebuilt if it is damaged.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import msgspec
from msgspec import Struct

from threadline import atomic, locks
from threadline.atomic import TEMPORARY_SUFFIX
from threadline.errors import NotFound, Unreadable
from threadline.keep import encryption
from threadline.keep.encryption import EncryptionKey
from threadline.keep.machine import is_keep_enabled, machine_folder
from threadline.keep.manifest import AnyRow, RunRow, compress_manifest, encode_rows

__all__ = [
    "KEEP_JSON",
    "README_TEXT",
    "RETIRED_SUFFIX",
    "KeepInfo",
    "Store",
    "default_folder",
    "hash_file",
    "hash_in_name",
    "is_keep",
]
RETIRED_SUFFIX = ".going"
"""Added to the name of a dictionary that is on its way out: it is read with, and not written with any more."""
_PACK_NAME = re.compile(r"[0-9a-f]{64}\.(zst|age)")
_MANIFEST_NAME = re.compile(r"([0-9A-Za-z_]{1,64}-[0-9]{6,16}-)?[0-9a-f]{64}\.(jsonl\.zst|age)")
_DICTIONARY_NAME = re.compile(r"[0-9a-f]{64}\.(dict|age)(\.going)?")
_HASH_PATTERN = re.compile(r"[0-9a-f]{64}")
_ABANDONED_SECONDS = 14 * 86400
"""Seconds after which the unfinished file of another machine, which may be writing it, is one that nobody finishes."""


class Store:
    """A keep's folder. `make` begins one where there is none; the constructor takes what is there.

    `identity` is the secret key of a keep that is sealed; without it, what the environment tells.

    Raises:
        NotFound: there is no keep.
        Unreadable: it is of a later version, or may not be read.
    """

    def __init__(self, folder: Path, identity: str | None = None) -> None:
        self.folder = folder
        self.packs = folder / "packs"
        self.runs = folder / "runs"
        self.dictionaries = folder / "dictionaries"
        self.about, self.problem = read_keep_info(folder)
        """`problem`: keep.json is damaged. What is in the keep can still be read; who adds to it mends it first."""
        self._identity = identity
        self._asked = identity is not None
        self._open = lru_cache(maxsize=2)(self._unsealed)

    @classmethod
    def make(cls, folder: Path, seal: EncryptionKey | None = None) -> Store:
        """The keep in a folder, begun where there is none. Only its owner may look into it.

        Raises:
            Unreadable: the folder holds something else, may not be written, or is a keep that is not sealed so.
        """
        if not is_keep(folder):
            try:
                create_keep(folder, seal)
            except OSError as error:
                raise Unreadable(f"A keep cannot be made in {str(folder)!r}: {error.strerror or error}.") from None
        made = cls(folder, seal.identity if seal is not None else None)
        if seal is not None and made.problem is None and seal.recipient not in made.about.recipients:
            raise Unreadable(
                f"The keep {str(folder)!r} was begun otherwise: make another one that is encrypted, and merge it there."
            )
        return made

    @property
    def is_encrypted(self) -> bool:
        """Whether what is in it is encrypted."""
        return bool(self.about.recipients) or (
            self.problem is not None and any(".age" in path.name for path in self._all_files())
        )

    def reload_info(self) -> None:
        """Read keep.json once more."""
        self.about, self.problem = read_keep_info(self.folder)

    def _all_files(self) -> Iterator[Path]:
        yield from self.pack_files()
        yield from self.run_files()
        yield from self.dictionary_files()
        yield from (
            self.folder / name
            for name in (encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE)
            if (self.folder / name).exists()
        )

    @property
    def is_key_missing(self) -> bool:
        """Whether it is encrypted and the key is not at hand."""
        return self.is_encrypted and self.identity is None

    @property
    def identity(self) -> str | None:
        """The secret key, if it is at hand."""
        if not self._asked:
            self._asked = True
            self._identity = encryption.key_from_environment(self.folder)
        return self._identity

    def require_key(self) -> None:
        """See that what is in it can be read.

        Raises:
            Unreadable: it is encrypted, and the key is not at hand.
        """
        if self.is_key_missing:
            raise Unreadable(
                f"The keep {str(self.folder)!r} is encrypted; "
                f"name its key file ({encryption.KEY_FILE_VARIABLE}) or its passphrase "
                f"({encryption.PASSPHRASE_VARIABLE})."
            )

    def pack_files(self) -> list[Path]:
        """All packs, in order of their names."""
        return _list_files(self.packs, _PACK_NAME)

    def run_files(self) -> list[Path]:
        """All manifests, each machine's in order where the names tell it."""
        return _list_files(self.runs, _MANIFEST_NAME)

    def dictionary_files(self) -> list[Path]:
        """All dictionaries, those that are on their way out included."""
        return _list_files(self.dictionaries, _DICTIONARY_NAME)

    def opened(self, path: Path) -> BinaryIO:
        """A file of the keep as it was before it was sealed.

        Raises:
            Unreadable: it cannot be read or decrypted.
        """
        try:
            if path.name.endswith((".age", f".age{RETIRED_SUFFIX}")):
                return BytesIO(self._open(path))
            return atomic.open_regular_file(path)
        except OSError as error:
            raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None

    def read(self, path: Path) -> bytes:
        """All of a file of the keep.

        Raises:
            Unreadable: it cannot be read or decrypted.
        """
        with self.opened(path) as file:
            try:
                return file.read()
            except OSError as error:
                raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None

    def dictionary(self, hash_: str) -> bytes:
        """A dictionary by its hash.

        Raises:
            Unreadable: it is not there, or is not what was written.
        """
        if _HASH_PATTERN.fullmatch(hash_) is None:
            raise Unreadable(f"{hash_[:80]!r} names no dictionary.")
        plain = [path for path in self.dictionary_files() if path.name.startswith(hash_)]
        for path in plain or (path for path in self.dictionary_files() if ".age" in path.name):
            try:
                data = self.read(path)
            except Unreadable:
                continue  # there may be another one that is whole
            if sha256(data).hexdigest() == hash_:
                return data
        if plain:
            raise Unreadable(f"The dictionary {str(plain[0])!r} is damaged; copy it from another copy of this keep.")
        raise Unreadable(f"The dictionary {hash_[:16]} is not in the keep; copy it from another copy of it.")

    def put(self, folder: Path, writer: str, name: str, suffix: str, data: bytes) -> Path:
        """Write a file once, sealed if the keep is; its name is `name`, the hash of its bytes, and `suffix`.

        Raises:
            Unreadable: it cannot be written.
        """
        if self.is_encrypted:
            name, suffix, data = "", ".age", encryption.encrypt_bytes(data, self.about.recipients)
        return self.put_raw(folder, writer, f"{name}{sha256(data).hexdigest()}{suffix}", data)

    def put_raw(self, folder: Path, writer: str, name: str, data: bytes) -> Path:
        """Write a file once, under this name.

        Raises:
            Unreadable: it cannot be written.
        """
        try:
            return atomic.write_file(folder, writer, name, data)
        except OSError as error:
            raise atomic.keep_write_error(self.folder, error) from None

    def put_run(self, rows: Iterable[AnyRow]) -> tuple[Path, str]:
        """Write a manifest; where it lies, and the hash of its text."""
        listed = list(rows)
        text = encode_rows(listed)
        run = listed[0]
        if not isinstance(run, RunRow):
            raise TypeError("a manifest begins with its run")
        return self.put_manifest_text(run, text), sha256(text).hexdigest()

    def put_manifest_text(self, run: RunRow, text: bytes) -> Path:
        """Write a manifest, of its text."""
        return self.put(
            self.runs, run.machine, f"{run.machine}-{run.number:06d}-", ".jsonl.zst", compress_manifest(text)
        )

    def put_dictionary(self, writer: str, data: bytes) -> Path:
        """Write a dictionary."""
        return self.put(self.dictionaries, writer, "", ".dict", data)

    def sweep(self, machine: str) -> None:
        """Take away what a killed run of this machine left behind; only who holds the machine's lock may."""
        for folder in (self.folder, self.packs, self.runs, self.dictionaries):
            for left in folder.glob(f"*{TEMPORARY_SUFFIX}"):
                ours = left.name.rsplit("-", 2)[0] == machine
                if ours or time.time() - left.lstat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink(missing_ok=True)

    @contextmanager
    def adding(self, machine: str) -> Iterator[None]:
        """Write into the keep; other machines may, too.

        Raises:
            IndexBusy: another process of this machine does, or one takes away what is not needed.
        """
        self._require_about()
        with locks.lock_for_adding(self.folder, machine):
            self.sweep(machine)
            yield

    @contextmanager
    def removing(self, machine: str) -> Iterator[None]:
        """Take away from the keep what is in it twice, or forgotten; nobody else writes meanwhile.

        Raises:
            IndexBusy: somebody does.
        """
        self._require_about()
        with locks.lock_for_removing(self.folder, machine):
            self.sweep(machine)
            yield

    def _require_about(self) -> None:
        if self.problem is not None:
            raise Unreadable(self.problem)

    def _unsealed(self, path: Path) -> bytes:
        self.require_key()
        with atomic.open_regular_file(path) as file:
            return encryption.decrypt_bytes(file.read(), self.identity or "", path.name)


def default_folder() -> Path:
    """Where a keep lies unless another place is named: `THREADLINE_KEEP`, or the platform's folder for data."""
    said = os.environ.get("THREADLINE_KEEP")
    if said and is_keep_enabled():  # `off` leaves it for those that read, and names no folder
        return Path(os.path.expanduser(said))  # noqa: PTH111 - that of Path raises where there is no such user
    return machine_folder() / "keep"


def is_keep(folder: Path) -> bool:
    """Whether a keep is in a folder, if only what is left of one."""
    return (folder / KEEP_JSON).exists() or any(
        _MANIFEST_NAME.fullmatch(path.name) for path in (folder / "runs").glob("*")
    )


def hash_in_name(path: Path) -> str:
    """The SHA-256 that a file's name says its bytes have."""
    found = _HASH_PATTERN.findall(path.name)
    return found[-1] if found else ""


def hash_file(path: Path) -> str:
    """The SHA-256 that a file's bytes have.

    Raises:
        OSError: it cannot be read.
    """
    digest = sha256()
    with atomic.open_regular_file(path) as file:
        while data := file.read(1024 * 1024):
            digest.update(data)
    return digest.hexdigest()


def _list_files(folder: Path, named: re.Pattern[str]) -> list[Path]:
    """The regular files of a folder that are named so; whatever else somebody put there is none of the keep's."""
    try:
        with os.scandir(folder) as inside:
            names = [one.name for one in inside if named.fullmatch(one.name) and one.is_file(follow_symlinks=False)]
    except OSError as error:
        raise Unreadable(f"The keep's folder {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    return [folder / name for name in sorted(names)]


KEEP_JSON = "keep.json"
KEEP_VERSION = 1
KEEP_FORMAT = "threadline keep"
_FOLDERS = ("packs", "runs", "dictionaries")
README_TEXT = """This folder is a keep of threadline, format 1: what Claude Code left on disk, kept for good.
packs/*.zst         the bytes themselves:   zstd -dc packs/HASH.zst
                    (small frames may need a dictionary: zstd -dc -D dictionaries/HASH.dict packs/HASH.zst)
runs/*.jsonl.zst    what was seen when, and which pieces (by SHA-256) each file is made of
*.age               the same, encrypted:    age -d -i KEY packs/HASH.age | zstd -dc
Each HASH in a name is the SHA-256 of that file. The last part of each pack lists its pieces as JSON.
docs/keep-format.md of threadline says all. No file here is ever changed: copy the folder with whatever tool you like.
"""


class KeepInfo(Struct, frozen=True, omit_defaults=True):
    """What says that a folder is a keep; `recipients` are the public keys that it is sealed with, if it is.

    `identity` is the hash of the file that holds the secret key under a passphrase, if one does.
    """

    format: str
    version: int
    id: str
    recipients: tuple[str, ...] = ()
    identity: str = ""
    check: str = ""

    def checked(self) -> str:
        """What `check` should be: the hash of the others, a line each."""
        return sha256(
            "\n".join((self.format, str(self.version), self.id, *self.recipients, self.identity)).encode()
        ).hexdigest()


def read_keep_info(folder: Path) -> tuple[KeepInfo, str | None]:
    """What says that a folder is a keep, and what is wrong with it. To read what is in a keep, it is not needed."""
    damaged = (
        f"{str(folder / KEEP_JSON)!r} is damaged, or not there; "
        "`threadline keep` writes it anew, with the key at hand if"
        " the keep is encrypted, and `threadline keep merge COPY` takes it from a copy of this keep."
    )
    try:
        told = msgspec.json.decode(atomic.read_small_file(folder / KEEP_JSON), type=KeepInfo)
    except FileNotFoundError:
        if not any((folder / "runs").glob("*")):
            raise NotFound(f"There is no keep in {str(folder)!r} yet; `threadline keep` begins one.") from None
        return KeepInfo(KEEP_FORMAT, KEEP_VERSION, ""), damaged
    except OSError as error:
        raise Unreadable(f"The keep {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return KeepInfo(KEEP_FORMAT, KEEP_VERSION, ""), damaged
    if told.version > KEEP_VERSION and told.check != msgspec.structs.replace(told, version=KEEP_VERSION).checked():
        raise Unreadable(f"The keep {str(folder)!r} is of a later version ({told.version}); update threadline.")
    if (told.format, told.version) != (KEEP_FORMAT, KEEP_VERSION) or told.check != told.checked():
        return KeepInfo(KEEP_FORMAT, KEEP_VERSION, ""), damaged
    return told, None


def create_keep(folder: Path, seal: EncryptionKey | None) -> None:
    """Make a keep in a folder.

    Raises:
        OSError: the folder holds something else, or may not be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = (*_FOLDERS, "README.txt", encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE)
    if seal is None and any(
        (folder / name).exists() for name in (encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE)
    ):
        raise OSError(None, "an encrypted one was begun there; begin it again with --encrypt")
    strange = [
        path.name
        for path in folder.iterdir()
        if path.name not in known and not path.name.startswith(".lock") and not path.name.endswith(TEMPORARY_SUFFIX)
    ]
    if strange:
        raise OSError(None, f"it holds other things, such as {min(strange)!r}")
    folder.chmod(0o700)
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o700)
        if stat.S_ISLNK((folder / name).lstat().st_mode):
            raise OSError(None, f"{name!r} in it is a link")
    atomic.write_file(folder, "keep", "README.txt", README_TEXT.encode())
    locked = seal.locked if seal is not None else None
    if locked is not None:
        atomic.write_file(folder, "keep", encryption.IDENTITY_FILE, locked)
        atomic.write_file(folder, "keep", encryption.IDENTITY_COPY_FILE, locked)
    recipients = (seal.recipient,) if seal is not None else ()
    write_keep_info(folder, str(uuid4()), recipients, sha256(locked).hexdigest() if locked is not None else "")


def write_keep_info(folder: Path, id_: str, recipients: tuple[str, ...] = (), identity: str = "") -> None:
    """Write keep.json.

    Raises:
        OSError: it may not be written.
    """
    made = KeepInfo(KEEP_FORMAT, KEEP_VERSION, id_, recipients, identity)
    made = msgspec.structs.replace(made, check=made.checked())
    atomic.write_file(folder, "keep", KEEP_JSON, msgspec.json.encode(made))
