"""Files that an answer is written to: beside where they shall be, and moved there when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from threadline.cli.sql_shown import Answer, print_rows
from threadline.errors import BadQuery
from threadline.model.found import Home

FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
"""What a file's name says it is."""


def format_of(target: Path) -> str:
    """The format that the file's name asks for.

    Raises:
        BadQuery: it asks for none that can be written.
    """
    try:
        return FORMATS[target.suffix.lower()]
    except KeyError:
        known = ", ".join(FORMATS)
        raise BadQuery(f"{str(target)!r} does not say which format it shall have: end it in one of {known}.") from None


def check(targets: Sequence[Path], homes: Sequence[Home], *, force: bool) -> None:
    """Whether these files may be written.

    Raises:
        BadQuery: one is there already, and there is no force; or it would be in a home, where nothing is written.
    """
    for target in targets:
        real = target.resolve()
        inside = next((home for home in homes if real.is_relative_to(home.path.resolve())), None)
        if inside is not None:
            told = f"{str(target)!r} is within the Claude home {str(inside.path)!r}, where nothing is written"
            raise BadQuery(f"{told}; give another place.")
        if target.is_dir():
            raise BadQuery(f"{str(target)!r} is a folder; give the name of a file.")
        if not force and os.path.lexists(target):
            raise BadQuery(f"{str(target)!r} is there already; give another name, or --force to replace it.")


@contextmanager
def beside(folder: Path, name: str) -> Iterator[Path]:
    """A folder that is gone afterwards, on the same disk as the one that it lies in.

    Raises:
        BadQuery: there is no such folder, or nothing may be written to it.
    """
    try:
        made = TemporaryDirectory(prefix=f".{name}.", dir=folder)
    except OSError as error:
        raise BadQuery(f"Nothing can be written to {str(folder)!r}: {error.strerror or error}.") from None
    with made as kept:
        yield Path(kept)


def write(answer: Answer, target: Path, form: str, *, force: bool) -> int:
    """Write all rows into one file, which is there when it is whole; how many there were.

    Raises:
        BadQuery: it is there already, and there is no force.
        Missing: the format needs a library that is not installed.
    """
    real = target.resolve()
    with beside(real.parent, real.name) as folder:
        draft = folder / real.name
        if form == "parquet":
            rows = answer.write_parquet(draft)
        else:
            with draft.open("wb") as file:
                rows = print_rows(answer, form, file)
        move(draft, target, force=force)
    return rows


def move(draft: Path, target: Path, *, force: bool) -> None:
    """Put what is whole in its place; a link there stays a link.

    Raises:
        BadQuery: something has come to be there meanwhile.
    """
    with draft.open("rb") as file:  # else a failure of the machine could leave a name without its content
        os.fsync(file.fileno())
    check([target], (), force=force)
    draft.replace(target.resolve())
