"""A home that changes as days go by: what those who keep up with it must survive."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tools.demo import write

_GROW = 12
_FEW = 6


class Changing:
    """A made-up home whose transcripts are half written; the rest comes bit by bit, as Claude Code writes it.

    `most` is how many bytes come at a time, at the most.
    """

    def __init__(self, path: Path, seed: int, megabytes: float = 2, most: int = 20_000) -> None:
        write(path, seed=seed, megabytes=megabytes)
        self.path = path
        self._most = most
        self._random = Random(seed)  # noqa: S311 - seeded, so that a failure comes again
        self._whole = {one: one.read_bytes() for one in sorted(path.glob("projects/**/*.jsonl"))}
        self._gone: dict[Path, bytes] = {}
        for one, data in self._whole.items():
            os.truncate(one, self._random.randrange(len(data) // 2, len(data)))

    def change(self) -> None:
        """Some transcripts grow, up to anywhere in a line; others are cut, replaced, deleted, renamed, or come back."""
        random = self._random
        for path in random.sample(sorted(self._whole), min(_GROW, len(self._whole))):
            with path.open("ab") as file:
                file.write(self._whole[path][file.tell() :][: random.randrange(1, self._most)])
        cut = random.choice(sorted(self._whole))
        os.truncate(cut, cut.stat().st_size * 2 // 3)
        replaced, gone, renamed = random.sample(sorted(self._whole), 3)
        other = replaced.with_name("other.tmp")
        other.write_bytes(b"".join(reversed(self._whole[replaced].splitlines(keepends=True))))
        other.replace(replaced)
        gone.unlink()
        self._gone |= {one: self._whole.pop(one) for one in (replaced, gone)}
        while len(self._gone) > _FEW:
            back = random.choice(sorted(self._gone))
            self._whole[back] = self._gone.pop(back)
            back.write_bytes(self._whole[back][: random.randrange(len(self._whole[back]))])
        name = renamed.with_name(f"99{renamed.name[2:]}" if renamed.name[:2] != "ag" else f"agent-9{renamed.name[7:]}")
        self._whole[name] = self._whole.pop(renamed)
        renamed.rename(name)
