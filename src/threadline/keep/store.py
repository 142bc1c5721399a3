"""The store: the folder that a keep is, and the files in it, none of which ever changes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from threadline.errors import Unreadable
from threadline.keep import durable, locking, sealing
from threadline.keep.about import ABOUT, README, About, about, begin
from threadline.keep.durable import TEMPORARY
from threadline.keep.folder import is_read
from threadline.keep.machine import machine_folder
from threadline.keep.manifest import AnyRow, Run, packed, text_of
from threadline.keep.sealing import Seal

__all__ = ["ABOUT", "GOING", "README", "About", "Store", "default_folder", "file_hash", "is_keep", "told_hash"]
GOING = ".going"
"""Added to the name of a dictionary that is on its way out: it is read with, and not written with any more."""
_PACK = re.compile(r"[0-9a-f]{64}\.(zst|age)")
_RUN = re.compile(r"([0-9A-Za-z_]{1,64}-[0-9]{6,16}-)?[0-9a-f]{64}\.(jsonl\.zst|age)")
_DICTIONARY = re.compile(r"[0-9a-f]{64}\.(dict|age)(\.going)?")
_HASH = re.compile(r"[0-9a-f]{64}")
_ABANDONED = 14 * 86400
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
        self.about, self.problem = about(folder)
        """`problem`: keep.json is damaged. What is in the keep can still be read; who adds to it mends it first."""
        self._identity = identity
        self._asked = identity is not None
        self._open = lru_cache(maxsize=2)(self._unsealed)

    @classmethod
    def make(cls, folder: Path, seal: Seal | None = None) -> Store:
        """The keep in a folder, begun where there is none. Only its owner may look into it.

        Raises:
            Unreadable: the folder holds something else, may not be written, or is a keep that is not sealed so.
        """
        if not is_keep(folder):
            try:
                begin(folder, seal)
            except OSError as error:
                raise Unreadable(f"A keep cannot be made in {str(folder)!r}: {error.strerror or error}.") from None
        made = cls(folder, seal.identity if seal is not None else None)
        if seal is not None and made.problem is None and seal.recipient not in made.about.recipients:
            raise Unreadable(
                f"The keep {str(folder)!r} was begun otherwise: make another one that is encrypted, and merge it there."
            )
        return made

    @property
    def is_sealed(self) -> bool:
        """Whether what is in it is encrypted."""
        return bool(self.about.recipients) or (
            self.problem is not None and any(".age" in path.name for path in self._all_files())
        )

    def look_again(self) -> None:
        """Read keep.json once more."""
        self.about, self.problem = about(self.folder)

    def _all_files(self) -> Iterator[Path]:
        yield from self.pack_files()
        yield from self.run_files()
        yield from self.dictionary_files()
        yield from (self.folder / name for name in (sealing.IDENTITY, sealing.COPY) if (self.folder / name).exists())

    @property
    def is_locked(self) -> bool:
        """Whether it is encrypted and the key is not at hand."""
        return self.is_sealed and self.identity is None

    @property
    def identity(self) -> str | None:
        """The secret key, if it is at hand."""
        if not self._asked:
            self._asked = True
            self._identity = sealing.key_from_environment(self.folder)
        return self._identity

    def require_key(self) -> None:
        """See that what is in it can be read.

        Raises:
            Unreadable: it is encrypted, and the key is not at hand.
        """
        if self.is_locked:
            raise Unreadable(
                f"The keep {str(self.folder)!r} is encrypted; name its key file ({sealing.KEY_FILE}) or its passphrase "
                f"({sealing.PASSPHRASE})."
            )

    def pack_files(self) -> list[Path]:
        """All packs, in order of their names."""
        return _files(self.packs, _PACK)

    def run_files(self) -> list[Path]:
        """All manifests, each machine's in order where the names tell it."""
        return _files(self.runs, _RUN)

    def dictionary_files(self) -> list[Path]:
        """All dictionaries, those that are on their way out included."""
        return _files(self.dictionaries, _DICTIONARY)

    def opened(self, path: Path) -> BinaryIO:
        """A file of the keep as it was before it was sealed.

        Raises:
            Unreadable: it cannot be read or decrypted.
        """
        try:
            if path.name.endswith((".age", f".age{GOING}")):
                return BytesIO(self._open(path))
            return durable.opened(path)
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
        if _HASH.fullmatch(hash_) is None:
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
        if self.is_sealed:
            name, suffix, data = "", ".age", sealing.sealed(data, self.about.recipients)
        return self.put_as_it_is(folder, writer, f"{name}{sha256(data).hexdigest()}{suffix}", data)

    def put_as_it_is(self, folder: Path, writer: str, name: str, data: bytes) -> Path:
        """Write a file once, under this name.

        Raises:
            Unreadable: it cannot be written.
        """
        try:
            return durable.put(folder, writer, name, data)
        except OSError as error:
            raise durable.unwritable(self.folder, error) from None

    def put_run(self, rows: Iterable[AnyRow]) -> tuple[Path, str]:
        """Write a manifest; where it lies, and the hash of its text."""
        listed = list(rows)
        text = text_of(listed)
        run = listed[0]
        if not isinstance(run, Run):
            raise TypeError("a manifest begins with its run")
        return self.put_text(run, text), sha256(text).hexdigest()

    def put_text(self, run: Run, text: bytes) -> Path:
        """Write a manifest, of its text."""
        return self.put(self.runs, run.machine, f"{run.machine}-{run.number:06d}-", ".jsonl.zst", packed(text))

    def put_dictionary(self, writer: str, data: bytes) -> Path:
        """Write a dictionary."""
        return self.put(self.dictionaries, writer, "", ".dict", data)

    def sweep(self, machine: str) -> None:
        """Take away what a killed run of this machine left behind; only who holds the machine's lock may."""
        for folder in (self.folder, self.packs, self.runs, self.dictionaries):
            for left in folder.glob(f"*{TEMPORARY}"):
                ours = left.name.rsplit("-", 2)[0] == machine
                if ours or time.time() - left.lstat().st_mtime > _ABANDONED:
                    left.unlink(missing_ok=True)

    @contextmanager
    def adding(self, machine: str) -> Iterator[None]:
        """Write into the keep; other machines may, too.

        Raises:
            IndexBusy: another process of this machine does, or one takes away what is not needed.
        """
        self._require_about()
        with locking.adding(self.folder, machine):
            self.sweep(machine)
            yield

    @contextmanager
    def removing(self, machine: str) -> Iterator[None]:
        """Take away from the keep what is in it twice, or forgotten; nobody else writes meanwhile.

        Raises:
            IndexBusy: somebody does.
        """
        self._require_about()
        with locking.removing(self.folder, machine):
            self.sweep(machine)
            yield

    def _require_about(self) -> None:
        if self.problem is not None:
            raise Unreadable(self.problem)

    def _unsealed(self, path: Path) -> bytes:
        self.require_key()
        with durable.opened(path) as file:
            return sealing.unsealed(file.read(), self.identity or "", path.name)


