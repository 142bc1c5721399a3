"""Copies: sessions without what must not be shared, in a folder of their own, to be read like any other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from threadline.export.lines import Lines
from threadline.export.names import distinct, safe
from threadline.export.transcripts import Part, parts
from threadline.export.vocabulary import vocabulary
from threadline.parse.chunks import open_transcript
from threadline.render.redaction import Redactor, Settings

_LONG = 64 * 1024 * 1024


class Copy(Struct, frozen=True):
    """A session that can be given out: its main transcript, the one it was made of, and what its files are called."""

    main: Path
    source: Path
    name: str
    files: tuple[tuple[Path, str], ...]
    size: int


def originals(mains: Iterable[Path], advance: Callable[[int], None] = lambda _done: None) -> list[Copy]:
    """The sessions as they are, nothing taken out."""
    every = [(main, parts(main)) for main in mains]
    names = distinct(safe(main.stem) for main, _ in every)
    for _, found in every:
        advance(_size(found))
    return [
        Copy(
            main, main, name, tuple((part.path, "/".join(part.below)) for part in found if part.is_lines), _size(found)
        )
        for (main, found), name in zip(every, names, strict=True)
    ]


class Copies:
    """Makes redacted copies of sessions in a folder; what one of them tells is known in all."""

    def __init__(self, folder: Path, settings: Settings, *, images: bool = False) -> None:
        self.redactor = Redactor(settings, vocabulary())
        self._folder = folder
        self._lines = Lines(self.redactor, images=images)

    def make(self, mains: Iterable[Path], advance: Callable[[int], None] = lambda _done: None) -> list[Copy]:
        """The copies, in the order of the sessions; `advance` is told how many bytes are done, each counted twice."""
        every = [(main, parts(main)) for main in mains]
        for _main, found in every:
            for part in found:
                self.redactor.learn(part.path.name)
                for line in _lines(part):
                    self._lines.learn(line)
                    advance(len(line))
        names = distinct(safe(self.redactor.redact(main.stem, "name")) for main, _ in every)
        # Sessions of one folder stay together, so that what goes on from another is told.
        groups = {folder: str(at) for at, folder in enumerate(dict.fromkeys(main.parent for main, _ in every))}
        return [
            self._copied(found, name, groups[main.parent], advance)
            for (main, found), name in zip(every, names, strict=True)
        ]

    def _copied(self, found: list[Part], name: str, group: str, advance: Callable[[int], None]) -> Copy:
        files: list[tuple[Path, str]] = []
        for part in found:
            below = self._below(part, found[0].path.stem, name)
            place = self._folder.joinpath(group, *below.split("/"))
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with place.open("wb") as file:
                for number, line in enumerate(_lines(part), 1):
                    file.write(self._lines.redact(line, f"{below}:{number}"))
                    advance(len(line))
            if part.is_lines:
                files.append((place, below))
        return Copy(files[0][0], found[0].path, name, tuple(files), _size(found))

    def _below(self, part: Part, stem: str, name: str) -> str:
        """Where a copy lies, below the session's folder; every name on the way without what must not be shared."""
        first = {stem: name, f"{stem}.jsonl": f"{name}.jsonl"}
        return "/".join(first.get(one) or _plain(self.redactor.redact(one, "name")) for one in part.below)


def _plain(name: str) -> str:
    """A file's name, as it was where it holds nothing strange."""
    stem, dot, end = name.partition(".")
    return f"{safe(stem, 'file')}{dot}{end}" if end in {"jsonl", "meta.json", "json"} else safe(name, "file")


def _size(found: list[Part]) -> int:
    return sum(part.path.stat().st_size for part in found if part.is_lines)


def _lines(part: Part) -> Iterator[bytes]:
    """The lines of a file, each with its end; one beyond all measure is a hole, and is left out."""
    with os.fdopen(open_transcript(part.path), "rb") as file:
        if not part.is_lines:
            yield file.read(_LONG)
            return
        while line := file.readline(_LONG):
            yield line
