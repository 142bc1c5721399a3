"""Titles of kept sessions, from the first and the last pieces of their transcripts: the rest is not unpacked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.sessions import KeptSession
from threadline.model.entries import AttachmentEntry, ChainEntry, Entry, UserEntry
from threadline.model.place import Place
from threadline.parse.decode import decode_object
from threadline.thread.acts import acts
from threadline.thread.titles import title

_FIRST_FEW = 200
_LAST_BYTES = 256 * 1024
"""Claude Code writes titles again and again, so that they stand in the last 64 kB; a piece may be larger."""
_GIVEN = (b'-title"', b'"last-prompt"', b'"summary"')


class Told(Struct, frozen=True):
    """What a transcript says of itself: its title, and the directory it began in; empty where it does not."""

    title: str = ""
    project: str = ""


def told(catalogue: Catalogue, sessions: Iterable[KeptSession]) -> dict[tuple[str, str, str], Told]:
    """What sessions are called, by machine, home and id; read in the order in which they lie in the packs."""
    located = catalogue.located
    wanted = [(one, main) for one in sessions if (main := one.main or next(iter(one.transcripts), None)) is not None]

    def place(item: tuple[KeptSession, Version]) -> tuple[str, int]:
        found = located.get(next(iter(item[1].pieces), ""))
        return (str(found.pack), found.frame.offset) if found is not None else ("", 0)

    return {(one.machine, one.home, one.id): _told(catalogue, main) for one, main in sorted(wanted, key=place)}


def _told(catalogue: Catalogue, version: Version) -> Told:
    parts = [span.version for span in version.spans] or [version]
    pieces = list(dict.fromkeys(hash_ for one in parts for hash_ in one.pieces))
    said: list[Entry] = []
    given: list[Entry] = []
    with suppress(Unreadable):  # what is damaged has no title; `verify` tells it
        first = catalogue.piece(pieces[0]) if pieces else b""
        said += islice(_entries(first.splitlines(), version.path), _FIRST_FEW)
        if len(pieces) > 1:
            last = _tail(catalogue, pieces[1:])
            lines = (line for line in last.splitlines() if any(needle in line for needle in _GIVEN))
            given += (one for one in _entries(lines, version.path) if not isinstance(one, ChainEntry))
    named = [one for one in said if _may_name(one)]
    where = next((one.cwd for one in said if isinstance(one, ChainEntry) and one.cwd), "")
    return Told(title([*named, *given], acts(named)).text, where)


def _tail(catalogue: Catalogue, pieces: list[str]) -> bytes:
    tail = b""
    for hash_ in reversed(pieces):
        tail = catalogue.piece(hash_) + tail
        if len(tail) >= _LAST_BYTES:
            break
    return tail


def _entries(lines: Iterable[bytes], path: str) -> Iterator[Entry]:
    for line in lines:
        with suppress(ValueError, RecursionError):
            yield decode_object(line, Place(path))[0]


def _may_name(entry: Entry) -> bool:
    """Whether a title can come from it: all that is no part of the conversation, and what a person said in it."""
    if not isinstance(entry, ChainEntry):
        return True
    said = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (said or isinstance(entry, AttachmentEntry))
