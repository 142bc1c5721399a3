"""Titles of kept sessions, read from the first and last pieces of their transcripts.

This is a module of its own because it loads the entry model and `thread` (about 50 ms), which `keep` itself never
needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.sessions import KeptSession
from threadline.model.entries import ChainEntry, Entry
from threadline.model.places import Place
from threadline.parse import decode_object
from threadline.thread import title_from_parts

_FIRST_FEW = 200
_LAST_BYTES = 256 * 1024
"""Claude Code writes titles again and again, so that they stand in the last 64 kB; a piece may be larger."""
_TITLE_MARKERS = (b'-title"', b'"last-prompt"', b'"summary"')


class SessionTitle(Struct, frozen=True):
    """What a transcript says of itself: its title, and the directory it began in; empty where it does not."""

    title: str = ""
    project: str = ""


def read_titles(catalogue: Catalogue, sessions: Iterable[KeptSession]) -> dict[tuple[str, str, str], SessionTitle]:
    """What sessions are called, by machine, home and id; read in the order in which they lie in the packs."""
    located = catalogue.located
    wanted = [
        (kept_session, main)
        for kept_session in sessions
        if (main := kept_session.main or next(iter(kept_session.transcripts), None)) is not None
    ]

    def place(item: tuple[KeptSession, Version]) -> tuple[str, int]:
        found = located.get(next(iter(item[1].pieces), ""))
        return (str(found.pack), found.frame.offset) if found is not None else ("", 0)

    return {(one.machine, one.home, one.id): _read_title(catalogue, main) for one, main in sorted(wanted, key=place)}


def _read_title(catalogue: Catalogue, version: Version) -> SessionTitle:
    parts = [span.version for span in version.spans] or [version]
    pieces = list(dict.fromkeys(hash_ for part in parts for hash_ in part.pieces))
    said: list[Entry] = []
    given: list[Entry] = []
    with suppress(Unreadable):  # what is damaged has no title; `verify` tells it
        first = catalogue.piece(pieces[0]) if pieces else b""
        said += islice(_decode_lines(first.splitlines(), version.path), _FIRST_FEW)
        if len(pieces) > 1:
            last = _read_tail(catalogue, pieces[1:])
            lines = (line for line in last.splitlines() if any(needle in line for needle in _TITLE_MARKERS))
            given += (entry for entry in _decode_lines(lines, version.path) if not isinstance(entry, ChainEntry))
    where = next((entry.cwd for entry in said if isinstance(entry, ChainEntry) and entry.cwd), "")
    return SessionTitle(title_from_parts(said, given).text, where)


def _read_tail(catalogue: Catalogue, pieces: list[str]) -> bytes:
    tail = b""
    for hash_ in reversed(pieces):
        tail = catalogue.piece(hash_) + tail
        if len(tail) >= _LAST_BYTES:
            break
    return tail


def _decode_lines(lines: Iterable[bytes], path: str) -> Iterator[Entry]:
    for line in lines:
        with suppress(ValueError, RecursionError):
            yield decode_object(line, Place(path))[0]
