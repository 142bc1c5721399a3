"""Make redacted copies of a session's transcripts in a separate folder, where they can be read like any other.

Everything is read once to learn secrets and names before anything is copied, so a secret that one line reveals is
hidden in all lines.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.export.output import make_unique, safe_name
from threadline.home_files import open_transcript
from threadline.load import agent_transcripts
from threadline.model.homes import NO_HOMES, Homes, Transcript
from threadline.redact import SessionRedactor, Settings, format_vocabulary

_MAX_LINE = 64 * 1024 * 1024


class SessionCopy(Struct, frozen=True):
    """A session to export: the copy of its main transcript, the original, its name, and its files with their names.

    `id` is the session's id if the name of the copy is another, because a file cannot be called so everywhere.
    `sources` are the originals of `files`, and `side_files` what Claude Code wrote about its agents.
    """

    main: Path
    source: Path
    name: str
    files: tuple[tuple[Path, str], ...]
    size: int
    id: str | None = None
    sources: tuple[Path, ...] = ()
    side_files: tuple[tuple[Path, str], ...] = ()


def list_originals(mains: Iterable[Path], homes: Homes, advance: Callable[[int], None]) -> list[SessionCopy]:
    """The sessions as they are, without redaction."""
    sessions = [(main, list_session_files(main, homes)) for main in mains]
    names = make_unique(safe_name(main.stem) for main, _files in sessions)
    for _main, files in sessions:
        advance(total_transcript_size(files))
    return [
        SessionCopy(
            main,
            main,
            name,
            tuple((file.path, "/".join(file.below)) for file in files if file.is_lines),
            total_transcript_size(files),
            sources=tuple(file.path for file in files if file.is_lines),
            side_files=tuple((file.path, "/".join(file.below)) for file in files if not file.is_lines),
        )
        for (main, files), name in zip(sessions, names, strict=True)
    ]


class RedactedCopies:
    """Makes redacted copies of sessions in a folder. A secret that one session reveals is hidden in all sessions."""

    def __init__(self, folder: Path, settings: Settings, *, images: bool = False) -> None:
        self.sessions = SessionRedactor(settings, format_vocabulary())
        self.redactor = self.sessions.redactor
        self._folder = folder
        self._lines = LineRedactor(self.sessions, images=images)

    def make(
        self,
        mains: Iterable[Path],
        homes: Homes = NO_HOMES,
        advance: Callable[[int], None] = lambda _done: None,
    ) -> list[SessionCopy]:
        """Make the copies, in the order of the sessions.

        `advance` gets the number of processed bytes. Each byte counts twice.
        """
        sessions = [(main, list_session_files(main, homes)) for main in mains]
        for _main, files in sessions:
            for file in files:
                self.redactor.learn(file.path.name)
                self._lines.learn(_read_lines(file), advance)
        ids = [self.redactor.redact(main.stem, "name") for main, _files in sessions]
        names = make_unique(map(safe_name, ids))
        # Copies of sessions from one folder are in one folder, so that continuations are recognised.
        groups = {folder: str(at) for at, folder in enumerate(dict.fromkeys(main.parent for main, _ in sessions))}
        return [
            replace(self._copy_session(files, name, groups[main.parent], advance), id=id_ if id_ != name else None)
            for (main, files), name, id_ in zip(sessions, names, ids, strict=True)
        ]

    def _copy_session(
        self, files: list[SessionFile], name: str, group: str, advance: Callable[[int], None]
    ) -> SessionCopy:
        copies: list[tuple[Path, str]] = []
        side_files: list[tuple[Path, str]] = []
        for source in files:
            below = self._redact_path(source, files[0].path.stem, name)
            path = self._folder.joinpath(group, *below.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path.open("wb") as copy:
                copy.writelines(self._lines.redact(_count_bytes(_read_lines(source), advance), below))
            (copies if source.is_lines else side_files).append((path, below))
        return SessionCopy(
            copies[0][0],
            files[0].path,
            name,
            tuple(copies),
            total_transcript_size(files),
            sources=tuple(file.path for file in files if file.is_lines),
            side_files=tuple(side_files),
        )

    def _redact_path(self, file: SessionFile, stem: str, name: str) -> str:
        """The path of a copy inside the session's folder, with every name redacted."""
        own_names = {stem: name, f"{stem}.jsonl": f"{name}.jsonl"}
        return "/".join(
            own_names.get(part) or _safe_file_name(self.redactor.redact(part, "name")) for part in file.below
        )


def _safe_file_name(name: str) -> str:
    """A safe name for a file, with its extension if that is one of Claude Code's."""
    stem, dot, end = name.partition(".")
    return f"{safe_name(stem, 'file')}{dot}{end}" if end in {"jsonl", "meta.json", "json"} else safe_name(name, "file")


def _read_lines(source: SessionFile) -> Iterator[bytes]:
    """The lines of a file with their line ends. Lines over 64 MB are skipped, because a secret could span two reads."""
    with os.fdopen(open_transcript(source.path), "rb") as file:
        if not source.is_lines:
            yield file.read(_MAX_LINE)
            return
        is_too_long = False
        while line := file.readline(_MAX_LINE):
            is_complete = line.endswith(b"\n")
            is_in_limit = is_complete or len(line) < _MAX_LINE
            if is_in_limit and not is_too_long:
                yield line
            is_too_long = not is_in_limit


