"""What says that a folder is a keep: keep.json, a text for people, and the folders in it."""

from __future__ import annotations

import stat
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from threadline.errors import NotFound, Unreadable
from threadline.keep import durable, sealing
from threadline.keep.durable import TEMPORARY
from threadline.keep.sealing import Seal

ABOUT = "keep.json"
VERSION = 1
FORMAT = "threadline keep"
_FOLDERS = ("packs", "runs", "dictionaries")
README = """This folder is a keep of threadline, format 1: what Claude Code left on disk, kept for good.
packs/*.zst         the bytes themselves:   zstd -dc packs/HASH.zst
                    (small frames may need a dictionary: zstd -dc -D dictionaries/HASH.dict packs/HASH.zst)
runs/*.jsonl.zst    what was seen when, and which pieces (by SHA-256) each file is made of
*.age               the same, encrypted:    age -d -i KEY packs/HASH.age | zstd -dc
Each HASH in a name is the SHA-256 of that file. The last part of each pack lists its pieces as JSON.
docs/keep-format.md of threadline says all. No file here is ever changed: copy the folder with whatever tool you like.
"""


class About(Struct, frozen=True, omit_defaults=True):
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


def about(folder: Path) -> tuple[About, str | None]:
    """What says that a folder is a keep, and what is wrong with it. To read what is in a keep, it is not needed."""
    damaged = (
        f"{str(folder / ABOUT)!r} is damaged, or not there; `threadline keep` writes it anew, with the key at hand if"
        " the keep is encrypted, and `threadline keep merge COPY` takes it from a copy of this keep."
    )
    try:
        told = msgspec.json.decode(durable.small(folder / ABOUT), type=About)
    except FileNotFoundError:
        if not any((folder / "runs").glob("*")):
            raise NotFound(f"There is no keep in {str(folder)!r} yet; `threadline keep` begins one.") from None
        return About(FORMAT, VERSION, ""), damaged
    except OSError as error:
        raise Unreadable(f"The keep {str(folder)!r} cannot be read: {error.strerror or error}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return About(FORMAT, VERSION, ""), damaged
    if told.version > VERSION and told.check != msgspec.structs.replace(told, version=VERSION).checked():
        raise Unreadable(f"The keep {str(folder)!r} is of a later version ({told.version}); update threadline.")
    if (told.format, told.version) != (FORMAT, VERSION) or told.check != told.checked():
        return About(FORMAT, VERSION, ""), damaged
    return told, None


def begin(folder: Path, seal: Seal | None) -> None:
    """Make a keep in a folder.

    Raises:
        OSError: the folder holds something else, or may not be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = (*_FOLDERS, "README.txt", sealing.IDENTITY, sealing.COPY)
    if seal is None and any((folder / name).exists() for name in (sealing.IDENTITY, sealing.COPY)):
        raise OSError(None, "an encrypted one was begun there; begin it again with --encrypt")
    strange = [
        path.name
        for path in folder.iterdir()
        if path.name not in known and not path.name.startswith(".lock") and not path.name.endswith(TEMPORARY)
    ]
    if strange:
        raise OSError(None, f"it holds other things, such as {min(strange)!r}")
    folder.chmod(0o700)
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o700)
        if stat.S_ISLNK((folder / name).lstat().st_mode):
            raise OSError(None, f"{name!r} in it is a link")
    durable.put(folder, "keep", "README.txt", README.encode())
    locked = seal.locked if seal is not None else None
    if locked is not None:
        durable.put(folder, "keep", sealing.IDENTITY, locked)
        durable.put(folder, "keep", sealing.COPY, locked)
    recipients = (seal.recipient,) if seal is not None else ()
    write(folder, str(uuid4()), recipients, sha256(locked).hexdigest() if locked is not None else "")


def write(folder: Path, id_: str, recipients: tuple[str, ...] = (), identity: str = "") -> None:
    """Write keep.json.

    Raises:
        OSError: it may not be written.
    """
    made = About(FORMAT, VERSION, id_, recipients, identity)
    made = msgspec.structs.replace(made, check=made.checked())
    durable.put(folder, "keep", ABOUT, msgspec.json.encode(made))
