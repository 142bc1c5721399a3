"""Whatever happens to transcripts, a refreshed index equals a rebuilt one.

`--hypothesis-profile=long` tries thousands of steps instead of some hundreds.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from pprint import pformat
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace
from tests.index.content import content, differences, rebuilt_content, without_secure_delete
from tests.index.parts import PARTS, PROJECTS, Pens, names
from tests.index.test_ledger import charge_fields
from tests.profiles import scale_examples
from tests.transcripts import lines, prompt, transcript

import threadline
from threadline.find import homes
from threadline.find.fingerprint import END
from threadline.index import Index, rebuild_index, refresh_index
from threadline.index.store import storable_text

SECOND = 1_000_000_000
THEN = 1_767_600_000 * SECOND

which = st.integers(0, 11)
shares = st.floats(0, 1)
some_parts = st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=5)


class Transcripts(RuleBasedStateMachine):
    """A home with several writers, and an index of it.

    In half of the runs every file has the real mtime. In the others the clock advances by whole seconds, so that an
    equal mtime proves that nothing changed, and no file is read twice.
    """

    steps = 0
    checks = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(os.path.realpath(tempfile.mkdtemp()))
        self.home = self.folder / "home"
        (self.home / "projects").mkdir(parents=True)
        self.index = self.folder / "index.sqlite"
        self.pens = Pens()
        self.rest: dict[Path, bytes] = {}
        self.is_slow: bool | None = None
        self.now = THEN
        self.is_checked = True
        self.marks: set[bytes] = set()
        self.sqlite = ExitStack()
        self.sqlite.enter_context(without_secure_delete())

    def teardown(self) -> None:
        """Always check the last state."""
        try:
            if not self.is_checked:
                self._check()
        finally:
            self.sqlite.close()
            shutil.rmtree(self.folder)

    # Helpers.

    def paths(self) -> list[Path]:
        """All transcripts, in order."""
        return sorted(self.home.glob("projects/**/*.jsonl"))

    def path(self, number: int) -> Path:
        """One of the existing transcripts."""
        paths = self.paths()
        return paths[number % len(paths)]

    def done(self, *paths: Path) -> None:
        """Record a change, and set the mtime of what was written."""
        type(self).steps += 1
        self.is_checked = False
        self.now += SECOND
        for path in paths:
            if self.is_slow and path.exists():
                os.utime(path, ns=(self.now, self.now))

    def new_lines(self, path: Path, parts: Iterable[str]) -> bytes:
        """New lines for a transcript. One of them has a word that no other has."""
        pen = self.pens.of(path)
        mark = hashlib.sha256(f"mark {self.pens.number()}".encode()).hexdigest()
        self.marks.add(mark.encode())
        return lines(*transcript(prompt(f"remember {mark}"), *(PARTS[part](self.pens) for part in parts), pen=pen))

    def append(self, path: Path, data: bytes) -> None:
        """Append to a transcript."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)

    # Changes to transcripts.

    @precondition(lambda self: self.is_slow is None)
    @rule(is_slow=st.booleans(), parts=some_parts)
    def begin(self, is_slow: bool, parts: list[str]) -> None:
        """Write the first session."""
        self.is_slow = is_slow
        self.begin_another(next(iter(sorted(PROJECTS))), "1", parts)

    @rule(folder=st.sampled_from(sorted(PROJECTS)), name=names, parts=some_parts)
    def begin_another(self, folder: str, name: str, parts: list[str]) -> None:
        """Start or continue a transcript of a session or an agent, perhaps in a new project."""
        path = self.pens.place(self.home, folder, name)
        self.append(path, self.new_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts)
    def append_lines(self, number: int, parts: list[str]) -> None:
        """Append complete lines."""
        path = self.path(number)
        self.append(path, self.new_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts, share=shares, keeps_rest=st.booleans())
    def append_a_part(self, number: int, parts: list[str], share: float, keeps_rest: bool) -> None:
        """Append data truncated at any byte, even inside a character. The rest may come later."""
        path = self.path(number)
        data = self.new_lines(path, parts)
        cut = int(len(data) * share)
        self.append(path, data[:cut])
        if keeps_rest:
            self.rest[path] = data[cut:]
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, share=shares, lines_more=st.integers(1, 6))
    def append_again(self, number: int, share: float, lines_more: int) -> None:
        """Repeat lines, as a resumed session may."""
        path = self.path(number)
        existing = path.read_bytes().splitlines(keepends=True)
        first = int(len(existing) * share)
        self.append(path, b"".join(existing[first : first + lines_more]))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts)
    def append_without_an_end(self, number: int, parts: list[str]) -> None:
        """Append lines, the last one without its newline."""
        path = self.path(number)
        self.append(path, self.new_lines(path, parts)[:-1])
        self.rest[path] = b"\n"
        self.done(path)

    @precondition(lambda self: any(path.exists() for path in self.rest))
    @rule()
    def complete(self) -> None:
        """Append the missing rest of a transcript."""
        path = next(path for path in sorted(self.rest) if path.exists())
        self.append(path, self.rest.pop(path))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(writers=st.lists(st.tuples(which, some_parts), min_size=2, max_size=5), seed=st.integers(0, 99))
    def several_write(self, writers: list[tuple[int, list[str]]], seed: int) -> None:
        """Several writers take turns, some in the same transcript, perhaps with a refresh in between."""
        pieces: list[tuple[int, Path, bytes]] = []
        order = random.Random(seed)  # noqa: S311 - seeded, so that a failure comes again
        for writer, (number, parts) in enumerate(writers):
            path = self.path(number)
            data = self.new_lines(path, parts)
            cuts = [0, *sorted(order.randrange(len(data) + 1) for _ in range(2)), len(data)]
            pieces += [(writer, path, data[a:b]) for a, b in pairwise(cuts)]
        waiting = sorted(pieces, key=lambda _piece: order.random())
        turns: dict[int, list[bytes]] = {}
        for writer, _path, data in pieces:
            turns.setdefault(writer, []).append(data)
        for turn, (writer, path, _data) in enumerate(waiting):
            self.append(path, turns[writer].pop(0))
            self.done(path)
            if turn % 4 == 3:
                refresh_index(self.index, homes(self.home))

    @precondition(lambda self: self.paths())
    @rule(number=which, share=shares)
    def truncate(self, number: int, share: float) -> None:
        """Truncate at any byte."""
        path = self.path(number)
        os.truncate(path, int(path.stat().st_size * share))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, lines_less=st.integers(0, 3))
    def truncate_at_a_line(self, number: int, lines_less: int) -> None:
        """Remove an incomplete line and some lines before it."""
        path = self.path(number)
        complete = path.read_bytes().rpartition(b"\n")[0].splitlines(keepends=True)
        complete = [*complete[:-1], complete[-1] + b"\n"] if complete else []
        os.truncate(path, len(b"".join(complete[: len(complete) - lines_less])))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, share=shares, replacement=st.sampled_from([b"a", b"1", b" ", b'"', b"\n", b"\xff"]))
    def rewrite_in_place(self, number: int, share: float, replacement: bytes) -> None:
        """Replace one byte in place. In the middle of a file it is noticed only if nothing else happens too."""
        path = self.path(number)
        size = path.stat().st_size
        if not size:
            return
        if size > 2 * END:
            self.refresh_once()
        with path.open("r+b") as file:
            file.seek(int((size - 1) * share))
            file.write(replacement)
        self.done(path)
        if size > 2 * END:
            os.utime(path, ns=(self.now + size, self.now + size))
            self.refresh_once()

    @precondition(lambda self: self.paths())
    @rule(number=which)
    def scrub(self, number: int) -> None:
        """Overwrite a word in place, and set the mtime back. Only the ctime tells."""
        path = self.path(number)
        self.refresh_once()
        status = path.stat()
        data = path.read_bytes()
        mark = next((mark for mark in sorted(self.marks) if mark in data), b"")
        if mark:
            with path.open("r+b") as file:
                file.write(data.replace(mark, b"x" * len(mark)))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            self.refresh_once()
            self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which, other=which, how=st.sampled_from(["copy", "half", "reversed", "same", "other session"]))
    def replace(self, number: int, other: int, how: str) -> None:
        """Replace the file by another one."""
        path, source = self.path(number), self.path(other)
        data = (path if how == "same" else source).read_bytes()
        if how == "half":
            data = data[: len(data) // 2]
        elif how == "reversed":
            data = b"".join(reversed(data.splitlines(keepends=True)))
        elif how == "other session":
            data = data.replace(self.pens.of(source).session.encode(), self.pens.of(path).session.encode())
        temporary = path.with_name("beside.tmp")
        temporary.write_bytes(data)
        self.done(temporary)
        temporary.replace(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, folder=st.sampled_from(sorted(PROJECTS)), name=names, renames=st.booleans())
    def fork(self, number: int, folder: str, name: str, renames: bool) -> None:
        """Continue a session in another file, which starts with a copy of the first."""
        source, path = self.path(number), self.pens.place(self.home, folder, name)
        if path.exists():
            return
        data = source.read_bytes()
        if renames:
            data = data.replace(self.pens.of(source).session.encode(), self.pens.of(path).session.encode())
        self.append(path, data)
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, folder=st.sampled_from(sorted(PROJECTS)), name=names)
    def move(self, number: int, folder: str, name: str) -> None:
        """Move to another name or project, perhaps over an existing file."""
        source, path = self.path(number), self.pens.place(self.home, folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        source.replace(path)
        if source in self.rest:
            self.rest[path] = self.rest.pop(source)
        self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which, folder=st.sampled_from(sorted(PROJECTS)))
    def move_to_another_project(self, number: int, folder: str) -> None:
        """Move to another project, with the same name."""
        source = self.path(number)
        path = (
            self.home
            / "projects"
            / folder
            / source.relative_to(self.home / "projects").relative_to(
                source.relative_to(self.home / "projects").parts[0]
            )
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        source.replace(path)
        self.done()

    @precondition(lambda self: len(self.paths()) > 1)
    @rule(number=which, other=which)
    def exchange(self, number: int, other: int) -> None:
        """Swap the names of two transcripts."""
        first, second = self.path(number), self.path(other)
        if first != second:
            aside = self.home / "aside"
            first.rename(aside)
            second.rename(first)
            aside.rename(second)
            self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which)
    def delete(self, number: int) -> None:
        """Delete a transcript."""
        self.path(number).unlink()
        self.done()

    @precondition(lambda self: self.paths())
    @rule(folder=st.sampled_from(sorted(PROJECTS)))
    def delete_project(self, folder: str) -> None:
        """Delete a project."""
        shutil.rmtree(self.home / "projects" / folder, ignore_errors=True)
        self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts, is_same=st.booleans(), refreshes=st.booleans())
    def delete_and_recreate(self, number: int, parts: list[str], is_same: bool, refreshes: bool) -> None:
        """Recreate a transcript with the same or other bytes, perhaps with the same inode."""
        path = self.path(number)
        data = path.read_bytes()
        path.unlink()
        self.done()
        if refreshes:
            refresh_index(self.index, homes(self.home))
        self.append(path, data if is_same else self.new_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, seconds=st.sampled_from([-1_000_000, -1, 0, 1, 1_000_000]))
    def touch(self, number: int, seconds: int) -> None:
        """Set another mtime, in the past or in the future."""
        path = self.path(number)
        self.done()
        time = path.stat().st_mtime_ns + seconds * SECOND
        os.utime(path, ns=(time, time))

    # Refreshes.

    @rule(how=st.sampled_from(["once", "twice", "fresh", "fresh", "bounded", "rebuilt"]))
    def refresh(self, how: str) -> None:
        """Refresh in any of the possible ways."""
        ways: dict[str, Callable[[], None]] = {
            "once": self.refresh_once,
            "twice": self.refresh_twice,
            "fresh": partial(self.refresh_fresh, None),
            "bounded": partial(self.refresh_fresh, 1 << 30),
            "rebuilt": self.refresh_rebuilt,
        }
        ways[how]()
        self._check()

    def refresh_once(self) -> None:
        """Refresh."""
        refresh_index(self.index, homes(self.home))

    def refresh_twice(self) -> None:
        """Refresh twice. The second refresh reads no entries."""
        self.refresh_once()
        result = refresh_index(self.index, homes(self.home))
        assert (result.entries, result.gone) == (0, 0)

    def refresh_fresh(self, max_bytes: int | None) -> None:
        """Open a fresh index, like the archive."""
        index = Index.open_fresh(self.index, homes(self.home), max_bytes=max_bytes)
        assert index is not None
        index.close()

    def refresh_rebuilt(self) -> None:
        """Rebuild the index in place."""
        rebuild_index(self.index, homes(self.home))

    def _check(self) -> None:
        type(self).checks += 1
        self.is_checked = True
        refresh_index(self.index, homes(self.home))
        self._check_deleted_words()
        rebuilt_difference = differences(content(self.index), rebuilt_content(self.home, self.folder))
        assert not rebuilt_difference, pformat(rebuilt_difference, width=200)
        with (
            threadline.open(self.home, index=self.index) as indexed,
            threadline.open(self.home, index=False) as unindexed,
        ):
            answers = [{name: ask(archive) for name, ask in ANSWERS.items()} for archive in (indexed, unindexed)]
        unindexed_difference = differences(*answers)
        assert not unindexed_difference, pformat(unindexed_difference, width=200)

    def _check_deleted_words(self) -> None:
        """No file of the index contains a word that was deleted from the transcripts."""
        written = b"".join(path.read_bytes() for path in self.paths())
        stored = b"".join(path.read_bytes() for path in self.folder.glob("index.sqlite*"))
        assert [mark for mark in self.marks if mark in stored and mark not in written] == []


def _fields(struct: Any) -> list[Any]:
    return [(name, getattr(struct, name)) for name in struct.__struct_fields__]


def _charges(archive: threadline.Archive) -> list[Any]:
    return sorted(map(charge_fields, archive.ledger()), key=repr)


def _sums(archive: threadline.Archive, *names: str) -> Any:
    return sorted(archive.ledger().by(*names), key=repr)


ANSWERS: dict[str, Callable[[threadline.Archive], Any]] = {
    "sessions": lambda archive: [
        replace(session, title=storable_text(session.title)) for session in archive.sessions().sessions
    ],
    "overview": lambda archive: _fields(archive.overview()),
    "charges": _charges,
    "by day": lambda archive: _sums(archive, "day"),
    "by session": lambda archive: _sums(archive, "session"),
    "by model": lambda archive: _sums(archive, "model"),
    "by tool": lambda archive: _sums(archive, "tool"),
    "by project": lambda archive: _sums(archive, "project"),
}
"""Queries of the archive, with the index and without. A database cannot store half a surrogate pair as text."""

TestTranscripts = Transcripts.TestCase
TestTranscripts.settings = settings(
    max_examples=scale_examples(40),
    stateful_step_count=25,
    phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes, and there are few steps anyway
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
