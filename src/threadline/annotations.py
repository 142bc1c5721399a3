"""Stars, tags and notes on sessions, and saved searches: what the user adds to an archive.

They are in one private file in threadline's data folder, never in a Claude home. `threadline keep` stores it. Changes
are atomic, and processes that change it at the same time wait for each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline import files
from threadline.errors import BadQuery, IndexBusy, NotFound, Unreadable
from threadline.locks import LockBusy, hold_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_NAME = "annotations.json"
"""The name of the file in the data folder."""
MAX_NOTE, MAX_TAG, MAX_TAGS, MAX_NAME, MAX_ADDRESS = 20_000, 60, 40, 120, 4_000
_MAX_SEARCHES = 500
_MAX_BYTES = 64 * 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PAGES = ("/search", "/sessions", "/calls", "/files", "/usage", "/errors", "/history")
"""The pages whose addresses can be saved as searches."""


class Annotation(Struct, frozen=True, omit_defaults=True):
    """What the user noted about a session, and when it was last changed."""

    starred: bool = False
    tags: tuple[str, ...] = ()
    note: str = ""
    changed: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        return not (self.starred or self.tags or self.note)


class SavedSearch(Struct, frozen=True):
    """A search or filtered list: its name, and the address of the page without the host."""

    name: str
    address: str


class Annotations(Struct, frozen=True):
    """All annotations, by the id of the session, and the saved searches in the order in which they were saved."""

    sessions: dict[str, Annotation] = {}
    searches: tuple[SavedSearch, ...] = ()

    @property
    def tags(self) -> list[str]:
        """All tags, sorted."""
        return sorted({tag for annotation in self.sessions.values() for tag in annotation.tags}, key=str.casefold)


NO_ANNOTATION = Annotation()


def annotations_file() -> Path:
    """The path of the file, whether it exists or not."""
    return Path(files.data_folder(), FILE_NAME)


def read_annotations(path: Path | None = None) -> Annotations:
    """Return all annotations; none if there is no file.

    Raises:
        Unreadable: the file cannot be read, or is not one of threadline's.
    """
    path = path or annotations_file()
    try:
        data = files.read_file(path, follow_symlinks=False, limit=_MAX_BYTES)
        return msgspec.json.decode(data, type=Annotations)
    except FileNotFoundError:
        return Annotations()
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(
            f"{str(path)!r} is damaged: {error}. Restore it (threadline keep restore), or move it away."
        ) from None


def annotate_session(
    session: str,
    *,
    starred: bool | None = None,
    tags: Iterable[str] | None = None,
    note: str | None = None,
) -> Annotation:
    """Change what is noted about a session, and return it. None leaves a part as it is.

    Raises:
        BadQuery: a tag or the note is too long.
        IndexBusy: another process is changing the file.
        Unreadable: the file cannot be read or written.
    """
    changes: dict[str, object] = {}
    if starred is not None:
        changes["starred"] = starred
    if tags is not None:
        changes["tags"] = _check_tags(tags)
    if note is not None:
        changes["note"] = _check_text(note, "note", MAX_NOTE)
    with _changing(annotations_file()) as file:
        sessions = dict(file.annotations.sessions)
        annotation = replace(sessions.pop(session, NO_ANNOTATION), **changes, changed=datetime.now(UTC))
        if not annotation.is_empty:
            sessions[session] = annotation
        file.annotations = replace(file.annotations, sessions=sessions)
    return annotation


def save_search(name: str, address: str) -> SavedSearch:
    """Save a search under a name. One with the same name is replaced.

    Raises:
        BadQuery: the name is missing or too long, or the address is not that of a page that can be saved.
        IndexBusy: another process is changing the file.
        Unreadable: the file cannot be read or written.
    """
    name = " ".join(_check_text(name, "name", MAX_NAME).split())
    if not name:
        raise BadQuery("A saved search needs a name.")
    if len(address) > MAX_ADDRESS or address.partition("?")[0] not in _PAGES or _CONTROL.search(address):
        raise BadQuery(f"Only addresses of these pages can be saved: {', '.join(_PAGES)}.")
    search = SavedSearch(name, address)
    with _changing(annotations_file()) as file:
        others = [other for other in file.annotations.searches if other.name != name]
        if len(others) >= _MAX_SEARCHES:
            raise BadQuery(f"At most {_MAX_SEARCHES} searches can be saved. Remove one first.")
        file.annotations = replace(file.annotations, searches=(*others, search))
    return search


def remove_search(name: str) -> None:
    """Remove a saved search.

    Raises:
        NotFound: no saved search has this name.
        IndexBusy: another process is changing the file.
        Unreadable: the file cannot be read or written.
    """
    with _changing(annotations_file()) as file:
        others = tuple(other for other in file.annotations.searches if other.name != name)
        if len(others) == len(file.annotations.searches):
            raise NotFound(f"There is no saved search {name!r}.")
        file.annotations = replace(file.annotations, searches=others)


def parse_tags(text: str) -> tuple[str, ...]:
    """The tags in a text that separates them by commas.

    >>> parse_tags("bug, to review,,bug")
    ('bug', 'to review')
    """
    return tuple(dict.fromkeys(tag for part in text.split(",") if (tag := " ".join(part.split()))))


def _check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    unique = tuple(dict.fromkeys(tag for text in tags for tag in parse_tags(_clean_text(text))))
    if len(unique) > MAX_TAGS:
        raise BadQuery(f"A session can have at most {MAX_TAGS} tags.")
    return tuple(_check_text(tag, "tag", MAX_TAG) for tag in unique)


def _check_text(text: str, what: str, most: int) -> str:
    text = _clean_text(text)
    if len(text) > most:
        raise BadQuery(f"A {what} can have at most {most:,} characters. This one has {len(text):,}.")
    return text


def _clean_text(text: str) -> str:
    """Return a text without control characters, which UTF-8 can encode."""
    return _CONTROL.sub("", text.replace("\r\n", "\n")).strip().encode(errors="replace").decode()


class _OpenFile(Struct):
    annotations: Annotations


@contextmanager
def _changing(path: Path) -> Iterator[_OpenFile]:
    """Read the file, and write it in one step when the block ends without an error."""
    try:
        files.make_private_folders(path.parent)
        with hold_lock(path.with_suffix(".lock")):
            file = _OpenFile(read_annotations(path))
            yield file
            data = msgspec.json.format(msgspec.json.encode(file.annotations), indent=1)
            files.write_file(path, data + b"\n")
    except LockBusy:
        raise IndexBusy(f"Another process is changing {str(path)!r}. Try again.") from None
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None
