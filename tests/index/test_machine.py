"""The law of the index: whatever happens to transcripts, a refresh leaves what one made anew would tell.

`--hypothesis-profile=long` tries thousands of steps instead of some hundreds.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from pprint import pformat
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace
from tests.index.content import anew, content, differences
from tests.index.parts import PARTS, PROJECTS, Pens, names
from tests.index.test_ledger import told
from tests.profiles import scale_examples
from tests.transcripts import lines, transcript

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
    """A home in which several write, and an index of it.

    In half of the runs everything bears the time at which it was written, in the others the clock goes on by seconds:
    then equal times are proof, and nothing is looked at twice.
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

    def teardown(self) -> None:
        """The last word is always checked."""
        try:
            if not self.is_checked:
                self._check()
        finally:
            shutil.rmtree(self.folder)

    # What the rules are made of.

    def paths(self) -> list[Path]:
        """All transcripts there are, in order."""
        return sorted(self.home.glob("projects/**/*.jsonl"))

    def path(self, number: int) -> Path:
        """One that is there."""
        there = self.paths()
        return there[number % len(there)]

    def done(self, *paths: Path) -> None:
        """Something was written: give it its time."""
        type(self).steps += 1
        self.is_checked = False
        self.now += SECOND
        for path in paths:
            if self.is_slow and path.exists():
                os.utime(path, ns=(self.now, self.now))

    def some_lines(self, path: Path, parts: Iterable[str]) -> bytes:
        """What is written to a transcript next."""
        pen = self.pens.of(path)
        return lines(*transcript(*(PARTS[part](self.pens) for part in parts), pen=pen))

    def append(self, path: Path, data: bytes) -> None:
        """Write to its end."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)

    # What happens to transcripts.

    @precondition(lambda self: self.is_slow is None)
    @rule(is_slow=st.booleans(), parts=some_parts)
    def begin(self, is_slow: bool, parts: list[str]) -> None:
        """The first session."""
        self.is_slow = is_slow
        self.begin_another(next(iter(sorted(PROJECTS))), "1", parts)

    @rule(folder=st.sampled_from(sorted(PROJECTS)), name=names, parts=some_parts)
    def begin_another(self, folder: str, name: str, parts: list[str]) -> None:
        """A transcript of a session or an agent begins, perhaps in a new project, or one goes on."""
        path = self.pens.place(self.home, folder, name)
        self.append(path, self.some_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts)
    def append_lines(self, number: int, parts: list[str]) -> None:
        """Whole lines."""
        path = self.path(number)
        self.append(path, self.some_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts, share=shares, keeps_rest=st.booleans())
    def append_a_part(self, number: int, parts: list[str], share: float, keeps_rest: bool) -> None:
        """Cut off at any byte, inside of a character too; the rest may come later."""
        path = self.path(number)
        data = self.some_lines(path, parts)
        cut = int(len(data) * share)
        self.append(path, data[:cut])
        if keeps_rest:
            self.rest[path] = data[cut:]
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, share=shares, lines_more=st.integers(1, 6))
    def append_again(self, number: int, share: float, lines_more: int) -> None:
        """Lines that it has already, as a session that is resumed may have them."""
        path = self.path(number)
        told = path.read_bytes().splitlines(keepends=True)
        first = int(len(told) * share)
        self.append(path, b"".join(told[first : first + lines_more]))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts)
    def append_without_an_end(self, number: int, parts: list[str]) -> None:
        """The last line is whole but for its newline."""
        path = self.path(number)
        self.append(path, self.some_lines(path, parts)[:-1])
        self.rest[path] = b"\n"
        self.done(path)

    @precondition(lambda self: any(path.exists() for path in self.rest))
    @rule()
    def complete(self) -> None:
        """What was left out of it comes."""
        path = next(path for path in sorted(self.rest) if path.exists())
        self.append(path, self.rest.pop(path))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(writers=st.lists(st.tuples(which, some_parts), min_size=2, max_size=5), seed=st.integers(0, 99))
    def several_write(self, writers: list[tuple[int, list[str]]], seed: int) -> None:
        """By turns, a piece each, some to the same transcript; a refresh may come in between."""
        pieces: list[tuple[int, Path, bytes]] = []
        order = random.Random(seed)  # noqa: S311 - seeded, so that a failure comes again
        for writer, (number, parts) in enumerate(writers):
            path = self.path(number)
            data = self.some_lines(path, parts)
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
        """At any byte."""
        path = self.path(number)
        os.truncate(path, int(path.stat().st_size * share))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, lines_less=st.integers(0, 3))
    def truncate_at_a_line(self, number: int, lines_less: int) -> None:
        """What has no end goes, and some lines before it."""
        path = self.path(number)
        whole = path.read_bytes().rpartition(b"\n")[0].splitlines(keepends=True)
        whole = [*whole[:-1], whole[-1] + b"\n"] if whole else []
        os.truncate(path, len(b"".join(whole[: len(whole) - lines_less])))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, share=shares, there=st.sampled_from([b"a", b"1", b" ", b'"', b"\n", b"\xff"]))
    def rewrite_in_place(self, number: int, share: float, there: bytes) -> None:
        """Another byte, in the same file, of the same length. In the middle it is found if nothing else happens too."""
        path = self.path(number)
        size = path.stat().st_size
        if not size:
            return
        if size > 2 * END:
            self.refresh_once()
        with path.open("r+b") as file:
            file.seek(int((size - 1) * share))
            file.write(there)
        self.done(path)
        if size > 2 * END:
            os.utime(path, ns=(self.now + size, self.now + size))
            self.refresh_once()

    @precondition(lambda self: self.paths())
    @rule(number=which, other=which, how=st.sampled_from(["copy", "half", "reversed", "same", "other session"]))
    def replace(self, number: int, other: int, how: str) -> None:
        """Another file is put in its place."""
        path, source = self.path(number), self.path(other)
        data = (path if how == "same" else source).read_bytes()
        if how == "half":
            data = data[: len(data) // 2]
        elif how == "reversed":
            data = b"".join(reversed(data.splitlines(keepends=True)))
        elif how == "other session":
            data = data.replace(self.pens.of(source).session.encode(), self.pens.of(path).session.encode())
        beside = path.with_name("beside.tmp")
        beside.write_bytes(data)
        self.done(beside)
        beside.replace(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, folder=st.sampled_from(sorted(PROJECTS)), name=names, renames=st.booleans())
    def fork(self, number: int, folder: str, name: str, renames: bool) -> None:
        """A session goes on in another file, which begins with a copy of the first."""
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
        """To another name or project, where one may lie already."""
        source, path = self.path(number), self.pens.place(self.home, folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        source.replace(path)
        if source in self.rest:
            self.rest[path] = self.rest.pop(source)
        self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which, folder=st.sampled_from(sorted(PROJECTS)))
    def move_to_another_project(self, number: int, folder: str) -> None:
        """By the same name."""
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
        """Two change their names."""
        one, two = self.path(number), self.path(other)
        if one != two:
            aside = self.home / "aside"
            one.rename(aside)
            two.rename(one)
            aside.rename(two)
            self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which)
    def delete(self, number: int) -> None:
        """It is gone."""
        self.path(number).unlink()
        self.done()

    @precondition(lambda self: self.paths())
    @rule(folder=st.sampled_from(sorted(PROJECTS)))
    def delete_project(self, folder: str) -> None:
        """All of a project is gone."""
        shutil.rmtree(self.home / "projects" / folder, ignore_errors=True)
        self.done()

    @precondition(lambda self: self.paths())
    @rule(number=which, parts=some_parts, is_same=st.booleans(), refreshes=st.booleans())
    def delete_and_recreate(self, number: int, parts: list[str], is_same: bool, refreshes: bool) -> None:
        """It comes back, with the same bytes or others, perhaps as the very file to the system."""
        path = self.path(number)
        data = path.read_bytes()
        path.unlink()
        self.done()
        if refreshes:
            refresh_index(self.index, homes(self.home))
        self.append(path, data if is_same else self.some_lines(path, parts))
        self.done(path)

    @precondition(lambda self: self.paths())
    @rule(number=which, seconds=st.sampled_from([-1_000_000, -1, 0, 1, 1_000_000]))
    def touch(self, number: int, seconds: int) -> None:
        """It bears another time, long ago or still to come."""
        path = self.path(number)
        self.done()
        time = path.stat().st_mtime_ns + seconds * SECOND
        os.utime(path, ns=(time, time))

    # What is asked for.

    @rule(how=st.sampled_from(["once", "twice", "fresh", "fresh", "bounded", "rebuilt"]))
    def refresh(self, how: str) -> None:
        """In any of the ways in which an index comes to be up to date."""
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
        """The usual way."""
        refresh_index(self.index, homes(self.home))

    def refresh_twice(self) -> None:
        """The second has nothing to do; what was written to just now it looks at again."""
        self.refresh_once()
        done = refresh_index(self.index, homes(self.home))
        assert (done.entries, done.gone) == (0, 0)

    def refresh_fresh(self, most: int | None) -> None:
        """As the archive does."""
        made = Index.open_fresh(self.index, homes(self.home), max_bytes=most)
        assert made is not None
        made.close()

    def refresh_rebuilt(self) -> None:
        """Made anew in its place."""
        rebuild_index(self.index, homes(self.home))

    def _check(self) -> None:
        type(self).checks += 1
        self.is_checked = True
        refresh_index(self.index, homes(self.home))
        other_than_anew = differences(content(self.index), anew(self.home, self.folder))
        assert not other_than_anew, pformat(other_than_anew, width=200)
        with threadline.open(self.home, index=self.index) as one, threadline.open(self.home, index=False) as other:
            answers = [{name: ask(archive) for name, ask in ANSWERS.items()} for archive in (one, other)]
        other_than_without = differences(*answers)
        assert not other_than_without, pformat(other_than_without, width=200)


def _fields(told: Any) -> list[Any]:
    return [(name, getattr(told, name)) for name in told.__struct_fields__]


def _charges(archive: threadline.archive.Archive) -> list[Any]:
    return sorted(map(told, archive.ledger()), key=repr)


def _sums(archive: threadline.archive.Archive, *names: str) -> Any:
    return sorted(archive.ledger().by(*names), key=repr)


ANSWERS: dict[str, Callable[[threadline.archive.Archive], Any]] = {
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
"""What the archive is asked, with the index and without. Half of a character is no text to a database."""

TestTranscripts = Transcripts.TestCase
TestTranscripts.settings = settings(
    max_examples=scale_examples(40),
    stateful_step_count=25,
    phases=(Phase.explicit, Phase.generate),  # to make a failure smaller takes minutes; its steps are few as they are
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
