"""What `threadline watch` prints: which entries, and each as it comes."""

from __future__ import annotations

import re
import select
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from threadline.cli import output as out
from threadline.cli import screen
from threadline.cli.entries import entry_row
from threadline.cli.entry_text import entry_text
from threadline.cli.wanted import Wanted, Written
from threadline.model.entries import Entry
from threadline.model.found import Transcript
from threadline.render.live import Source, live_line
from threadline.render.outline import Item, Notice
from threadline.render.style import Style
from threadline.survey.follow import Followable, Follower
from threadline.survey.happening import Happening, is_quiet, tools_of

_SEPARATORS = re.compile(r"[\\/]+")


def batches(follower: Follower, seconds: float) -> Iterator[list[Followable]]:
    """What is new at each look, for ever: until nobody reads the answer any more."""
    while True:
        found = follower.poll()
        if found:
            yield found
        if not follower.is_behind:
            _check_reader()
            time.sleep(seconds)


def _check_reader() -> None:
    """A pipe whose reader has gone is noticed without writing to it: there may be nothing to write for hours."""
    with suppress(ValueError, AttributeError):  # no descriptor, or a system that cannot ask
        asking = select.poll()
        asking.register(sys.stdout.fileno(), 0)
        if any(event & select.POLLERR for _, event in asking.poll(0)):
            raise BrokenPipeError


class Watching:
    """Which entries are wanted, and what they tell of."""

    def __init__(self, wanted: Wanted | None, tools: tuple[str, ...], *, everything: bool) -> None:
        self._wanted = wanted
        self._tools = set(tools)
        self._everything = everything
        self._happening = Happening()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """What a wanted entry tells of, in the order of its blocks; nothing where it is not wanted."""
        items = self._of_tools(transcript, entry)
        if self._tools and not items:
            return []
        if self._is_unwanted(transcript, entry):
            return []
        if not self._everything:
            return [item for item in items if not is_quiet(item)]
        told = [item for item in items if not isinstance(item, Notice) or item.text]
        what = next((item.what for item in items if isinstance(item, Notice)), entry.kind)
        return told or [Notice(entry, what, entry_text(entry), quiet=True)]

    def written(self, transcript: Transcript, entry: Entry) -> Written | None:
        """The entry as `threadline entries` has it, where it is wanted."""
        unwanted = (self._tools and not self._of_tools(transcript, entry)) or self._is_unwanted(transcript, entry)
        return None if unwanted else Written(entry, transcript.agent)

    def _of_tools(self, transcript: Transcript, entry: Entry) -> list[Item]:
        items = self._happening.items(transcript, entry)
        return [item for item in items if tools_of(item) & self._tools] if self._tools else items

    def _is_unwanted(self, transcript: Transcript, entry: Entry) -> bool:
        return self._wanted is not None and not any(self._wanted.of((Written(entry, transcript.agent),)))


def print_entries(news: Iterator[list[Followable]], watching: Watching, output: str, limit: int | None) -> None:
    """Rows for a program, each as it comes."""
    written = (watching.written(transcript, entry) for batch in _flushed(news) for transcript, entry in batch)
    rows = islice((entry_row(one, data=False) for one in written if one is not None), limit)
    if output.startswith("csv"):
        out.print_rows(rows, output)
        return
    for row in rows:
        sys.stdout.buffer.write(out.json_text(row).encode() + b"\n")


def show(
    news: Iterator[list[Followable]], watching: Watching, limit: int | None, *, alone: bool, coloured: bool
) -> None:
    """A line for each thing that happens; `alone`: it is one session's, which need not be told."""
    style = Style(colour=coloured)
    projects: dict[tuple[str, str], str] = {}
    shown = 0
    for batch in _flushed(news):
        width = screen.width()
        for transcript, entry in batch:
            items = watching.items(transcript, entry)
            if not items:
                continue
            source = _source(transcript, entry, projects, alone=alone)
            for item in items:
                sys.stdout.write(style.line(live_line(item, source, entry.timestamp, width)) + "\n")
            shown += 1
            if limit is not None and shown >= limit:
                return


def _flushed(news: Iterator[list[Followable]]) -> Iterator[list[Followable]]:
    """The same; what was written for one batch is sent off before the next is waited for."""
    for batch in news:
        yield batch
        sys.stdout.flush()


def _source(transcript: Transcript, entry: Entry, projects: dict[tuple[str, str], str], *, alone: bool) -> Source:
    agent = Written(entry, transcript.agent).agent
    if alone:
        return Source(agent=agent)
    key = (str(transcript.home.path), transcript.folder)
    cwd: str | None = getattr(entry, "cwd", None)
    if cwd and key not in projects:
        projects[key] = _SEPARATORS.split(cwd.rstrip("\\/"))[-1] or cwd
    session = transcript.session or entry.session_id or transcript.path.stem
    return Source(session, projects.get(key, transcript.folder or "?"), agent)