def default_folder() -> Path:
    """Where a keep lies unless another place is named: `THREADLINE_KEEP`, or the platform's folder for data."""
    said = os.environ.get("THREADLINE_KEEP")
    if said and is_read():  # `off` leaves it for those that read, and names no folder
        return Path(os.path.expanduser(said))  # noqa: PTH111 - that of Path raises where there is no such user
    return machine_folder() / "keep"


def is_keep(folder: Path) -> bool:
    """Whether a keep is in a folder, if only what is left of one."""
    return (folder / ABOUT).exists() or any(_RUN.fullmatch(path.name) for path in (folder / "runs").glob("*"))


def told_hash(path: Path) -> str:
    """The SHA-256 that a file's name says its bytes have."""
    found = _HASH.findall(path.name)
    return found[-1] if found else ""


def file_hash(path: Path) -> str:
    """The SHA-256 that a file's bytes have.

    Raises:
        OSError: it cannot be read.
    """
    digest = sha256()
    with durable.opened(path) as file:
        while data := file.read(1024 * 1024):
            digest.update(data)
    return digest.hexdigest()


def _files(folder: Path, named: re.Pattern[str]) -> list[Path]:
    """The regular files of a folder that are named so; whatever else somebody put there is none of the keep's."""
    try:
        with os.scandir(folder) as inside:
            names = [one.name for one in inside if named.fullmatch(one.name) and one.is_file(follow_symlinks=False)]
    except OSError as error:
        raise Unreadable(f"The keep's folder {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    return [folder / name for name in sorted(names)]
