"""Redact the files of one session in memory, and check the result like an export."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from threadline.export.leak_check import find_leftovers_in_lines, raise_if_unsafe
from threadline.export.redacted_copies import LineRedactor
from threadline.redact import Finding, Level, SessionRedactor, Settings, format_vocabulary

# What only the redacted files reveal is learned, and the session is redacted again.
_MAX_ATTEMPTS = 3


class RedactedSession(Struct, frozen=True):
    """The files of a session without secrets and names."""

    files: tuple[bytes, ...]
    """The redacted bytes of each file."""
    redact_name: Callable[[str], str]
    """Redacts a name, such as a path, in the same way."""


def redact_session(files: Sequence[tuple[str, bytes]], settings: Settings) -> RedactedSession:
    """Redact the files of a session: their names, and their bytes. A secret that one reveals is hidden in all.

    Raises:
        UnsafeExport: a file would still contain something that must not be shared.
    """
    redactor = SessionRedactor(settings, format_vocabulary())
    lines = LineRedactor(redactor, images=False)
    for name, data in files:
        redactor.redactor.learn(name)
        lines.learn(_split_lines(data), lambda _done: None)
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        redacted = tuple(_redact_file(lines, name, data) for name, data in files)
        leftovers = _find_leftovers(redactor, redacted)
        if not leftovers or attempt == _MAX_ATTEMPTS or not redactor.redactor.learn_leftovers():
            break
    raise_if_unsafe(leftovers)
    return RedactedSession(redacted, lambda name: redactor.redactor.redact(name, "name"))


def _redact_file(lines: LineRedactor, name: str, data: bytes) -> bytes:
    return b"".join(lines.redact(_split_lines(data), name))


def _find_leftovers(redactor: SessionRedactor, files: Sequence[bytes]) -> list[Finding]:
    if redactor.level is Level.METRICS:
        return []  # no text is left
    lines = (line for data in files for line in _split_lines(data))
    return list(find_leftovers_in_lines(redactor, lines, "transcript"))


def _split_lines(data: bytes) -> list[bytes]:
    """The lines of a file; only a line feed ends one."""
    lines = data.split(b"\n")
    return [*(line + b"\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
