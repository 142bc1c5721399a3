"""Encrypt a keep's files with age: adding to the keep needs only the public key, reading it needs the secret key.

The secret key is in a key file, or in the keep itself, encrypted with a passphrase (stored twice: without it, all is
lost).
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline import atomic
from threadline.errors import Missing, NotFound, Unreadable

if TYPE_CHECKING:
    from types import ModuleType

IDENTITY_FILE, IDENTITY_COPY_FILE = "identity.age", "identity-copy.age"
"""Where a keep with a passphrase has its secret key, encrypted with that; twice, for without it all is lost."""
_SECRET_KEY_PREFIX = "AGE-SECRET-KEY-1"  # noqa: S105 - what every secret key of age begins with
KEY_FILE_VARIABLE, PASSPHRASE_VARIABLE = "THREADLINE_KEEP_KEY_FILE", "THREADLINE_KEEP_PASSPHRASE"


class EncryptionKey(Struct, frozen=True):
    """What a keep is to be sealed with: the public key, the secret one, and the latter as it lies in the keep."""

    recipient: str
    identity: str
    locked: bytes | None = None


def create_passphrase_key(passphrase: str) -> EncryptionKey:
    """A new key, which the keep holds itself, encrypted with a passphrase.

    Raises:
        Missing: age is not installed.
    """
    if not passphrase.strip():
        raise Unreadable("An empty passphrase protects nothing; choose another.")
    age = _import_age()
    made = age.x25519.Identity.generate()
    locked = age.passphrase.encrypt(f"{made}\n".encode(), passphrase)
    return EncryptionKey(str(made.to_public()), str(made), locked)


def load_or_create_key_file(path: Path) -> EncryptionKey:
    """The key in a file, as `age-keygen` writes them; made where there is none.

    Raises:
        Missing: age is not installed.
        Unreadable: the file cannot be read or made, or holds no key.
    """
    age = _import_age()
    if not path.exists():
        made = age.x25519.Identity.generate()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"# public key: {made.to_public()}\n{made}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unreadable(f"The key file {str(path)!r} cannot be made: {error.strerror or error}.") from None
    identity = key_from_file(path)
    return EncryptionKey(str(_parse_identity(identity).to_public()), identity)


def key_from_file(path: Path) -> str:
    """The secret key in a file.

    Raises:
        NotFound: the file is not there.
        Unreadable: it cannot be read, or holds no key.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        raise NotFound(f"There is no key file {str(path)!r}.") from None
    except OSError as error:
        raise Unreadable(f"The key file {str(path)!r} cannot be read: {error.strerror or error}.") from None
    found = [line.strip() for line in lines if line.strip().startswith(_SECRET_KEY_PREFIX)]
    if not found:
        raise Unreadable(f"{str(path)!r} holds no key; a line of it begins with {_SECRET_KEY_PREFIX}.")
    return found[0]


def key_from_passphrase(folder: Path, passphrase: str) -> str:
    """The secret key that a keep holds itself.

    Raises:
        NotFound: it holds none: its key is in a file.
        Unreadable: the passphrase is another one.
    """
    age = _import_age()
    there = [folder / name for name in (IDENTITY_FILE, IDENTITY_COPY_FILE) if (folder / name).is_file()]
    if not there:
        raise NotFound(f"The keep {str(folder)!r} has no passphrase; name its key file.")
    for path in there:
        try:
            told: bytes = age.passphrase.decrypt(atomic.read_small_file(path), passphrase)
        except (OSError, age.DecryptError):
            continue
        return told.decode().strip()
    raise Unreadable(f"That is not the passphrase of the keep {str(folder)!r}.")


def key_from_environment(folder: Path) -> str | None:
    """The secret key of a keep as `THREADLINE_KEEP_KEY_FILE` or `THREADLINE_KEEP_PASSPHRASE` tell it, if they do."""
    if path := os.environ.get(KEY_FILE_VARIABLE):
        return key_from_file(Path(path))
    if passphrase := os.environ.get(PASSPHRASE_VARIABLE):
        return key_from_passphrase(folder, passphrase)
    return None


def public_key_of(identity: str) -> str:
    """The public key of a secret one."""
    return str(_parse_identity(identity).to_public())


def count_recipients(data: bytes) -> int:
    """For how many keys something was sealed: the head of it, which is text, has a line for each."""
    return data.partition(b"\n---")[0].count(b"\n-> X25519 ")


def encrypt_bytes(data: bytes, recipients: tuple[str, ...]) -> bytes:
    """Bytes that only who has a secret key can read.

    Raises:
        Missing: age is not installed.
        Unreadable: what the keep names is no public key.
    """
    age = _import_age()
    try:
        known = [age.x25519.Recipient.from_str(recipient) for recipient in recipients]
    except age.RecipientError:
        raise Unreadable("The keep names a public key that is none; copy keep.json from another copy of it.") from None
    made: bytes = age.encrypt(data, known)
    return made


def decrypt_bytes(data: bytes, identity: str, name: str) -> bytes:
    """What was sealed.

    Raises:
        Unreadable: the key is another one, or the bytes are not what was written.
    """
    age = _import_age()
    try:
        told: bytes = age.decrypt(data, [_parse_identity(identity)])
    except age.DecryptError as error:
        raise Unreadable(f"{name!r} cannot be decrypted ({error}): the key is another one, or it is damaged.") from None
    return told


def _parse_identity(text: str) -> Any:
    age = _import_age()
    try:
        return age.x25519.Identity.from_str(text)
    except age.IdentityError:
        raise Unreadable("The key file holds no key that age can read.") from None


def _import_age() -> ModuleType:
    try:
        module = import_module("pyrage")
    except ImportError:
        raise Missing("Encrypted keeps need age: pip install 'threadline[keep-encrypted]'.") from None
    return module
