"""The price file that comes with threadline, as bytes and as a digest.

The index is checked against the digest on every command. That must not load the code that parses prices.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def shipped_bytes() -> bytes:
    """The bytes of the price file."""
    return Path(__file__).with_name("prices.json").read_bytes()


def shipped_digest() -> str:
    """The SHA-256 of the prices that come with threadline."""
    return sha256(shipped_bytes()).hexdigest()
