"""The folder of a keep and the files in it, which never change once they are written.

A file's name contains the SHA-256 of its bytes. `keep.json` marks the folder as a keep and lists the public keys if it
is encrypted. It is not needed to read the rest, and can be rebuilt if it is damaged.

A keep has two kinds of locks: one per machine, and one for the whole folder. Processes that add files hold the second
one shared, so several machines may add at once. Processes that remove files hold it exclusively.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import msgspec
from msgspec import Struct

from threadline import files, locks
from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.files import TEMPORARY_SUFFIX
from threadline.keep import encryption
from threadline.keep.encryption import EncryptionKey
from threadline.keep.machine import KEEP_JSON, KeepId, configured_keep_folder
from threadline.keep.manifest import AnyRow, Manifest, RunRow, compress_manifest, encode_rows

RETIRED_SUFFIX = ".going"
"""Added to the name of a dictionary that is about to be removed: it is read with, but no longer written with."""
KEEP_VERSION = 1
KEEP_FORMAT = "threadline keep"
README_FILE = "README.txt"
README_TEXT = """This folder is a keep of threadline, format 1: what Claude Code left on disk, kept for good.
packs/*.zst         the bytes themselves:   zstd -dc packs/HASH.zst
                    (small frames may need a dictionary: zstd -dc -D dictionaries/HASH.dict packs/HASH.zst)
runs/*.jsonl.zst    what was seen when, and which pieces (by SHA-256) each file is made of
*.age               the same, encrypted:    age -d -i KEY packs/HASH.age | zstd -dc
Each HASH in a name is the SHA-256 of that file. The last part of each pack lists its pieces as JSON.
docs/keep-format.md of threadline says all. No file here is ever changed: copy the folder with whatever tool you like.
"""
_FOLDERS = ("packs", "runs", "dictionaries")
_IDENTITY_FILES = (encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE)
_OWNER = "keep"
"""Starts the temporary names of the files at the top of a keep."""
_LOCK_NAME = ".lock"
_PACK_NAME = re.compile(r"[0-9a-f]{64}\.(zst|age)")
_MANIFEST_NAME = re.compile(r"([0-9A-Za-z_]{1,64}-[0-9]{6,16}-)?[0-9a-f]{64}\.(jsonl\.zst|age)")
_DICTIONARY_NAME = re.compile(r"[0-9a-f]{64}\.(dict|age)(\.going)?")
_HASH_PATTERN = re.compile(r"[0-9a-f]{64}")
_ABANDONED_SECONDS = 14 * 86400
"""After this long, another machine's temporary file is taken to be abandoned."""


class KeepInfo(Struct, frozen=True, omit_defaults=True):
    """The content of keep.json. `recipients` are the public keys of an encrypted keep.

    `identity` is the hash of the file with the passphrase-protected secret key, if there is one. `check` is the hash of
    the other fields.
    """

    format: str
    version: int
    id: KeepId
    recipients: tuple[str, ...] = ()
    identity: str = ""
    check: str = ""

    def expected_check(self) -> str:
        """What `check` should be: the hash of the other fields, one per line."""
        fields = (self.format, str(self.version), self.id, *self.recipients, self.identity)
        return sha256("\n".join(fields).encode()).hexdigest()


class Store:
    """The folder of an existing keep; `Store.make` creates one.

    `identity` is the secret key of an encrypted keep. Without it, the environment is asked when the key is needed.

    Raises:
        NotFound: there is no keep in the folder.
        Unreadable: it is of a later version, or may not be read.
    """

    def __init__(self, folder: Path, identity: str | None = None) -> None:
        self.folder = folder
        self.packs = folder / "packs"
        self.runs = folder / "runs"
        self.dictionaries = folder / "dictionaries"
        self.info, self.problem = read_keep_info(folder)
        """`problem` says that keep.json is damaged. The keep can still be read; adding to it repairs the file first."""
        self._identity = identity
        self._is_identity_known = identity is not None
        self._decrypt_cached = lru_cache(maxsize=2)(self._decrypt)

    @classmethod
    def make(cls, folder: Path, key: EncryptionKey | None = None) -> Store:
        """The keep in a folder, created if there is none. Only its owner can access it.

        Raises:
            Unreadable: the folder contains something else, may not be written, or is a keep with another key.
        """
        if not is_keep(folder):
            try:
                create_keep(folder, key)
            except OSError as error:
                raise Unreadable(f"Cannot create a keep in {str(folder)!r}: {error.strerror or error}.") from None
        store = cls(folder, key.identity if key is not None else None)
        if key is not None and store.problem is None and key.recipient not in store.info.recipients:
            raise Unreadable(
                f"The keep {str(folder)!r} was not created with this key."
                " Create an encrypted keep in another folder, and merge this one into it."
            )
        return store

    @classmethod
    def make_encrypted(cls, folder: Path, *, key_file: Path | None = None, passphrase: str = "") -> Store:
        """The encrypted keep in a folder, created if there is none.

        Its key is in `key_file`, which is created if it does not exist; without one, in the keep itself, encrypted with
        the passphrase.

        Raises:
            Missing: age is not installed.
            Unreadable: as for `make`; or the key file cannot be read or created; or the passphrase is empty.
        """
        if key_file is not None:
            return cls.make(folder, encryption.load_or_create_key_file(key_file))
        return cls.make(folder, encryption.create_passphrase_key(passphrase))

    @classmethod
    def unlock(cls, folder: Path, *, key_file: Path | None = None, passphrase: str = "") -> Store:
        """Open an encrypted keep with its key file, or else with its passphrase.

        Raises:
            NotFound: the key file does not exist, or the keep has no passphrase.
            Unreadable: the key file cannot be read, or the passphrase is wrong.
        """
        if key_file is not None:
            return cls(folder, encryption.key_from_file(key_file))
        return cls(folder, encryption.key_from_passphrase(folder, passphrase))

    @property
    def has_passphrase(self) -> bool:
        """Whether its key is stored in the keep itself, encrypted with a passphrase."""
        return (self.folder / encryption.IDENTITY_FILE).exists()

    @property
    def is_encrypted(self) -> bool:
        """Whether its files are encrypted."""
        return bool(self.info.recipients) or (
            self.problem is not None and any(".age" in path.name for path in self._all_files())
        )

    def reload_info(self) -> None:
        """Read keep.json again."""
        self.info, self.problem = read_keep_info(self.folder)

    def _all_files(self) -> Iterator[Path]:
        yield from self.pack_files()
        yield from self.run_files()
        yield from self.dictionary_files()
        yield from (self.folder / name for name in _IDENTITY_FILES if (self.folder / name).exists())

    @property
    def is_key_missing(self) -> bool:
        """Whether it is encrypted and its key is not available."""
        return self.is_encrypted and self.identity is None

    @property
    def identity(self) -> str | None:
        """The secret key, if it is available."""
        if not self._is_identity_known:
            self._is_identity_known = True
            self._identity = encryption.key_from_environment(self.folder)
        return self._identity

    def require_key(self) -> None:
        """Make sure that the keep can be read.

        Raises:
            Unreadable: it is encrypted and its key is not available.
        """
        if self.is_key_missing:
            raise Unreadable(
                f"The keep {str(self.folder)!r} is encrypted. Set {encryption.KEY_FILE_VARIABLE} to its key file, or"
                f" {encryption.PASSPHRASE_VARIABLE} to its passphrase."
            )

    def pack_files(self) -> list[Path]:
        """All packs, sorted by name."""
        return _list_files(self.packs, _PACK_NAME)

    def run_files(self) -> list[Path]:
        """All manifests, sorted by name: each machine's runs are in order."""
        return _list_files(self.runs, _MANIFEST_NAME)

    def dictionary_files(self) -> list[Path]:
        """All dictionaries, including retired ones."""
        return _list_files(self.dictionaries, _DICTIONARY_NAME)

    def open(self, path: Path) -> BinaryIO:
        """Open a file of the keep, decrypted.

        Raises:
            Unreadable: it cannot be read or decrypted.
        """
        try:
            if path.name.endswith((".age", f".age{RETIRED_SUFFIX}")):
                return BytesIO(self._decrypt_cached(path))
            return files.open_regular(path, follow_symlinks=False)
        except OSError as error:
            raise read_error(path, error) from None

    def read(self, path: Path) -> bytes:
        """Read a file of the keep, decrypted.

        Raises:
            Unreadable: it cannot be read or decrypted.
        """
        with self.open(path) as file:
            try:
                return file.read()
            except OSError as error:
                raise read_error(path, error) from None

    def _decrypt(self, path: Path) -> bytes:
        self.require_key()
        with files.open_regular(path, follow_symlinks=False) as file:
            return encryption.decrypt_bytes(file.read(), self.identity or "", path.name)

    def dictionary(self, hash_: str) -> bytes:
        """A dictionary by its hash.

        Raises:
            Unreadable: it is missing or damaged.
        """
        if _HASH_PATTERN.fullmatch(hash_) is None:
            raise Unreadable(f"{hash_[:80]!r} is not the hash of a dictionary.")
        plain = [path for path in self.dictionary_files() if path.name.startswith(hash_)]
        for path in plain or (path for path in self.dictionary_files() if ".age" in path.name):
            try:
                data = self.read(path)
            except Unreadable:
                continue  # another file may be intact
            if sha256(data).hexdigest() == hash_:
                return data
        if plain:
            raise Unreadable(f"The dictionary {str(plain[0])!r} is damaged. Copy it from another copy of this keep.")
        raise Unreadable(f"The dictionary {hash_[:16]} is missing. Copy it from another copy of this keep.")

    def put(self, folder: Path, owner: str, name: str, suffix: str, data: bytes) -> Path:
        """Write a new file, encrypted if the keep is. Its name is `name`, the hash of its bytes, and `suffix`.

        Raises:
            Unreadable: it cannot be written.
        """
        if self.is_encrypted:
            name, suffix, data = "", ".age", encryption.encrypt_bytes(data, self.info.recipients)
        return self.put_raw(folder, owner, f"{name}{sha256(data).hexdigest()}{suffix}", data)

    def put_raw(self, folder: Path, owner: str, name: str, data: bytes) -> Path:
        """Write a new file with this name, as it is.

        Raises:
            Unreadable: it cannot be written.
        """
        with self.reporting_write_errors():
            return files.write_file(folder / name, data, owner=owner)

    def repair_readme(self) -> int:
        """Write README.txt again if it was changed; return the number of repaired files.

        Raises:
            Unreadable: it cannot be written.
        """
        if has_readme(self.folder):
            return 0
        with self.reporting_write_errors():
            write_readme(self.folder)
        return 1

    def put_run(self, rows: Iterable[AnyRow]) -> tuple[Path, Manifest]:
        """Write a manifest; return its path and content."""
        run, *rest = rows
        if not isinstance(run, RunRow):
            raise TypeError("the first row of a manifest must be its run")
        text = encode_rows((run, *rest))
        return self.put_manifest_text(run, text), Manifest(run, tuple(rest), sha256(text).hexdigest())

    def put_manifest_text(self, run: RunRow, text: bytes) -> Path:
        """Write the manifest with this text."""
        name = f"{run.machine}-{run.number:06d}-"
        return self.put(self.runs, run.machine, name, ".jsonl.zst", compress_manifest(text))

    def put_dictionary(self, owner: str, data: bytes) -> Path:
        """Write a dictionary."""
        return self.put(self.dictionaries, owner, "", ".dict", data)

    @contextmanager
    def adding(self, machine: str) -> Iterator[None]:
        """Hold the locks for adding files. Other machines may add at the same time.

        Raises:
            IndexBusy: another process of this machine is adding, or one is removing files.
            Unreadable: keep.json is damaged, or the keep cannot be written.
        """
        self._require_info()
        with self.lock(machine, shared=True):
            self._sweep(machine)
            yield

    @contextmanager
    def removing(self, machine: str) -> Iterator[None]:
        """Hold the locks for removing files. Nobody else can write.

        Raises:
            IndexBusy: another process is writing.
            Unreadable: keep.json is damaged, or the keep cannot be written.
        """
        self._require_info()
        with self.lock(machine, shared=False):
            self._sweep(machine)
            yield

    @contextmanager
    def lock(self, machine: str, *, shared: bool) -> Iterator[None]:
        """Hold this machine's lock, and the folder's lock shared or exclusively.

        Raises:
            IndexBusy: another process holds one of them.
            Unreadable: the keep cannot be written, now or inside the block.
        """
        with self.reporting_write_errors(), ExitStack() as stack:
            try:
                stack.enter_context(locks.hold_lock(self.folder / f"{_LOCK_NAME}-{machine}"))
                stack.enter_context(locks.hold_lock(self.folder / _LOCK_NAME, shared=shared))
            except locks.LockBusy:
                message = f"Another process is writing to the keep {str(self.folder)!r}. Wait for it, or try again."
                raise IndexBusy(message) from None
            yield

    @contextmanager
    def reporting_write_errors(self) -> Iterator[None]:
        """Turn an `OSError` of the block into an `Unreadable` about this keep."""
        try:
            yield
        except OSError as error:
            raise Unreadable(
                f"The keep {str(self.folder)!r} cannot be written: {error.strerror or error}."
                " Nothing in it was lost. Fix the problem, then run the command again."
            ) from None

    def _require_info(self) -> None:
        if self.problem is not None:
            raise Unreadable(self.problem)

    def _sweep(self, machine: str) -> None:
        """Remove temporary files of killed runs: this machine's, whose lock we hold, and abandoned ones of others."""
        for folder in (self.folder, self.packs, self.runs, self.dictionaries):
            for path in folder.glob(f"*{TEMPORARY_SUFFIX}"):
                with suppress(FileNotFoundError):  # another machine has just finished writing it
                    is_ours = files.temporary_owner(path.name) == machine
                    if is_ours or time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS:
                        path.unlink()


def default_folder() -> Path:
    """Where the keep is unless another folder is named: `THREADLINE_KEEP`, or the platform's data folder."""
    return Path(configured_keep_folder())


def is_keep(folder: Path) -> bool:
    """Whether there is a keep in a folder, or what is left of one."""
    return (folder / KEEP_JSON).exists() or any(
        _MANIFEST_NAME.fullmatch(path.name) for path in (folder / "runs").glob("*")
    )


def hash_in_name(path: Path) -> str:
    """The SHA-256 in a file's name."""
    hashes = _HASH_PATTERN.findall(path.name)
    return hashes[-1] if hashes else ""


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's bytes.

    Raises:
        OSError: it cannot be read.
    """
    digest = sha256()
    with files.open_regular(path, follow_symlinks=False) as file:
        while data := file.read(1024 * 1024):
            digest.update(data)
    return digest.hexdigest()


def is_damaged(path: Path) -> bool:
    """Whether a file cannot be read, or its bytes do not match the hash in its name."""
    try:
        return hash_file(path) != hash_in_name(path)
    except OSError:
        return True


def read_error(path: Path, error: OSError) -> Unreadable:
    """The error for a file of a keep that cannot be read."""
    return Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.")


def _list_files(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The regular files of a folder with matching names. Other files in it do not belong to the keep."""
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]
    except OSError as error:
        raise read_error(folder, error) from None
    return [folder / name for name in sorted(names)]


def read_keep_info(folder: Path) -> tuple[KeepInfo, str | None]:
    """Read keep.json. If it is damaged, return an empty one and a message.

    Raises:
        NotFound: there is no keep.
        Unreadable: the keep is of a later version, or may not be read.
    """
    damaged = (
        f"{str(folder / KEEP_JSON)!r} is damaged or missing. `threadline keep` rebuilds it (for an encrypted keep, with"
        " the key), and `threadline keep merge COPY` restores it from a copy of this keep."
    )
    empty = KeepInfo(KEEP_FORMAT, KEEP_VERSION, "")
    try:
        info = msgspec.json.decode(files.read_file(folder / KEEP_JSON, follow_symlinks=False), type=KeepInfo)
    except FileNotFoundError:
        if not any((folder / "runs").glob("*")):
            raise NotFound(f"There is no keep in {str(folder)!r} yet. Run `threadline keep` to create one.") from None
        return empty, damaged
    except OSError as error:
        raise Unreadable(f"The keep {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return empty, damaged
    as_this_version = msgspec.structs.replace(info, version=KEEP_VERSION)
    if info.version > KEEP_VERSION and info.check != as_this_version.expected_check():
        raise Unreadable(f"The keep {str(folder)!r} has a newer format ({info.version}). Update threadline.")
    if (info.format, info.version) != (KEEP_FORMAT, KEEP_VERSION) or info.check != info.expected_check():
        return empty, damaged
    return info, None


def create_keep(folder: Path, key: EncryptionKey | None) -> None:
    """Create a keep in a folder.

    Raises:
        OSError: the folder contains something else, or may not be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if key is None and any((folder / name).exists() for name in _IDENTITY_FILES):
        raise OSError(None, "an encrypted keep was started there; use --encrypt")
    foreign = [
        path.name
        for path in folder.iterdir()
        if path.name not in (*_FOLDERS, README_FILE, *_IDENTITY_FILES)
        and not path.name.startswith(_LOCK_NAME)
        and not path.name.endswith(TEMPORARY_SUFFIX)
    ]
    if foreign:
        raise OSError(None, f"it contains other files, such as {min(foreign)!r}")
    folder.chmod(0o700)
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o700)
        if stat.S_ISLNK((folder / name).lstat().st_mode):
            raise OSError(None, f"{name!r} in it is a symlink")
    write_readme(folder)
    encrypted = key.encrypted_identity if key is not None else None
    if encrypted is not None:
        for name in _IDENTITY_FILES:
            files.write_file(folder / name, encrypted, owner=_OWNER)
    recipients = (key.recipient,) if key is not None else ()
    write_keep_info(folder, str(uuid4()), recipients, sha256(encrypted).hexdigest() if encrypted is not None else "")


def write_readme(folder: Path) -> None:
    """Write README.txt, which is the same in every keep.

    Raises:
        OSError: it may not be written.
    """
    files.write_file(folder / README_FILE, README_TEXT.encode(), owner=_OWNER)


def has_readme(folder: Path) -> bool:
    """Whether README.txt is intact."""
    try:
        return files.read_file(folder / README_FILE, follow_symlinks=False) == README_TEXT.encode()
    except OSError:
        return False


def write_keep_info(folder: Path, id_: str, recipients: tuple[str, ...] = (), identity: str = "") -> None:
    """Write keep.json.

    Raises:
        OSError: it may not be written.
    """
    info = KeepInfo(KEEP_FORMAT, KEEP_VERSION, id_, recipients, identity)
    info = msgspec.structs.replace(info, check=info.expected_check())
    files.write_file(folder / KEEP_JSON, msgspec.json.encode(info), owner=_OWNER)
