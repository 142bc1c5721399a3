"""A minimal index: the lines of all transcripts, updated as `detect_changes` reports."""

from __future__ import annotations

import os
from pathlib import Path

from threadline.find import detect_changes, make_fingerprint
from threadline.model.homes import ChangeKind, Home, TranscriptChange, TranscriptChanges, TranscriptFingerprint

SECOND = 1_000_000_000
KEEPS_LINES = frozenset({ChangeKind.GROWN, ChangeKind.MOVED})


def whole_lines(data: bytes) -> list[bytes]:
    """Return the complete lines."""
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True) if b"\r" not in data else _by_newline(data)


def _by_newline(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


class LineStore:
    """Fingerprints of the transcripts of a home, and the lines that were read from them."""

    def __init__(self, *homes: Path) -> None:
        self.homes = [Home(home, "option") for home in homes]
        self.fingerprints: dict[str, TranscriptFingerprint] = {}
        self.lines: dict[str, list[bytes]] = {}
        self.bytes_read = 0

    def refresh(self, now_ns: int) -> TranscriptChanges:
        """Apply what `detect_changes` reports, and return it."""
        changes = detect_changes(self.fingerprints.values(), self.homes, now_ns=now_ns)
        for change in changes.changed:
            self._apply(change)
        for fingerprint in changes.touched:
            self.fingerprints[fingerprint.path] = fingerprint
        return changes

    def kinds(self, now_ns: int) -> list[str]:
        """Refresh, and return the kinds of the changes."""
        return [str(change.kind) for change in self.refresh(now_ns).changed]

    def _apply(self, change: TranscriptChange) -> None:
        if change.kind is ChangeKind.UNREADABLE:
            return
        lines: list[bytes] = []
        if change.before is not None:
            del self.fingerprints[change.before.path]
            lines = self.lines.pop(change.before.path)
        if change.transcript is None or change.stat is None:
            return
        path = os.fspath(change.transcript.path)
        assert path not in self.fingerprints  # what is applied in order never meets a name that is taken
        if change.kind not in KEEPS_LINES:
            lines = []
        assert sum(map(len, lines)) == change.read_from
        with Path(path).open("rb") as file:
            file.seek(change.read_from)
            data = file.read()
        self.bytes_read += len(data)
        self.lines[path] = lines + whole_lines(data)
        read_to = sum(map(len, self.lines[path]))
        before = change.before if change.kind in KEEPS_LINES else None
        last = self.lines[path][-1] if self.lines[path] else b""
        self.fingerprints[path] = make_fingerprint(change.stat, read_to, before=before, last=last)
