"""A home that changes from day to day, for tests of what must keep up with it."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tools.demo import write

_GROWING_PER_CHANGE = 12
_MAX_DELETED = 6


class ChangingHome:
    """A generated home whose transcripts are half written. Each change appends more, as Claude Code does.

    A transcript grows by less than `max_bytes` at a time.
    """

    def __init__(self, path: Path, seed: int, megabytes: float = 2, max_bytes: int = 20_000) -> None:
        write(path, seed=seed, megabytes=megabytes)
        self.path = path
        self._max_bytes = max_bytes
        self._random = Random(seed)  # noqa: S311 - seeded, so that failures can be reproduced
        self._contents = {file: file.read_bytes() for file in sorted(path.glob("projects/**/*.jsonl"))}
        self._deleted: dict[Path, bytes] = {}
        for file, data in self._contents.items():
            os.truncate(file, self._random.randrange(len(data) // 2, len(data)))

    def change(self) -> None:
        """Let some transcripts grow, up to anywhere in a line. Truncate, replace, delete, rename or restore others."""
        random = self._random
        for path in random.sample(sorted(self._contents), min(_GROWING_PER_CHANGE, len(self._contents))):
            with path.open("ab") as file:
                file.write(self._contents[path][file.tell() :][: random.randrange(1, self._max_bytes)])
        truncated = random.choice(sorted(self._contents))
        os.truncate(truncated, truncated.stat().st_size * 2 // 3)
        replaced, deleted, renamed = random.sample(sorted(self._contents), 3)
        other = replaced.with_name("other.tmp")
        other.write_bytes(b"".join(reversed(self._contents[replaced].splitlines(keepends=True))))
        other.replace(replaced)
        deleted.unlink()
        self._deleted |= {path: self._contents.pop(path) for path in (replaced, deleted)}
        while len(self._deleted) > _MAX_DELETED:
            restored = random.choice(sorted(self._deleted))
            self._contents[restored] = self._deleted.pop(restored)
            restored.write_bytes(self._contents[restored][: random.randrange(len(self._contents[restored]))])
        name = renamed.with_name(f"99{renamed.name[2:]}" if renamed.name[:2] != "ag" else f"agent-9{renamed.name[7:]}")
        self._contents[name] = self._contents.pop(renamed)
        renamed.rename(name)
