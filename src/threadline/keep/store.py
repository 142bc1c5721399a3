"""The store: the folder that a keep is, and the files in it, none of which ever changes."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.keep.manifest import AnyRow, Run, name_of, packed, text_of
from threadline.keep.writing import TEMPORARY, sync

VERSION = 1
_ABOUT = "keep.json"
_README = """This folder is a keep of threadline, format 1: what Claude Code left on disk, kept for good.
packs/*.zst         the bytes themselves:   zstd -dc packs/*.zst
                    (small frames need a dictionary: zstd -dc -D dictionaries/HASH packs/HASH.zst)
runs/*.jsonl.zst    what was seen when, and which pieces (by SHA-256) each file is made of
The last part of each pack lists its pieces as JSON. docs/keep-format.md of threadline says all.
No file here is ever changed: copy the folder with whatever tool you like.
"""


class About(Struct, frozen=True):
    """What says that a folder is a keep."""

    format: str
    version: int
    id: str


class Store:
    """A keep's folder. `make` begins one where there is none; the constructor takes what is there.

    Raises:
        NotFound: there is no keep.
        Unreadable: it is of a later version, or what lies there is no keep.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packs = folder / "packs"
        self.runs = folder / "runs"
        self.dictionaries = folder / "dictionaries"
        self.about = _about(folder)

    @classmethod
    def make(cls, folder: Path) -> Store:
        """The keep in a folder, begun where there is none. Only its owner may look into it.

        Raises:
            Unreadable: the folder holds something else, or may not be written.
        """
        if not (folder / _ABOUT).exists():
            try:
                _begin(folder)
            except OSError as error:
                raise Unreadable(f"A keep cannot be made in {str(folder)!r}: {error.strerror or error}.") from None
        return cls(folder)

    def pack_files(self) -> list[Path]:
        """All packs, in order of their names."""
        return sorted(self.packs.glob("*.zst"))

    def run_files(self) -> list[Path]:
        """All manifests, each machine's in order."""
        return sorted(self.runs.glob("*.jsonl.zst"))

    def dictionary(self, hash_: str) -> bytes:
        """A dictionary by its hash.

        Raises:
            Unreadable: it is not there, or is not what was written.
        """
        path = self.dictionaries / hash_
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Unreadable(f"The dictionary {str(path)!r} cannot be read: {error.strerror or error}.") from None
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(f"The dictionary {str(path)!r} is damaged; copy it from another copy of this keep.")
        return data

    def put(self, folder: Path, name: str, data: bytes) -> Path:
        """Write a small file once: all of it is on the disk before it has its name."""
        place = folder / name
        temporary = folder / f"{os.getpid()}-{name[-40:]}{TEMPORARY}"
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(place)
        sync(folder)
        return place

    def put_run(self, rows: Iterable[AnyRow]) -> tuple[Path, str]:
        """Write a manifest; where it lies, and its hash."""
        listed = list(rows)
        text = text_of(listed)
        first = listed[0]
        if not isinstance(first, Run):
            raise TypeError("a manifest begins with its run")
        return self.put(self.runs, name_of(first, text), packed(text)), sha256(text).hexdigest()

    def sweep(self) -> None:
        """Take away what a killed run left behind; only who is `alone` may."""
        for folder in (self.packs, self.runs, self.dictionaries):
            for left in folder.glob(f"*{TEMPORARY}"):
                left.unlink(missing_ok=True)

    @contextmanager
    def alone(self, machine: str) -> Iterator[None]:
        """No other process of this machine writes into the keep meanwhile; the system frees what a killed one held.

        Raises:
            IndexBusy: another one does.
        """
        lock = sqlite3.connect(self.folder / f".lock-{machine}", isolation_level=None, timeout=5)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            lock.close()
            said = f"Another threadline is writing the keep {str(self.folder)!r}; wait for it, or try again."
            raise IndexBusy(said if "locked" in str(error) else f"The keep cannot be written: {error}.") from None
        try:
            yield
        finally:
            lock.close()


def default_folder() -> Path:
    """Where a keep lies unless another place is named: `THREADLINE_KEEP`, or the platform's folder for data."""
    said = os.environ.get("THREADLINE_KEEP")
    if said:
        return Path(said)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "threadline" / "keep"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "threadline" / "keep"
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "threadline" / "keep"


def _about(folder: Path) -> About:
    try:
        told = msgspec.json.decode((folder / _ABOUT).read_bytes(), type=About)
    except FileNotFoundError:
        raise NotFound(f"There is no keep in {str(folder)!r} yet; `threadline keep` begins one.") from None
    except OSError as error:
        raise Unreadable(f"The keep {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    except msgspec.MsgspecError:
        raise Unreadable(f"{str(folder / _ABOUT)!r} is damaged; copy it from another copy of this keep.") from None
    if told.version > VERSION:
        raise Unreadable(f"The keep {str(folder)!r} is of a later version ({told.version}); update threadline.")
    return told


def _begin(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    strange = [
        path.name for path in folder.iterdir() if path.name not in ("packs", "runs", "dictionaries", "README.txt")
    ]
    if any(not name.startswith((".lock", _ABOUT)) for name in strange):
        raise OSError(None, f"it holds other things, such as {min(strange)!r}")
    folder.chmod(0o700)
    for name in ("packs", "runs", "dictionaries"):
        (folder / name).mkdir(exist_ok=True, mode=0o700)
    (folder / "README.txt").write_text(_README)
    temporary = folder / f"{_ABOUT}{TEMPORARY}"
    temporary.write_bytes(msgspec.json.encode(About("threadline keep", VERSION, str(uuid4()))))
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.rename(folder / _ABOUT)
    sync(folder)
