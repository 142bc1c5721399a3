"""Redacted copies of a session's transcripts, in a folder of their own, to be read like any other.

Everything is read once to learn secrets and names before any of it is copied, so what one line reveals is hidden in
all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Error
from threadline.export.output import make_unique, safe_name
from threadline.export.redaction_settings import format_vocabulary
from threadline.find import session_transcripts
from threadline.model.homes import Transcript
from threadline.model.places import SessionId
from threadline.parse import heads, open_transcript
from threadline.redact import Redactor, Settings

_MAX_LINE = 64 * 1024 * 1024


class SessionCopy(Struct, frozen=True):
    """A session that can be given out: its main transcript, the one it was made of, and what its files are called."""

    main: Path
    source: Path
    name: str
    files: tuple[tuple[Path, str], ...]
    size: int


def list_originals(mains: Iterable[Path], advance: Callable[[int], None] = lambda _done: None) -> list[SessionCopy]:
    """The sessions as they are, nothing taken out."""
    every = [(main, list_session_files(main)) for main in mains]
    names = make_unique(safe_name(main.stem) for main, _ in every)
    for _, found in every:
        advance(_total_size(found))
    return [
        SessionCopy(
            main,
            main,
            name,
            tuple((part.path, "/".join(part.below)) for part in found if part.is_lines),
            _total_size(found),
        )
        for (main, found), name in zip(every, names, strict=True)
    ]


class RedactedCopies:
    """Makes redacted copies of sessions in a folder; what one of them tells is known in all."""

    def __init__(self, folder: Path, settings: Settings, *, images: bool = False) -> None:
        self.redactor = Redactor(settings, format_vocabulary())
        self._folder = folder
        self._lines = LineRedactor(self.redactor, images=images)

    def make(self, mains: Iterable[Path], advance: Callable[[int], None] = lambda _done: None) -> list[SessionCopy]:
        """The copies, in the order of the sessions; `advance` is told how many bytes are done, each counted twice."""
        every = [(main, list_session_files(main)) for main in mains]
        for _main, found in every:
            for part in found:
                self.redactor.learn(part.path.name)
                for line in _read_lines(part):
                    self._lines.learn(line)
                    advance(len(line))
        names = make_unique(safe_name(self.redactor.redact(main.stem, "name")) for main, _ in every)
        # Sessions of one folder stay together, so that what goes on from another is told.
        groups = {folder: str(at) for at, folder in enumerate(dict.fromkeys(main.parent for main, _ in every))}
        return [
            self._copied(found, name, groups[main.parent], advance)
            for (main, found), name in zip(every, names, strict=True)
        ]

    def _copied(self, found: list[SessionFile], name: str, group: str, advance: Callable[[int], None]) -> SessionCopy:
        files: list[tuple[Path, str]] = []
        for part in found:
            below = self._below(part, found[0].path.stem, name)
            place = self._folder.joinpath(group, *below.split("/"))
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with place.open("wb") as file:
                for number, line in enumerate(_read_lines(part), 1):
                    file.write(self._lines.redact(line, f"{below}:{number}"))
                    advance(len(line))
            if part.is_lines:
                files.append((place, below))
        return SessionCopy(files[0][0], found[0].path, name, tuple(files), _total_size(found))

    def _below(self, part: SessionFile, stem: str, name: str) -> str:
        """Where a copy lies, below the session's folder; every name on the way without what must not be shared."""
        first = {stem: name, f"{stem}.jsonl": f"{name}.jsonl"}
        return "/".join(first.get(one) or _safe_file_name(self.redactor.redact(one, "name")) for one in part.below)


def _safe_file_name(name: str) -> str:
    """A file's name, as it was where it holds nothing strange."""
    stem, dot, end = name.partition(".")
    return f"{safe_name(stem, 'file')}{dot}{end}" if end in {"jsonl", "meta.json", "json"} else safe_name(name, "file")


def _total_size(found: list[SessionFile]) -> int:
    return sum(part.path.stat().st_size for part in found if part.is_lines)


def _read_lines(part: SessionFile) -> Iterator[bytes]:
    """The lines of a file, each with its end; one beyond all measure is a hole, and is left out."""
    with os.fdopen(open_transcript(part.path), "rb") as file:
        if not part.is_lines:
            yield file.read(_MAX_LINE)
            return
        while line := file.readline(_MAX_LINE):
            yield line


IMAGE_PLACEHOLDER = "<image>"
"""What stands where a picture's bytes stood."""
_MIN_BASE64_LENGTH = 256
_MEDIA_TYPE_KEYS = ("media_type", "mediaType", "mimeType")
_MAX_DEPTH = 300
_LINE_END = re.compile(rb"[\r\n]+\Z")


