"""Doubts: packs that `verify` found damaged, by name, put by on this machine: what lies in them is kept again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from threadline.keep import durable


class Doubts:
    """Which packs of a keep are not to be relied on. Names are hashes: a pack that is mended has its old name again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.packs = frozenset(durable.small(path).decode(errors="replace").split())
        except OSError:
            self.packs = frozenset()

    def judge(self, looked: Iterable[str], damaged: Iterable[str]) -> None:
        """Put by what was found out: of the packs looked at, which are damaged. Not being able to harms nothing."""
        packs = (self.packs - set(looked)) | set(damaged)
        if packs == self.packs:
            return
        self.packs = packs
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            durable.put(self.path.parent, "doubts", self.path.name, "\n".join(sorted(packs)).encode())
        except OSError:
            return


def doubts_in(folder: Path | None, keep: str) -> Doubts | None:
    """What is doubted, in a machine's folder, of the keep with this id."""
    return Doubts(folder / f"{keep}.doubted") if folder is not None else None