def _count_bytes(lines: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for line in lines:
        yield line
        advance(len(line))


IMAGE_PLACEHOLDER = "<image>"
"""Replaces the bytes of images and documents."""
_MIN_BASE64_LENGTH = 256
_MEDIA_TYPE_KEYS = ("media_type", "mediaType", "mimeType")
MAX_DEPTH = 300


class LineRedactor:
    """Learns secrets from lines and redacts them. Removes images and documents; with `images`, images are kept."""

    def __init__(self, redactor: SessionRedactor, *, images: bool) -> None:
        self._redactor = redactor
        self._images = images

    def learn(self, lines: Iterable[bytes], advance: Callable[[int], None]) -> None:
        """Learn the secrets and names in lines. `advance` gets the length of each."""
        self._redactor.learn_all(self._decode(lines, advance))

    def _decode(self, lines: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[Any]:
        for raw in lines:
            value = _decode_line(raw)
            advance(len(raw))
            if value is None:
                self._redactor.learn(raw.decode(errors="replace"))
            else:
                yield _strip_line_media(value, raw)

    def redact(self, lines: Iterable[bytes], name: str) -> Iterator[bytes]:
        """Redact the lines of a file; line ends stay as they are. A line that is not JSON is redacted as text."""
        originals: deque[tuple[Any, bytes]] = deque()
        for redacted, is_safe in self._redactor.redact_all(self._list_records(lines, name, originals)):
            value, end = originals.popleft()
            if value is None:
                yield str(redacted).encode(errors="replace") + end
                continue
            line = _encode_line(restore_images(redacted, value) if self._images else redacted) + end
            if is_safe:
                self._redactor.note_safe(line)
            yield line

    def _list_records(
        self, lines: Iterable[bytes], name: str, originals: deque[tuple[Any, bytes]]
    ) -> Iterator[tuple[Any, str]]:
        """The records of lines and their places. Each is added to `originals` with its line end."""
        for number, raw in enumerate(lines, 1):
            value = _decode_line(raw)
            body = raw.rstrip(b"\r\n")
            originals.append((value if self._images or value is None else True, raw[len(body) :]))
            if value is None:
                yield body.decode(errors="replace"), f"{name}:{number}"
            else:
                yield _strip_line_media(value, raw), f"{name}:{number}$"


def strip_media(value: Any) -> Any:
    """A JSON value without the bytes of images and documents."""
    return _strip_media_below(value, 0)


def _strip_line_media(value: Any, raw: bytes) -> Any:
    """The same for the value of a line. Most lines show that they contain no media, and need no copy."""
    may_have_media = b'data"' in raw or b'base64"' in raw or b"\\u00" in raw
    return strip_media(value) if may_have_media or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH else value


def _strip_media_below(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        stripped = {key: _strip_media_below(item, depth + 1) for key, item in value.items()}
        if is_media_source(value):
            stripped[data_key(value)] = IMAGE_PLACEHOLDER
        return stripped
    if isinstance(value, list):
        return [_strip_media_below(item, depth + 1) for item in value]
    return value


def restore_images(redacted: Any, original: Any) -> Any:
    """Put the bytes of images back into a redacted value."""
    if isinstance(original, dict) and isinstance(redacted, dict):
        pairs = zip(redacted.items(), original.values(), strict=False)
        restored = {key: restore_images(item, old) for (key, item), old in pairs}
        if is_media_source(original) and _is_image(original):
            restored[data_key(original)] = original[data_key(original)]
        return restored
    if isinstance(original, list) and isinstance(redacted, list):
        return [restore_images(item, old) for item, old in zip(redacted, original, strict=False)]
    return redacted


def data_key(value: dict[str, Any]) -> str:
    """The key of the bytes in a media source."""
    return "data" if "data" in value else "base64"


def is_media_source(value: dict[str, Any]) -> bool:
    """Whether an object is the source of an image or a document: base64 and a media type."""
    data = value.get("data", value.get("base64"))
    if not isinstance(data, str) or not data:
        return False
    has_type = value.get("type") == "base64" or any(key in value for key in _MEDIA_TYPE_KEYS)
    return has_type or ("base64" in value and len(data) > _MIN_BASE64_LENGTH)


def _is_image(value: dict[str, Any]) -> bool:
    return any(str(value.get(key)).startswith("image/") for key in (*_MEDIA_TYPE_KEYS, "type"))


def _decode_line(raw: bytes) -> Any:
    """The JSON of a line; None if it is not JSON. Python's decoder accepts lone surrogates and NaN, unlike msgspec."""
    if not raw.strip():
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _encode_line(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError, OverflowError, ValueError):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


class SessionFile(Struct, frozen=True):
    """One file of a session, and its path relative to the folder of the main transcript."""

    path: Path
    below: tuple[str, ...]
    is_lines: bool = True


def list_session_files(main: Path, homes: Homes = NO_HOMES) -> list[SessionFile]:
    """The files of a session, its main transcript first. Some may exist only in kept homes among `homes`."""
    files = [SessionFile(main, (main.name,))]
    for transcript in agent_transcripts(main, homes):
        files += _with_meta(transcript, main)
    return files


def total_transcript_size(files: list[SessionFile]) -> int:
    """The total size of a session's transcripts."""
    return sum(file.path.stat().st_size for file in files if file.is_lines)


def _with_meta(transcript: Transcript, main: Path) -> list[SessionFile]:
    below = _relative_parts(transcript.path, main)
    meta = transcript.meta
    return [
        SessionFile(transcript.path, below),
        *([SessionFile(meta, _relative_parts(meta, main), is_lines=False)] if meta else []),
    ]


def _relative_parts(path: Path, main: Path) -> tuple[str, ...]:
    """The path of a file relative to the session's folder, even if that is in another project's folder."""
    parts = path.parts
    start = max((at for at, name in enumerate(parts) if name == main.stem), default=len(parts) - 1)
    return parts[start:]