class LineRedactor:
    """Learns from lines and redacts them; pictures and documents in base64 go unless `images`."""

    def __init__(self, redactor: Redactor, *, images: bool) -> None:
        self._redactor = redactor
        self._images = images

    def learn(self, raw: bytes) -> None:
        """Learn what a line tells to be secret."""
        value = _decode_line(raw)
        if value is None:
            self._redactor.learn(raw.decode(errors="replace"))
        else:
            self._redactor.learn_value(strip_media(value))

    def redact(self, raw: bytes, place: str) -> bytes:
        """The line without it; its end stays as it is. What is no JSON is a text."""
        value = _decode_line(raw)
        end = found[0] if (found := _LINE_END.search(raw)) else b""
        if value is None:
            body = raw[: len(raw) - len(end)].decode(errors="replace")
            return self._redactor.redact(body, place).encode(errors="replace") + end
        shown = self._redactor.redact_value(strip_media(value), f"{place}$", learnt=True)
        return _encode_line(restore_images(shown, value) if self._images else shown) + end


def strip_media(value: Any) -> Any:
    """A tree without the bytes of pictures and documents; what holds none is given back as it is."""
    return _strip_media_below(value, 0)


def _strip_media_below(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        made = {key: _strip_media_below(one, depth + 1) for key, one in value.items()}
        if _is_media_source(value):
            made[_data_key(value)] = IMAGE_PLACEHOLDER
        return made
    if isinstance(value, list):
        return [_strip_media_below(one, depth + 1) for one in value]
    return value


def restore_images(shown: Any, value: Any) -> Any:
    """The redacted tree with the bytes of its pictures again."""
    if isinstance(value, dict) and isinstance(shown, dict):
        made = {key: restore_images(one, old) for (key, one), old in zip(shown.items(), value.values(), strict=False)}
        if _is_media_source(value) and _is_image(value):
            made[_data_key(value)] = value[_data_key(value)]
        return made
    if isinstance(value, list) and isinstance(shown, list):
        return [restore_images(one, old) for one, old in zip(shown, value, strict=False)]
    return shown


def _data_key(value: dict[str, Any]) -> str:
    return "data" if "data" in value else "base64"


def _is_media_source(value: dict[str, Any]) -> bool:
    """Whether it is the source of a picture or a document: base64 and a media type, in a message or a result."""
    data = value.get("data", value.get("base64"))
    if not isinstance(data, str) or not data:
        return False
    told = value.get("type") == "base64" or any(key in value for key in _MEDIA_TYPE_KEYS)
    return told or ("base64" in value and len(data) > _MIN_BASE64_LENGTH)


def _is_image(value: dict[str, Any]) -> bool:
    return any(str(value.get(key)).startswith("image/") for key in (*_MEDIA_TYPE_KEYS, "type"))


def _decode_line(raw: bytes) -> Any:
    """The line's JSON; None where it is none. Python's reader takes what the fast one refuses: half pairs, NaN."""
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


_MAX_HEADS = 40


class SessionFile(Struct, frozen=True):
    """One file of a session, and where it lies below the folder of its main transcript."""

    path: Path
    below: tuple[str, ...]
    is_lines: bool = True


def list_session_files(main: Path) -> list[SessionFile]:
    """The files of a session, its main transcript first."""
    inside, beside = session_transcripts(main)
    id_ = _read_session_id(main)
    own = [one for one in beside if one.path != main and id_ is not None and _read_session_id(one.path) == id_]
    found = [SessionFile(main, (main.name,))]
    for transcript in (*inside, *own):
        found += _with_meta(transcript, main)
    return found


def total_transcript_size(found: list[SessionFile]) -> int:
    """How many bytes its transcripts have."""
    return sum(part.path.stat().st_size for part in found if part.is_lines)


def _with_meta(transcript: Transcript, main: Path) -> list[SessionFile]:
    below = _relative_parts(transcript.path, main)
    meta = transcript.meta
    return [
        SessionFile(transcript.path, below),
        *([SessionFile(meta, _relative_parts(meta, main), is_lines=False)] if meta else []),
    ]


def _relative_parts(path: Path, main: Path) -> tuple[str, ...]:
    """Where a file lies; one of another project's folder, that the session went on to, as if it were here."""
    parts_ = path.parts
    start = max((at for at, name in enumerate(parts_) if name == main.stem), default=len(parts_) - 1)
    return parts_[start:]


def _read_session_id(path: Path) -> SessionId | None:
    try:
        named = (head.session_id for head in islice(heads(path), _MAX_HEADS))
        return next((one for one in named if one is not None), None)
    except Error:
        return None
