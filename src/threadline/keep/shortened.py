"""Shortened transcripts: what something cut off is given back as it stood before, for Claude Code only adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Key, Version
from threadline.keep.sessions import is_session_transcript


def whole(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """The version of a file that is given back: the newest, unless that is only how a longer one of them begins."""
    newest = versions[-1]
    if not is_session_transcript(newest.path):
        return newest
    longer = sorted((one for one in versions if one.size > newest.size), key=lambda one: (-one.size, -one.run))
    found = next((one for one in longer if begins(catalogue, one, newest)), newest)
    return replace(found, gone=newest.gone)


def last_of(catalogue: Catalogue, version: Version) -> Version:
    """The newest version of the same file."""
    return catalogue.versions[key_of(version)][-1]


def longest_of(catalogue: Catalogue, version: Version) -> Version:
    """The longest version of the same file."""
    return max(catalogue.versions[key_of(version)], key=lambda one: (one.size, one.run))


def key_of(version: Version) -> Key:
    """Which file it is a version of."""
    return version.machine, version.home, version.path


def begins(catalogue: Catalogue, long: Version, short: Version) -> bool:
    """Whether a version begins with all of another; what cannot be read does not."""
    try:
        rest = _Bytes(catalogue.data(long))
        return all(rest.next(len(data)) == data for data in catalogue.data(short))
    except Unreadable:
        return False


class _Bytes:
    """Pieces as one row of bytes: two versions may be cut at other places."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def next(self, many: int) -> bytes:
        """The next so many bytes, or those that are left."""
        while len(self._held) < many and (more := next(self._pieces, None)) is not None:
            self._held += more
        taken, self._held = self._held[:many], self._held[many:]
        return taken
