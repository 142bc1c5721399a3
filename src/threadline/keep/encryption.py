"""Encrypt a keep's files with age: adding to the keep needs only the public key, reading it needs the secret key.

The secret key is in a key file, or in the keep itself, encrypted with a passphrase (stored twice: without it, all is
lost).
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline import files
from threadline.errors import Missing, NotFound, Unreadable

if TYPE_CHECKING:
    from types import ModuleType

IDENTITY_FILE, IDENTITY_COPY_FILE = "identity.age", "identity-copy.age"
"""The secret key of a keep with a passphrase, encrypted with it; two copies."""
_SECRET_KEY_PREFIX = "AGE-SECRET-KEY-1"  # noqa: S105 - the start of every secret key of age
KEY_FILE_VARIABLE, PASSPHRASE_VARIABLE = "THREADLINE_KEEP_KEY_FILE", "THREADLINE_KEEP_PASSPHRASE"


class EncryptionKey(Struct, frozen=True):
    """The key pair for a new keep: the public key, the secret key, and the latter encrypted with a passphrase."""

    recipient: str
    identity: str
    encrypted_identity: bytes | None = None


def create_passphrase_key(passphrase: str) -> EncryptionKey:
    """Create a key that is stored in the keep itself, encrypted with a passphrase.

    Raises:
        Missing: age is not installed.
        Unreadable: the passphrase is empty.
    """
    if not passphrase.strip():
        raise Unreadable("An empty passphrase protects nothing. Choose another.")
    age = _import_age()
    identity = age.x25519.Identity.generate()
    encrypted = age.passphrase.encrypt(f"{identity}\n".encode(), passphrase)
    return EncryptionKey(str(identity.to_public()), str(identity), encrypted)


def load_or_create_key_file(path: Path) -> EncryptionKey:
    """Load the key from a file like those of `age-keygen`, or create the file.

    Raises:
        Missing: age is not installed.
        Unreadable: the file cannot be read or created, or contains no key.
    """
    age = _import_age()
    if not path.exists():
        identity = age.x25519.Identity.generate()
        text = f"# public key: {identity.to_public()}\n{identity}\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):  # another process created it just now: use its key
                files.write_file(path, text.encode(), overwrite=False)
        except OSError as error:
            raise Unreadable(f"Cannot create the key file {str(path)!r}: {error.strerror or error}.") from None
    secret = key_from_file(path)
    return EncryptionKey(str(_parse_identity(secret).to_public()), secret)


def key_from_file(path: Path) -> str:
    """The secret key in a file.

    Raises:
        NotFound: the file does not exist.
        Unreadable: it cannot be read, or contains no key.
    """
    try:
        lines = files.read_file(path, follow_symlinks=True).decode(errors="replace").splitlines()
    except FileNotFoundError:
        raise NotFound(f"There is no key file {str(path)!r}.") from None
    except OSError as error:
        raise Unreadable(f"The key file {str(path)!r} cannot be read: {error.strerror or error}.") from None
    keys = [line.strip() for line in lines if line.strip().startswith(_SECRET_KEY_PREFIX)]
    if not keys:
        raise Unreadable(f"{str(path)!r} contains no key (no line starts with {_SECRET_KEY_PREFIX}).")
    return keys[0]


def key_from_passphrase(folder: Path, passphrase: str) -> str:
    """The secret key that is stored in a keep.

    Raises:
        NotFound: it has none: its key is in a file.
        Unreadable: the passphrase is wrong.
    """
    age = _import_age()
    paths = [folder / name for name in (IDENTITY_FILE, IDENTITY_COPY_FILE) if (folder / name).is_file()]
    if not paths:
        raise NotFound(f"The keep {str(folder)!r} has no passphrase. Use its key file.")
    for path in paths:
        try:
            identity: bytes = age.passphrase.decrypt(files.read_file(path, follow_symlinks=False), passphrase)
        except (OSError, age.DecryptError):
            continue
        return identity.decode().strip()
    raise Unreadable(f"Wrong passphrase for the keep {str(folder)!r}.")


def key_from_environment(folder: Path) -> str | None:
    """The secret key from `THREADLINE_KEEP_KEY_FILE` or `THREADLINE_KEEP_PASSPHRASE`, if one is set."""
    if path := os.environ.get(KEY_FILE_VARIABLE):
        return key_from_file(Path(path))
    if passphrase := os.environ.get(PASSPHRASE_VARIABLE):
        return key_from_passphrase(folder, passphrase)
    return None


def public_key_of(identity: str) -> str:
    """The public key of a secret key."""
    return str(_parse_identity(identity).to_public())


def count_recipients(data: bytes) -> int:
    """For how many keys a file was encrypted: its header, which is text, has a line for each."""
    return data.partition(b"\n---")[0].count(b"\n-> X25519 ")


def encrypt_bytes(data: bytes, recipients: tuple[str, ...]) -> bytes:
    """Encrypt bytes for these public keys.

    Raises:
        Missing: age is not installed.
        Unreadable: a public key in keep.json is invalid.
    """
    age = _import_age()
    try:
        keys = [age.x25519.Recipient.from_str(recipient) for recipient in recipients]
    except age.RecipientError:
        raise Unreadable("A public key in keep.json is invalid. Copy the file from another copy of the keep.") from None
    encrypted: bytes = age.encrypt(data, keys)
    return encrypted


def decrypt_bytes(data: bytes, identity: str, name: str) -> bytes:
    """Decrypt the content of the file `name`.

    Raises:
        Unreadable: the key is wrong, or the file is damaged.
    """
    age = _import_age()
    try:
        plain: bytes = age.decrypt(data, [_parse_identity(identity)])
    except age.DecryptError as error:
        raise Unreadable(f"{name!r} cannot be decrypted ({error}). The key is wrong, or the file is damaged.") from None
    return plain


def _parse_identity(text: str) -> Any:
    age = _import_age()
    try:
        return age.x25519.Identity.from_str(text)
    except age.IdentityError:
        raise Unreadable("The key file contains no key that age can read.") from None


def _import_age() -> ModuleType:
    try:
        module = import_module("pyrage")
    except ImportError:
        raise Missing("Encrypted keeps need age: pip install 'threadline[keep-encrypted]'.") from None
    return module
