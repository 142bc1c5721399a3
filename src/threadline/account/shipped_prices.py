"""The price file that comes with threadline, as bytes and as a digest.

This is a module of its own so that commands can check the index without loading prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from threadline.files import sha256

SHIPPED = "threadline"
"""The name of the shipped prices, used instead of a file name."""


def shipped_bytes() -> bytes:
    """Return the content of the shipped price file."""
    return Path(__file__).with_name("prices.json").read_bytes()


@cache
def shipped_digest() -> str:
    """Return the SHA-256 of the shipped price file."""
    return sha256(shipped_bytes()).hexdigest()


def combine_digests(files: Sequence[tuple[str, str]]) -> str:
    """Return what identifies a set of price files: the SHA-256 of the only file, or of all digests, concatenated."""
    digests = [digest for _, digest in files]
    return digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()
