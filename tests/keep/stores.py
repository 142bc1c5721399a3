"""Small homes and keeps of them, for tests that check every byte."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from random import Random

from threadline.find import homes
from threadline.keep import Catalogue, KeepResult, Machine, Store, Version, run_keep, verify_keep

HERE, THERE = Machine("here_1", "here"), Machine("there_2", "there")


def session_id(number: int) -> str:
    """The id of the session with this number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def transcript_path(number: int, project: str = "-work") -> str:
    """The path of a session's transcript within a home."""
    return f"projects/{project}/{session_id(number)}.jsonl"


@cache
def lines(seed: int, count: int, length: int = 200) -> bytes:
    """Lines that look like a transcript's, unique to the seed."""
    random = Random(seed)  # noqa: S311 - made-up text
    heads = (f'{{"type":"user","uuid":"{random.getrandbits(128):032x}","text":"' for _line in range(count))
    words = ["".join(random.choices("abcdefgh ", k=random.randrange(1, length))) for _line in range(count)]
    return "".join(f'{head}{word}"}}\n' for head, word in zip(heads, words, strict=True)).encode()


def write_home(folder: Path, files: dict[str, bytes]) -> Path:
    """A home with these files. Files with the same bytes are not touched."""
    (folder / "projects").mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_bytes() != data:
            place.write_bytes(data)
    return folder


def keep_home(store: Store, home: Path, machine: Machine = HERE) -> KeepResult:
    """Run `keep` once over a home."""
    return run_keep(Catalogue(store, machine.folder), homes(os.fspath(home)), machine)


def kept_versions(store: Store) -> dict[str, list[bytes]]:
    """Every version of every file of a keep, by path."""
    catalogue = Catalogue(store)
    assert not catalogue.problems
    versions: dict[str, list[bytes]] = {}
    for version in catalogue.all_versions():
        versions.setdefault(version.path, []).append(b"".join(catalogue.data(version)))
    return versions


def listed_versions(store: Store) -> list[tuple[str, str, str, int, int, tuple[str, ...]]]:
    """The versions that a keep lists, in order."""
    return [_describe(version) for version in Catalogue(store).all_versions()]


def _describe(version: Version) -> tuple[str, str, str, int, int, tuple[str, ...]]:
    return version.machine, version.home, version.path, version.run, version.size, tuple(version.pieces)


def is_clean(store: Store) -> bool:
    """Whether every byte of a keep is intact."""
    verified = verify_keep(Catalogue(store))
    return not verified.problems and not verified.affected


def all_bytes(store: Store) -> bytes:
    """All bytes in the files of a keep, with packs and manifests unpacked."""
    contents = [path.read_bytes() for path in sorted(store.folder.rglob("*")) if path.is_file()]
    catalogue = Catalogue(store)
    contents += [catalogue.piece(hash_) for hash_ in catalogue.located]
    return b"\0".join(contents)
