"""The smallest index there is: the lines of all transcripts, kept up to date as `changes` says."""

from __future__ import annotations

import os
from pathlib import Path

from threadline.find import detect_changes, make_fingerprint
from threadline.model.homes import ChangeKind, Home, TranscriptChange, TranscriptChanges, TranscriptFingerprint

SECOND = 1_000_000_000
KEEPS = frozenset({ChangeKind.GROWN, ChangeKind.MOVED})


def whole_lines(data: bytes) -> list[bytes]:
    """The lines that end."""
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True) if b"\r" not in data else _by_newline(data)


def _by_newline(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


class HeldLines:
    """What is known of the transcripts of a home, and the lines that were read from them."""

    def __init__(self, *homes: Path) -> None:
        self.homes = [Home(home, "option") for home in homes]
        self.known: dict[str, TranscriptFingerprint] = {}
        self.lines: dict[str, list[bytes]] = {}
        self.read = 0

    def refresh(self, now_ns: int) -> TranscriptChanges:
        """Do what `changes` says, and give that."""
        found = detect_changes(self.known.values(), self.homes, now_ns=now_ns)
        for change in found.changed:
            self._apply(change)
        for one in found.touched:
            self.known[one.path] = one
        return found

    def kinds(self, now_ns: int) -> list[str]:
        """Refresh, and give the kinds of what changed."""
        return [str(change.kind) for change in self.refresh(now_ns).changed]

    def _apply(self, change: TranscriptChange) -> None:
        if change.kind is ChangeKind.UNREADABLE:
            return
        kept: list[bytes] = []
        if change.before is not None:
            del self.known[change.before.path]
            kept = self.lines.pop(change.before.path)
        if change.transcript is None or change.stat is None:
            return
        path = os.fspath(change.transcript.path)
        assert path not in self.known  # what is applied in order never meets a name that is taken
        if change.kind not in KEEPS:
            kept = []
        assert sum(map(len, kept)) == change.read_from
        with Path(path).open("rb") as file:
            file.seek(change.read_from)
            data = file.read()
        self.read += len(data)
        self.lines[path] = kept + whole_lines(data)
        read_to = sum(map(len, self.lines[path]))
        before = change.before if change.kind in KEEPS else None
        last = self.lines[path][-1] if self.lines[path] else b""
        self.known[path] = make_fingerprint(change.stat, read_to, before=before, last=last)
