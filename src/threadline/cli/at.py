"""Places as people write them, and texts of files on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadline.model.place import Place
    from threadline.model.session import Session


def place_in(session: Session, text: str | None) -> Place | None:
    """The place that was meant: `FILE:LINE`, or the number of a line of the main transcript."""
    from threadline.errors import BadQuery
    from threadline.model.place import Place

    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return Place(str(session.path or ""), int(text[:18]))
    place = Place.parse(text)
    if not place.line:
        raise BadQuery(f"{text!r} is not a place; write FILE:LINE or LINE, for example session.jsonl:12 or 12.")
    return place


def print_text(text: str) -> None:
    """Print a file's text: as it is into a pipe, without what could steer a terminal on one."""
    if sys.stdout.isatty():
        text = "\n".join(tame(line) for line in text.split("\n"))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()


def tame(line: str) -> str:
    """A line that cannot steer a terminal; its tabs stay."""
    from threadline.cli import output as out

    return "\t".join(out.plain(part) for part in line.split("\t"))


def where(session: Session, place: Place | None) -> str:
    """A place in a table: its line, after the agent's name where it is not in the main transcript."""
    if place is None:
        return ""
    if session.path is None or place.transcript == str(session.path):
        return str(place.line)
    stem = place.transcript.rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")
    return f"{stem[:8]}:{place.line}"
