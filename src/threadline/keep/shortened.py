"""Shortened transcripts: what something cut off is given back as it stood before, for Claude Code only adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.sessions import KeptSession, is_session_transcript


def whole(catalogue: Catalogue, versions: Sequence[Version]) -> Version:
    """The version of a file that is given back: the newest, unless that is only how a longer one of them begins."""
    newest = versions[-1]
    if not is_session_transcript(newest.path):
        return newest
    longer = sorted((one for one in versions if one.size > newest.size), key=lambda one: (-one.size, -one.run))
    found = next((one for one in longer if _begins(catalogue, one, newest)), newest)
    return replace(found, gone=newest.gone)


def mended(catalogue: Catalogue, session: KeptSession) -> KeptSession:
    """A session whose transcripts are whole, as far as the keep has them so."""
    files = tuple(whole(catalogue, catalogue.versions[_key(one)]) for one in session.files)
    return replace(session, files=files)


def last_of(catalogue: Catalogue, version: Version) -> Version:
    """The newest version of the same file."""
    return catalogue.versions[_key(version)][-1]


def longest_of(catalogue: Catalogue, version: Version) -> Version:
    """The longest version of the same file."""
    return max(catalogue.versions[_key(version)], key=lambda one: (one.size, one.run))


def _key(version: Version) -> tuple[str, str, str]:
    return version.machine, version.home, version.path


def _begins(catalogue: Catalogue, long: Version, short: Version) -> bool:
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
