"""The price file that comes with threadline, as bytes and as a digest.

Every command checks the index against the digest. That must not load the code that parses prices.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def shipped_bytes() -> bytes:
    """Return the content of the shipped price file."""
    return Path(__file__).with_name("prices.json").read_bytes()


def shipped_digest() -> str:
    """Return the SHA-256 of the shipped price file."""
    return sha256(shipped_bytes()).hexdigest()
